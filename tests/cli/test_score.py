"""`rewardkit score` as a user meets it: one scorer, two scorers, and the page."""

import gzip
import json

import pytest

ROWS = [{"response": f"so #### {gold}", "ground_truth": "1,000"} for gold in ("1000", "2", "$")]
SCORERS = {
    "mine.py": "if '$' in solution_str: raise ValueError('dollars')\n    return float(ground_truth in solution_str)",
    "ends.py": "print('noise')\n    if '$' in solution_str: os._exit(3)\n    return True",
    "hangs.py": "while '$' in solution_str: pass\n    return True",
    "nan.py": "return float('nan')",
    "text.py": "return {'score': '1.0'}",
    "none.py": "return None",
}
BOTH = ("--scorer", "gsm8k", "--scorer", "mine.py", "--set", "method=robust")


@pytest.fixture
def responses(tmp_path):
    """Write r.jsonl, and rewards that misbehave."""
    rows = [*ROWS, {"response": "1000", "ground_truth": "1000"}]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    head = "import os\ndef compute_score(data_source, solution_str, ground_truth, extra_info=None):"
    for name, body in SCORERS.items():
        (tmp_path / name).write_text(f"{head}\n    {body}\n")
    return "r.jsonl"


def test_both_scorers_their_agreement_and_the_causes_are_printed(run, responses):
    done = run("score", responses, *BOTH)
    assert done.returncode == 0
    assert "B failed on 1 samples, first on r.jsonl:3" in done.stderr
    for expected in ("A: gsm8k method=robust", "B: mine.py", "agreement", "p = 1"):
        assert expected in done.stdout


def test_json_page_and_exported_cases_agree(run, responses, tmp_path):
    done = run("score", responses, *BOTH, "--json", "--html", "c.html", "--export", "c.jsonl")
    causes = [(g["status_a"], g["status_b"]) for g in json.loads(done.stdout)["disagreements"]]
    cases = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert sorted(causes) == sorted((case["a"]["status"], case["b"]["status"]) for case in cases)
    assert "gsm8k method=robust" in (tmp_path / "c.html").read_text()
    again = run("score", responses, *BOTH, "--html", "c.html")
    assert (again.returncode, "--overwrite" in again.stderr) == (5, True)


def test_a_scorer_of_the_user_s_cannot_end_or_print_into_the_command(run, responses):
    done = run("score", responses, "--scorer", "gsm8k", "--scorer", "ends.py", "--json")
    assert (done.returncode, json.loads(done.stdout)["judged_by_both"]) == (0, 3)
    assert "B failed on 1 samples, first on r.jsonl:3" in done.stderr


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [("nan.py", "score is nan"), ("text.py", "has no number `score`"), ("none.py", "not a number")],
)
def test_a_result_without_a_number_is_no_score(run, responses, scorer, expected):
    """verl and the guard fail on it, too."""
    done = run("score", responses, "--scorer", scorer, "--json")
    assert (done.returncode, json.loads(done.stdout)["unscored"]) == (1, 4)
    assert expected in done.stderr


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [("hangs.py", "no verdict within 0.5 s"), ("mine.py", "in no figure; verl 0.9 drops them")],
)
def test_a_row_on_which_a_scorer_fails_is_in_no_figure(run, responses, scorer, expected):
    done = run("score", responses, "--scorer", scorer, "--seconds-per-row", "0.5")
    assert "3 scored, 1 failed" in done.stdout
    assert expected in " ".join(done.stderr.split())


def test_a_page_of_scored_rows_keeps_their_scores_and_has_its_size_printed(run, tmp_path):
    row = {"input": "q", "output": "so \\boxed{1}", "gts": "1", "score": 1.0, "step": 1}
    rows = [row, {**row, "score": 0.0, "step": 2}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = run("score", "s.jsonl", "--html", "out.html")
    size = (tmp_path / "out.html").stat().st_size
    assert done.stdout.endswith(f"out.html: 2 responses listed, {size / 1e3:.0f} kB\n")
    assert "1 (50.0%)" in done.stdout
    assert "Accuracy by step" in (tmp_path / "out.html").read_text()


RIGHT = {"response": "#### $1", "ground_truth": "1"}


@pytest.mark.parametrize(
    ("row", "options", "code", "expected"),
    [
        (RIGHT, (), 1, "r.jsonl:1: not scored: the row has no data_source, which selects"),
        (RIGHT | {"ground_truth": "18"}, ("--scorer", "mcq"), 1, "1 of 1 golds cannot be scored"),
    ],
)
def test_a_file_of_which_nothing_can_be_scored_exits_1(run, tmp_path, row, options, code, expected):
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    done = run("score", "r.jsonl", *options)
    assert done.returncode == code
    assert expected in done.stderr


def test_bad_lines_are_named_and_the_rest_is_scored(run, tmp_path):
    (tmp_path / "r.jsonl").write_text(json.dumps(RIGHT) + '\n{"respon\n')
    options = ("--set", "method=robust", "--out", "s.jsonl")
    done = run("score", "r.jsonl", "--scorer", "gsm8k", *options)
    assert (done.returncode, "1 (100.0%)" in done.stdout) == (0, True)
    assert "r.jsonl:2: not scored: not JSON" in done.stderr
    assert json.loads((tmp_path / "s.jsonl").read_text())["score"] == 1.0


def test_a_compressed_file_that_is_cut_off_is_no_success(run, tmp_path):
    whole = gzip.compress((json.dumps(RIGHT) + "\n").encode() * 5000)
    (tmp_path / "r.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    done = run("score", "r.jsonl.gz", "--scorer", "gsm8k")
    assert done.returncode == 4
    assert "cut off or damaged from here on" in done.stderr


def test_a_file_in_utf_16_is_not_read_line_by_line_as_luck_has_it(run, tmp_path):
    row = json.dumps({"response": "答案 #### 18", "ground_truth": "18"}, ensure_ascii=False)
    (tmp_path / "r.jsonl").write_bytes(f"{row}\n{row}\n".encode("utf-16-le"))
    done = run("score", "r.jsonl", "--scorer", "gsm8k")
    assert (done.returncode, "0 scored" in done.stdout) == (1, True)
    assert "r.jsonl:1: not scored: the text is UTF-16LE, not UTF-8. Run `iconv" in done.stderr


def test_control_characters_and_markup_in_data_do_not_reach_the_terminal(run, tmp_path):
    rows = [
        {"response": "x", "ground_truth": "1", "data_source": s}
        for s in ("\x1b[31mred\x07", "\ud800")
    ]
    (tmp_path / "x[bold].jsonl").write_text("\n".join(map(json.dumps, rows)))
    for arguments in ((), ("--scorer", "gsm8k"), ("--scorer", "gsm8k", "--json")):
        done = run("score", "x[bold].jsonl", *arguments)
        assert "\x1b" not in done.stdout + done.stderr
        assert "unexpected" not in done.stderr
        assert "x[bold].jsonl" in done.stdout + done.stderr
