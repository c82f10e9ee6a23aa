"""`rewardkit audit` as a user meets it."""

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


def test_a_table_shows_what_went_through_and_the_grade(run, bad):
    done = run("audit", bad, "--rows", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hedge" in done.stdout
    assert "grade F" in done.stdout


def test_a_clean_scorer_gets_an_a_and_exit_0_also_with_fail_on(run):
    arguments = ("gsm8k", "--set", "method=robust", "--rows", "5", "--fail-on", "medium")
    done = run("audit", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "grade A" in done.stdout


@pytest.mark.full
def test_fail_on_exits_1(run, bad):
    assert run("audit", bad, "--rows", "3", "--fail-on", "high").returncode == 1
    assert run("audit", "gsm8k", "--rows", "3", "--fail-on", "low").returncode == 1


@pytest.mark.full
def test_json_and_html_hold_the_pairs(run, bad, tmp_path):
    done = run("audit", bad, "--rows", "3", "--json", "--html", "a.html")
    report = json.loads(done.stdout)
    assert report["grade"] == "F"
    hedge = next(f for f in report["findings"] if f["attack"] == "hedge")
    assert hedge["failed"] > 0
    assert " or " in hedge["failures"][0]["response"]
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "grade F" in page
    assert "several_answers" in page
    refused = run("audit", bad, "--html", "a.html")
    assert refused.returncode == 1
    assert "--overwrite" in refused.stderr


def test_rows_come_from_the_data_given(run, bad):
    assert run("prep", "gsm8k", "--sample", "--out", "t.parquet").returncode == 0
    done = run("audit", bad, "--data", "t.parquet", "--rows", "7", "--seed", "3", "--json")
    (reading,) = json.loads(done.stdout)["readings"]
    assert (reading["data_source"], reading["rows"]) == ("openai/gsm8k", 7)


def test_what_cannot_be_audited_is_one_line(run):
    for arguments, code, words in (
        (("gsm8",), 2, "Did you mean 'gsm8k'"),
        (("nope.py:score",), 2, "no such file"),
        (("gsm8k", "--set", "methd=x"), 2, "no option 'methd'"),
        (("gsm8k", "--data", "none.parquet"), 1, "no such file"),
    ):
        done = run("audit", *arguments)
        assert done.returncode == code
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
