"""Branches, loops and functions of a launch script are decided by what is known, or refused."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit.errors import DataError
from rewardkit.launch.script_import.importer import import_script
from rewardkit.launch.script_import.launch_script import parse_script

MAIN = "python3 -m verl.trainer.main_ppo"
TAIL = f"\n{MAIN} a.b=$x"


def one(script, env=None, arguments=()):
    (setting,) = parse_script(script + TAIL, "run.sh", env, arguments).overrides
    return setting.text.partition("=")[2]


BRANCHES = {
    "if": 'd=${D-gpu}; if [ "$d" = npu ]; then x=16; elif [ "$d" = gpu ]; then x=8; else x=1; fi',
    "double brackets": "d=${D-gpu}; if [[ $d == n* && ! -z $d ]]; then x=16; else x=8; fi",
    "case": 'case "${D:-gpu}" in npu|ascend) x=16;; g?u) x=8 ;; *) x=1;; esac',
    "list": '[ "${D-gpu}" = npu ] && x=16 || x=8',
    "numbers": "n=${D-1}; x=8; if (( ${#n} == 3 )); then x=16; fi",
    "negation": 'x=16; if ! test "${D-}" = npu -o "${D-}" = x; then x=8; fi',
    "set or not": 'x=16; if [ -z "$D" ]; then x=8; fi',
    "function": 'pick() { if [ "$1" = npu ]; then echo 16; else echo 8; fi; }; x=$(pick "${D-}")',
    "early return": "x=16; f() { [[ ${D-} == npu ]] && return; x=8; }; f",
    "loop": 'for d in gpu "${D-}"; do [ "$d" = npu ] && x=16 && break; x=8; done',
    "subshell": 'x=8; (x=99); if ( [ "${D-}" = npu ] ); then x=16; fi',
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_is_taken_as_bash_takes_it(name):
    for env, value in (({}, "8"), ({"D": "npu"}, "16")):
        assert one(BRANCHES[name], env) == value
        done = subprocess.run(
            ["bash", "-c", f"{BRANCHES[name]}\necho $x"], env=env, capture_output=True, text=True
        )
        assert done.stdout.strip() == value


ARGUMENTS = {
    "default": ("x=${1:-8}", ["16"]),
    "shift": ("shift; x=$1", ["a", "16"]),
    "count": ("x=8; if [ $# -gt 0 ]; then x=16; fi", ["a"]),
    "options": (
        "x=8; while [[ $# -gt 0 ]]; do case $1 in --x) x=$2; shift 2;; *) shift;; esac; done",
        ["--y", "--x", "16"],
    ),
    "main": ('main() { x=${1:-8}; }; main "$@"', ["16"]),
    "slice": ('A=("${@:2}"); x=${A[0]:-8}', ["a", "16"]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_the_script_are_those_that_are_given(name):
    script, arguments = ARGUMENTS[name]
    assert one(script, arguments=arguments) == "16"
    if name != "shift":
        assert one(script) == "8"


def test_an_empty_variable_is_not_taken_for_what_only_a_run_can_tell():
    script = parse_script(f'x=${{x:-"$ROOT/m"}}{TAIL}', "run.sh", {"x": ""})
    assert [(setting.key, setting.text) for setting in script.unresolved] == [("a.b", "$ROOT/m")]


def test_the_script_passes_its_arguments_on():
    script = f'{MAIN} a.b=1 "$@" a.d=4'
    settings = [
        s.text for s in parse_script(script, "run.sh", None, ["a.c=2 3", "+e.f=5"]).overrides
    ]
    assert settings == ["a.b=1", "a.c=2 3", "+e.f=5", "a.d=4"]


UNDECIDED = {
    "a command": ("n=$(nvidia-smi -L | wc -l)\nif [ $n -gt 8 ]; then x=16; else x=8; fi", 2, "n"),
    "a variable": ('x=8\n\nif [ "$MODE" = fast ]; then x=16; fi', 3, "MODE"),
    "a case": ("x=8\ncase $MODE in fast) x=16;; esac", 2, "MODE"),
    "a file": ("x=8\nif [ -f /d/x ]; then x=16; fi", 2, "x"),
    "a loop": ("x=8\nfor i in $(ls); do x=16; done", 2, "x"),
    "an unknown end": ("x=8\nfor i in 1 2; do [ -f $i ] && break; x=$i; done", 2, "x"),
    "two tests": ("x=8\nif [ -d /d ] && [ $MODE = a ]; then x=16; fi", 2, "MODE"),
    "a program": ("which npu-smi && x=16 || x=8", 1, "x"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_a_test_that_cannot_be_known_is_refused_with_its_line_and_what_would_settle_it(name):
    script, line, variable = UNDECIDED[name]
    with pytest.raises(
        DataError, match=rf"depends on the test of line {line} .*--env {variable}=VALUE"
    ):
        parse_script(script + TAIL, "run.sh")
    value = {"n": "4", "MODE": "slow"}.get(variable, "8")
    assert one(script, {variable: value}) == "8"


@pytest.mark.parametrize(
    "script",
    [
        "if [ ! -d data ]; then python3 prep.py; mkdir -p data; fi; x=8",
        "x=8; for i in 1 2 3; do if curl -s host; then break; fi; sleep 1; done",
        "x=8; command -v uv || { echo 'no uv'; exit 1; }",
        "x=8; if [ -f .env ]; then Y=1; fi; echo $Y",
        "x=8; until ray status; do sleep 5; done",
        "x=8; rm -rf out || true; cd /data || exit 1",
    ],
)
def test_a_test_that_decides_nothing_of_the_run_is_no_obstacle(script):
    assert one(script) == "8"


def test_the_branch_that_starts_the_run_is_imported_and_says_so():
    script = f'if [ "$RANK" = 0 ]; then\n{MAIN} a.b=1\nelse\nray start --address=$HEAD\nfi'
    result = parse_script(script, "run.sh")
    assert [setting.text for setting in result.overrides] == ["a.b=1"]
    assert "starts the run only where the test ($RANK) says so" in result.problems[0].text


def test_a_probe_for_a_package_is_answered_for_this_machine_and_says_so():
    probe = "D=${{D-$(python3 -c 'import {}' 2>/dev/null && echo npu || echo gpu)}}; x=$D"
    for package, device in (("json", "npu"), ("no_such_package_1", "gpu"), ("__main__", "npu")):
        assert one(probe.format(package)) == device
    assert one(probe.format("json"), {"D": "gpu"}) == "gpu"
    (problem,) = parse_script(probe.format("json") + TAIL, "run.sh").problems
    assert problem.text.startswith("asks whether json can be imported, and on this machine it can;")


def test_a_function_that_a_test_decides_is_not_called():
    script = f"f() {{ x=1; }}\nif [ -f x ]; then f() {{ x=2; }}; fi\nf{TAIL}"
    with pytest.raises(DataError, match="depends on the test of line 2"):
        parse_script(script, "run.sh")


def test_several_runs_are_refused_and_the_same_run_twice_is_one():
    twice = parse_script(f"for i in 1 2; do {MAIN} a.b=1; done", "run.sh")
    assert [setting.text for setting in twice.overrides] == ["a.b=1"]
    with pytest.raises(DataError, match=r"starts 2 runs with different settings \(line 1\)"):
        parse_script(f"for i in 1 2; do {MAIN} a.b=$i; done", "run.sh")
    with pytest.raises(DataError, match="depends on the test of line 1"):
        parse_script(f"if [ -f x ]; then {MAIN} a.b=1; else {MAIN} a.b=2; fi", "run.sh")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("torchrun -m verl.trainer.sft_trainer data.train_files=/a", "supervised fine-tuning"),
        ("python3 -m verl.trainer.main_generation_server data.path=/a", "generation"),
        ("python3 -m verl.trainer.main_eval data.path=/a", "evaluation"),
        ("bash other/run.sh a", r"line 1 runs other/run\.sh\. Import that script"),
    ],
)
def test_a_script_that_starts_something_else_is_refused_by_its_name(command, words):
    with pytest.raises(DataError, match=words):
        parse_script(command, "run.sh")


def test_a_trainer_of_its_own_is_an_error_and_an_engine_without_plans_is_refused():
    run = (
        "python3 -m recipe.entropy.main_entropy data.train_files=/a actor_rollout_ref.model.path=/m"
    )
    first = import_script(run, "run.sh", "0.9").findings[0]
    assert (first.severity, first.key) == ("error", "recipe.entropy.main_entropy")
    for setting in ("model_engine=veomni", "actor_rollout_ref.actor.strategy=torchtitan"):
        with pytest.raises(
            DataError, match=r"trains with \w+ \(line 1\), an engine of verl 0\.9\.1"
        ):
            import_script(f"{MAIN} {setting}", "run.sh", "0.9")
    stray = import_script(f"{MAIN} actor_rollout_ref.actor.veomni.param_offload=True", "r", "0.9")
    (error,) = [f for f in stray.findings if f.severity == "error"]
    assert "a setting of veomni, which rewardkit does not plan for" in error.text


def test_a_setting_that_only_a_run_can_tell_is_missing_in_the_recipe():
    script = (
        f"{MAIN} data.train_files=$D/a actor_rollout_ref.model.path=/m trainer.save_freq=$(nproc) "
        "trainer.experiment_name=run-$(date +%F)"
    )
    result = import_script(script, "run.sh", "0.9")
    assert result.recipe["data"]["train"] == "???"
    assert result.recipe["verl"]["trainer.save_freq"] == "???"
    assert result.recipe["name"] == "run"
    given = import_script(script, "run.sh", "0.9", env={"D": "/d"})
    assert given.recipe["data"]["train"] == "/d/a"
    with pytest.raises(DataError, match=r"trainer\.nnodes .* Pass --env N=VALUE"):
        import_script(f"{MAIN} trainer.nnodes=$N", "run.sh", "0.9")


def test_a_path_beside_the_script_is_known_if_it_exists(tmp_path, monkeypatch):
    folder = tmp_path / "examples" / "grpo"
    folder.mkdir(parents=True)
    (tmp_path / "reward.py").touch()
    script = folder / "run.sh"
    script.write_text(
        'ROOT=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/../.." >/dev/null 2>&1 && pwd)\n'
        f'{MAIN} a.b="$ROOT/reward.py" a.c=$(pwd)/here a.d=$PWD/none a.e=$ROOT/none'
    )
    (tmp_path / "here").touch()
    monkeypatch.chdir(tmp_path)
    result = parse_script(script.read_text(), str(script))
    assert [s.text for s in result.overrides] == [
        f"a.b={tmp_path}/reward.py",
        f"a.c={tmp_path}/here",
    ]
    assert [(s.key, s.unknowns[0].names) for s in result.unresolved] == [
        ("a.d", ("PWD",)),
        ("a.e", ()),
    ]
    moved = parse_script(script.read_text(), str(script), {"PWD": "/run"})
    assert "a.d=/run/none" in [setting.text for setting in moved.overrides]


STATEMENTS = st.sampled_from(
    [
        "x=1", 'x="$x$y"', "y=${x:-2}", "x=$((x + 1))", "y=$((${y:-0} * 3))", "x=${y%2*}", "y=${x/1/a}",
        "A+=($x)", "x=${A[0]:-5}", "y=${#A[@]}", "x=${x^^}", "f() { local y=$1; x=$y$y; }", "f $y",
        '[ "$x" = 1 ] && y=7', "[[ $y == *7* ]] || y=8", "unset y", "set -- $x $y", "x=$#", "y=${1:-z}",
    ]
)  # fmt: skip


def block(inner):
    body = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        st.tuples(
            st.sampled_from(['[ "$x" = 1 ]', "[[ -n $y ]]", "((${x:-0} > 1))"]), body, body
        ).map(lambda t: f"if {t[0]}; then\n{t[1]}\nelse\n{t[2]}\nfi"),
        body.map(lambda text: f"for i in 1 $x; do\n{text}\ndone"),
        st.tuples(body, body).map(lambda t: f"case $x in 1*)\n{t[0]}\n;;\n*)\n{t[1]}\n;;\nesac"),
        body.map(lambda text: f"(\n{text}\n)"),
    )


@settings(max_examples=15)
@given(st.lists(st.recursive(STATEMENTS, block, max_leaves=6), min_size=1, max_size=6))
def test_a_script_of_known_values_has_the_values_of_bash_or_is_refused(statements):
    lines = "x=; y=; A=()\nf() { :; }\n" + "\n".join(statements)
    run = f'{lines}\nprintf "%s|" "a.x=$x" "a.y=$y" "a.z=${{A[*]}}"'
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True)
    try:
        ours = parse_script(f'{lines}\n{MAIN} "a.x=$x" "a.y=${{y-}}" "a.z=${{A[*]}}"', "run.sh")
    except DataError as error:  # a number that is none, for which bash prints an error
        assert "only a run can tell" in str(error)
        return
    texts = {setting.text for setting in ours.overrides}
    assert {text.strip() for text in done.stdout.split("|")[:-1]} >= texts
    assert len(texts) == 3 or ours.unresolved
