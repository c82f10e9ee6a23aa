"""`rewardkit eval` with a real `transformers serve`, on the CPU, offline, with a tiny random model.

The server's log shows the number of requests.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app
from rewardkit.responses.store import part_path
from rewardkit.row import build_row, write_rows
from tests.integration.transformers_server import needs_transformers_serve, wait_for

ROWS, N, TOKENS = 4, 3, 24


pytestmark = needs_transformers_serve


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Four GSM8K-like rows."""
    path = tmp_path_factory.mktemp("rows") / "test.parquet"
    rows = (
        build_row(
            data_source="openai/gsm8k",
            prompt=[{"role": "user", "content": f"Which number is {i + 10}?"}],
            ability="math",
            ground_truth=str(i + 10),
            index=i,
            split="test",
            source_id=f"q{i}",
            question=f"Which number is {i + 10}?",
            answer="",
            scorer="gsm8k",
        )
        for i in range(ROWS)
    )
    write_rows(rows, path, {})
    return path


def arguments(server, rows, out, *more):
    url, model, _ = server
    request = ["--base-url", url, "--model", model, "--out", out, "--max-tokens", TOKENS]
    return [str(each) for each in ("run", rows, *request, "--concurrency", 2, "--jobs", 1, *more)]


@pytest.fixture
def evaluated(transformers_server, rows, tmp_path):
    """Evaluate in this process; return the printed JSON and the written lines."""

    def run(name, *more):
        out = tmp_path / name
        done = CliRunner().invoke(app, arguments(transformers_server, rows, out, "--json", *more))
        assert done.exception is None, done.exception
        return json.loads(done.stdout), [json.loads(line) for line in out.open()]

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


def test_a_greedy_run_gives_the_same_file_twice(evaluated):
    greedy = ["--temperature", 0]
    (first, lines), (second, again) = (evaluated(name, *greedy) for name in ("a.jsonl", "b.jsonl"))
    assert lines == again
    assert first == second
    assert {line["finish_reason"] for line in lines} == {"length"}
    assert all(line["tokens"] == TOKENS for line in lines)


def test_a_killed_run_continues_with_only_the_missing_responses(
    transformers_server, rows, evaluated, tmp_path
):
    """There is no seed, so that a repeated request would get another response."""
    out, more = tmp_path / "m.jsonl", ["-n", 6, "--temperature", 1]
    line = [
        sys.executable,
        "-m",
        "rewardkit",
        "eval",
        *arguments(transformers_server, rows, out, *more),
    ]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    part, answered_requests = part_path(out), transformers_server[2]
    wait_for(lambda: part.exists() and part.read_bytes().count(b"\n") >= 5, 60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    before = answered_requests()
    *whole, _ = part.read_bytes().split(b"\n")  # a line may have been cut
    lines = [line for line in map(json.loads, whole) if "response" in line]
    first_run = {(line["row"], line["sample"]): line for line in lines}
    missing = ROWS * 6 - len(first_run)
    assert missing >= 5
    _, lines = evaluated("m.jsonl", *more)
    assert len({(line["row"], line["sample"]) for line in lines}) == len(lines) == ROWS * 6
    assert all(
        line["response"] == first_run.get((line["row"], line["sample"]), line)["response"]
        for line in lines
    )
    # The two requests in progress at the kill may be logged after it.
    assert missing <= answered_requests() - before <= missing + 2
