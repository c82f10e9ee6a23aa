"""`rewardkit compare` as a user meets it."""

import json

import pytest


@pytest.fixture
def responses(tmp_path):
    rows = [{"response": f"so #### {gold}", "ground_truth": "1,000"} for gold in ("1000", "2", "$")]
    rows += [{"response": "1000", "ground_truth": "1000"}]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "mine.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    if '$' in solution_str: raise ValueError('dollars')\n"
        "    return float(ground_truth in solution_str)\n"
    )
    return "r.jsonl"


BOTH = ("--scorer", "gsm8k", "--scorer", "mine.py:compute_score", "--set-a", "method=robust")


def test_both_scorers_their_agreement_and_the_causes_are_printed(run, responses):
    done = run("compare", responses, *BOTH)
    assert done.returncode == 0
    assert "B raised ValueError on 1 samples, first on r.jsonl:3: dollars" in done.stderr
    for expected in ("A: gsm8k method=robust", "B: mine.py", "agreement", "p = 1", "p99"):
        assert expected in done.stdout


def test_json_page_and_exported_cases_agree(run, responses, tmp_path):
    done = run("compare", responses, *BOTH, "--json", "--html", "c.html", "--export", "c.jsonl")
    summary = json.loads(done.stdout)
    lines = (tmp_path / "c.jsonl").read_text().splitlines()
    causes = {(g["status_a"], g["status_b"], g["count"]) for g in summary["disagreements"]}
    assert causes == {
        ("correct", "wrong", 1),
        ("unparsed_answer", "raised ValueError", 1),
        ("no_answer", "correct", 1),
    }
    statuses = [json.loads(line)["b"]["status"] for line in lines]
    assert statuses == ["wrong", "raised ValueError", "correct"]
    assert "gsm8k method=robust" in (tmp_path / "c.html").read_text()
    recompared = run("compare", "c.jsonl", *BOTH, "--json")
    assert json.loads(recompared.stdout)["only_a_right"] == 1
    overwrite_attempt = run("compare", responses, *BOTH, "--html", "c.html")
    assert (overwrite_attempt.returncode, "--overwrite" in overwrite_attempt.stderr) == (5, True)


def test_options_can_apply_to_one_of_the_scorers(run, responses):
    same_scorer = ("--scorer", "gsm8k", "--scorer", "gsm8k")
    summary = json.loads(
        run("compare", responses, *same_scorer, "--set-b", "method=robust", "--json").stdout
    )
    assert (summary["a"]["scorer"], summary["b"]["scorer"]) == ("gsm8k", "gsm8k method=robust")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--scorer", "gsm8k"), "set 1 times"),
        (("--scorer", "gsm8k") * 3, "set 3 times"),
        (("--scorer", "gsm8k", "--scorer", "gsm8"), "Did you mean 'gsm8k'"),
        ((*BOTH, "--set-a", "x"), "NAME=VALUE"),
        ((*BOTH, "--html", "r.jsonl", "--overwrite"), "is the input file"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_2(run, responses, arguments, expected):
    done = run("compare", responses, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert expected in done.stderr


def test_a_file_without_responses_to_compare_exits_1(run, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"response": "x", "ground_truth": "1"}\n')
    done = run("compare", "r.jsonl", "--scorer", "auto", "--scorer", "gsm8k")
    assert done.returncode == 1
    assert "A raised UnknownNameError on 1 samples" in done.stderr


def test_equal_scorers_are_warned_about_and_a_folder_is_compared(run, responses):
    same_scorer = ("--scorer", "gsm8k", "--scorer", "gsm8k")
    done = run("compare", ".", *same_scorer)
    assert (done.returncode, "cannot disagree" in done.stderr) == (0, True)
    assert "r.jsonl: 4 samples judged by both" in done.stdout
    options = ("--set-a", "method=robust", "--set-b", "method=robust")
    assert "cannot disagree" in run("compare", ".", *same_scorer, *options).stderr
    assert "cannot disagree" not in run("compare", ".", *same_scorer, *options[:2]).stderr


def test_a_scorer_of_the_user_s_cannot_end_or_print_into_the_command(run, responses, tmp_path):
    (tmp_path / "ends.py").write_text(
        "import os\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    print('noise')\n"
        "    if '$' in solution_str: os._exit(3)\n"
        "    return True\n"
    )
    scorers = ("--scorer", "gsm8k", "--scorer", "ends.py:compute_score")
    done = run("compare", responses, *scorers, "--json")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["judged_by_both"]) == (0, 3)
    assert "B ended its process on 1 samples, first on r.jsonl:3" in done.stderr
