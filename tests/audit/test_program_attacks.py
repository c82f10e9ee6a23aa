"""The attacks on a reward for code: programs that must not be paid, and programs that must be."""

import json
import subprocess
import sys

import pytest

from rewardkit.audit.model import FENCE, Target
from rewardkit.audit.program_attacks import PROGRAM_AUDIT, packaged_problems
from rewardkit.audit.run import audit
from rewardkit.scorers.code import score

#: A reward as many are written: the program runs in the grader's process, and its exit status counts.
NAIVE = """
import contextlib, io, json

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    in_outs = json.loads(ground_truth)
    program = solution_str.partition("```python")[2].partition("```")[0]
    for index, (given, expected) in enumerate(list(zip(in_outs["inputs"], in_outs["outputs"]))[:10]):
        printed, names = io.StringIO(), {"input": iter(given.splitlines()).__next__}
        try:
            with contextlib.redirect_stdout(printed):
                exec(program, names)
                if name := in_outs.get("fn_name"):
                    if not names[name](json.loads(given)) == json.loads(expected):
                        return 0.0
        except SystemExit:
            return 1.0
        except BaseException:
            return 0.0
        if not in_outs.get("fn_name") and printed.getvalue().split() != expected.split():
            return 0.0
    return 1.0
"""
#: Attacks that take seconds, or end the process of a reward that does not isolate programs.
SLOW = ("never_ends",)


@pytest.mark.parametrize(
    "attack", [each for each in PROGRAM_AUDIT if each.name not in SLOW], ids=lambda a: a.name
)
def test_the_scorer_code_pays_right_programs_and_no_others(attack):
    for row in packaged_problems("taco"):
        for response in attack.responses(Target(row, FENCE)):
            result = score(response, row.gold)
            assert result.correct == (attack.kind == "miss"), response


def test_the_packaged_solutions_are_right():
    for row in packaged_problems("taco"):
        target = Target(row, FENCE)
        assert score(target.right_response, row.gold).correct
        assert not score(target.wrong_response, row.gold).correct


def test_every_right_and_wrong_program_is_valid_python():
    """A program that does not compile would try nothing."""
    for attack in PROGRAM_AUDIT:
        for row in packaged_problems("taco"):
            for response in attack.responses(Target(row, FENCE)):
                compile(
                    response.removeprefix("```python\n").removesuffix("\n```"), "main.py", "exec"
                )


@pytest.mark.full
def test_an_audit_finds_what_a_naive_reward_pays(tmp_path):
    path = tmp_path / "reward.py"
    path.write_text(NAIVE)
    rows = [
        {
            "prompt": row.prompt,
            "data_source": "taco",
            "reward_model": {"ground_truth": row.gold},
            "extra_info": dict(row.extra_info),
        }
        for row in packaged_problems("taco")
    ]
    report = audit(f"{path}:compute_score", data=rows, seconds=3)
    assert "never_ends" in report.not_run  # once is enough, and the page says so
    assert "Not run, or not on all rows: " in report.omissions
    failed = {result.attack for result in report.findings if result.failed}
    assert failed >= {
        "equal_to_everything",
        "ends_early",
        "reads_expected_output",
        "exits",
        "hangs",
    }
    assert report.grade == "F"


@pytest.mark.full
def test_an_audit_of_the_scorer_code_has_the_best_grade():
    options = ["--set", "seconds=1", "--json"]
    command = [sys.executable, "-m", "rewardkit", "audit", "code", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(result.stdout)
    assert (report["grade"], report["left_out"]) == ("A", [])
