"""Scorer options and custom scorers on the command line."""

import json

import pytest

#: Scores only its own format, and misbehaves on some golds.
OWN = """
import os, time
print("printed while it is imported")
def respond(answer):
    return f"<a>{answer}</a>"
def compute_score(data_source, solution_str, ground_truth, extra_info=None, *, late=None):
    if late in ("all", ground_truth):
        time.sleep(60)
    if ground_truth.endswith("8"):
        os._exit(3)
    return float(solution_str == respond(ground_truth))
"""


@pytest.fixture
def folder(run, tmp_path):
    """A folder with a reward of the user's, ten rows, and responses."""
    (tmp_path / "own.py").write_text(OWN)
    rows = [{"question": f"question {i}", "answer": str(i)} for i in range(10)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run("prep", "rows.jsonl", "--template", "none", "--scorer", "gsm8k", "--out", "all.parquet")
    line = json.dumps({"response": "#### 1", "ground_truth": "1"}) + "\n"
    (tmp_path / "r.jsonl").write_text(line * 5)
    return tmp_path


def test_an_option_of_the_wrong_type_is_reported_and_python_s_true_is_accepted(run):
    done = run("path", "mcq", "--verl", "--set", "partial=maybe")
    assert "scorer 'mcq': partial='maybe' is invalid; give true or false." in done.stderr
    for true in ("true", "True"):
        done = run("path", "mcq", "--verl", "--verl-version", "0.9.1", "--set", f"partial={true}")
        assert done.stdout.splitlines()[-1].endswith("reward_kwargs.partial=True")


def test_a_scorer_that_exits_on_a_row_loses_only_that_row(run, folder):
    """Its own `respond` is used, and what it prints is not in the JSON."""
    done = run("check", "all.parquet", "--scorer", "own.py", "--json")
    report = json.loads(done.stdout)
    findings = [(each["row"], each["rule"], each["message"]) for each in report["examples"]]
    assert findings == [(8, "scorer_raises", "the scorer ended its process (exit code 3)")]
    assert (report["rows"], report["bad_rows"]) == (10, 1)


@pytest.mark.full
@pytest.mark.parametrize("command", [("check", "all.parquet"), ("score", "r.jsonl")])
def test_check_and_score_stop_using_a_scorer_that_never_answers(run, folder, command):
    options = ("--scorer", "own.py", "--set", "late=all", "--seconds-per-row", "0.05")
    done = run(*command, *options)
    assert done.returncode == 4
    assert "no verdict on its first 5 responses" in done.stderr
