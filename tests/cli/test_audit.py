"""The command `rewardkit audit`."""

import json

import pytest

BAD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(ground_truth in solution_str)
"""


@pytest.fixture
def bad(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    return "bad.py:compute_score"


def test_a_table_shows_the_successful_attacks_and_the_grade(run, bad):
    completed = run("audit", bad, "--rows", "2")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "hedge" in completed.stdout


def test_a_sound_scorer_gets_an_a_and_exits_0_even_with_fail_on(run):
    arguments = ("gsm8k", "--set", "method=robust", "--rows", "5", "--fail-on", "medium")
    completed = run("audit", *arguments)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "grade A" in completed.stdout


@pytest.mark.full
def test_json_and_html_have_the_examples(run, bad, tmp_path):
    completed = run("audit", bad, "--rows", "3", "--json", "--html", "a.html")
    report = json.loads(completed.stdout)
    assert report["grade"] == "F"
    hedge = next(f for f in report["findings"] if f["attack"] == "hedge")
    assert hedge["failed"] > 0
    assert " or " in hedge["failures"][0]["response"]
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "grade F" in page
    assert "several_answers" in page


@pytest.mark.full
def test_an_audit_that_stopped_early_says_so_and_has_no_good_grade(run, tmp_path):
    (tmp_path / "ends.py").write_text(
        "import os\ndef compute_score(solution_str, **_):\n    os._exit(7)\n"
    )
    completed = run("audit", "ends.py", "--rows", "2", "--html", "a.html")
    assert "stopped early" in " ".join(completed.stdout.split())
    assert "stopped early" in (tmp_path / "a.html").read_text()
    report = json.loads(run("audit", "ends.py", "--rows", "2", "--json").stdout)
    assert report["is_stopped"]
    assert report["calls"] == 2
    assert {"hedge", "thread_unsafe", "hostile_text"} <= {*report["not_run"]}
    assert "grade F" in completed.stdout
