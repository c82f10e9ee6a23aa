"""Generation survives each fault of a misbehaving server, or fails with one clear line."""

import gzip
import json
import re
import tracemalloc
from collections import deque
from email.utils import formatdate
from heapq import heappop, heappush
from random import Random
from time import time

import pytest

from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.evaluate.evaluation import ScorerConfig, evaluate
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.model_client import client as server_module
from rewardkit.model_client import retries as module
from rewardkit.model_client.adaptive_concurrency import AdaptiveConcurrency
from rewardkit.model_client.client import ClientPool, Server, _retry_after
from rewardkit.responses.resumable_output import lock_part, part_path

E400 = (400, {}, {"error": {"message": "This model's maximum context length is 512 tokens"}})
E404 = (404, {}, {"object": "error", "message": "The model `M` does not exist.", "code": 404})
E500 = (500, {}, {"error": {"message": "engine died"}})


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    """Retry quickly; another test checks that pauses grow."""
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.01)


@pytest.fixture
def generate(parquet, tmp_path):
    """Return a function that evaluates rows on a server and returns the report and the lines."""

    def run(server, rows=3, n=2, *, key="", seconds=20.0, out="m.jsonl", sampling=None, **options):
        path = tmp_path / out
        generation = GenerationConfig(
            Server(server.url, "chat", key=key, timeout_seconds=seconds),
            options.pop("model", "M"),
            sampling or Sampling(seed=1),
            n=n,
            **options,
        )
        report = evaluate(parquet(rows), generation, path)
        return report, [json.loads(line) for line in path.read_text().splitlines()]

    return run


def test_every_response_is_written_once_in_order_with_its_score(serve, generate, tmp_path):
    with serve() as server:
        report, lines = generate(server, rows=5, n=4)
    assert [(line["row"], line["sample"]) for line in lines] == [
        (row, sample) for row in range(5) for sample in range(4)
    ]
    right = [line["response"].endswith(f"#### {line['row'] + 10}") for line in lines]
    assert [line["acc"] for line in lines] == list(map(float, right))
    assert report.metrics.summary()["total"]["mean"]["value"] == sum(right) / 20
    assert lines[0]["model"] == "M"
    assert lines[0]["sampling"] == {"api": "chat", "seed": 1}
    assert lines[0]["tokens"] == 7
    assert lines[0]["finish_reason"] == "stop"
    assert list(tmp_path.glob(".*")) == []


def test_each_sample_has_its_own_seed_and_other_fields_are_sent_unchanged(serve, generate):
    sampling = Sampling(
        temperature=0.7,
        top_p=0.9,
        top_k=20,
        max_tokens=64,
        stop=("\n\n",),
        seed=3,
        extra={"min_p": 0.05},
    )
    with serve() as server:
        generate(server, rows=3, n=3, sampling=sampling)
    assert len({body["seed"] for body in server.bodies}) == 9
    body = server.bodies[0]
    assert (body["temperature"], body["top_p"], body["top_k"]) == (0.7, 0.9, 20)
    assert (body["max_tokens"], body["stop"], body["min_p"]) == (64, ["\n\n"], 0.05)
    assert "n" not in body


def test_completions_send_the_text_of_the_messages(serve, parquet, tmp_path):
    with serve() as server:
        generation = GenerationConfig(
            Server(server.url, "completions"), "M", Sampling("completions")
        )
        evaluate(parquet(1), generation, tmp_path / "m.jsonl")
    assert server.bodies[0]["prompt"].startswith("Which number is 10?")


def test_choices_that_a_server_leaves_out_are_requested_again(serve, generate):
    with serve(honours_n=False) as server:
        _, lines = generate(server, rows=2, n=5, choices_per_request=4)
    assert len(lines) == 10
    assert len({line["response"] for line in lines if line["row"] == 0}) > 1
    assert sorted(body.get("n", 1) for body in server.bodies) == [1, 1, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_server_that_honours_n_sends_all_choices_in_one_reply(serve, generate):
    with serve() as server:
        _, lines = generate(server, rows=2, n=4, choices_per_request=4)
    assert len(server.bodies) == 2
    assert len(lines) == 8
    assert lines[0]["tokens"] is None  # the server counts all four together


def raw(body, *headers, status="200 OK"):
    """Return the bytes of an HTTP response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


DEEP = b"[" * 200_000 + b"]" * 200_000
FAULTS = {
    "cut": "cut",
    "cut in a chunk": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"choices":',
    "longer than it says": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + b'{"choices": []}',
    "two lengths": raw(b"{}", "Content-Length: 7"),
    "no http": b"SSH-2.0-OpenSSH\r\n",
    "nothing": b"",
    "html": "no json",
    "a stream": raw(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'),
    "not the gzip it says": raw(b'{"choices": []}', "Content-Encoding: gzip"),
    "bytes that are no text": raw(b'{"choices": "\xff"}'),
    "nested": raw(b'{"choices":' + DEEP + b"}"),
    "no choices": "no choices",
    "choices that are a number": raw(b'{"choices": 5}'),
    "an error with a 200": raw(b'{"error": {"message": "overloaded"}}'),
    "500": E500,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_temporary_fault_costs_a_retry_and_no_response(serve, generate, fault):
    with serve() as server:
        _, expected = generate(server, out="clean.jsonl")
    with serve(faults={1: fault, 4: fault}) as server:
        _, lines = generate(server)
    assert lines == expected
    assert len(server.bodies) == 8


def test_a_request_that_times_out_is_sent_again(serve, generate):
    with serve(faults={0: "slow"}) as server:
        _, lines = generate(server, rows=1, n=2, seconds=1.0)
    assert len(lines) == 2


def test_a_429_pauses_all_requests_for_the_time_of_its_retry_after(serve, generate):
    busy = (429, {"Retry-After": "0.6"}, {"error": {"message": "slow down"}})
    with serve(faults={0: busy}) as server:
        generate(server, rows=20, n=1, concurrency=1)
    assert len(server.bodies) == 21
    assert server.times[1] - server.times[0] >= 0.6


@pytest.mark.parametrize("charset", ["rot13", "hex", "nope", "utf-8"])
def test_an_error_message_is_shown_in_any_declared_charset(serve, generate, charset):
    for body, message in ((b"who \xff are you", "401: who"), (DEEP, "401: [[[")):
        answer = raw(body, f"Content-Type: text/html; charset={charset}", status="401 No")
        with serve(always=answer) as server, pytest.raises(SourceError) as error:
            generate(server, rows=1, n=1)
        assert message in str(error.value)
        assert len(str(error.value)) < 600


def test_the_error_for_a_redirect_has_its_target(serve, generate):
    redirect = (308, {"Location": "https://there/v1/chat/completions"}, b"")
    with (
        serve(always=redirect) as server,
        pytest.raises(SourceError, match=r"https://there/v1/chat"),
    ):
        generate(server, rows=1, n=1)


def test_an_endless_reply_is_not_held_in_memory(serve, generate, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_REPLY_BYTES", 1_000_000)
    bomb = raw(gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip")
    tracemalloc.start()
    try:
        with serve(always=bomb) as server, pytest.raises(SourceError, match="than 1,000,000"):
            generate(server, rows=1, n=1, tries=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "headers",
    [["Content-Encoding: gzip, gzip"], ["Content-Encoding: gzip", "Content-Encoding: gzip"]],
)
def test_a_reply_that_is_compressed_more_than_once_is_not_read(serve, generate, headers):
    """10 KB were 6 GB, decompressed in one piece while the deadline passed."""
    reply = raw(gzip.compress(gzip.compress(b" " * 1000)), *headers)
    with serve(always=reply) as server, pytest.raises(SourceError, match="more than once"):
        generate(server, rows=1, n=1, tries=1)


def test_a_reply_in_gzip_is_read(serve, generate):
    choice = {"message": {"content": "4"}, "finish_reason": "stop"}
    body = gzip.compress(json.dumps({"choices": [choice]}).encode())
    with serve(always=raw(body, "Content-Encoding: GZIP")) as server:
        _, lines = generate(server, rows=1, n=2)
    assert [line["response"] for line in lines] == ["4", "4"]


def test_a_reply_that_is_not_of_the_api_is_requested_three_times(serve, generate):
    """The reply is the page of another program, so more tries would not help."""
    with serve(always="no json") as server, pytest.raises(SourceError) as error:
        generate(server, rows=1, n=1)
    assert "no answer to any request: the reply is not JSON: <html>gateway</html>" in str(
        error.value
    )
    assert len(server.bodies) == 3


def test_content_in_parts_is_joined_without_the_reasoning(serve, generate):
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so\n"},
        {"type": "text", "text": "#### 10"},
    ]
    choice = {"message": {"content": parts}, "finish_reason": "stop"}
    with serve(always=raw(json.dumps({"choices": [choice]}).encode())) as server:
        _, lines = generate(server, rows=1, n=1)
    assert lines[0]["response"] == "so\n#### 10"


@pytest.mark.parametrize("tokens", [10**30, -5, True, 7.0, "7", None])
def test_an_invalid_number_of_tokens_counts_as_unknown(serve, generate, tokens):
    body = {
        "choices": [{"text": "x", "finish_reason": None}],
        "usage": {"completion_tokens": tokens},
    }
    with serve(always=raw(json.dumps(body).encode())) as server:
        report, lines = generate(server, rows=1, n=1)
    assert lines[0]["tokens"] is None
    assert report.metrics.summary()["total"]["tokens"]["known"] == 0


@pytest.mark.full
def test_the_client_soon_sends_fewer_requests_than_a_small_server_refuses(serve, generate):
    with serve(room=5, seconds=0.02) as server:
        _, lines = generate(server, rows=150, n=1, concurrency=64)
    assert len(lines) == 150
    half = len(server.refused) // 2
    assert sum(server.refused[:half]) > 0
    assert sum(server.refused[half:]) < 0.3 * half


def test_a_retry_after_may_be_a_date(serve, generate):
    assert 60 < _retry_after(formatdate(time() + 100, usegmt=True)) <= 100
    assert _retry_after("soon") == _retry_after("") == _retry_after("nan") == 0
    with (
        serve(always=(429, {"Retry-After": "7200"}, {})) as server,
        pytest.raises(SourceError, match="7,200 s"),
    ):
        generate(server)


def test_empty_content_with_finish_reason_length_is_a_truncated_response(serve, generate):
    with serve(always="empty") as server:
        report, lines = generate(server, rows=2, n=1)
    total = report.metrics.summary()["total"]
    assert total["truncated"] == {"n": 2, "share": 1.0, "right": 0}
    assert total["no_answer"]["n"] == 2
    assert lines[0]["response"] == ""


def test_a_wrong_model_fails_at_once_with_one_line_and_leaves_no_file(serve, generate, tmp_path):
    with serve(always=E404) as server, pytest.raises(SourceError) as error:
        generate(server, rows=1, n=1)
    assert "404: The model `M` does not exist." in str(error.value)
    assert "\n" not in str(error.value)
    assert len(server.bodies) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["test.parquet"]


def test_a_run_ends_after_several_failed_requests_in_a_row(serve, generate):
    with serve(always=E500) as server, pytest.raises(SourceError) as error:
        generate(server, rows=50, n=1, tries=2, concurrency=4)
    message = str(error.value)
    assert re.search(r" \d requests in a row failed: 500: engine died\. See that", message)
    assert "--base-url" in message
    assert len(server.bodies) <= 2 * (5 + 4)


def test_a_missing_server_is_a_one_line_error(generate):
    class Nobody:
        url = "http://127.0.0.1:9/v1"

    with pytest.raises(SourceError, match="cannot connect"):
        generate(Nobody())


def test_a_run_with_only_refused_prompts_is_an_error_and_not_a_score_of_0(
    serve, generate, tmp_path
):
    with (
        serve(always=E400) as server,
        pytest.raises(SourceError, match="refuses every prompt: 400"),
    ):
        generate(server, rows=2, n=2)
    assert [path.name for path in tmp_path.iterdir()] == ["test.parquet"]


def test_a_refused_prompt_counts_as_wrong_and_is_counted_separately(serve, generate):
    with serve(faults={3: E400}) as server:
        report, lines = generate(server, rows=6, n=1, concurrency=1)
    refusals = [line for line in lines if line["finish_reason"] == "refused"]
    assert len(lines) == 6
    assert "maximum context length" in refusals[0]["refusal"]
    assert report.metrics.summary()["total"]["refused"] == len(refusals) == 1


def test_missing_responses_are_reported_and_the_same_call_requests_only_them(serve, generate):
    with serve() as server:
        _, expected = generate(server, rows=6, n=1, out="clean.jsonl")
    with (
        serve(faults={2: E500}) as server,
        pytest.raises(SourceError, match="no answer to requests for 1 responses: 500: engine died"),
    ):
        generate(server, rows=6, n=1, tries=1, concurrency=1)
    with serve() as server:
        _, lines = generate(server, rows=6, n=1)
    assert len(server.bodies) == 1
    assert lines == expected


def test_a_run_of_another_model_or_prompt_does_not_resume(serve, generate, parquet, tmp_path):
    with serve(faults={2: E500}) as server:
        with pytest.raises(SourceError):
            generate(server, rows=6, n=1, tries=1, concurrency=1)
        with pytest.raises(DataError, match="another model or sampling"):
            generate(server, rows=6, n=1, model="other")
        part = part_path(tmp_path / "m.jsonl")
        part.write_bytes(
            re.sub(rb'"prompt_sha256": "..', b'"prompt_sha256": "00', part.read_bytes())
        )
        with pytest.raises(DataError, match="prompt has changed"):
            generate(server, rows=6, n=1)


def test_an_incomplete_last_request_is_sent_again(serve, generate, tmp_path):
    """All choices of a reply are kept, or none, because a seed belongs to a request."""
    with serve() as server:
        _, expected = generate(server, rows=3, n=4, choices_per_request=4, out="clean.jsonl")
    with serve(faults={2: E500}) as server, pytest.raises(SourceError):
        generate(server, rows=3, n=4, choices_per_request=4, tries=1, concurrency=1)
    part = part_path(tmp_path / "m.jsonl")
    complete = part.read_bytes()
    for removed_bytes in (1, len(complete.splitlines()[-1]) + 30):
        part.write_bytes(complete[:-removed_bytes])
        with serve() as server:
            _, lines = generate(server, rows=3, n=4, choices_per_request=4)
        assert lines == expected
        assert len(server.bodies) == 2
        (tmp_path / "m.jsonl").unlink()


VALID_LINE = {"row": 0, "sample": 0, "prompt_sha256": "0" * 64, "request": [0, 1], "response": ""}


@pytest.mark.parametrize(
    "line",
    [
        "my notes",
        "[" * 100_000,
        *(
            json.dumps({**VALID_LINE, **fields})
            for fields in (
                {"row": -1},
                {"row": 10**30},
                {"sample": "0"},
                {"request": 1},
                {"request": [0]},
                {"prompt_sha256": "zz"},
                {"prompt_sha256": None},
                {"response": None},
            )
        ),
    ],
)
def test_a_part_file_of_another_origin_is_not_overwritten(serve, generate, tmp_path, line):
    part = part_path(tmp_path / "m.jsonl")
    part.write_text(f"{line}\n{line}\n")
    with serve() as server, pytest.raises(DataError, match=r"part:1: not a response"):
        generate(server)
    assert part.read_text() == f"{line}\n{line}\n"


def test_two_runs_cannot_write_the_same_file(serve, generate, tmp_path):
    part = part_path(tmp_path / "m.jsonl")
    another_run = pytest.raises(OutputError, match="another run is writing it")
    with lock_part(part, part), serve() as server, another_run:
        generate(server)


def test_the_api_key_is_sent_and_appears_in_no_message_or_file(serve, generate, tmp_path):
    error_reply = (401, {}, {"error": {"message": "Incorrect API key provided: sk-secret-1"}})
    with serve(faults={3: error_reply}) as server, pytest.raises(SourceError) as error:
        generate(server, rows=6, n=1, key="sk-secret-1", concurrency=1)
    assert server.headers_seen[0]["Authorization"] == "Bearer sk-secret-1"
    assert "provided: ***" in str(error.value)
    assert "sk-secret" not in repr(Server("http://h/v1", key="sk-secret-1"))
    texts = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert not any(b"sk-secret" in text for text in texts)


def test_a_secret_in_the_extra_body_is_sent_and_never_written(serve, generate, tmp_path):
    """Servers repeat it when they refuse a prompt, and the refusal is written to the results."""
    extra = {
        "api_key": "Zq7canaryValue42",
        "nested": {"auth_token": "Yx8canaryValue43"},
        "min_p": 0.1,
    }
    refusal = "bad key Zq7canaryValue42, Yx8canaryValue43"
    error_reply = (400, {}, {"error": {"message": refusal}})
    sampling = Sampling(seed=1, extra=extra)
    with serve(faults={1: error_reply}) as server:
        _, lines = generate(server, rows=3, n=1, sampling=sampling, concurrency=1)
    assert server.bodies[0]["api_key"] == "Zq7canaryValue42"
    assert lines[0]["sampling"]["extra"] == {
        "api_key": "***",
        "nested": {"auth_token": "***"},
        "min_p": 0.1,
    }
    assert any("bad key ***, ***" in json.dumps(line) for line in lines)
    with serve(always=error_reply) as server, pytest.raises(SourceError) as error:
        generate(server, rows=3, n=1, sampling=sampling, out="n.jsonl")
    texts = [path.read_text() for path in tmp_path.iterdir() if path.suffix in {".jsonl", ".part"}]
    assert not any("canaryValue" in text for text in [*texts, str(error.value)])


def test_the_error_for_a_password_in_the_url_does_not_show_it():
    with pytest.raises(UsageError) as error:
        Server("http://me:hunter2@host/v1")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h:99999/v1", "from 1 to 65535"),
        ("http://h/v1?api-version=1", "in /v1"),
        ("http://h/v1#x", "in /v1"),
        ("http://h/v1/chat/completions/", "in /v1"),
        ("h:8000/v1", "write it as"),
        ("http://", "write it as"),
        ("http://[::1/v1", "not a URL"),
    ],
)
def test_an_invalid_base_url_is_an_error_before_any_request(url, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Server(url)


def test_a_base_url_may_end_in_a_slash_or_use_ipv6():
    assert Server("http://[::1]:8000/v1/").url == "http://[::1]:8000/v1/chat/completions"


def test_a_server_on_this_machine_is_reached_without_the_proxy(serve, generate, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serve() as server:
        _, lines = generate(server, rows=1, n=1)
    assert len(lines) == 1


def test_an_unusable_proxy_or_certificate_is_a_one_line_error(monkeypatch, tmp_path):
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy:1")
    with pytest.raises(UsageError, match="unset ALL_PROXY"):
        ClientPool(Server("http://far.example/v1"))
    monkeypatch.delenv("ALL_PROXY")
    (tmp_path / "none.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match="SSL_CERT_FILE"):
        ClientPool(Server("http://far.example/v1"))


def test_any_text_can_be_sent_but_not_nan_or_infinity(serve, generate):
    """The command line turns bytes that are not UTF-8 into lone surrogates."""
    with serve() as server:
        generate(
            server, rows=1, n=1, model="模型 a\udcff", sampling=Sampling(extra={"user": "\ud800"})
        )
    assert server.bodies[0]["model"] == "模型 a\udcff"
    assert server.bodies[0]["user"] == "\ud800"
    for sampling in ({"temperature": float("nan")}, {"extra": {"min_p": float("inf")}}):
        with pytest.raises(UsageError, match="nan and inf"):
            Sampling(**sampling)


def test_extra_fields_cannot_override_reserved_ones():
    with pytest.raises(UsageError, match="model, n"):
        Sampling(extra={"n": 4, "model": "x"})


def test_pauses_between_tries_grow_and_are_randomised(monkeypatch, serve, generate):
    pauses, pause = [], module.ModelClient._pause
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.1)
    monkeypatch.setattr(
        module.ModelClient,
        "_pause",
        lambda *arguments: pauses.append(pause(*arguments)) or pauses[-1],
    )
    with serve(faults=dict.fromkeys(range(4), E500)) as server:
        generate(server, rows=1, n=1, concurrency=1)
    waits = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert len(pauses) == 4
    for i, (pause, wait) in enumerate(zip(pauses, waits, strict=True)):
        assert 0.05 * 2**i <= pause <= 0.1 * 2**i
        assert wait >= pause
    assert len({pause / 2**i for i, pause in enumerate(pauses)}) == 4


def test_a_response_on_which_the_scorer_fails_counts_as_wrong_with_a_reason(
    serve, generate, parquet, tmp_path
):
    scorer = tmp_path / "mine.py"
    scorer.write_text(
        "def score(response, ground_truth, extra_info=None):\n"
        "    if extra_info['index'] == 1:\n"
        "        raise RuntimeError('boom')\n"
        "    return __import__('rewardkit').Score(1.0, True, 'x', 'correct')\n"
    )
    with serve() as server:
        generation = GenerationConfig(Server(server.url), "M")
        judging = ScorerConfig(f"{scorer}:score")
        report = evaluate(parquet(4), generation, tmp_path / "m.jsonl", judging)
    total = report.metrics.summary()["total"]
    assert total["failed"] == 1
    assert total["mean"]["value"] == 0.75
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert "boom" in lines[1]["reason"]


def test_a_row_without_a_scorer_is_an_error_before_any_request(serve, tmp_path):
    from rewardkit.row import build_row, write_rows

    row = build_row(
        data_source="nobody/knows",
        prompt=[{"role": "user", "content": "?"}],
        ability="",
        ground_truth="1",
        index=0,
        split="test",
        source_id="",
        question="?",
        answer="",
        scorer="",
    )
    write_rows([row], tmp_path / "t.parquet", {})
    with serve() as server, pytest.raises(DataError, match=r"row 0: no scorer is known"):
        evaluate(
            tmp_path / "t.parquet", GenerationConfig(Server(server.url), "M"), tmp_path / "m.jsonl"
        )
    assert server.bodies == []


def simulate(room, most, requests, spread=0.6, late=1e9):
    """Simulate a limit and a server that handles `room` requests at a time and queues the others.

    Time is simulated. Answers take 1 s on average, and their lengths vary as those of responses do.
    A request that waits for more than `late` seconds times out and is sent again.

    Returns:
        The limit after each answer, the time of the run in seconds, and the time that it would take
        with every slot always in use.
    """
    now, rng = 0.0, Random(3)
    lengths = [rng.lognormvariate(-(spread**2) / 2, spread) for _ in range(requests)]
    limit = AdaptiveConcurrency(most, lambda: now)
    unsent, waiting, active, history = lengths[::-1], deque(), [], []
    while len(history) < requests:
        while unsent and len(waiting) + len(active) < limit.allowed:
            waiting.append((now, unsent.pop()))
        while waiting and len(active) < room:
            start, length = waiting.popleft()
            if now + length - start > late:
                unsent.append(length)
                limit.record_timeout(start, late)
            else:
                heappush(active, (now + length, start))
        if not active:
            continue
        now, start = heappop(active)
        limit.record_answer(now - start)
        history.append(limit.allowed)
    slots, ideal = [0.0] * min(room, most), 0.0
    for length in lengths:
        heappush(slots, ends := heappop(slots) + length)
        ideal = max(ideal, ends)
    return history, now, ideal


def test_concurrency_stays_below_what_a_slow_server_answers_in_time():
    """The server handles 4 requests of 1 s at a time; of 256 the last would wait 64 s, above 20 s."""
    history, _, _ = simulate(4, 256, 2_000, 0.3, late=20.0)
    second_half = history[len(history) // 2 :]
    assert max(second_half) <= 128
    assert min(second_half) >= 16


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
