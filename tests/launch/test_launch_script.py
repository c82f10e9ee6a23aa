"""Launch scripts are read as bash reads them, and never run."""

import string
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit.errors import DataError, RewardkitError, SourceError
from rewardkit.launch.script_import.launch_script import MAX_SCRIPT, parse_script, read_script
from tests.tables import every

MAIN = "python3 -m verl.trainer.main_ppo"


def texts(script):
    return [setting.text for setting in parse_script(script, "run.sh").overrides]


def one(script):
    (text,) = texts(script)
    return text.partition("=")[2]


@every(
    ("lines", "word", "value"),
    [
        ("x=8", "$x", "8"),
        ("export x=8", "${x}", "8"),
        ("readonly x='a b'", '"${x}"', "a b"),
        ("y=1; x='a$y'", "$x", "a$y"),
        ("y=1\nx=a$y", "$x", "a1"),
        ("", "${x:-7}", "7"),
        ("x=", "${x:-7}", "7"),
        ("x=", "${x-7}.", "."),
        ("x=3", "${x:-7}", "3"),
        ("y=5", "${x:-${y}}", "5"),
        ("", '${x:-"${y:-a}"}', "a"),
        (": ${x:=9}", "$x", "9"),
        ("x=1", "${x:+set}", "set"),
        ("", "${x:+set}.", "."),
        ("x=ab; x+=cd", "$x", "abcd"),
        ("A=(a b)", "${A[1]}", "b"),
        ("A=(a b)", "$A", "a"),
        ("", "$((1024 * 2))", "2048"),
        ("p=2048; r=$((1024*20)); s=4", "$(((p + r) / s))", "5632"),
        ("x=3", "$(($x - ${x} * 2))", "-3"),
        ("", "$((10 - 5 - 2))/$((64 / 4 / 2))", "3/8"),
        ("", "$((2 ** 3 ** 2))/$((-2 ** 2))/$((-7 / 2))/$((-7 % 3))", "512/4/-3/-1"),
        ("", "a'b'\"c\"\\d", "abcd"),
        ("", "'[\"console\"]'", '["console"]'),
        ("", '"[\'a\',\\"b\\"]"', "['a',\"b\"]"),
        ("", "/a\\ b", "/a b"),
        ("unset x", "${x-}.", "."),
        ("x=runs/a.b.sh", "${x##*/}", "a.b.sh"),
        ("x=runs/a.b.sh", "${x%.*}/${x%%.*}", "runs/a.b/runs/a"),
        ("x=a-b-c", "${x/-/_}/${x//-/_}/${x#a-}", "a_b-c/a_b_c/b-c"),
        ("x=aBc", "${x^^}/${x,,}/${x^}/${#x}", "ABC/abc/ABc/3"),
        ("x=abcdef", "${x:1:2}/${x: -2}/${x:4}", "bc/ef/ef"),
        ("A=(a b c)", "${#A[@]}/${A[-1]}/${A[*]:1}.", None),
        ("declare -A m=([a]=1 [b]=2); k=b", "${m[$k]}", "2"),
        ("A=(a b); A[1]=c; A[2]=d", '"${A[*]}"', "a c d"),
        ("x=y; y=3", "${!x}", "3"),
        ("i=3; ((i++)); ((i *= 2))", "$i", "8"),
        ("x=5", "$((x > 3 ? x << 1 : 0))", "10"),
        ("", "$(basename /a/b.sh .sh)/$(dirname /a/b/c)", "b//a/b"),
        ("x=$(seq 2 4)", '"$x"', "2\n3\n4"),
        ("", "$(echo -n a; printf '%s-%d' b 2)", "ab-2"),
        ("", "$(echo Qwen3 | tr A-Z a-z)", "qwen3"),
        ("f() { local x=1; echo $((x + $1)); }; x=7", "$(f 2)$x", "37"),
        ('A=(1 2); x=$(IFS=,; echo "[${A[*]}]")', "$x", "[1,2]"),
        ("", "a\" \"b$'\\t'c", "a b\tc"),
        ('a=1 b=2\nx="t$b"', "$x", "t2"),
        ("x=1; unset x", "$x${x%2*}$((x + 1))", "1"),
        ("f() { x=a$1$2; }; f b", "$x", "ab"),
        ('x=; for a in "$@" "${A[@]}"; do x=b; done', "$x.", "."),
        ('x=$(echo "$(echo "{a,b}")")', "$x", "{a,b}"),
        ("IFS=$'\\n'; y='a b'; A=($y)", "${#A[@]}", "1"),
        ("pushd / >/dev/null; x=$PWD; popd >/dev/null", "$x", "/"),
        ("HOME=/h", "${HOME}x/$HOME/y", "/hx//h/y"),
        ("a=1 b=two\nexport x=a1", "$x", "a1"),
        ("a=1 b=two\n{ x=2; }\nc=3 d=4 # e\ndeclare y=5", "$x$y", "25"),
        ("x=1", "${x+y\\ z}", "y z"),
        ("readonly x=1; x=2", "$x", "1"),
        ('x=$(cat <<EOF\n  "$((1+1))" \\$x\nEOF\n)', '"$x"', '  "2" $x'),
        ("set -e; f() { return 3; }; f || x=$?; x=1", "$x", "1"),
        ("x=$(cat <<EOF\na $((1+1))\nEOF\n)", '"$x"', "a 2"),
        ("", "x#y", "x#y"),
    ],
)
def test_variables_quotes_and_arithmetic_are_those_of_bash(lines, word, value):
    script = f"{lines}\n{MAIN} a.b={word}\n"
    run = ["bash", "--norc", "-c", f"{lines}\nprintf '%s|' a.b={word}"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    if value is None:  # several words, of which the first is the setting
        assert texts(script)[0] == done.stdout.split("|")[0]
    else:
        assert one(script) == value
        assert done.stdout == f"a.b={value}|"


def test_an_array_and_an_unquoted_text_become_many_settings():
    script = f"""
A=(a.b=1  # the first
   "a.c=x y")
A+=(a.d=2)
MORE="a.e=3 a.f=4
a.g=5"
{MAIN} "${{A[@]}}" $MORE a.h="$MORE"
"""
    assert texts(script)[:6] == ["a.b=1", "a.c=x y", "a.d=2", "a.e=3", "a.f=4", "a.g=5"]
    assert texts(script)[6].endswith("a.g=5")


@pytest.mark.parametrize(
    "command",
    [
        f"nohup {MAIN} a.b=1 > log.txt 2>&1 &",
        f"{MAIN} \\\n  a.b=1 2>&1 | tee log_$(date +%F).txt",
        f"VLLM_USE_V1=1 {MAIN} a.b=1",
        "torchrun --nproc_per_node 8 -m verl.trainer.main_ppo a.b=1",
        f"ray job submit --address=http://h:8265 --runtime-env-json='{{}}' -- {MAIN} a.b=1",
        "cd verl && python3 verl/trainer/main_ppo.py a.b=1",
        f"if [ -d /data ]; then\n  {MAIN} a.b=1\nfi",
        "uv run --frozen -- python -m verl.trainer.main_ppo a.b=1",
        f"env A=1 nohup {MAIN} a.b=1",
        f"bash -c '{MAIN} a.b=1'",
        f"echo a.b=1 | xargs {MAIN}",
        f"CMD='{MAIN} a.b=1'\neval \"$CMD\"",
        f'CMD=({MAIN} a.b=1)\n"${{CMD[@]}}" "$@"',
        f"bash <<EOF\n{MAIN} a.b=1\nEOF",
        "run() { $1 -m verl.trainer.main_ppo a.b=1; }\nrun python3",
        f"while true; do {MAIN} a.b=1; sleep 9; done",
        f"for i in 1 2; do {MAIN} a.b=1; done",
        f"cat > x.yaml <<EOF\nc.d=2\n{MAIN} e.f=3\nEOF\n{MAIN} a.b=1",
        f'{MAIN} --config-path=config --config-name="ppo_trainer.yaml" a.b=1',
        f"{MAIN} --config-name ppo_trainer a.b=1",
    ],
)
def test_the_command_may_stand_anywhere_in_a_script(command):
    script = parse_script(command, "run.sh")
    assert script.module == "verl.trainer.main_ppo"
    assert [setting.text for setting in script.overrides] == ["a.b=1"]
    assert not [problem for problem in script.problems if problem.breaks]
    assert script.config_name in {"", "ppo_trainer"}


def test_a_list_of_settings_needs_no_command():
    assert texts("model_engine=megatron a.b=1 +c.d='x y'\na.e=[1,2]\n# a.f=3\n") == [
        "model_engine=megatron",
        "a.b=1",
        "+c.d=x y",
        "a.e=[1,2]",
    ]


def test_what_only_a_run_can_tell_is_no_setting_and_says_what_would_tell_it():
    script = parse_script(
        f"Z=$(nproc)\nU=$UNUSED\n{MAIN} a.b=$X/y a.c=$(date '+%F %H') a.d=`hostname` a.e=$Z "
        "a.f=${X%%.*} a.g=$1 a.h=$((X * 2)) a.i=1",
        "run.sh",
    )
    assert [setting.text for setting in script.overrides] == ["a.i=1"]
    known = {(s.key, s.text, s.unknowns[0].names[:1]) for s in script.unresolved}
    assert known == {
        ("a.b", "$X/y", ("X",)), ("a.c", "$(date '+%F %H')", ()), ("a.d", "`hostname`", ()),
        ("a.e", "$(nproc)", ("Z",)), ("a.f", "$X", ("X",)), ("a.g", "$1", ()),
        ("a.h", "$((X * 2))", ("X",)),
    }  # fmt: skip
    settled = parse_script(
        f"Z=$(nproc)\n{MAIN} a.b=$X/y a.e=$Z a.g=$1", "x", {"X": "1", "Z": "8"}, "7"
    )
    assert [setting.text for setting in settled.overrides] == ["a.b=1/y", "a.e=8", "a.g=7"]


def test_exports_that_only_the_script_uses_are_not_settings_of_the_run():
    script = parse_script(
        "export MODEL=/m\nexport VLLM_USE_V1=1 MINE=2\nexport PATH=/x:$PATH\nHCCL_X=1\n"
        f"NCCL_DEBUG=INFO {MAIN} a.b=$MODEL a.c=$VLLM_USE_V1",
        "run.sh",
    )
    assert script.env == {"VLLM_USE_V1": "1", "MINE": "2", "NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize(
    ("script", "line", "text"),
    [
        (f"{MAIN} \\\n a.b=1 \\ # one\n a.c=2", 2, "a comment after the backslash"),
        (f"{MAIN} \\\n a.b=1 \\ \n a.c=2", 2, "blanks after the backslash"),
        (f"{MAIN} \\\n a.b=1 \\\n # two\n a.c=2", 4, "settings below the end of the command"),
        (f"{MAIN} \\\n a.b=1\n a.c=2", 3, "settings below the end of the command"),
        (f"{MAIN} a.b=1\\\na.c=2", 1, "no blank before the backslash"),
        (f"{MAIN} a.b=1 \\ a.c=2", 1, "a backslash inside a line"),
        (f"{MAIN} a.b=1\r\n".replace("a.b=1", "a.b=1 \\\r\n a.c=2"), 1, "Windows line ends"),
        (f"{MAIN} a.b=“1” a.c=2", 1, "quotes or blanks of a web page"),
        (f"\n{MAIN}\u00a0a.b=1 a.c=2", 2, "quotes or blanks of a web page"),
        (f"{MAIN} a.b=1 \\\n a.c='2", 2, "a quote that is never closed"),
    ],
)
def test_a_broken_line_is_a_problem_and_is_read_as_it_was_meant(script, line, text):
    result = parse_script(script, "run.sh")
    (problem,) = [problem for problem in result.problems if problem.breaks]
    assert problem.text.startswith(text)
    assert problem.lines == (line,)
    assert [setting.text for setting in result.overrides] == ["a.b=1", "a.c=2"]


def test_a_list_with_blanks_is_joined_and_is_a_problem():
    result = parse_script(f"{MAIN} a.b=['x', 'y'] \\\n  a.c=[1 ,2 ] a.d=[3 a.e=4", "run.sh")
    assert [s.text for s in result.overrides] == ["a.b=[x,y]", "a.c=[1,2]", "a.d=[3", "a.e=4"]
    assert result.problems[0].lines == (1, 2)


def test_arguments_that_are_not_settings_are_problems():
    result = parse_script(f"{MAIN} a.b = 3 --cfg job a.c=1", "run.sh")
    assert "a.c=1" in [setting.text for setting in result.overrides]
    texts = " ".join(problem.text for problem in result.problems)
    assert "'a.b' is not key=value" in texts
    assert "'--cfg' is not taken over" in texts


@pytest.mark.parametrize("script", ["set -e\nfalse", "set -e; f() { false && true; }\nf", "exit 3"])
def test_a_script_that_ends_before_it_starts_verl_is_refused(script):
    with pytest.raises(DataError, match=r"ends at line \d before it starts verl"):
        parse_script(f"{script}\n{MAIN} a.b=1", "run.sh")


def test_braces_become_words_as_in_bash_and_are_a_problem():
    result = parse_script(f"{MAIN} a.b=x{{1..3}} a.c={{d:1,e:2}} a.{{f,g}}=1", "run.sh")
    assert [setting.text for setting in result.overrides] == [
        "a.b=x1", "a.b=x2", "a.b=x3", "a.c=d:1", "a.c=e:2", "a.f=1", "a.g=1",
    ]  # fmt: skip
    assert [problem.breaks for problem in result.problems] == [True]


@pytest.mark.parametrize("script", ["", "echo a", "x=1", f"if false; then {MAIN} a.b=1; fi"])
def test_a_script_that_does_not_start_verl_is_refused(script):
    with pytest.raises(DataError, match=r"run\.sh: does not start verl"):
        parse_script(script, "run.sh")


def test_binary_and_long_files_are_refused(tmp_path):
    path = tmp_path / "run.sh"
    for content in (b"\xff\xfe", b"a" * (MAX_SCRIPT + 1)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"run\.sh"):
            read_script(path)
    with pytest.raises(SourceError, match="no such file"):
        read_script(tmp_path / "no.sh")
    path.write_bytes(b"\xef\xbb\xbfpython3")
    assert read_script(path) == "python3"
    with pytest.raises(DataError, match="NUL"):
        parse_script("a\0b", "run.sh")


def test_nothing_in_a_script_is_executed(tmp_path):
    victim = tmp_path / "victim"
    victim.touch()
    pwned = tmp_path / "pwned"
    script = f"""
rm -rf {victim}; $(rm -rf {victim}) `touch {pwned}`
x=$(touch {pwned}); y=`touch {pwned}`; z=${{q:-$(touch {pwned})}}; w=$((a[$(touch {pwned})]))
cat <(touch {pwned}) <<< "$(touch {pwned})"
eval "touch {pwned}"
{MAIN} a.b=$(touch {pwned}) a.c="`touch {pwned}`" a.d=$x$y$z$w
"""
    result = parse_script(script, "run.sh")
    assert len(result.unresolved) == 3
    assert victim.exists()
    assert not pwned.exists()


ALPHABET = (
    string.ascii_letters[:6] + string.digits[:3] + " \n\t\\'\"`$(){}[]<>|&;#=.,:-+*/~@!%中“\r"
)
PIECES = st.sampled_from(
    [f"{MAIN} ", "a.b=", "${", "$((", "$(", "))", "<<EOF\n", "A=(", "export ", "if ", "\\\n", "\\ "]
)


@settings(max_examples=15)
@given(st.lists(st.one_of(PIECES, st.text(ALPHABET, max_size=8)), max_size=60).map("".join))
def test_any_text_raises_only_our_own_error(text):
    try:
        result = parse_script(text, "run.sh")
    except RewardkitError as error:
        assert str(error).startswith("run.sh: ")
    else:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
        assert all(1 <= setting.line <= lines for setting in result.overrides)
        assert all(1 <= line <= lines for problem in result.problems for line in problem.lines)


WORDS = st.text(string.ascii_letters + string.digits + " '\"$`\\[]{},:=#~*?中", max_size=20)


@settings(max_examples=15)
@given(st.lists(WORDS, min_size=1, max_size=6))
def test_arguments_quoted_for_a_shell_are_read_back_equal(values):
    import shlex

    settings = [f"a.k{i}=x{value}" for i, value in enumerate(values)]
    script = f"{MAIN} " + " \\\n  ".join(map(shlex.quote, settings))
    plain = [text for text in settings if "[" not in text and "{" not in text]
    assert [t for t in texts(script) if "[" not in t and "{" not in t] == [t.strip() for t in plain]


def test_words_that_the_grammar_takes_apart_are_read_as_bash_reads_them():
    lines = f'D=x\nE="e f"\n{MAIN} a.b=$HOME/y-$D/z a.c="c"\\d a.d=${{Q:-["q"]}} a.e="$D $E"'
    assert texts(lines) == ["a.b=~/y-x/z", "a.c=cd", "a.d=[q]", "a.e=x e f"]


def test_an_unknown_command_is_not_split_at_its_blanks():
    script = parse_script(f"N=run-$(date '+%F %H')\n{MAIN} a.b=$N a.c=1", "run.sh")
    assert [setting.text for setting in script.overrides] == ["a.c=1"]
    assert [setting.text for setting in script.unresolved] == ["run-$(date '+%F %H')"]


def test_settings_behind_a_redirection_are_settings():
    assert texts(f"{MAIN} a.b=1 > log.txt a.c=2 2>&1 | tee x") == ["a.b=1", "a.c=2"]
