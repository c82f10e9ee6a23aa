"""A reward server closes idle connections and limits their number."""

import http.client
import json
import re
import resource
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from rewardkit.reward_server import server
from rewardkit.reward_server.server import raise_connection_limit

SERVER = """
import sys
if sys.argv.pop(1) == "h11":
    sys.modules["httptools"] = None
from rewardkit.reward_server import connections
timeout = float(sys.argv.pop(1))
connections.HEADERS_TIMEOUT_SECONDS = timeout
from rewardkit.cli.main import run
run()
"""

BODY = json.dumps({"response": "#### 18", "ground_truth": "18"}).encode()
HEADERS = {"Content-Type": "application/json"}

#: Timeout of a test in seconds, far above the time that any reply takes.
LONG = 60


@contextmanager
def serving(seconds=4.0, parser="httptools", files=None):
    """The port of a server with a limit on the seconds for a request's headers."""

    def limit_files():
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [sys.executable, "-c", SERVER, parser, str(seconds), "reward-server", "gsm8k"]
    with subprocess.Popen(
        [*command, "--port", "0", "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=limit_files,  # noqa: PLW1509 - it only sets a limit
    ) as process:
        try:
            yield int(re.search(r":(\d+) ", process.stdout.readline())[1])
        finally:
            process.kill()


def ask(port):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)) as connection:
        connection.request("POST", "/score", BODY, HEADERS)
        return connection.getresponse().status


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def drip(client, piece):
    """Send a piece repeatedly until the server closes, and return the bytes it sent."""
    answer, end = b"", time.monotonic() + LONG
    client.settimeout(0.1)
    with suppress(ConnectionError):
        while time.monotonic() < end:
            client.sendall(piece)
            try:
                if not (read := client.recv(1 << 16)):
                    return answer
                answer += read
            except TimeoutError:
                continue
        raise AssertionError("the server never closed the connection")
    return answer


@pytest.mark.full
@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_clients_that_drip_headers_are_closed_while_others_are_answered(parser):
    with serving(parser=parser) as port, ExitStack() as stack, ThreadPoolExecutor(50) as pool:
        clients = [stack.enter_context(connect(port)) for _ in range(50)]
        for client in clients:
            client.sendall(b"POST /score HTTP/1.1\r\nX-A: ")
        futures = [pool.submit(drip, client, b"x") for client in clients]
        while not all(future.done() for future in futures):
            assert ask(port) == 200
        for future in futures:
            future.result()


DRIPS = {
    "nothing at all": (b"", b""),
    "line ends on a connection that was used": (b"GET /health HTTP/1.1\r\n\r\n", b"\r\n"),
    "the body of a request that was answered": (
        b"GET /health HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
        b"x",
    ),
    "a second request": (b"GET /health HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nX-A: ", b"x"),
}


@pytest.mark.full
@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize(("start", "piece"), DRIPS.values(), ids=DRIPS)
def test_no_client_holds_a_connection_without_a_request(parser, start, piece):
    with serving(parser=parser) as port, connect(port) as client:
        client.sendall(start)
        drip(client, piece)
        assert ask(port) == 200


@pytest.mark.full
@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_headers_have_a_maximum_length(parser):
    with serving(seconds=LONG, parser=parser) as port, connect(port) as client:
        client.sendall(b"POST /score HTTP/1.1\r\n")
        answer = drip(client, b"X-A: " + b"x" * 10_000 + b"\r\n")
        assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        assert ask(port) == 200


@pytest.mark.full
def test_a_long_body_may_arrive_in_any_pieces():
    """The bytes of the body do not count towards the limit of the headers."""
    body = json.dumps({"response": "x" * (1 << 20) + "#### 18", "ground_truth": "18"}).encode()
    with serving() as port, closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(3):  # the same connection
            connection.putrequest("POST", "/score")
            for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders()
            for start in range(0, len(body), 100_000):
                connection.send(body[start : start + 100_000])
            reply = connection.getresponse()
            assert (reply.status, json.loads(reply.read())["score"]) == (200, 1.0)


@pytest.mark.full
def test_the_server_recovers_from_more_clients_than_descriptors():
    with serving(files=64) as port, ExitStack() as stack:
        answer = []
        for _ in range(150):
            with suppress(ConnectionError):
                stack.enter_context(connect(port)).sendall(b"POST /")
        full = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
        with closing(full), suppress(ConnectionError):
            full.request("GET", "/health")
            reply = full.getresponse()
            answer = [reply.status, reply.headers["Retry-After"]]
        assert answer in ([], [503, "1"])  # [] where the kernel reported the end before the answer
        end = time.monotonic() + LONG
        while True:
            with suppress(ConnectionError, http.client.HTTPException):
                if ask(port) == 200:
                    break
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("soft", "hard", "waiting", "jobs", "set_to", "room"),
    [
        (1024, 1 << 20, 1024, 4, 4144, 4096),
        (1 << 16, 1 << 20, 1024, 4, None, 4096),
        (1024, 1 << 20, 10_000, 4, 20_048, 20_000),
        (1024, 2048, 1024, 4, 2048, 2000),
        (64, 64, 1024, 1, None, 28),
        (16, 16, 1024, 1, None, 1),
        (1024, resource.RLIM_INFINITY, 1024, 4, 4144, 4096),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 1024, 4, None, 4096),
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
