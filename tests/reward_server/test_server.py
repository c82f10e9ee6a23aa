"""`rewardkit reward-server`: real processes and real connections."""

import asyncio
import base64
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import RewardkitError, UsageError
from rewardkit.reward_server import app, server
from rewardkit.reward_server.payload import RequestError, read_openrlhf, read_score
from rewardkit.reward_server.server import ServerConfig, raise_connection_limit, read_token, serve
from tests.tables import every

TOKEN = "a-token-for-tests"
#: Timeout in seconds, far above the time that any reply takes.
LONG = 60

SLOW = """
import os, time
from rewardkit.scorers.base import Score, Status

def score(response, ground_truth, extra_info=None):
    what, _, value = response.partition(" ")
    if what == "sleep":
        time.sleep(float(value))
    if what == "exit":
        os._exit(3)
    if what == "raise":
        raise LookupError("no such thing")
    if what == "nan":
        return Score(float("nan"), False, "", Status.WRONG)
    right = ground_truth == "1"
    return Score(float(right), right, ground_truth, Status.CORRECT if right else Status.WRONG)
"""


COMMAND = """
import sys
if sys.argv.pop(1) == "h11":
    sys.modules["httptools"] = None
from rewardkit.cli.main import run
run()
"""


class Server:
    def __init__(self, process):
        line = process.stdout.readline()
        match = re.search(r"http://([^ ]+):(\d+) ", line)
        assert match, (line, process.stderr.read())
        self.host, self.port = match[1], int(match[2])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def ask(self, path, body=None, *, token=TOKEN, **headers):
        """Send a request and return (status, JSON or text, headers)."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        own = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        all_headers = own | {k.replace("_", "-"): v for k, v in headers.items()}
        with closing(self.connect()) as connection:
            connection.request("GET" if body is None else "POST", path, data, all_headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        json_ = reply.headers["Content-Type"] == "application/json"
        return reply.status, json.loads(text) if json_ else text, reply.headers

    def metric(self, name):
        text = self.ask("/metrics")[1]
        return float(re.search(rf"^{re.escape(name)} (.+)$", text, re.MULTILINE)[1])

    def until_waiting(self, n):
        """Wait until `n` items wait, or none does."""
        end = time.monotonic() + 60
        while (now := self.metric("rewardkit_waiting")) < n or now > n == 0:
            assert time.monotonic() < end
            time.sleep(0.02)


@contextmanager
def start_server(*options, parser="httptools", files=0, **env):
    """Run a server, perhaps with a limit of open files."""
    command = [sys.executable, "-c", COMMAND, parser, "reward-server", "--port", "0", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files)) if files else None
    with subprocess.Popen(command, env=os.environ | env, preexec_fn=limit, **pipes) as process:  # noqa: PLW1509 - it only sets a limit
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def slow_scorer(tmp_path_factory):
    file = tmp_path_factory.mktemp("scorer") / "mine.py"
    file.write_text(SLOW)
    return f"{file}:score"


@pytest.fixture(scope="module")
def fast():
    with start_server("gsm8k", "--max-batch", "8", "--max-body-mb", "1") as process:
        yield Server(process)


@pytest.fixture(scope="module")
def slow(slow_scorer):
    few = ["--jobs", "1", "--max-waiting", "3", "--seconds-per-row", "1"]
    with start_server(slow_scorer, *few, "--token-env", "T", T=TOKEN) as process:
        yield Server(process)


RIGHT = {"score": 1.0, "correct": True, "pred": "18", "status": "correct", "error": ""}
WRONG = {"score": 0.0, "correct": False, "pred": "17", "status": "wrong", "error": ""}


def test_an_object_gets_a_score_and_a_list_gets_scores_in_order(fast):
    right_item = {"data_source": "x", "response": "#### 18", "ground_truth": 18, "extra_info": None}
    items = [right_item, {"response": "#### 17", "ground_truth": "18"}, right_item]
    assert fast.ask("/score", right_item)[:2] == (200, RIGHT)
    assert fast.ask("/score", {"items": items})[1] == {"items": [RIGHT, WRONG, RIGHT]}
    assert fast.ask("/score", {"items": []})[1] == {"items": []}


def test_golds_are_read_as_in_files_and_a_missing_one_affects_only_its_item(fast):
    golds = ['["18"]', None, "nan", ["18", "19"], "18.0"]
    items = [{"response": "#### 18", "ground_truth": gold} for gold in golds]
    scores = fast.ask("/score", {"items": items})[1]["items"]
    assert [item["status"] for item in scores] == ["correct"] + ["bad_ground_truth"] * 4
    assert scores[2]["error"] == "the ground truth cannot be scored: it is a missing value"


def test_openrlhf_gets_what_its_own_server_would_answer(fast):
    """`utils/agent.py` of openrlhf 0.11.2 sends this payload and reads these keys."""
    prompt = "<|im_start|>user\nsay #### 18<|im_end|>\n"
    body = {"query": [prompt + "#### 17<|im_end|>"], "prompts": [prompt], "labels": ["18"]}
    logs = {"acc": [0.0], "no_answer": [0.0], "timeout": [0.0], "error": [0.0]}
    expected = {"rewards": [0.0], "scores": [0.0], "extra_logs": logs}
    assert fast.ask("/get_reward", body)[:2] == (200, expected)
    # An answer in the prompt is not an answer of the response.
    silent = {"query": [prompt], "prompts": [prompt], "labels": [18]}
    assert fast.ask("/get_reward", silent)[1]["extra_logs"]["no_answer"] == [1.0]
    batch = {"query": ["a#### 18", "b#### 1"], "prompts": ["a", "b"], "labels": [18, "18"]}
    assert fast.ask("/get_reward", batch)[1] == {"rewards": [1.0, 0.0], "scores": [1.0, 0.0]}
    # Without --data.label_key, OpenRLHF sends "".
    unlabelled = {"query": ["a#### 18"], "prompts": ["a"], "labels": [""]}
    assert fast.ask("/get_reward", unlabelled)[1]["extra_logs"]["error"] == [1.0]


def test_auto_scores_by_data_source_and_reports_an_unknown_one():
    answers = [
        *(("openai/gsm8k", "#### 18"), ("HuggingFaceH4/MATH-500", r"\boxed{18}")),
        *(("math_dapo", "Answer: 17"), ("acme", "#### 18"), ("openai/gsm8", "#### 18")),
    ]
    items = [{"data_source": s, "response": r, "ground_truth": "18"} for s, r in answers]
    with start_server() as process:
        auto = Server(process)
        replies = auto.ask("/score", {"items": items})[1]["items"]
        assert [reply["score"] for reply in replies] == [1.0, 1.0, -1.0, 0.0, 0.0]
        assert {reply["status"] for reply in replies[3:]} == {"unknown_data_source"}
        assert "no scorer is known for data_source 'acme'" in replies[3]["error"]
        assert "Did you mean 'openai/gsm8k'" in replies[4]["error"]
        label = {"ground_truth": "18", "data_source": "openai/gsm8k"}
        openrlhf = {"query": ["q#### 18"], "prompts": ["q"], "labels": [label]}
        assert auto.ask("/get_reward", openrlhf)[1]["rewards"] == [1.0]
        assert auto.metric('rewardkit_responses_total{scorer="auto",status="wrong"}') == 1
        assert auto.metric('rewardkit_errors_total{scorer="auto"}') == 2


def test_the_page_shows_a_real_request_and_its_answer(fast):
    page = (Path(__file__).parents[2] / "docs/reward-server.md").read_text(encoding="utf-8")
    request = re.search(r"-d '\n(.+?)'\n```", page, re.DOTALL)[1]
    answer = re.search(r"```json\n(.+?)```", page, re.DOTALL)[1]
    assert fast.ask("/score", json.loads(request))[1] == json.loads(answer)


ITEM = b'{"response":"","ground_truth":"",%s}'


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not JSON"),
        (b"[" * 200_000, 400, "nested too deeply"),
        (b'{"a":' * 100_000, 400, "nested too deeply"),
        (b'{"response":' + b"9" * 5000 + b"}", 400, "more than 300 digits"),
        (b'{"response":"\xff","ground_truth":""}', 400, "byte 0xff in position 13"),
        (ITEM % (b'"data_source":"%s"' % (b"x" * 300)), 422, "at most 256 characters"),
        (b'{"items":[{"respones":""}]}', 422, "items[0].respones: Extra inputs"),
        (b'{"items":[],"scorer":"x"}', 422, "no other field beside it"),
        (b'{"items":[0,0,0,0,0,0,0,0,0]}', 413, "9 items, more than 8"),
        (b" " * (2 << 20), 413, "more than 1,048,576 bytes"),
        ((b"", b"", None), 422, "--data.label_key"),
        ((b'""', b'""', b'{"ground_truth":{}}'), 422, "labels[0].ground"),
        # Examples in the prompt must not be scored.
        ((b'"#### 5\\nother"', b'"#### 5\\nNow?"', b'"5"'), 422, "does not begin with"),
    ],
)
def test_an_invalid_body_is_refused_with_its_place(fast, body, status, message):
    path = "/score"
    if isinstance(body, tuple):
        lists = zip((b"query", b"prompts", b"labels"), body, strict=True)
        fields = [b'"%s":[%s]' % (name, item) for name, item in lists if item is not None]
        path, body = "/get_reward", b"{" + b",".join(fields) + b"}"
    answer_status, answer, _ = fast.ask(path, body)
    assert (answer_status, message in answer["error"]) == (status, True), answer


def test_a_body_without_a_length_has_the_same_limit(fast):
    assert fast.ask("/score", iter([b" " * 65_536] * 40))[0] == 413


def test_other_media_types_paths_and_methods_are_refused(fast):
    item = {"response": "#### 18", "ground_truth": "18"}
    assert fast.ask("/score", item, Content_Type="text/plain")[0] == 415
    assert fast.ask("/score", item, Content_Type="application/json; charset=utf-8")[0] == 200
    assert fast.ask("/score")[0] == 404
    assert fast.ask("/nothing")[1]["error"].startswith("Not Found; the endpoints are POST /score")


def test_bodies_that_wait_have_a_limit_together(monkeypatch):
    """The test lowers the limit of the application, which is 256 MB."""
    monkeypatch.setattr(app, "MAX_BODIES", 0)
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"{", "more_body": True}

    async def send(message):
        messages.append(message)

    scope = {"type": "http", "method": "POST", "path": "/score"}
    scope["headers"] = [(b"content-type", b"application/json")]
    config = ServerConfig(scorer="gsm8k")
    with closing(app.ScorerPool(config)) as pool:
        asyncio.run(app.RewardApp(pool, config)(scope, receive, send))
    assert messages[0]["status"] == 429
    assert b"retry-after" in dict(messages[0]["headers"])


def test_by_default_only_this_machine_can_connect_and_no_token_is_needed(fast):
    assert fast.host == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):  # a server on all addresses would accept this
        socket.create_connection(("127.0.0.2", fast.port), timeout=60)
    assert fast.ask("/score", {"response": "", "ground_truth": "1"}, token="")[0] == 200


def test_every_endpoint_but_health_needs_the_token(slow):
    item, basic = {"response": "", "ground_truth": "1"}, base64.b64encode(f"x:{TOKEN}".encode())
    for value in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Basic Og==", "Basic é"):
        header = value.encode("latin-1").decode("latin-1")
        status, reply, headers = slow.ask("/score", item, Authorization=header)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer"), value
        assert TOKEN not in json.dumps(reply)
    assert slow.ask("/metrics", token="wrong")[0] == 401
    assert slow.ask("/health", token="wrong")[0] == 200
    assert slow.ask("/score", item, Authorization=f"Basic {basic.decode()}")[0] == 200


def test_a_failure_of_a_scorer_is_a_score_and_not_a_status_of_500(slow):
    expected = {
        "raise": (0.0, "failed", "the scorer raised LookupError: no such thing"),
        "exit": (0.0, "failed", "the scorer ended its process (exit code 3)"),
        "nan": (0.0, "failed", "its score is nan"),
        "sleep 30": (0.0, "timeout", "no verdict within 1 s"),
        "fine": (1.0, "correct", ""),
    }
    items = [{"response": response, "ground_truth": "1"} for response in expected]
    status, reply, _ = slow.ask("/score", {"items": items})
    assert status == 200
    results = [(item["score"], item["status"], item["error"]) for item in reply["items"]]
    assert results == list(expected.values())
    scorer = slow.ask("/health")[1]["scorer"]
    assert slow.metric(f'rewardkit_errors_total{{scorer="{scorer}"}}') == 4


def test_ten_times_too_many_requests_are_refused_at_once_and_no_answer_is_lost(slow):
    """Three requests may wait while one is scored, so 30 simultaneous ones get 200 or 429."""

    def send_request(n):
        body = {"response": "sleep 0.1", "ground_truth": str(n)}
        status, reply, headers = slow.ask("/score", body)
        return n, status, reply, headers.get("Retry-After")

    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(send_request, range(30)))
    scores = [(n, reply["pred"]) for n, status, reply, _ in answers if status == 200]
    refusals = [answer for answer in answers if answer[1] == 429]
    assert len(scores) + len(refusals) == 30
    assert len(scores) >= 3
    assert all(pred == str(n) for n, pred in scores)
    assert all(int(retry_after) >= 1 for _, _, _, retry_after in refusals)
    assert slow.metric('rewardkit_requests_total{path="/score",status="429"}') == len(refusals) > 0
    assert send_request(1)[1] == 200  # the server accepts requests again


def test_items_of_a_closed_connection_are_not_scored(slow):
    connection = slow.connect()
    items = [{"response": "sleep 0.2", "ground_truth": "1"}] * 100
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/score", json.dumps({"items": items}), headers)
    slow.until_waiting(1)
    assert slow.ask("/health")[1]["status"] == "ok"  # it is answered while a scorer is busy
    connection.close()
    slow.until_waiting(0)


def test_metrics_are_in_prometheus_text_format(fast):
    fast.ask("/score", {"response": "#### 18", "ground_truth": "18"})
    _, text, headers = fast.ask("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    sample = r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\[\\"n])*",?)+\})? [0-9.e+-]+'
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(re.fullmatch(sample, line) for line in lines)
    seconds = fast.metric("rewardkit_request_seconds_sum")
    assert 0 < seconds / fast.metric("rewardkit_request_seconds_count") < 60


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "host", "code"),
    [(signal.SIGTERM, "127.0.0.1", 143), (signal.SIGINT, "0.0.0.0", 130)],
)
def test_a_signal_ends_the_server_after_every_accepted_request(slow_scorer, number, host, code):
    """Two of four requests are being scored and two are waiting when the signal comes."""
    with start_server(slow_scorer, "--jobs", "2", "--host", host) as process:
        server = Server(process)
        texts = ["sleep 0.3", "fine", "sleep 0.1", "fine", "raise"]
        items = [{"response": text, "ground_truth": str(n)} for n, text in enumerate(texts)]
        scores = server.ask("/score", {"items": items})[1]["items"]
        assert [item["pred"] for item in scores] == [*"0123", ""]  # in order, two at a time
        items = [{"response": "sleep 0.5", "ground_truth": str(n)} for n in range(4)]
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(server.ask, "/score", item) for item in items]
            server.until_waiting(4)
            process.send_signal(number)
            assert process.wait(120) == code
            answers = [future.result()[:2] for future in futures]
        assert [(status, reply["pred"]) for status, reply in answers] == [(200, c) for c in "0123"]
        stderr = process.stderr.read()
        assert ("anyone who reaches 0.0.0.0" in stderr) == (host == "0.0.0.0")
        assert "Traceback" not in stderr
        with pytest.raises(ConnectionRefusedError):
            server.ask("/health")


FIELDS = "items response ground_truth data_source extra_info query prompts labels"
NAMES = st.sampled_from(FIELDS.split()) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
BODIES = (
    st.binary(max_size=60)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.text(list('{}[]:,"\\ud80019-.eNaItruefls \n'), max_size=40).map(str.encode)
)


@given(st.sampled_from(["/score", "/get_reward"]), BODIES)
def test_no_request_body_causes_a_status_of_500(fast, path, body):
    status, reply, _ = fast.ask(path, body)
    assert status == 200 or (status in (400, 413, 422) and reply["error"])


@given(st.sampled_from([read_score, read_openrlhf]), BODIES)
def test_a_body_is_refused_or_its_items_have_texts(read, body):
    try:
        items = read(body, 8).items
    except RequestError as refused:
        assert refused.status in (400, 413, 422)
        return
    for item in items:
        texts = (item.data_source, item.response, item.ground_truth)
        assert all(isinstance(text, str) for text in texts)


def test_settings_that_cannot_be_served_are_errors(fast, tmp_path, monkeypatch):
    """The error is the one that the command prints in one line."""
    (tmp_path / "broken.py").write_text("import no_such_module")
    monkeypatch.setenv("BLANK", " ")
    for config, message in (
        ({"port": fast.port}, "cannot listen there"),
        ({"host": "no.such.host.invalid"}, "no such address"),
        ({"options": {"method": "x"}}, "method"),
        ({"scorer": f"{tmp_path}/broken.py:score"}, "does not import"),
    ):
        with pytest.raises(RewardkitError, match=message):
            serve(ServerConfig(**{"scorer": "gsm8k", **config}), print, print)
    for variable in ("BLANK", "NO_SUCH_VARIABLE"):
        with pytest.raises(UsageError, match=f"{variable}: it is unset or blank"):
            read_token(variable)


def test_a_missing_package_is_reported_with_its_install_command():
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['rewardkit', 'reward-server'];"
        "from rewardkit.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "needs uvicorn: pip install 'rewardkit[server]'" in done.stderr


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def is_answered(port):
    with suppress(OSError), connect(port) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        return client.recv(13) == b"HTTP/1.1 200 "
    return False


def answer_to(client, piece):
    """Send a piece repeatedly until the server answers, and return the bytes it sent."""
    answer, end = b"", time.monotonic() + LONG
    client.settimeout(0.1)
    while not answer and time.monotonic() < end:
        client.sendall(piece)
        with suppress(TimeoutError):
            answer = client.recv(1 << 16)
    return answer


@pytest.mark.full
@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_headers_have_a_maximum_length_and_bodies_do_not_count(parser):
    body = json.dumps({"response": "x" * (1 << 20) + "#### 18", "ground_truth": "18"}).encode()
    pieces = [body[start : start + 100_000] for start in range(0, len(body), 100_000)]
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    with (
        start_server("gsm8k", parser=parser) as process,
        connect(port := Server(process).port) as client,
    ):
        client.sendall(b"POST /score HTTP/1.1\r\n")
        answer = answer_to(client, b"X-A: " + b"x" * 10_000 + b"\r\n")
        assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            for _ in range(3):  # the same connection, and the body in pieces
                connection.request("POST", "/score", iter(pieces), headers)
                reply = connection.getresponse()
                assert (reply.status, json.loads(reply.read())["score"]) == (200, 1.0)


@pytest.mark.full
def test_clients_beyond_the_limit_are_refused_and_the_server_goes_on_when_others_leave():
    with start_server("gsm8k", "--jobs", "1", files=64) as process:
        port = Server(process).port
        with ExitStack() as stack:
            for _ in range(150):
                with suppress(ConnectionError):
                    stack.enter_context(connect(port)).sendall(b"POST /")
            assert not is_answered(port)
        end = time.monotonic() + LONG
        while not is_answered(port):
            assert time.monotonic() < end
            time.sleep(0.1)


INFINITE = resource.RLIM_INFINITY


@every(
    ("soft", "hard", "waiting", "jobs", "set_to", "room"),
    [
        (1024, 1 << 20, 1024, 4, 4144, 4096),
        (1 << 16, 1 << 20, 1024, 4, None, 4096),
        (1024, 1 << 20, 10_000, 4, 20_048, 20_000),
        (1024, 2048, 1024, 4, 2048, 2000),
        (16, 16, 1024, 1, None, 1),
        (1024, INFINITE, 1024, 4, 4144, 4096),
        (INFINITE, INFINITE, 1024, 4, None, 4096),
    ],
)
def test_the_connection_limit_follows_the_limit_of_open_files(
    monkeypatch, soft, hard, waiting, jobs, set_to, room
):
    limits_set = []
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(server.resource, "setrlimit", lambda _, limits: limits_set.append(limits))
    assert raise_connection_limit(waiting, jobs) == room
    assert limits_set == ([(set_to, hard)] if set_to else [])
