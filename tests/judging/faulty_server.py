"""A judge server on loopback that gives the verdicts of a rule, and fails in every way we know.

    with serving(lambda body: {"correct": "18" in prompt_of(body)}) as server:
        server.faults = {0: "429", 2: "cut body"}     # by the number of the request, from 0
        server.always = "never"                       # of all other requests
        judge(server.url)

A fault is a name of `FAULTS`, a function `fault(handler, body)` that answers in its own way, or a
text that stands for the content of the model's message.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def yes(_body):
    return {"reason": "It is equal.", "verdict": "yes"}


def prompt_of(body: Mapping[str, Any]) -> str:
    """Return all messages of a request, as one text."""
    return "\n".join(str(message["content"]) for message in body["messages"])


class JudgeServer(ThreadingHTTPServer):
    """An OpenAI-compatible server.

    `verdict` gives the JSON value or text that the model replies with to a request's body, or the
    status of a refusal; `takes_schema` is True, or the status of the answer to a request with a
    schema; requests beyond `room` in flight get 429, and `most` is the largest number of them.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(
        self, verdict=yes, *, takes_schema=True, models=("tiny",), room=10**9, seconds=0.0
    ):
        super().__init__(("127.0.0.1", 0), JudgeHandler)
        self.verdict, self.takes_schema, self.models = verdict, takes_schema, models
        self.room, self.seconds, self.faults, self.always, self.bodies = room, seconds, {}, None, []
        self.active = self.most = self.refused = 0
        self.lock, self.closing = threading.Lock(), threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_):
        """Ignore errors, because clients close connections on purpose."""

    def content(self, body):
        verdict = self.verdict(body)
        return verdict if isinstance(verdict, str) else json.dumps(verdict)


class JudgeHandler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            number = len(server.bodies)
            server.bodies.append(body)
            server.active += 1
            server.most = max(server.most, server.active)
            is_full = server.active > server.room
            server.refused += is_full
        try:
            if is_full:
                self.say(429, {"error": {"message": "busy"}}, {"Retry-After": "0.05"})
            elif server.takes_schema is not True and "response_format" in body:
                message = "response_format is not supported"
                self.say(server.takes_schema or 400, {"error": {"message": message}})
            else:
                faults = server.faults
                fault = faults(number, body) if callable(faults) else faults.get(number)
                self.answer(body, server.always if fault is None else fault)
        finally:
            with server.lock:
                server.active -= 1

    def do_GET(self):
        """List the models, or send a page, to which a redirect of a fault leads."""
        models = {"data": [{"id": name} for name in self.server.models]}
        self.say(200, models if self.path.endswith("/models") else b"<html>a page</html>")

    def answer(self, body, fault):
        """Answer a request with its verdict or its fault."""
        fault = FAULTS.get(fault, fault) if isinstance(fault, str) else fault
        if callable(fault):
            fault(self, body)
            return
        self.server.closing.wait(self.server.seconds)
        content = self.server.content(body) if fault is None else fault
        if content.isdecimal():
            self.say(int(content), {"error": {"message": "no"}})
        else:
            self.say(200, completion(content))

    def say(self, status, body, headers=None):
        """Send a whole reply; anything but bytes is sent as JSON."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Print nothing."""


def completion(content: Any, **fields: Any) -> dict[str, Any]:
    """Return a chat completion with one message."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **fields}
    usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


def response_in(body: Mapping[str, Any]) -> str:
    """Return the response that a request of the scorer `judge` asks about."""
    block = prompt_of(body).rpartition("[RESPONSE ")[0].rpartition("[RESPONSE ")[2]
    return block.partition("begins]\n")[2].rstrip("\n")


Fault = Callable[[JudgeHandler, dict], None]


def _status(status: int, **headers: str) -> Fault:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.say(status, {"error": {"message": "not now"}}, names)


def _reply(value: Any) -> Fault:
    """A whole reply of status 200 with this body."""
    return lambda handler, _: handler.say(200, value)


def _choice(content: Any, **fields: Any) -> Fault:
    return _reply(completion(content, **fields))


def _around(text_of: Callable[[str, dict], str]) -> Fault:
    """A message made of the right verdict and the request's body."""
    return lambda handler, body: handler.say(
        200, completion(text_of(handler.server.content(body), body))
    )


def _raw(text: bytes) -> Fault:
    """Bytes on the connection, which then ends."""

    def fault(handler: JudgeHandler, _: dict) -> None:
        handler.close_connection = True
        with suppress(OSError):
            for start in range(0, len(text), 1 << 20):
                handler.wfile.write(text[start : start + (1 << 20)])

    return fault


def _cut_body(handler: JudgeHandler, body: dict) -> None:
    text = json.dumps(completion(handler.server.content(body))).encode()
    _raw(b"%sContent-Length: %d\r\n\r\n%s" % (OK, len(text), text[: len(text) // 2]))(handler, body)


def _reset(handler: JudgeHandler, _: dict) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def _drip(handler: JudgeHandler, body: dict) -> None:
    """One byte after the other: no read waits long, and the reply never ends."""
    handler.wfile.write(OK + b"Content-Length: 1000000\r\n\r\n")
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def _never(handler: JudgeHandler, _: dict) -> None:
    handler.server.closing.wait()
    handler.close_connection = True


def _huge(handler: JudgeHandler, body: dict) -> None:
    _raw(OK + b"Content-Length: %d\r\n\r\n" % (100 << 20) + b" " * (100 << 20))(handler, body)


def _bomb(handler: JudgeHandler, _: dict) -> None:
    handler.say(200, gzip.compress(b"[" * (64 << 20), 1), {"Content-Encoding": "gzip"})


def _opposite(content: str) -> str:
    return re.sub('"(yes|no)"', lambda word: '"no"' if word[1] == "yes" else '"yes"', content)


OK = b"HTTP/1.1 200 OK\r\n"
CHOICE = b'{"choices": [{"message": {"content": "%s"}, "finish_reason": "stop"}]}'

#: Faults after which the same request, sent again, may succeed.
PASSING_FAULTS: dict[str, Fault] = {
    **{str(status): _status(status) for status in (408, 429, 500, 502, 503, 529)},
    "429 with Retry-After": _status(429, Retry_After="0.05"),
    "429 with nonsense": _status(429, Retry_After="soon"),
    "cut body": _cut_body,
    "cut chunk": _raw(OK + b'Transfer-Encoding: chunked\r\n\r\nff\r\n{"choices": [{"message"'),
    "reset": _reset,
    "no bytes": _raw(b""),
}

#: The server or the network fails, and no reply of the API comes.
TRANSPORT_FAULTS: dict[str, Fault] = {
    **PASSING_FAULTS,
    "429 with a date": _status(429, Retry_After="Wed, 21 Oct 2065 07:28:00 GMT"),
    "429 for years": _status(429, Retry_After="1000000000"),
    "not HTTP": _raw(b"\x00\x01\x02 hello\r\n\r\n"),
    "endless headers": _raw(OK + b"X: y\r\n" * 200_000 + b"\r\n"),
    "drip": _drip,
    "never": _never,
    "100 MB": _huge,
    "gzip bomb": _bomb,
    "redirect to itself": _status(307, Location="/v1/chat/completions"),
    "redirect to a page": _status(302, Location="/page"),
    "redirect to a file": _status(302, Location="file:///etc/hostname"),
    "redirect nowhere": _status(308, Location="http://judge.invalid/v1/chat/completions"),
}

#: The reply is not one of the API, or it has no message.
REPLY_FAULTS: dict[str, Fault] = {
    **{
        f"body {value!r:.30}": _reply(value)
        for value in (
            *(b"<html>gateway</html>", b"", b"\x00" * 100, b"[" * 200_000, None, [], "correct", 1),
            {"error": {"message": "out of memory", "code": 500}},
            *({"choices": choices} for choices in ([], None, ["correct"])),
            {"choices": [{"index": 0, "finish_reason": "stop"}]},
            {"choices": [{"index": 0, "message": None}]},
        )
    },
    **{
        f"content {content!r}": _choice(content)
        for content in (None, "", " \n ", 1, [{"type": "text", "text": "x"}], {"correct": True})
    },
    "length": _choice('{"correct": tr', finish_reason="length"),
    "content_filter": _choice("", finish_reason="content_filter"),
    "tool call": _choice(None, finish_reason="tool_calls"),
    "not UTF-8": _reply(CHOICE % b"\xff\xfe"),
    "UTF-16": _reply(json.dumps(completion("yes")).encode("utf-16")),
    "lone surrogate": _reply(CHOICE % b"\\ud800"),
    "deep objects": _reply(b'{"choices":' * 50_000 + b"1" + b"}" * 50_000),
    "long number": _reply(b'{"choices": ' + b"9" * 10_000 + b"}"),
}

#: The message is there, and its content is not a verdict.
CONTENT_FAULTS: dict[str, Fault] = {
    "prose": _choice("The response is correct, so it deserves full marks."),
    "a word": _choice("yes"),
    "another shape": _choice('{"result": {"ok": 1}}'),
    **{text: _choice(text) for text in ("[true, 1]", "true", "NaN")},
    "bare number": _choice("1"),
    "deep content": _choice("[" * 50_000),
    "deep content of objects": _choice('{"correct":' * 50_000),
    "long content": _choice("yes " * 500_000),
    "half an object": _choice('{"correct": true, "score": 1'),
    "echo of the prompt": _around(lambda _, body: prompt_of(body)),
}

#: The verdict is there with something around it: a parser may read the verdict or refuse it, but must
#: not read another.
DECORATED: dict[str, Fault] = {
    "extra keys": _around(
        lambda text, _: text.replace("{", '{"note": "x", "verdict_2": true, ', 1)
    ),
    "code fence": _around(lambda text, _: f"```json\n{text}\n```"),
    "thought": _around(lambda text, _: f"<think>Is it {_opposite(text)}?</think>\n{text}"),
    "spaces": _around(lambda text, _: f"\n\n  {text}\n"),
    "prose before": _around(lambda text, _: f"Here is my verdict:\n{text}"),
    "prose after": _around(lambda text, _: f"{text}\nI hope this helps."),
    "byte order mark": _around(lambda text, _: f"\ufeff{text}"),
    "echo, then the verdict": _around(lambda text, body: f"{prompt_of(body)}\n{text}"),
}

FAULTS = {**TRANSPORT_FAULTS, **REPLY_FAULTS, **CONTENT_FAULTS, **DECORATED}


@contextmanager
def serving(*arguments, kind=JudgeServer, **options):
    """Run a server during the block."""
    with kind(*arguments, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()
