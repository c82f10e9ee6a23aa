"""The ASGI application of a reward server: how requests are read, scored and answered.

Every refusal is a JSON object with `error` and an HTTP status of 4xx. A scorer that fails is a
result with `error` in an answer with status 200. A status of 5xx is a bug of rewardkit.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rewardkit.errors import RewardkitError, UnknownNameError
from rewardkit.reward_server.payload import (
    ItemResult,
    RequestError,
    RequestItem,
    ScoreRequest,
    read_openrlhf,
    read_score,
)
from rewardkit.scorers.base import (
    Score,
    Status,
    call_scorer,
    error_text,
    explain_bad_gold,
    failed_score,
    failure_reason,
    failure_result,
    spec_of,
)
from rewardkit.scorers.isolated import close_scorer, is_built_in, start_scorer
from rewardkit.versions import VERSION

if TYPE_CHECKING:
    from rewardkit.reward_server.server import ServerConfig

#: Bytes of all bodies that are held at a time, as a multiple of the largest body.
MAX_BODIES = 32

#: nginx's status for a client that closed the connection; only the metrics have it.
CLIENT_CLOSED_STATUS = 499

#: Longest headers of a request, in bytes, roughly: h11 has this limit itself, httptools has none.
MAX_HEADER_BYTES = 64 << 10

#: Scorers that look at a text once and never wait: a thread would cost more than they do.
FAST_SCORERS = frozenset({"gsm8k", "mcq"})

#: Items of a request that one thread scores with one of our scorers before others get their turn.
ITEMS_PER_TURN = 16

_FULL = b'{"error":"there are too many connections."}'
_LONG_HEADERS = b'{"error":"the headers are too long."}'

#: What reads the bodies of the endpoints that score.
_READERS: dict[tuple[str, str], Callable[[bytes, int], ScoreRequest]] = {
    ("POST", "/score"): read_score,
    ("POST", "/get_reward"): read_openrlhf,
}
_ENDPOINTS = (*_READERS, ("GET", "/health"), ("GET", "/metrics"))


def is_authorized(header: str, token: bytes) -> bool:
    """Return whether an `Authorization` header has the token, as a bearer token or as a password.

    OpenRLHF can send no header, but its HTTP client makes one of the password in a URL.
    """
    scheme, _, value = header.partition(" ")
    credential = value.strip().encode()
    if scheme.lower() == "basic":
        try:
            credential = b64decode(credential, validate=True).partition(b":")[2]
        except Base64Error:
            return False
    return scheme.lower() in ("bearer", "basic") and hmac.compare_digest(credential, token)


class ScorerPool:
    """One scorer that serves many requests at a time. `close` ends its threads and processes."""

    def __init__(self, config: ServerConfig) -> None:
        """Load the scorer, in this process or in one of its own."""
        self.name, self._jobs, self._turns = config.scorer, config.jobs, 0
        self._turn_items = ITEMS_PER_TURN if is_built_in(self.name) else 1
        limits = config.seconds, config.load_seconds
        self._scorer = start_scorer(self.name, config.options, *limits, workers=self._jobs)
        own = spec_of(self._scorer).wrong_score
        self._wrong = own if config.wrong is None else config.wrong
        self._threads = ThreadPoolExecutor(self._jobs, "scorer")

    def close(self) -> None:
        """Wait for the threads and end the processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        close_scorer(self._scorer)

    def count_busy(self) -> int:
        """Return the number of threads that score."""
        return min(self._jobs, self._turns)

    async def score(
        self, items: Sequence[RequestItem], is_disconnected: Callable[[], Awaitable[bool]]
    ) -> list[ItemResult]:
        """Return the results of items in order; fewer if the client closes the connection.

        The threads take work from a queue of their own, so that they are busy even when the event
        loop is busier. One request puts no more there than the threads can take at once.
        """
        if self.name in FAST_SCORERS:
            return [*map(self._score, items)]
        starts = iter(range(0, len(items), self._turn_items))
        results: dict[int, list[ItemResult]] = {}
        loop = asyncio.get_running_loop()

        async def work() -> None:
            for start in starts:
                if await is_disconnected():
                    return
                turn = items[start : start + self._turn_items]
                self._turns += 1
                score_turn: Callable[[], list[ItemResult]] = partial(list, map(self._score, turn))
                results[start] = await loop.run_in_executor(self._threads, score_turn)
                self._turns -= 1

        await asyncio.gather(*(work() for _ in range(min(self._jobs, len(items)))))
        return [result for start in sorted(results) for result in results[start]]

    def _score(self, item: RequestItem) -> ItemResult:
        info = {**item.extra_info, "data_source": item.data_source}
        result = call_scorer(self._scorer, item.response, item.ground_truth, info)
        if isinstance(result, Exception):
            failure_result("reward-server", result)  # logs each cause once
            is_ours = isinstance(result, RewardkitError)
            reason = error_text(result) if is_ours else failure_reason(result)
            score = failed_score(result, self._wrong)
            if isinstance(result, UnknownNameError):
                score = Score.wrong("", Status.UNKNOWN_DATA_SOURCE, self._wrong)
            return ItemResult(score, reason)
        if result.status is Status.BAD_GROUND_TRUTH:
            reason = explain_bad_gold(item.ground_truth, self._scorer)
            return ItemResult(result, f"the ground truth cannot be scored{reason}")
        return ItemResult(result)


class RewardApp:
    """The application for uvicorn, which scores with `scorers` within the limits of `config`."""

    def __init__(self, scorers: ScorerPool, config: ServerConfig) -> None:
        self._scorers, self._config = scorers, config
        self._waiting = self._body_bytes = 0
        self._counts: defaultdict[str, float] = defaultdict(int)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI calls it."""
        endpoint = scope["method"], scope["path"]
        path = scope["path"] if endpoint in _ENDPOINTS else "other"

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count("requests_total", path=path, status=message["status"])
            await send(message)

        try:
            response = await self._respond(Request(scope, receive), endpoint)
        except RequestError as error:
            response = _json({"error": str(error)}, error.status, error.headers)
        except ClientDisconnect:
            message = "the client closed the connection."
            response = _json({"error": message}, CLIENT_CLOSED_STATUS)
        await response(scope, receive, count_and_send)

    def _count(self, name: str, value: float = 1, **labels: object) -> None:
        """Add to a metric, whose labels are never text of a client's."""
        text = ",".join(f"{label}={json.dumps(str(each))}" for label, each in labels.items())
        self._counts[f"{name}{{{text}}}" if text else name] += value

    async def _respond(self, request: Request, endpoint: tuple[str, str]) -> Response:
        if endpoint not in _ENDPOINTS:
            endpoints = ", ".join(map(" ".join, _ENDPOINTS))
            raise RequestError(404, f"Not Found; the endpoints are {endpoints}.")
        if endpoint[1] == "/health":  # shows no setting but the scorer
            return _json({"status": "ok", "scorer": self._scorers.name, "version": VERSION}, 200)
        token, limit = self._config.token.encode(), self._config.max_waiting
        if token and not is_authorized(request.headers.get("authorization", ""), token):
            message = "send the server's token: `Authorization: Bearer ...`."
            raise RequestError(401, message, {"WWW-Authenticate": "Bearer"})
        if endpoint[1] == "/metrics":
            gauges = {"waiting": self._waiting, "waiting_limit": limit}
            values = {**gauges, "judging": self._scorers.count_busy(), **self._counts}
            text = "".join(f"rewardkit_{name} {value}\n" for name, value in values.items())
            return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
        if self._waiting >= limit:
            raise _overload(f"{limit} requests are waiting.")
        self._waiting += 1
        try:
            return await self._score(request, _READERS[endpoint])
        finally:
            self._waiting -= 1

    async def _score(
        self, request: Request, read: Callable[[bytes, int], ScoreRequest]
    ) -> Response:
        """Answer `POST /score` or `POST /get_reward`."""
        started, parts = perf_counter(), list[bytes]()
        try:
            await self._receive(request, parts)
            score_request = read(b"".join(parts), self._config.max_batch)
            # Accept or refuse the requests that have arrived before scoring this one.
            await asyncio.sleep(0)
            results = await self._scorers.score(score_request.items, request.is_disconnected)
        finally:
            self._body_bytes -= sum(map(len, parts))
        if len(results) < len(score_request.items):
            raise ClientDisconnect
        scorer = self._scorers.name
        for score, error in results:
            self._count("responses_total", scorer=scorer, status=score.status.value)
            self._count("errors_total", bool(error), scorer=scorer)
        self._count("request_seconds_count")
        self._count("request_seconds_sum", perf_counter() - started)
        return _json(score_request.reply(results), 200)

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Read the body in parts; refuse it once it, or all bodies together, are too long."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":  # a browser cannot send this to another site
            raise RequestError(415, "send JSON, with `Content-Type: application/json`.")
        max_bytes, size = self._config.max_body_bytes, 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            self._body_bytes += len(part)
            if size > max_bytes:
                text = f"the body has more than {max_bytes:,} bytes: send it in parts."
                raise RequestError(413, text)
            if self._body_bytes > MAX_BODIES * max_bytes:
                raise _overload("too many bytes are waiting.")


def _overload(message: str) -> RequestError:
    return RequestError(429, message, {"Retry-After": "1"})


def _json(value: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in ASCII, because the text of a model may hold any character."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers, media_type="application/json")


class LimitedConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, httptools or h11, with limits of connections and of headers.

    uvicorn closes a connection that idles after an answer. Slow clients are a proxy's work.
    """

    max_connections = 1 << 30

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._header_bytes, self._in_headers = 0, False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(b"503 Service Unavailable", _FULL)

    def data_received(self, data: bytes) -> None:
        """Read from the client."""
        super().data_received(data)
        self._header_bytes += len(data) * self._in_headers
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self._refuse(b"431 Request Header Fields Too Large", _LONG_HEADERS)

    def on_message_begin(self) -> None:
        """Called by httptools at the start of the headers."""
        self._in_headers, self._header_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called by httptools at the end of the headers."""
        self._in_headers = False
        super().on_headers_complete()

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\nRetry-After: 1\r\n\r\n%b" % (status, len(body), body)
        )
        self.transport.close()


def connection_class(max_connections: int) -> type[LimitedConnection]:
    """Return the protocol for uvicorn with this limit of connections."""
    return type("LimitedConnection", (LimitedConnection,), {"max_connections": max_connections})
