"""Help and shell completion, as a user meets them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.cli.main import PANELS
from rewardkit.cli.shared.help import require_values
from rewardkit.errors import UsageError
from tests.command import all_commands

ROOT = Path(__file__).parents[2]


def test_the_help_lists_every_command_once_under_its_panel(run):
    text = run("--help", COLUMNS="80").stdout
    for panel, modules in PANELS.items():
        section = text.partition(f"\n{panel}:\n")[2].partition("\n\n")[0]
        commands = {line.split()[0] for line in section.splitlines() if line[2:3] != " "}
        assert commands == set(modules), panel


def test_the_summary_in_the_list_is_the_first_sentence_of_the_help_of_the_command():
    loaded = dict(all_commands())
    for name, summary in (item for panel in PANELS.values() for item in panel.items()):
        assert loaded[name].help.split("\n\n")[0].replace("\n", " ") == summary


def test_a_command_imports_no_module_of_another():
    code = "import sys, rewardkit.cli.main as m\nsys.argv[1:] = ['list', '-h']\ntry: m.run()\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name for panel in PANELS.values() for name in panel}
    loaded = {name for name in names if f"rewardkit.cli.{name}" in done.stdout.split()}
    assert loaded == {"list"}


def test_no_option_of_any_command_takes_the_option_after_it_as_its_value():
    """click gives it: `select --sft --out x` wrote a parquet called `--out`."""
    for name, command in all_commands():
        options = [param for param in command.params if param.param_type_name == "option"]
        for param in (param for param in options if not param.is_flag):
            for word in param.opts:
                for following in (options[0].opts[0], "--json", "--nothing=1"):
                    message = f"^{word} has no value: the option {following.partition('=')[0]} f"
                    with pytest.raises(UsageError, match=message):
                        require_values(command.params, [name, word, following])


def complete(*words):
    """Return the completions of the last word, by the protocol of the script for bash."""
    env = os.environ | {
        "_REWARDKIT_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["rewardkit", *words]),
        "COMP_CWORD": str(len(words)),
        "PYTHONPATH": str(ROOT),
    }
    code = "from rewardkit.cli.main import run; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gl"], ["glossary"]),
        (["eval", "re"], ["responses"]),
        (["path", "gsm"], ["gsm8k"]),
        (["score", "--scorer", "math_"], ["math_dapo", "math_verify"]),
        (["prep", "math-5"], ["math-500"]),
        (["recipes", "show", "qwen2.5-7"], ["qwen2.5-7b-grpo"]),
        (["eval", "run", "--sui"], ["--suite", "--suite-dir"]),
    ],
    ids=str,
)
def test_the_shell_completes_commands_options_and_names(words, expected):
    assert sorted(complete(*words)) == expected


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_the_completion_script_that_we_print_works_in_bash(tmp_path):
    """The test sources the script of --show-completion and calls it as bash does after a Tab."""
    program = tmp_path / "rewardkit"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rewardkit "$@"\n')
    program.chmod(0o755)
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    script = (
        'eval "$(rewardkit --show-completion bash)"; COMP_WORDS=(rewardkit audit gs); COMP_CWORD=2; '
        '_rewardkit_completion rewardkit; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("gsm8k\n", "")
