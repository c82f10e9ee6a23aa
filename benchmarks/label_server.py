"""A judge that knows the labels: an OpenAI-compatible server in this process, for `judge.py`.

It is not a model. Each judge has a chance to say yes to a right answer and one to say yes to a wrong
one; its errors are drawn by a hash of the case and of the question, so that they are the same in
every run, and a second question about the same answer errs by itself.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

#: Characters that count as a token.
TOKEN_CHARACTERS = 4


class Chances(NamedTuple):
    """How often a judge calls an answer right: a right answer, and a wrong one."""

    right: float
    wrong: float

    @classmethod
    def parse(cls, text: str) -> Chances:
        """Read `0.9/0.1`."""
        right, _, wrong = text.partition("/")
        return cls(float(right), float(wrong))

    def __str__(self) -> str:
        return f"{self.right:g}/{self.wrong:g}"


class LabelServer(ThreadingHTTPServer):
    """The server; one case at a time is judged.

    Attributes:
        chances: the judge.
        case: identifier and label of the case that is being judged.
        requests: number of requests so far.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), LabelHandler)
        self.chances, self.case, self.requests = Chances(1, 0), ("", False), 0

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def verdict(self, question: str) -> str:
        """Answer `yes` or `no` to a question about the current case."""
        name, label = self.case
        is_reversed = "rejected" in question
        draw = hashlib.sha256(f"{name}\0{is_reversed}".encode()).digest()[:8]
        chance = self.chances.right if label else self.chances.wrong
        is_right = int.from_bytes(draw, "big") / 2**64 < chance
        return "yes" if is_right is not is_reversed else "no"


class LabelHandler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LabelServer

    def do_POST(self) -> None:
        """Give a verdict."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests += 1
        question = body["messages"][-1]["content"]
        verdict = self.server.verdict(question[question.rindex("ends]") :])
        schema = body["response_format"]["json_schema"]["schema"]
        reason = {"reason": "The label says so."} if "reason" in schema["properties"] else {}
        reply = json.dumps({**reason, "verdict": verdict})
        prompt = sum(len(message["content"]) for message in body["messages"])
        self._send(completion(reply, prompt // TOKEN_CHARACTERS, len(reply) // TOKEN_CHARACTERS))

    def _send(self, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def completion(content: str, prompt_tokens: int, tokens: int) -> dict[str, Any]:
    """Return a chat completion with one message."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


@contextmanager
def serving() -> Iterator[LabelServer]:
    """Run the server."""
    with LabelServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
