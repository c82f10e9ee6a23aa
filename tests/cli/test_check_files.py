"""`rewardkit check` of several files and of folders, and of files that are no parquet."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from tests.cli.test_cli import assert_success


@pytest.fixture
def prepare(run, tmp_path):
    """Write a parquet with a question for each number."""

    def prepare(name, numbers):
        rows = tmp_path / "rows.jsonl"
        lines = [
            json.dumps({"question": f"What is {n} + {n}?", "answer": str(2 * n)}) for n in numbers
        ]
        rows.write_text("\n".join(lines))
        out = tmp_path / name
        out.parent.mkdir(exist_ok=True)
        assert_success(run("prep", rows, "--out", out, "--data-source", "mine"))
        rows.unlink()
        return out

    return prepare


def change_index_to_text(file):
    rows = pq.read_table(file).to_pylist()
    for row in rows:
        row["extra_info"]["index"] = str(row["extra_info"]["index"])
    pq.write_table(pa.Table.from_pylist(rows), file)


def test_each_file_has_its_verdict_and_the_last_line_that_of_all(run, prepare):
    a, b = prepare("a.parquet", range(3)), prepare("b.parquet", [7, 8, 8])
    done = run("check", a, b)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[0] == f"{a}: 3 rows, all good."
    assert any(f"{b}: 1 of 3 rows is bad" in line for line in lines)
    assert lines[-1] == "2 files: 1 good, 1 with findings."
    assert done.stdout.count("Checked: schema") == 1
    assert assert_success(run("check", a, b, "--allow-duplicates")).endswith("2 files, all good.\n")


def test_a_prompt_that_two_files_have_is_one_line(run, prepare):
    a, b = prepare("a.parquet", range(3)), prepare("b.parquet", [2, 1, 9])
    text = " ".join(assert_success(run("check", a, b)).split())
    assert f"{b}: 2 rows have a prompt that is in {a}, too." in text
    assert f"{a}: " in text
    assert "0 rows" not in text


def test_files_that_verl_cannot_load_together_are_named(run, prepare):
    a, b = prepare("a.parquet", [1]), prepare("b.parquet", [2])
    change_index_to_text(b)
    done = run("check", a, b)
    text = " ".join(done.stdout.split())
    assert "verl cannot load these files as one list" in text
    assert "extra_info.index is string, but int64" in text
    fault = json.loads(run("check", a, b, "--json").stdout)["concatenation"]
    assert "extra_info.index" in fault["message"]


def test_a_folder_stands_for_the_parquets_below_it(run, prepare, tmp_path):
    prepare("data/a.parquet", [1])
    prepare("data/b.parquet", [2])
    (tmp_path / "data/.hidden").mkdir()
    (tmp_path / "data/.hidden/x.parquet").write_text("no parquet")
    (tmp_path / "data/rows.jsonl").write_text("{}")
    (tmp_path / "data/readme.txt").write_text("hello")
    done = run("check", tmp_path / "data")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 files, all good.")
    assert done.stderr == (
        f"not checked, because they are not parquets: {tmp_path / 'data/rows.jsonl'}\n"
    )


def test_a_file_that_cannot_be_read_does_not_hide_the_others(run, prepare, tmp_path):
    prepare("data/a.parquet", [1])
    (tmp_path / "data/b.parquet").write_bytes(b"PAR1 cut")
    done = run("check", tmp_path / "data")
    assert done.returncode == 4
    assert "b.parquet: the end of the parquet is missing." in done.stdout
    assert done.stdout.endswith("2 files: 1 good, 1 unreadable.\n")
    files = json.loads(run("check", tmp_path / "data", "--json").stdout)["files"]
    assert [each["ok"] for each in files] == [True, False]
    assert "is missing" in files[1]["error"]


def test_no_output_replaces_an_input_even_with_overwrite(cli, tmp_path):
    """Not the evaluation set of --against, the reward, nor the log: all were read a moment before."""
    (tmp_path / "my.py").write_text("def compute_score(solution_str, **_):\n    return 0.0\n")
    (tmp_path / "train.log").write_text("step:1 - critic/rewards/mean:0.5\n")
    rewardkit.prep("gsm8k", tmp_path / "eval.parquet", sample=True)
    rewardkit.prep("gsm8k", tmp_path / "train.parquet", sample=True)
    for arguments in (
        ("check", "train.parquet", "--against", "eval.parquet", "--html", "eval.parquet"),
        ("check", "train.parquet", "--against", "x=eval.parquet", "--drop-bad", "eval.parquet"),
        ("check", "train.parquet", "--scorer", "my.py", "--html", "my.py"),
        ("audit", "my.py", "--html", "my.py"),
        ("guard", "my.py", "--out", "my.py"),
        ("logs", "train.log", "--html", "train.log"),
    ):
        before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        done = cli(*arguments, "--overwrite", cwd=tmp_path)
        assert done.returncode == 2
        assert "is the input file; name another output" in done.stderr
        assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
