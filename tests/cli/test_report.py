"""`rewardkit report` as a user meets it."""

import json

import pytest

ROW = {"input": "q", "output": "so \\boxed{1}", "gts": "1", "score": 1.0, "step": 1}


@pytest.fixture
def scored_file(tmp_path):
    rows = [ROW, {**ROW, "score": 0.0, "step": 2}]
    (tmp_path / "scored.jsonl").write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.usefixtures("scored_file")
def test_a_page_is_written_and_its_size_is_printed(run, tmp_path):
    done = run("report", "scored.jsonl", "--html", "out.html")
    assert (done.returncode, done.stderr) == (0, "")
    size = (tmp_path / "out.html").stat().st_size
    assert done.stdout == f"out.html: 1 (50.0%) of 2 responses correct, {size / 1e3:.0f} kB.\n"
    assert "Accuracy by step" in (tmp_path / "out.html").read_text()


def test_report_reads_the_output_of_score(run, tmp_path):
    row = {"response": "#### 1", "ground_truth": "1", "data_source": "openai/gsm8k"}
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n{broken\n")
    run("score", "r.jsonl", "--out", "s.jsonl")
    scored_file = run("report", "s.jsonl", "--html", "s.html", "--json")
    from_responses = run("report", "r.jsonl", "--html", "r.html", "--json")
    assert json.loads(scored_file.stdout)["statuses"] == {"correct": 1}
    assert json.loads(from_responses.stdout)["statuses"] == {"correct": 1}
    assert "1 row skipped: not JSON" in from_responses.stderr
    assert "(first r.jsonl:2)" in from_responses.stderr


def test_a_scorer_that_hangs_on_a_row_loses_only_that_row(run, tmp_path):
    rows = [{"response": f"r{i}", "ground_truth": "1"} for i in range(3)]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "hangs.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    while solution_str == 'r1': pass\n"
        "    return True\n"
    )
    scorer = ("--scorer", "hangs.py:compute_score", "--seconds-per-row", "0.5")
    done = run("report", "r.jsonl", "--html", "o.html", *scorer)
    assert "2 (100.0%) of 2 responses correct" in done.stdout
    assert done.stderr == "1 row skipped: no verdict within 0.5 s (first r.jsonl:2)\n"
