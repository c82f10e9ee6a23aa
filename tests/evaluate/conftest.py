"""A small OpenAI-compatible server, deterministic by seed, that can misbehave on request."""

import hashlib
import json
import time
from functools import partial

import pytest

from rewardkit.evaluate.evaluation import evaluate
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.model_client import client as client_module
from rewardkit.model_client.client import Server
from rewardkit.row import build_row, write_rows
from tests.judging.faulty_server import JudgeHandler, JudgeServer, serving


class Chat(JudgeServer):
    """A server that answers "#### N", right or wrong by a hash of prompt and seed.

    A fault is one of `faulty_server`, "slow", a status with headers and body, or raw bytes.
    """

    def __init__(self, *, faults=None, always=None, seconds=0.0):
        super().__init__(seconds=seconds)
        self.RequestHandlerClass = ChatHandler
        self.faults, self.always = faults or {}, always
        self.keys, self.times = [], []


class ChatHandler(JudgeHandler):
    def answer(self, body, fault):
        self.server.keys.append(self.headers["Authorization"])
        self.server.times.append(time.monotonic())
        if callable(fault):
            fault(self, body)
        elif isinstance(fault, bytes):  # sent unchanged
            self.wfile.write(fault)
            self.close_connection = True
        elif isinstance(fault, tuple):
            status, headers, reply_body = fault
            self.say(status, reply_body, headers)
        else:
            time.sleep(1.0 if fault == "slow" else self.server.seconds)
            self.say(200, completion(self.server, body))


def reply(prompt, seed):
    """Return the response to a prompt at a seed; about half are right (the number of the prompt)."""
    number = int("".join(c for c in prompt if c.isdecimal()) or 0)
    digest = hashlib.sha256(f"{prompt} {seed}".encode()).digest()
    return f"so it is\n#### {number if digest[0] % 2 else digest[1]}"


def completion(server, body):
    chat = "messages" in body
    prompt = body["messages"][-1]["content"] if chat else body["prompt"]
    if isinstance(prompt, list):
        prompt = "".join(part.get("text", "") for part in prompt)
    text = reply(prompt, body.get("seed"))
    fields = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    choice = {"index": 0, **fields, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"completion_tokens": 7}}


@pytest.fixture
def serve():
    return partial(serving, kind=Chat)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    """Retry quickly; another test checks that pauses grow."""
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 0.01)


@pytest.fixture
def parquet(tmp_path):
    """Return a function that writes a parquet like GSM8K; the answer to row i is i + 10."""

    def make(rows, name="test.parquet", **fields):
        path, same = tmp_path / name, {"data_source": "openai/gsm8k", "ability": "math"}
        same |= {"split": "test", "answer": "", "scorer": "gsm8k"}

        def row(i):
            question = f"Which number is {i + 10}?"
            prompt = [{"role": "user", "content": f"{question} {make.instruction}"}]
            own = {"index": i, "source_id": f"q{i}", "question": question, "prompt": prompt}
            more = {name: value(i) for name, value in fields.items()}
            return build_row(**{**same, **own, "ground_truth": str(i + 10), **more})

        write_rows(map(row, range(rows)), path, {}, overwrite=True)
        return path

    make.instruction = "Say #### first."
    return make


@pytest.fixture
def generate(parquet, tmp_path):
    """Return a function that evaluates rows on a server and returns the report and the lines."""

    def run(server, rows=3, n=2, *, out="m.jsonl", sampling=None, seed=1, model="M", **options):
        path, names = tmp_path / out, ("plan", "resume", "overwrite")
        more = {name: options.pop(name) for name in names if name in options}
        seconds = options.pop("seconds", 20.0)
        sampling, key = sampling or Sampling(seed=seed), options.pop("key", "")
        config = Server(server.url, sampling.api, key=key, timeout_seconds=seconds)
        generation = GenerationConfig(config, model, sampling, n=n, **options)
        report = evaluate(parquet(rows), generation, path, **more)
        return report, [json.loads(line) for line in path.read_text().splitlines()]

    return run
