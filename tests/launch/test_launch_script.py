"""Bash itself reads a launch script, with nothing to run; what only a run can tell stays open."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit.errors import DataError, RewardkitError, UsageError
from rewardkit.launch.script_import import script_runs
from rewardkit.launch.script_import.importer import MAX_SCRIPT, import_script, read_script
from rewardkit.launch.script_import.script_runs import MARK, ScriptRuns, display
from tests.tables import every

pytestmark = pytest.mark.usefixtures("shared_bash")

MAIN = "python3 -m verl.trainer.main_ppo"
TAIL = f"\n{MAIN} a.b=$x"


def explore(script, env=None, arguments=()):
    runs = ScriptRuns(script, "run.sh", env or {}, list(arguments))
    try:
        return runs.explore()
    finally:
        runs.close()


def words(script, env=None, arguments=()):
    """The arguments of all trainers, as a person reads them."""
    return list(map(display, explore(script, env, arguments).arguments()))


def one(script, env=None, arguments=()):
    (word,) = words(script + TAIL, env, arguments)
    return word.partition("=")[2]


def by_bash(script, *arguments):
    """What bash passes to a stub of Python, which prints it."""
    stub = "python3() { printf '%s\\0' \"${@:3}\"; }\n"
    run = ["bash", "--norc", "-c", f"{stub}{script}", "run.sh", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, env={"HOME": str(Path.home())})
    return done.stdout.split("\0")[:-1]


#: Lines and a word after them, each a subshell of one script, in which our stand-ins or edits take part.
SHELL = [
    ("y=5", "${q:-${y}}"),
    ("", '${q:-"${p:-a}"}'),
    ("x=1", "${x:+set}/${q:+set}/${x+y\\ z}."),
    ("", "a'b'\"c\"\\d/a\\ b/\"['a',\\\"b\\\"]\"/x#y"),
    ("i=3; ((i++)); ((i *= 2))", "$i"),
    ("", "$(basename /a/b.sh .sh)/$(dirname /a/b/c)/$(dirname a)"),
    ('x=; for a in "$@" "${B[@]}"; do x=b; done', "$x."),
    ("pushd / >/dev/null; x=$PWD; popd >/dev/null", "$x"),
    ('x=$(cat <<EOF\n  "$((1+1))" \\$x\nEOF\n)', '"$x"'),
    ("set -e; f() { return 3; }; f || x=$?", "$x"),
    ("x=1; [[ $x == 1 && a == a ]] && x=2; ((x == 2)) && x=3", "$x"),
    ("x=a; case $x in b) x=c ;; a) x=d ;; esac", "$x"),
    ("f() { while [[ $# -gt 0 ]]; do case $1 in --x) x=$2; shift 2 ;; *) shift ;; esac; done; }; f --y --x 3", "$x"),
    ("f() { x=a${1-}${2-}; }; f b", "$x"),
    ("set -x; x=8 2>/dev/null; echo a >/dev/null 2>&1; echo b &>/dev/null", "$x"),
    ("(exit 3) || x=5; ! false && x=$x$x", "$x"),
    ("while read -r l; do x=$l; done <<< 'a b'", '"$x"'),
]  # fmt: skip


def test_variables_quotes_expansions_and_control_flow_are_those_of_bash():
    script = "\n".join(f"(\n{lines}\n{MAIN} a.b={word}\n)" for lines, word in SHELL)
    expected = [text.replace(f"={Path.home()}/", "=~/") for text in by_bash(script)]
    assert len(expected) >= len(SHELL)
    assert words(script) == expected


STATEMENTS = st.sampled_from(
    [
        "x=1", 'x="$x$y"', "y=${x:-2}", "x=$((x + 1))", "y=$((${y:-0} * 3))", "x=${y%2*}", "y=${x/1/a}",
        "A+=($x)", "x=${A[0]:-5}", "y=${#A[@]}", "x=${x^^}", "f() { local y=$1; x=$y$y; }", "f $y",
        '[ "$x" = 1 ] && y=7', "[[ $y == *7* ]] || y=8", "set -- $x $y", "x=$#", "y=${1:-z}",
    ]
)  # fmt: skip


TESTS = st.sampled_from(['[ "$x" = 1 ]', "[[ -n $y ]]", "((${x:-0} > 1))"])


def block(inner):
    body = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        st.tuples(TESTS, body, body).map(lambda t: f"if {t[0]}; then\n{t[1]}\nelse\n{t[2]}\nfi"),
        body.map(lambda text: f"for i in 1 $x; do\n{text}\ndone"),
        st.tuples(body, body).map(lambda t: f"case $x in 1*)\n{t[0]}\n;;\n*)\n{t[1]}\n;;\nesac"),
        body.map(lambda text: f"(\n{text}\n)"),
    )


@pytest.mark.full
@given(st.lists(st.recursive(STATEMENTS, block, max_leaves=6), min_size=1, max_size=6))
def test_a_script_of_known_values_has_the_values_of_bash_or_is_refused(statements):
    lines = "x=; y=; A=()\nf() { :; }\n" + "\n".join(statements)
    script = f'{lines}\n{MAIN} "a.x=$x" "a.y=${{y-}}" "a.z=${{A[*]}}"'
    try:
        run = explore(script)
    except DataError:
        return
    known = [display(word) for word in run.arguments() if not MARK.search(word)]
    assert set(known) <= set(by_bash(script))


#: Ways to start one run, each a subshell of one script.
STARTS = [
    f"nohup {MAIN} a.b=1 > log.txt 2>&1 &",
    f"{MAIN} \\\n  a.b=1 2>&1 | tee log_$(date +%F).txt",
    f"ray job submit --address=http://h:8265 --runtime-env-json='{{}}' -- {MAIN} a.b=1",
    "cd verl && python3 verl/trainer/main_ppo.py a.b=1",
    "uv run --frozen -- python -m verl.trainer.main_ppo a.b=1",
    f"bash -c '{MAIN} a.b=1'",
    f"echo a.b=1 | xargs {MAIN}",
    f"CMD='{MAIN} a.b=1'\neval \"$CMD\"",
    f'CMD=({MAIN} a.b=1)\n"${{CMD[@]}}" "$@"',
    "run() { $1 -m verl.trainer.main_ppo a.b=1; }\nrun /opt/venv/bin/python3",
    f"while true; do {MAIN} a.b=1; sleep 9; done",
    f"cat > x.yaml <<EOF\nc.d=2\n{MAIN} e.f=3\nEOF\n{MAIN} a.b=1",
    f"set -eo pipefail; export PATH=/x:$PATH; ulimit -n 65535; trap 'kill 0' EXIT; {MAIN} a.b=1",
]


def test_the_command_may_stand_anywhere_in_a_script():
    run = explore("\n".join(f"(\n{start}\n)" for start in STARTS))
    assert {start.module for start in run.starts} == {"verl.trainer.main_ppo"}
    assert list(map(display, run.arguments())) == ["a.b=1"] * len(STARTS)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "run.sh").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"run\.sh: not UTF-8"):
        read_script(tmp_path / "run.sh")


def test_what_only_a_run_can_tell_is_a_mark_that_no_expansion_loses():
    script = (
        'export LC_ALL=C LANG=C\nZ=$(nproc)\nS=$(git rev-parse HEAD)\nmapfile -t B <<< "$(ls)"\n'
        f"{MAIN} a.b=$X/y a.c=$(date '+%F %H') a.d=`hostname` a.e=$Z a.f=${{X%%.*}} a.g=$1 a.h=$((X * 2)) "
        "a.i=1 a.j=run-${S:0:7} a.k=${B[0]^^} a.l=$((RANDOM % 9 + 1)) a.m=$$ a.n=$UID a.o=${Y:-$X}"
    )
    known = {word for word in explore(script).arguments() if not MARK.search(word)}
    assert known == {"a.i=1"}
    shown = ["a.b=$X/y", "a.c=$(date +%F %H)", "a.d=$(hostname)", "a.e=$(nproc)", "a.f=$X"]
    assert words(script)[:5] == shown
    given = words(f"Z=$(nproc)\n{MAIN} a.b=$X/y a.e=$Z a.g=$1", {"X": "1", "Z": "8"}, ["7"])
    assert given == ["a.b=1/y", "a.e=8", "a.g=7"]


@every("value", ["x=${#S}", "x=${S//[^a-z]/_}", "IFS=, read -ra A <<< $S; x=${#A[@]}"])
def test_what_is_made_of_the_length_or_the_parts_of_a_mark_is_refused(value):
    with pytest.raises(DataError, match=r"a\.b depends on the form"):
        words(f"S=$(hostname)\n{value}{TAIL}")


BRANCHES = {
    "if": 'd=${D-gpu}; if [ "$d" = npu ]; then x=16; elif [ "$d" = gpu ]; then x=8; else x=1; fi',
    "set or not": 'x=16; if [ -z "$D" ]; then x=8; fi',
    "function": 'pick() { if [ "$1" = npu ]; then echo 16; else echo 8; fi; }; x=$(pick "${D-}")',
    "numbers": "n=${D-1}; x=8; if (( ${#n} == 3 )); then x=16; fi",
}


@every("name", BRANCHES)
def test_a_branch_is_decided_by_the_variables_that_are_given_and_else_as_empty(name):
    assert one(BRANCHES[name], {"D": "npu"}) == "16"
    assert one(BRANCHES[name]) == "8"
    notes = [text for _, text in explore(BRANCHES[name] + TAIL).notes]
    assert all("what nothing sets is empty (--env D=VALUE sets it)." in note for note in notes)
    assert bool(notes) == ('"$D"' in BRANCHES[name])


@every("script", ["x=$1", "shift 0; x=${1:-8}", 'f() { x=${1:-8}; }; f "$@"', "(($#)) && x=$#6"])
def test_arguments_of_the_script_are_those_that_are_given(script):
    assert one(script, arguments=["16"]) == "16"


@every(("script", "line", "text", "env"), [
    ("n=$(ls | wc -l)\nif [ $n -gt 8 ]; then x=16; else x=8; fi", 2, "$(wc -l)", "n"),
    ("n=$(nproc)\nx=8; if [[ $n -gt 8 ]]; then x=16; fi", 2, "$(nproc)", "n"),
    ("x=8\nif [[ $MODE == fast ]]; then x=16; fi", 2, "$MODE", "MODE"),
    ("x=8\nif [ -f /d/x ]; then x=16; fi", 2, "-f /d/x", ""),
    ("x=8\nfor i in $(ls); do x=16; done", 2, "$(ls)", ""),
    ("x=8\nfor i in 1 2; do [ -f $i ] && break; x=$i; done", 2, "-f 1", ""),
    ("which npu-smi && x=16 || x=8", 1, "which npu-smi", ""),
    ("f() { x=1; }\nif [ -f x ]; then f() { x=2; }; fi\nf", 2, "-f x", ""),
])  # fmt: skip
def test_a_test_that_decides_the_run_is_refused_with_what_settles_it(script, line, text, env):
    with pytest.raises(DataError) as refusal:
        one(script)
    way = f"Pass --env {env}=VALUE." if env else "Write its result into the script."
    message = f"depends on the test of line {line} ({text}), which only a run can tell. {way}"
    assert message in str(refusal.value)
    if env:
        assert one(script, {env: "4"}) == "8"


@every("script", [
    "if [ ! -d data ]; then python3 prep.py; mkdir -p data; fi; x=8",
    "x=8; for i in 1 2 3; do if curl -s host; then break; fi; sleep 1; done",
    "x=8; command -v uv || { echo 'no uv'; exit 1; }",
    "x=8; if [[ -f .env && $(hostname) == a* ]]; then Y=1; fi; echo $Y",
    "A=$(date +%s); x=8; echo $(( $(date +%s) - A ))",
    f"x=8; if [ -d /data ]; then {TAIL}; exit\nfi",  # what lets the run start is taken to do so
    "x=8; [ -d /data ] || { echo none; exit 1; }\n[[ -f /m ]] || exit 2",
    f'x=8; case "${{1:-run}}" in run) {TAIL}; exit ;; *) exit 1 ;; esac',
])  # fmt: skip
def test_a_test_that_decides_nothing_of_the_run_is_no_obstacle(script):
    assert one(script) == "8"


def test_a_probe_for_a_package_is_answered_for_this_machine_and_says_so():
    probe = "D=${{D-$(python3 -c 'import {}' 2>/dev/null && echo npu || echo gpu)}}; x=$D"
    for package, device in (("json", "npu"), ("no_such_package_1", "gpu")):
        assert one(probe.format(package)) == device
    assert one(probe.format("json"), {"D": "gpu"}) == "gpu"
    ((line, note),) = explore(probe.format("json") + TAIL).notes
    assert (line, "json can be imported, and on this machine it can" in note) == (1, True)


def test_a_path_beside_the_script_or_the_start_is_known_if_it_exists(tmp_path, monkeypatch):
    folder = tmp_path / "examples" / "grpo"
    folder.mkdir(parents=True)
    (tmp_path / "reward.py").touch()
    (tmp_path / "here").touch()
    monkeypatch.chdir(tmp_path)
    text = (
        'ROOT=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/../.." >/dev/null 2>&1 && pwd)\n'
        f"{MAIN} data.train_files=$ROOT/reward.py data.val_files=$(pwd)/here "
        "trainer.default_local_dir=$PWD/none trainer.rollout_data_dir=$ROOT/none"
    )
    imported = import_script(text, str(folder / "run.sh"), "0.9")
    assert imported.recipe["data"] == {"train": f"{tmp_path}/reward.py", "val": f"{tmp_path}/here"}
    folders = ("trainer.default_local_dir", "trainer.rollout_data_dir")
    assert [imported.recipe["verl"][key] for key in folders] == ["???"] * 2
    fixes = [finding.fix for finding in imported.findings if finding.rule == "unresolved"]
    assert fixes == ["Put the value there or import with --env PWD=VALUE.", "Put the value there."]
    moved = import_script(text, str(folder / "run.sh"), "0.9", env={"PWD": "/run"})
    assert moved.recipe["verl"]["trainer.default_local_dir"] == "/run/none"


@every(("script", "message"), [
    ("echo a", "does not start verl"),
    ("bash other/run.sh a", "line 1 runs other/run.sh. Import that script"),
    (f"\nexit 3\n{MAIN} a.b=1", "ends at line 2 before it starts verl"),
    (f"{MAIN} \\\n a.b=1 \\\n a.c='2", "line 3: bash says: unexpected EOF while looking for"),
    (f"x=$(< /etc/passwd)\n{MAIN} a.b=1", "line 1 reads /etc/passwd: write its content"),
    (f"mapfile A < <(ls)\n{MAIN} a.b=1", "line 1 reads /dev/fd/63: write its content"),
    (f"\nexec 5<>/dev/tcp/h/1\n{MAIN} a.b=1", "line 2 opens a connection"),
    (f"for i in 1 2; do {MAIN} a.b=$i; done", "starts 2 runs with different settings (line 1)"),
    ("torchrun -m verl.trainer.sft_trainer data.x=/a", "starts verl.trainer.sft_trainer, which is not"),
    ("a\0b", "not text: it has NUL bytes"),
    ("x" * (MAX_SCRIPT + 1), "longer than 200,000 characters"),
])  # fmt: skip
def test_a_script_that_cannot_be_imported_is_refused_in_one_line_with_the_reason(script, message):
    with pytest.raises(DataError) as refusal:
        import_script(script, "run.sh", "0.9")
    assert str(refusal.value).startswith("run.sh: ")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_bash_that_is_missing_or_old_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs bash 4\.4 or newer on the PATH"):
        import_script(f"{MAIN} a.b=1", "run.sh", "0.9")
    monkeypatch.setattr(script_runs.shutil, "which", lambda _: "/bin/bash")
    old = script_runs._STAND_INS.replace("BASH_VERSINFO[0] * 100", "403 - BASH_VERSINFO[1]")
    monkeypatch.setattr(script_runs, "_STAND_INS", old)
    with pytest.raises(DataError, match=r"bash is older than 4\.4"):
        import_script(f"{MAIN} a.b=1", "run.sh", "0.9")


def test_without_the_kernel_s_fence_a_script_that_reads_a_file_is_refused_by_its_text(monkeypatch):
    monkeypatch.setattr(script_runs, "IS_FENCED", False)
    for reading in ("read x < /etc/passwd", "x=$(</etc/passwd)", 'while read x; do :; done <"$F"'):
        with pytest.raises(DataError, match="line 2 opens a connection or a file"):
            explore(f"\n{reading}\n{MAIN} a.b=1")
    loop = f"for ((i = 0; i < 2; i++)); do M='<path>'; done # < a\n{MAIN} a.b=$M"
    assert words(loop) == ["a.b=<path>"]


ALPHABET = "abcdef012 \n\t\\'\"`$(){}[]<>|&;#=.,:-+*/~@!%中“\r"
PIECES = st.sampled_from(
    [f"{MAIN} ", "a.b=", "${", "$((", "$(", "))", "<<EOF\n", "A=(", "export ", "if ", "\\\n", "[[ "]
)


@pytest.mark.full
@settings(max_examples=40)
@given(st.lists(st.one_of(PIECES, st.text(ALPHABET, max_size=8)), max_size=60).map("".join))
def test_any_text_is_a_recipe_or_one_of_our_errors(text):
    try:
        import_script(text, "run.sh", "0.9")
    except RewardkitError as error:
        assert str(error).startswith("run.sh: ")
