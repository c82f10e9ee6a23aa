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
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Seconds after which a slow reply comes, and bytes of the reply of the fault "100 MB".
SLOW_SECONDS, HUGE_BYTES = 20.0, 100 << 20


def yes(_body):
    return {"reason": "It is equal.", "verdict": "yes"}


def prompt_of(body: Mapping[str, Any]) -> str:
    """Return all messages of a request, as one text."""
    if "messages" not in body:
        return str(body.get("prompt", ""))
    return "\n".join(str(message["content"]) for message in body["messages"])


class JudgeServer(ThreadingHTTPServer):
    """An OpenAI-compatible server.

    Attributes:
        verdict: the JSON value that the model should reply with to a request's body; a text is sent
            as it stands, and a number is the status of a refusal.
        takes_schema: True, or the status of the answer to a request with a schema.
        models: the names of its models.
        faults: the faults of single requests, by their number; or a function of number and body.
        always: the fault of every other request.
        room: requests that may be in flight; others get 429.
        seconds: time of an answer.
        bodies: the requests, in the order in which they came.
        most: the largest number of requests in flight.
        refused: number of requests that got 429 for want of room.
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

    def fault_of(self, number, body):
        fault = self.faults(number, body) if callable(self.faults) else self.faults.get(number)
        return self.always if fault is None else fault

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
                self.answer(body, server.fault_of(number, body))
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


Fault = Callable[[JudgeHandler, dict], None]


def _status(status: int, **headers: str) -> Fault:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.say(status, {"error": {"message": "not now"}}, names)


def _reply(value: Any) -> Fault:
    """A whole reply of status 200 with this body."""
    return lambda handler, _: handler.say(200, value)


def _choice(content: Any, **fields: Any) -> Fault:
    return _reply(completion(content, **fields))


def _raw(text: bytes) -> Fault:
    """Bytes on the connection, which then ends."""

    def fault(handler: JudgeHandler, _: dict) -> None:
        handler.wfile.write(text)
        handler.close_connection = True

    return fault


def _cut_body(handler: JudgeHandler, body: dict) -> None:
    text = json.dumps(completion(handler.server.content(body))).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode()
    _raw(head + text[: len(text) // 2])(handler, body)


def _cut_chunk(handler: JudgeHandler, body: dict) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n"
    _raw(head + b'{"choices": [{"message"')(handler, body)


def _reset(handler: JudgeHandler, _: dict) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def _slow(handler: JudgeHandler, body: dict) -> None:
    handler.server.closing.wait(SLOW_SECONDS)
    handler.answer(body, None)


def _drip(handler: JudgeHandler, body: dict) -> None:
    """One byte after the other: no read waits long, and the reply never ends."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def _never(handler: JudgeHandler, _: dict) -> None:
    handler.server.closing.wait()
    handler.close_connection = True


def _huge(handler: JudgeHandler, _: dict) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(HUGE_BYTES))
    handler.end_headers()
    piece = b" " * (1 << 20)
    with suppress(OSError):
        for _ in range(HUGE_BYTES >> 20):
            handler.wfile.write(piece)
    handler.close_connection = True


@cache
def _bomb_text() -> bytes:
    return gzip.compress(b"[" * (64 << 20), 1)


def _bomb(handler: JudgeHandler, _: dict) -> None:
    handler.say(200, _bomb_text(), {"Content-Encoding": "gzip"})


def _redirect(status: int, to: str) -> Fault:
    def fault(handler: JudgeHandler, _: dict) -> None:
        handler.say(status, b"", {"Location": to or handler.path})

    return fault


def _around(before: str, after: str) -> Fault:
    """The right verdict with text around it."""

    def fault(handler: JudgeHandler, body: dict) -> None:
        handler.say(200, completion(before + handler.server.content(body) + after))

    return fault


def _thought(handler: JudgeHandler, body: dict) -> None:
    """A thought with the opposite verdict, and then the verdict."""
    content = handler.server.content(body)
    opposite = (
        content.replace('"yes"', '"maybe"').replace('"no"', '"yes"').replace('"maybe"', '"no"')
    )
    handler.say(200, completion(f"<think>It could be {opposite}.</think>\n{content}"))


def _extra_keys(handler: JudgeHandler, body: dict) -> None:
    verdict = {**handler.server.verdict(body), "note": "x", "confidence": 2, "verdict_2": True}
    handler.say(200, completion(json.dumps(verdict)))


def _echo(handler: JudgeHandler, body: dict) -> None:
    """Repeat the prompt before the verdict, so that a verdict in the response comes first."""
    handler.say(200, completion(f"{prompt_of(body)}\n{handler.server.content(body)}"))


def response_in(body: Mapping[str, Any]) -> str:
    """Return the response that a request of the scorer `judge` asks about."""
    block = prompt_of(body).rpartition("[RESPONSE ")[0].rpartition("[RESPONSE ")[2]
    return block.partition("begins]\n")[2].rstrip("\n")


def _echo_only(handler: JudgeHandler, body: dict) -> None:
    handler.say(200, completion(prompt_of(body)))


#: The server or the network fails, and no reply of the API comes.
TRANSPORT_FAULTS: dict[str, Fault] = {
    "429": _status(429),
    "429 with Retry-After": _status(429, Retry_After="0.05"),
    "429 with a date": _status(429, Retry_After="Wed, 21 Oct 2065 07:28:00 GMT"),
    "429 for years": _status(429, Retry_After="1000000000"),
    "429 with nonsense": _status(429, Retry_After="soon"),
    "408": _status(408),
    "500": _status(500),
    "502": _status(502),
    "503": _status(503),
    "529": _status(529),
    "cut body": _cut_body,
    "cut chunk": _cut_chunk,
    "reset": _reset,
    "no bytes": _raw(b""),
    "not HTTP": _raw(b"\x00\x01\x02 hello\r\n\r\n"),
    "endless headers": _raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200_000 + b"\r\n"),
    "slow": _slow,
    "drip": _drip,
    "never": _never,
    "100 MB": _huge,
    "gzip bomb": _bomb,
    "redirect to itself": _redirect(307, ""),
    "redirect to a page": _redirect(302, "/page"),
    "redirect to a file": _redirect(302, "file:///etc/hostname"),
    "redirect nowhere": _redirect(308, "http://judge.invalid/v1/chat/completions"),
}

#: The reply is not one of the API, or it has no message.
REPLY_FAULTS: dict[str, Fault] = {
    "page": _reply(b"<html>gateway</html>"),
    "empty body": _reply(b""),
    "null": _reply(None),
    "list": _reply([]),
    "text": _reply("correct"),
    "number": _reply(1),
    "error in a 200": _reply({"error": {"message": "out of memory", "code": 500}}),
    "no choices": _reply({"choices": []}),
    "choices null": _reply({"choices": None}),
    "choices of text": _reply({"choices": ["correct"]}),
    "no message": _reply({"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "message null": _reply({"choices": [{"index": 0, "message": None}]}),
    "content null": _choice(None),
    "content empty": _choice(""),
    "content of spaces": _choice(" \n "),
    "content number": _choice(1),
    "content list": _choice([{"type": "text", "text": "x"}]),
    "content object": _choice({"correct": True, "score": 1}),
    "length": _choice('{"correct": tr', finish_reason="length"),
    "content_filter": _choice("", finish_reason="content_filter"),
    "tool call": _choice(None, finish_reason="tool_calls"),
    "not UTF-8": _reply(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "UTF-16": _reply(json.dumps(completion("yes")).encode("utf-16")),
    "lone surrogate": _reply(
        b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}'
    ),
    "deep reply": _reply(b"[" * 200_000),
    "deep objects": _reply(b'{"choices":' * 50_000 + b"1" + b"}" * 50_000),
    "long number": _reply(b'{"choices": ' + b"9" * 10_000 + b"}"),
    "NUL": _reply(b"\x00" * 100),
}

#: The message is there, and its content is not a verdict.
CONTENT_FAULTS: dict[str, Fault] = {
    "prose": _choice("The response is correct, so it deserves full marks."),
    "a word": _choice("yes"),
    "refusal": _choice("I cannot judge this."),
    "another shape": _choice('{"result": {"ok": 1}}'),
    "array": _choice("[true, 1]"),
    "bare number": _choice("1"),
    "bare true": _choice("true"),
    "text of NaN": _choice("NaN"),
    "deep content": _choice("[" * 50_000),
    "deep content of objects": _choice('{"correct":' * 50_000),
    "long content": _choice("yes " * 500_000),
    "half an object": _choice('{"correct": true, "score": 1'),
    "echo of the prompt": _echo_only,
}

#: The verdict is there with something around it: a parser may read the verdict or refuse it, but must
#: not read another.
DECORATED: dict[str, Fault] = {
    "extra keys": _extra_keys,
    "code fence": _around("```json\n", "\n```"),
    "thought": _thought,
    "spaces": _around("\n\n  ", "\n"),
    "prose before": _around("Here is my verdict:\n", ""),
    "prose after": _around("", "\nI hope this helps."),
    "byte order mark": _around("\ufeff", ""),
    "echo of the prompt, then the verdict": _echo,
}

#: Faults after which the same request, sent again, may succeed.
PASSING_FAULTS = frozenset(
    "429|429 with Retry-After|429 with nonsense|408|500|502|503|529|cut body|cut chunk|reset|"
    "no bytes".split("|")
)

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
