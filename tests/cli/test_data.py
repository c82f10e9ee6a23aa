"""`prep` and `check` on the command line: their options, pages and errors."""

import json

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
