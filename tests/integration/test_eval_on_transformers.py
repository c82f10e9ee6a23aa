"""`rewardkit eval` against a real `transformers serve`, on the CPU, offline, with a model made here.

The server starts once for all tests; its own log says how often it was asked.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app
from rewardkit.launch.rehearsal.tiny_model import write_model
from rewardkit.responses.append_only_file import part_path
from rewardkit.responses.response_log import read_response_index
from rewardkit.row import build_row, write_rows

NEEDED = ("fastapi", "openai", "transformers.cli.serve", "uvicorn")
ROWS, N, TOKENS = 4, 3, 24


def missing():
    """The modules that `transformers serve` needs and this environment has not."""

    def found(name):
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:  # its package
            return False

    return [name for name in NEEDED if not found(name)]


LACKING = missing()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"no transformers serve: no {LACKING}")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The base URL, the model's name, and how many requests were answered so far."""
    folder = tmp_path_factory.mktemp("served")
    model, log = folder / "model", folder / "log"
    write_model(model, positions=512)
    ends = {"eos_token_id": 258, "pad_token_id": 256}
    (model / "generation_config.json").write_text(json.dumps({**ends, "do_sample": True}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    where = ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    with log.open("w") as said:
        process = subprocess.Popen([*code, *where], env=env, stdout=said, stderr=said)
    try:
        wait_for(lambda: healthy(port, process, log), 120)

        def asked():
            return log.read_text().count('POST /v1/chat/completions HTTP/1.1" 200')

        yield f"http://127.0.0.1:{port}/v1", str(model), asked
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def healthy(port, process, log):
    assert process.poll() is None, log.read_text()[-2000:]
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as said:
            return said.status == 200
    except OSError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Four GSM8K-like rows."""
    path = tmp_path_factory.mktemp("rows") / "test.parquet"
    made = (
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
    write_rows(made, path, {})
    return path


def arguments(server, rows, out, *more):
    url, model, _ = server
    asked = ["--base-url", url, "--model", model, "--out", out, "--max-tokens", TOKENS]
    return [str(each) for each in ("run", rows, *asked, "--concurrency", 2, "--jobs", 1, *more)]


@pytest.fixture
def evaluated(server, rows, tmp_path):
    """Evaluate in this process; the JSON printed and the lines written."""

    def run(name, *more):
        out = tmp_path / name
        done = CliRunner().invoke(app, arguments(server, rows, out, "--json", *more))
        assert done.exception is None, done.exception
        return json.loads(done.stdout), [json.loads(line) for line in out.open()]

    return run


def test_every_response_is_there_and_the_figures_are_those_of_the_file(evaluated, tmp_path):
    """Right is what starts with an ASCII character: some of random bytes do, and some do not."""
    scorer = tmp_path / "ascii.py"
    scorer.write_text(
        "from rewardkit import Score\n"
        "def score(response, ground_truth, extra_info=None):\n"
        "    right = response[:1].isascii()\n"
        "    return Score(float(right), right, response[:1], 'correct' if right else 'wrong')\n"
    )
    ends = [part for letter in "aeiou" for part in ("--stop", letter)]
    found, lines = evaluated(
        "sampled.jsonl", "-n", N, "--temperature", 1, *ends, "--scorer", f"{scorer}:score"
    )
    assert [(line["row"], line["sample"]) for line in lines] == [
        (row, sample) for row in range(ROWS) for sample in range(N)
    ]
    assert len({line["response"] for line in lines}) == ROWS * N
    ended = [line["finish_reason"] for line in lines]
    assert set(ended) <= {"stop", "length"}
    assert [e == "length" for e in ended] == [line["tokens"] == TOKENS for line in lines]
    total, right = found["total"], [line["acc"] for line in lines]
    assert (found["rows"], found["unanswered"], total["n"]) == (ROWS, 0, [N, N])
    assert total["mean"]["value"] == pytest.approx(sum(right) / len(lines))
    assert total["truncated"]["n"] == ended.count("length")
    assert total["tokens"]["mean"] == pytest.approx(sum(x["tokens"] for x in lines) / len(lines))
    some = [any(line["acc"] for line in lines[row * N :][:N]) for row in range(ROWS)]
    assert total["pass@k"][str(N)]["value"] == pytest.approx(sum(some) / ROWS)


def test_a_greedy_run_gives_the_same_file_twice(evaluated):
    greedy = ["--temperature", 0]
    (first, lines), (second, again) = (evaluated(name, *greedy) for name in ("a.jsonl", "b.jsonl"))
    assert lines == again
    assert first == second
    assert {line["finish_reason"] for line in lines} == {"length"}
    assert all(line["tokens"] == TOKENS for line in lines)


def test_a_killed_run_goes_on_with_what_is_missing_alone(server, rows, evaluated, tmp_path):
    """Without a seed: a response that was asked for again would be another."""
    out, more = tmp_path / "m.jsonl", ["-n", 6, "--temperature", 1]
    line = [sys.executable, "-m", "rewardkit", "eval", *arguments(server, rows, out, *more)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    part, asked = part_path(out), server[2]
    wait_for(lambda: part.exists() and part.read_bytes().count(b"\n") >= 5, 60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    before, kept = asked(), read_response_index(part)
    had = {(x["row"], x["sample"]): x for x in map(json.loads, part.read_bytes().splitlines())}
    left = ROWS * 6 - len(kept.rows)
    assert left >= 5
    _, lines = evaluated("m.jsonl", *more)
    assert len({(line["row"], line["sample"]) for line in lines}) == len(lines) == ROWS * 6
    assert all(
        line["response"] == had.get((line["row"], line["sample"]), line)["response"]
        for line in lines
    )
    # The two that were under way at the kill may be logged after it.
    assert left <= asked() - before <= left + 2
