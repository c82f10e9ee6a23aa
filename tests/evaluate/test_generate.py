"""Generation survives each fault of a misbehaving server, or fails with one clear line."""

import gzip
import json
import re
import tracemalloc
from collections import deque
from email.utils import formatdate
from itertools import pairwise
from time import time
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.evaluate.evaluation import evaluate
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.model_client import client as client_module
from rewardkit.model_client.client import (
    AdaptiveConcurrency,
    ModelClient,
    Server,
    TryAgainError,
    _retry_after,
)
from rewardkit.model_client.completions import parse_choice
from rewardkit.responses.score import ScoringPlan
from rewardkit.scorers.base import Score
from tests.judging.faulty_server import PASSING_FAULTS, REPLY_FAULTS, TRANSPORT_FAULTS

E400 = (400, {}, {"error": {"message": "This model's maximum context length is 512 tokens"}})
E404 = (404, {}, {"object": "error", "message": "The model `M` does not exist.", "code": 404})
E500 = (500, {}, {"error": {"message": "engine died"}})


def test_every_response_is_written_once_in_order_with_its_score(serve, generate, tmp_path):
    with serve() as server:
        report, lines = generate(server, rows=5, n=4)
    assert [(line["row"], line["sample"]) for line in lines] == [
        (row, sample) for row in range(5) for sample in range(4)
    ]
    right = [line["response"].endswith(f"#### {line['row'] + 10}") for line in lines]
    assert [line["acc"] for line in lines] == list(map(float, right))
    assert report.metrics.summary()["total"]["mean"]["value"] == sum(right) / 20
    expected = {"model": "M", "sampling": {"api": "chat", "seed": 1}, "scorer": "auto"}
    expected |= {"tokens": 7, "finish_reason": "stop"}
    assert expected.items() <= lines[0].items()
    assert list(tmp_path.glob(".*")) == []


def test_each_sample_has_its_own_seed_and_other_fields_are_sent_unchanged(serve, generate):
    fields = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "max_tokens": 64}
    sampling = Sampling(**fields, stop=("\n\n",), seed=3, extra={"min_p": 0.05})
    with serve() as server:
        generate(server, rows=3, n=3, sampling=sampling)
    assert len({body["seed"] for body in server.bodies}) == 9
    assert (fields | {"stop": ["\n\n"], "min_p": 0.05}).items() <= server.bodies[0].items()
    assert "n" not in server.bodies[0]
    with serve() as server:
        generate(server, rows=1, n=1, sampling=Sampling("completions"), out="c.jsonl")
    assert server.bodies[0]["prompt"].startswith("Which number is 10?")


def raw(body, *headers, status="200 OK"):
    """Return the bytes of an HTTP response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def unusable(reason, content="#### 10"):
    """Return a reply with status 200 whose only choice is unusable; `no_content` has null content."""
    if reason == "no_content":
        reason, content = "stop", None
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": reason}
    return (200, {}, {"choices": [choice], "usage": {"completion_tokens": 1}})


DEEP, HTML = b"[" * 200_000 + b"]" * 200_000, raw(b"<html>gateway</html>")
INTERRUPTED = ["abort", "error", "insufficient_system_resource"]
WITHHELD = ["content_filter", "no_content"]
FAULTS = {
    **PASSING_FAULTS,
    **{name: fault for name, fault in REPLY_FAULTS.items() if name.startswith("body ")},
    **{name: REPLY_FAULTS[name] for name in ("not UTF-8", "deep objects", "long number")},
    "not HTTP": TRANSPORT_FAULTS["not HTTP"],
    "longer than it says": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + b'{"choices": []}',
    "two lengths": raw(b"{}", "Content-Length: 7"),
    "a stream": raw(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'),
    "not the gzip it says": raw(b'{"choices": []}', "Content-Encoding: gzip"),
    **{reason: unusable(reason) for reason in INTERRUPTED + WITHHELD},
}


@pytest.mark.parametrize("fault", [*FAULTS.values(), "slow"], ids=[*FAULTS, "slow"])
@pytest.mark.full
def test_a_temporary_fault_costs_a_retry_and_no_response(serve, generate, fault):
    with serve() as server:
        _, expected = generate(server, out="clean.jsonl")
    with serve(faults={1: fault, 4: fault}) as server:
        _, lines = generate(server, seconds=0.5 if fault == "slow" else 20.0)
    assert lines == expected
    assert len(server.bodies) == 8


def test_a_429_pauses_all_requests_for_the_time_of_its_retry_after(serve, generate):
    busy = (429, {"Retry-After": "0.6"}, {"error": {"message": "slow down"}})
    with serve(faults={0: busy}) as server:
        generate(server, rows=20, n=1, concurrency=1)
    assert len(server.bodies) == 21
    assert server.times[1] - server.times[0] >= 0.6


def test_a_retry_after_may_be_a_date_and_a_long_one_ends_the_run(serve, generate):
    assert 60 < _retry_after(formatdate(time() + 100, usegmt=True)) <= 100
    assert _retry_after("soon") == _retry_after("") == _retry_after("nan") == 0
    for date in (
        "Fri, 99999999999999999999 Nov 2026 08:49:37 GMT",
        "Fri, 06 Nov 99999999999999999999 08:49:37 GMT",
        "Fri, 06 Nov 2026 08:49:37 +99999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 0001 00:00:00 +2359",
    ):
        assert _retry_after(date) >= 0.0
    long = (429, {"Retry-After": "7200"}, {})
    with serve(always=long) as server, pytest.raises(SourceError, match="7,200 s"):
        generate(server)


@pytest.mark.parametrize("charset", ["rot13", "hex", "nope", "utf-8"])
def test_an_error_message_is_shown_in_any_declared_charset(serve, generate, charset):
    for body, message in ((b"who \xff are you", "401: who"), (DEEP, "401: [[[")):
        answer = raw(body, f"Content-Type: text/html; charset={charset}", status="401 No")
        with serve(always=answer) as server, pytest.raises(SourceError) as error:
            generate(server, rows=1, n=1)
        assert message in str(error.value)
        assert len(str(error.value)) < 600


REDIRECT = (308, {"Location": "https://there/v1/chat/completions"}, b"")
ENDS = [
    (E404, {}, r"404: The model `M` does not exist\.", 1),
    (REDIRECT, {}, "https://there/v1/chat", 1),
    (HTML, {}, "no answer to any request: the reply is not JSON: <html>gateway", 3),
    (E400, {"rows": 2, "n": 2}, "refuses every prompt: 400", 4),
    (E500, {"rows": 50, "tries": 2, "concurrency": 4}, r" \d requests in a row failed: 500: engine died\. .*--base-url", 18),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "options", "message", "most"), ENDS)
def test_a_run_without_a_response_ends_early_with_one_line_and_leaves_no_file(
    serve, generate, tmp_path, fault, options, message, most
):
    with serve(always=fault) as server, pytest.raises(SourceError, match=message) as error:
        generate(server, **{"rows": 1, "n": 1, **options})
    assert "\n" not in str(error.value)
    assert len(server.bodies) <= most
    assert [path.name for path in tmp_path.iterdir()] == ["test.parquet"]


def test_a_missing_server_is_a_one_line_error(generate):
    with pytest.raises(SourceError, match="cannot connect"):
        generate(SimpleNamespace(url="http://127.0.0.1:9/v1"))


def test_an_endless_reply_is_not_held_in_memory(serve, generate, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_REPLY_BYTES", 1_000_000)
    bomb = raw(gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip")
    tracemalloc.start()
    try:
        with serve(always=bomb) as server, pytest.raises(SourceError, match="than 1,000,000"):
            generate(server, rows=1, n=1, tries=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("headers", [["gzip, gzip"], ["gzip", "gzip"]])
def test_a_reply_that_is_compressed_more_than_once_is_not_read(serve, generate, headers):
    """10 KB were 6 GB, decompressed in one piece while the deadline passed."""
    headers = [f"Content-Encoding: {header}" for header in headers]
    reply = raw(gzip.compress(gzip.compress(b" " * 1000)), *headers)
    with serve(always=reply) as server, pytest.raises(SourceError, match="more than once"):
        generate(server, rows=1, n=1, tries=1)


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
    {"type": "text", "text": "so\n"},
    {"type": "text", "text": "#### 10"},
]
REPLIES = [
    ({"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}, "4", None),
    ({"choices": [{"message": {"content": PARTS}}]}, "so\n#### 10", None),
    ({"choices": [{"text": "x"}], "usage": {"completion_tokens": 7}}, "x", 7),
    *(
        ({"choices": [{"text": "x"}], "usage": {"completion_tokens": tokens}}, "x", None)
        for tokens in (10**30, -5, True, 7.0, "7", None)
    ),
]


@pytest.mark.parametrize(("body", "response", "tokens"), REPLIES)
def test_replies_of_any_form_are_read(serve, generate, body, response, tokens):
    """In gzip, in parts without the reasoning, and with a number of tokens that is none."""
    reply = raw(gzip.compress(json.dumps(body).encode()), "Content-Encoding: GZIP")
    with serve(always=reply) as server:
        _, lines = generate(server, rows=1, n=1)
    assert (lines[0]["response"], lines[0]["tokens"]) == (response, tokens)


@pytest.mark.parametrize("reason", [*INTERRUPTED, *WITHHELD, "refused"])
def test_a_response_that_stays_unusable_counts_as_wrong_and_is_reported(serve, generate, reason):
    """This holds even if the text contains the right answer, because the model did not finish it."""
    tries = {"refused": 1}.get(reason, 4 if reason in INTERRUPTED else 3)
    fault = E400 if reason == "refused" else unusable(reason)
    with serve(faults=dict.fromkeys(range(2, 2 + tries), fault)) as server:
        report, lines = generate(server, rows=4, n=1, tries=4, concurrency=1)
    assert len(server.bodies) == 3 + tries
    assert [line["finish_reason"] for line in lines] == ["stop", "stop", reason, "stop"]
    assert (lines[2]["response"], lines[2]["acc"]) == ("", 0.0)
    assert ("maximum context" in lines[2].get("refusal", "")) == (reason == "refused")
    summary = report.summary()
    assert summary["total"]["unusable"] == {reason: 1}
    assert (summary["total"]["responses"], summary["unanswered"]) == (4, 0)
    assert f"no usable response for 1 of 4 ({reason} 1)" in " ".join(report.warnings())


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": None, "reasoning_content": "hm, so"}, "length", "length"),
        ({"content": None, "reasoning": "hm, so"}, "stop", "stop"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls", "tool_calls"),
        ({"content": None, "refusal": "I will not."}, "stop", "stop"),
        ({"content": None}, "length", "length"),
        ({"content": ""}, "stop", "stop"),
        ({"content": "x"}, None, ""),
        ({}, "stop", "no_content"),
        ({"content": None}, None, "no_content"),
        ({"content": None, "tool_calls": []}, "stop", "no_content"),
    ],
)
def test_everything_that_the_model_itself_did_is_a_response(message, finish, expected):
    """Truncated reasoning (null content in vLLM and SGLang), a tool call, an empty text."""
    choice = parse_choice({"message": message, "finish_reason": finish})
    assert (choice.is_usable, choice.finish_reason) == (expected != "no_content", expected)


def test_an_absurdly_long_text_is_discarded(monkeypatch):
    monkeypatch.setattr("rewardkit.model_client.completions.MAX_CHARACTERS", 10)
    choice = parse_choice({"message": {"content": "a" * 6, "reasoning": "b" * 5}})
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("", "", "too_long")


def test_a_secret_is_sent_and_never_written(serve, generate, tmp_path):
    """Servers repeat keys when they refuse a prompt, and the refusal is written to the results."""
    extra = {"api_key": "Zq7canaryValue42", "nested": {"token": "Yx8canaryValue43"}, "min_p": 0.1}
    echo = {"error": {"message": "bad Zq7canaryValue42, Yx8canaryValue43, sk-secret-1"}}
    options = {"rows": 3, "n": 1, "sampling": Sampling(seed=1, extra=extra), "key": "sk-secret-1"}
    with serve(faults={1: (400, {}, echo)}) as server:
        _, lines = generate(server, concurrency=1, **options)
    assert server.bodies[0]["api_key"] == "Zq7canaryValue42"
    assert server.keys[0] == "Bearer sk-secret-1"
    hidden = {"api_key": "***", "nested": {"token": "***"}, "min_p": 0.1}
    assert lines[0]["sampling"]["extra"] == hidden
    assert any("bad ***, ***, ***" in json.dumps(line) for line in lines)
    texts = [repr(Server("http://h/v1", key="sk-secret-1"))]
    for name, fault in (("a", (400, {}, echo)), ("b", (401, {}, echo))):
        with serve(always=fault) as server, pytest.raises(SourceError) as error:
            generate(server, out=f"{name}.jsonl", **options)
        texts.append(str(error.value))
    texts += [p.read_text() for p in tmp_path.iterdir() if p.suffix in {".jsonl", ".part"}]
    assert not any("canaryValue" in text or "sk-secret" in text for text in texts)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h:99999/v1", "from 1 to 65535"),
        ("http://h/v1?api-version=1", "in /v1"),
        ("http://h/v1/chat/completions/", "in /v1"),
        ("h:8000/v1", "write it as"),
        ("http://[::1/v1", "not a URL"),
        ("http://me:hunter2@host/v1", "contains a password"),
    ],
)
def test_an_invalid_base_url_is_an_error_before_any_request(url, message):
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        Server(url)
    assert "hunter2" not in str(error.value)
    assert Server("http://[::1]:8000/v1/").url == "http://[::1]:8000/v1/chat/completions"


def test_a_server_on_this_machine_needs_no_proxy_and_an_unusable_one_is_a_one_line_error(
    serve, generate, monkeypatch, tmp_path
):
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serve() as server:
        assert len(generate(server, rows=1, n=1)[1]) == 1
    (tmp_path / "none.pem").write_text("no certificate")
    for name, value in (("ALL_PROXY", "ftp://proxy:1"), ("SSL_CERT_FILE", f"{tmp_path}/none.pem")):
        monkeypatch.delenv("ALL_PROXY", raising=False)
        monkeypatch.setenv(name, value)
        with pytest.raises(UsageError, match=name):
            ModelClient(Server("http://far.example/v1"))


def test_any_text_can_be_sent_but_not_nan_or_infinity_or_a_field_with_an_option(serve, generate):
    """The command line turns bytes that are not UTF-8 into lone surrogates."""
    sampling = Sampling(extra={"user": "\ud800"})
    with serve() as server:
        generate(server, rows=1, n=1, model="模型 a\udcff", sampling=sampling)
    assert server.bodies[0]["model"] == "模型 a\udcff"
    assert server.bodies[0]["user"] == "\ud800"
    for fields in ({"temperature": float("nan")}, {"extra": {"min_p": float("inf")}}):
        with pytest.raises(UsageError, match="nan and inf"):
            Sampling(**fields)
    with pytest.raises(UsageError, match="model, n"):
        Sampling(extra={"n": 4, "model": "x"})


def test_pauses_between_tries_grow_and_are_randomised(monkeypatch, serve, generate):
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 0.04)
    with serve(faults=dict.fromkeys(range(4), E500)) as server:
        generate(server, rows=1, n=1, concurrency=1)
    waits = [b - a for a, b in pairwise(server.times)]
    assert all(wait >= 0.02 * 2**i for i, wait in enumerate(waits))
    client, error = ModelClient(Server("http://h/v1")), TryAgainError("")
    shares = {client._pause(i, error) / (0.02 * 2**i) for i in range(1, 9)}
    assert 0.5 < min(shares) < max(shares) < 1.01
    assert len(shares) == 8


def test_a_response_on_which_the_scorer_fails_counts_as_wrong_with_a_reason(serve, generate):
    def scorer(response, ground_truth, extra_info=None):
        return Score.right(str(1 / (extra_info["index"] != 1)))

    with serve() as server:
        report, lines = generate(server, rows=4, n=1, plan=ScoringPlan(scorer))
    total = report.metrics.summary()["total"]
    assert (total["statuses"]["failed"], total["mean"]["value"]) == (1, 0.75)
    assert "ZeroDivisionError" in lines[1]["reason"]


def test_a_row_without_a_scorer_is_an_error_before_any_request(serve, generate, tmp_path):
    row = {"prompt": [{"role": "user", "content": "?"}], "data_source": "nobody/knows"}
    row["reward_model"] = {"ground_truth": "1"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")
    with serve() as server, pytest.raises(DataError, match=r"row 0: no scorer is known"):
        evaluate(
            tmp_path / "t.parquet", GenerationConfig(Server(server.url), "M"), tmp_path / "m.jsonl"
        )
    assert server.bodies == []


def test_concurrency_stays_below_what_a_slow_server_answers_in_time():
    """The server handles 4 requests of 1 s at a time; of 256 the last would wait 64 s, above 20 s."""
    now, sent, history = 0.0, deque(), []
    limit = AdaptiveConcurrency(256, lambda: now)
    while len(history) < 2_000:
        sent.extend([now] * (limit.allowed - len(sent)))
        start = sent.popleft()
        if now + 1 - start > 20:
            limit.record_timeout(start, 20.0)
            continue
        now += 0.25
        limit.record_answer(now + 0.75 - start)
        history.append(limit.allowed)
    assert 16 <= min(history[1000:]) <= max(history[1000:]) <= 128


def test_a_single_endless_request_does_not_reduce_concurrency():
    limit = AdaptiveConcurrency(64, lambda: 100.0)
    for _ in range(20):
        limit.record_answer(1.0)
    limit.record_timeout(0.0, 50.0)
    assert limit.allowed == 64
    for _ in range(200):
        limit.record_answer(40.0)
    limit.record_timeout(0.0, 50.0)
    assert limit.allowed == 32


def test_simultaneous_refusals_halve_concurrency_once():
    clock = 0.0
    limit = AdaptiveConcurrency(64, lambda: clock)
    for _ in range(8):
        limit.record_refusal(0.0, 1.0)
        clock += 0.1
    assert limit.allowed == 32
    limit.record_refusal(clock, 1.0)
    assert limit.allowed == 16
