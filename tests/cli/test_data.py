"""`prep` and `check` on the command line: their options, pages and errors."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.test_cli import ok


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("q,a\nWhat is 1+1?,2\nwhat is 1 + 1?,2\nWhat is 2+2?,4\n")
    return file


def test_own_rows_are_prepared_checked_and_reported(run, rows, tmp_path):
    out, page = tmp_path / "out.parquet", tmp_path / "report.html"
    text = ok(run("prep", rows, "--question-key", "q", "--answer-key", "a", "--out", out))
    assert "1 rows ask an earlier row's question (--dedup drops them)" in text
    assert "answers: integer 3" in text
    text = ok(
        run("prep", rows, "--question-key", "q", "--answer-key", "a", "--out", out,
            "--overwrite", "--dedup", "--html", page)
    )  # fmt: skip
    assert "dropped 1: duplicate question" in text
    assert "<title>" in page.read_text(encoding="utf-8")
    found = json.loads(ok(run("check", out, "--near", "--max-prompt-length", "10", "--json")))
    assert found["ok"] is True
    assert found["lengths"]["limit"] == 10


def test_a_page_of_check_and_its_findings(run, rows, tmp_path):
    out, page = tmp_path / "out.parquet", tmp_path / "check.html"
    ok(run("prep", rows, "--question-key", "q", "--answer-key", "a", "--out", out))
    done = run(
        "check", out, "--against", out, "--html", page, "--drop-overlap", tmp_path / "o.parquet"
    )
    assert done.returncode == 1
    assert "holds 100% of out 0" in done.stdout
    assert "duplicate" in page.read_text(encoding="utf-8")


def test_the_year_is_a_split(run, tmp_path):
    out = tmp_path / "aime.parquet"
    text = ok(run("prep", "aime", "--year", "2024", "--repeat", "3", "--sample", "--out", out))
    assert "2024" in text
    every = tmp_path / "all"
    ok(run("prep", "aime", "--split", "all", "--sample", "--out", every))
    assert sorted(file.name for file in every.glob("*.parquet")) == ["2024.parquet", "2025.parquet"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prep", "aime", "--sample"), "aime has several splits: --split 2024, 2025, or all."),
        (("prep", "aime", "--sample", "--year", "1999"), "aime has no split '1999'"),
        (("prep", "aime", "--year", "2024", "--split", "2024"), "exclude each other"),
        (("prep", "gsm8k", "--question-key", "q"), "are for your own file"),
        (("prep", "mine.csv", "--source", "x"), "is the data itself"),
        (("prep", "nope.csv"), "nope.csv"),
        (("prep", "nope.py"), "nope.py: no such file"),
        (("prep", "gsm8k", "--sample", "--html", "."), "is a directory"),
    ],
)
def test_a_wrong_option_is_one_clear_line(run, tmp_path, arguments, said):
    done = run(*arguments, "--out", tmp_path / "out.parquet")
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out.parquet").exists()


def test_check_refuses_what_makes_no_sense(run, rows, tmp_path):
    done = run("check", rows, "--drop-overlap", tmp_path / "x.parquet")
    assert (done.returncode, done.stderr) == (2, "error: --drop-overlap needs --against.\n")
    done = run("check", rows, "--tokenizer", tmp_path / "nowhere")
    assert done.returncode in (1, 2)
    assert "--tokenizer" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_output_is_an_input_or_another_output(run, rows, tmp_path):
    out = tmp_path / "out.parquet"
    keys = ("--question-key", "q", "--answer-key", "a")
    before = rows.read_text()
    done = run("prep", rows, *keys, "--out", out, "--html", rows, "--overwrite")
    assert (done.returncode, rows.read_text()) == (2, before)
    done = run("prep", rows, *keys, "--out", out, "--html", out)
    assert (done.returncode, out.exists()) == (2, False)
    ok(run("prep", rows, *keys, "--out", out))
    whole = out.read_bytes()
    done = run("check", out, "--html", out, "--overwrite")
    assert (done.returncode, out.read_bytes()) == (2, whole)


def test_against_nothing_is_a_usage_error(run, rows):
    for nothing in ("", ",", " , "):
        done = run("check", rows, "--against", nothing)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--against names no evaluation set" in done.stderr


def test_where_no_row_is_good_no_file_is_written_and_the_findings_are_shown(run, tmp_path):
    rows = tmp_path / "mine.csv"
    rows.write_text("question,answer\nHow many legs have 3 cows and 4 hens together then?,20\n")
    file, out = tmp_path / "one.parquet", tmp_path / "out.parquet"
    ok(run("prep", rows, "--out", file))
    done = run("check", file, "--against", file, "--drop-overlap", out)
    assert (done.returncode, out.exists()) == (1, False)
    assert "overlap" in done.stdout
    assert "no row is left to write" in done.stderr


@pytest.mark.full
def test_a_scheduler_s_end_leaves_nothing_half_written(tmp_path):
    rows = tmp_path / "mine.jsonl"
    rows.write_text('{"question": "1+1?", "answer": 2}\n' * 300_000)
    command = [sys.executable, "-m", "rewardkit", "prep", "mine.jsonl", "--out", "out.parquet"]
    with subprocess.Popen([*command, "--jobs", "1"], cwd=tmp_path) as process:
        for _ in range(300):
            time.sleep(0.1)
            if len(list(tmp_path.iterdir())) > 1:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]
