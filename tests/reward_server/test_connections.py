"""A reward server limits the number of connections and the length of headers."""

import http.client
import json
import re
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from rewardkit.reward_server import server
from rewardkit.reward_server.server import raise_connection_limit

SERVER = """
import sys
if sys.argv.pop(1) == "h11":
    sys.modules["httptools"] = None
from rewardkit.cli.main import run
run()
"""

#: Timeout of a test in seconds, far above the time that any reply takes.
LONG = 60


@contextmanager
def serving(parser="httptools", files=None):
    """The port of a server, which may have a limit of open files."""

    def limit_files():
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [sys.executable, "-c", SERVER, parser, "reward-server", "gsm8k"]
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


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def is_answered(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    with closing(connection), suppress(ConnectionError, http.client.HTTPException):
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    return False


def answer_to(client, piece):
    """Send a piece repeatedly until the server closes, and return the bytes it sent."""
    answer, end = b"", time.monotonic() + LONG
    client.settimeout(0.1)
    with suppress(ConnectionError):
        while time.monotonic() < end:
            client.sendall(piece)
            with suppress(TimeoutError):
                if not (read := client.recv(1 << 16)):
                    break
                answer += read
    return answer


@pytest.mark.full
@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_headers_have_a_maximum_length_and_bodies_do_not_count(parser):
    body = json.dumps({"response": "x" * (1 << 20) + "#### 18", "ground_truth": "18"}).encode()
    with serving(parser=parser) as port, connect(port) as client:
        client.sendall(b"POST /score HTTP/1.1\r\n")
        answer = answer_to(client, b"X-A: " + b"x" * 10_000 + b"\r\n")
        assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            for _ in range(3):  # the same connection, and the body in pieces
                connection.putrequest("POST", "/score")
                connection.putheader("Content-Type", "application/json")
                connection.putheader("Content-Length", str(len(body)))
                connection.endheaders()
                for start in range(0, len(body), 100_000):
                    connection.send(body[start : start + 100_000])
                reply = connection.getresponse()
                assert (reply.status, json.loads(reply.read())["score"]) == (200, 1.0)


@pytest.mark.full
def test_clients_beyond_the_limit_are_refused_and_the_server_goes_on_when_others_leave():
    with serving(files=64) as port:
        with ExitStack() as stack:
            for _ in range(150):
                with suppress(ConnectionError):
                    stack.enter_context(connect(port)).sendall(b"POST /")
            assert not is_answered(port)
        end = time.monotonic() + LONG
        while not is_answered(port):
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
