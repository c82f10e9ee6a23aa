"""Every command writes through an output that is a symbolic link, and the link stays one."""

import json

import pytest
from typer.testing import CliRunner

from rewardkit.cli.main import app

CALLS = {
    "logs --csv": ["logs", "run.log", "--csv", "LINK"],
    "logs --html": ["logs", "run.log", "--html", "LINK"],
    "report": ["report", "scored.jsonl", "--html", "LINK"],
    "prep": ["prep", "gsm8k", "--sample", "--out", "LINK"],
    "prep --html": ["prep", "gsm8k", "--sample", "--out", "new.parquet", "--html", "LINK"],
    "recipes cp": ["recipes", "cp", "qwen2.5-0.5b-ppo-gsm8k", "LINK"],
    "eval responses": ["eval", "responses", "rows.parquet", "scored.jsonl", "--out", "LINK"],
}
SUFFIXES = {
    "prep": "parquet",
    "recipes cp": "yaml",
    "logs --csv": "csv",
    "eval responses": "jsonl",
}


def invoke(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_an_output_that_is_a_link_stays_one_and_its_file_is_written(
    tmp_path, monkeypatch, call, overwrite
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.log").write_text("step:1 - critic/score/mean:0.5\n" * 3)
    rows = invoke(["prep", "gsm8k", "--sample", "--limit", "2", "--out", "rows.parquet"])
    assert rows.exit_code == 0
    row = {
        "input": "?",
        "output": "#### 1",
        "gts": "1",
        "score": 1.0,
        "data_source": "openai/gsm8k",
    }
    if call == "eval responses":
        output = invoke(["show", "rows.parquet", "-n", "1", "--json"]).stdout
        question = json.loads(output)
        question = question[0] if isinstance(question, list) else question
        row["input"] = question["prompt"][-1]["content"]
        row["gts"] = question["reward_model"]["ground_truth"]
    (tmp_path / "scored.jsonl").write_text(json.dumps(row) + "\n")
    link = tmp_path / f"link.{SUFFIXES.get(call, 'html')}"
    real = tmp_path / "there" / f"real{link.suffix}"
    real.parent.mkdir()
    link.symlink_to(real)
    if overwrite:
        real.write_text("before")
    more = ["--overwrite"] if overwrite else []
    invoke([link.name if word == "LINK" else word for word in CALLS[call]] + more)
    assert link.is_symlink()
    assert real.read_bytes() not in (b"", b"before")
    assert [path.name for path in real.parent.iterdir()] == [real.name]
