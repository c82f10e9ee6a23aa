"""`rewardkit eval` with a real `transformers serve`, on the CPU, offline, with a tiny random model.

The server's log shows the number of requests.
"""

import json

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app
from rewardkit.row import write_rows
from tests.integration.conftest import row
from tests.integration.transformers_server import needs_transformers_serve

ROWS, N, TOKENS = 4, 3, 24


pytestmark = needs_transformers_serve


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Four GSM8K-like rows."""
    path = tmp_path_factory.mktemp("rows") / "test.parquet"
    rows = (
        row(i, f"Which number is {i + 10}?", i + 10, "openai/gsm8k", "gsm8k") for i in range(ROWS)
    )
    write_rows(rows, path, {})
    return path


@pytest.fixture
def evaluated(transformers_server, rows, tmp_path):
    """Evaluate in this process; return the printed JSON and the written lines."""

    url, model, _ = transformers_server
    request = ["--base-url", url, "--model", model, "--max-tokens", TOKENS, "--concurrency", 2]

    def run(name, *more):
        words = ["run", rows, *request, "--jobs", 1, "--json", "--out", tmp_path / name, *more]
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exception is None, done.exception
        return json.loads(done.stdout), [json.loads(line) for line in (tmp_path / name).open()]

    return run


def test_every_response_is_written_and_the_figures_agree_with_the_file(evaluated, tmp_path):
    """A response is right if it starts with an ASCII character, as some random bytes do."""
    scorer = tmp_path / "ascii.py"
    scorer.write_text(
        "from rewardkit import Score\n"
        "def score(response, ground_truth, extra_info=None):\n"
        "    right = response[:1].isascii()\n"
        "    return Score(float(right), right, response[:1], 'correct' if right else 'wrong')\n"
    )
    ends = [part for letter in "aeiou" for part in ("--stop", letter)]
    result, lines = evaluated(
        "sampled.jsonl", "-n", N, "--temperature", 1, *ends, "--scorer", f"{scorer}:score"
    )
    assert [(line["row"], line["sample"]) for line in lines] == [
        (row, sample) for row in range(ROWS) for sample in range(N)
    ]
    # Two responses that end at their first letter can be the same: one a row would be no sampling.
    assert len({line["response"] for line in lines}) > ROWS
    reasons = [line["finish_reason"] for line in lines]
    assert set(reasons) <= {"stop", "length"}
    assert [e == "length" for e in reasons] == [line["tokens"] == TOKENS for line in lines]
    total, right = result["total"], [line["acc"] for line in lines]
    assert (result["rows"], result["unanswered"], total["n"]) == (ROWS, 0, [N, N])
    assert total["mean"]["value"] == pytest.approx(sum(right) / len(lines))
    assert total["truncated"]["n"] == reasons.count("length")
    assert total["tokens"]["mean"] == pytest.approx(sum(x["tokens"] for x in lines) / len(lines))
    solved = [any(line["acc"] for line in lines[row * N :][:N]) for row in range(ROWS)]
    assert total["pass@k"][str(N)]["value"] == pytest.approx(sum(solved) / ROWS)
