"""The ASGI application of a reward server: its endpoints, and how requests are read and answered.

Every refusal is a JSON object with `error` and an HTTP status of 4xx. A scorer that fails is a
result with `error` in an answer with status 200. A status of 5xx is a bug of rewardkit.
"""

from __future__ import annotations

import hmac
import json
from asyncio import Transport, sleep
from base64 import b64decode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rewardkit.reward_server.payload import (
    ItemResult,
    RequestError,
    ScoreRequest,
    read_openrlhf,
    read_score,
)
from rewardkit.reward_server.scoring import ScorerPool
from rewardkit.versions import VERSION

if TYPE_CHECKING:
    from rewardkit.reward_server.server import ServerConfig

#: Bytes of all bodies that are held at a time, as a multiple of the largest body.
MAX_BODIES = 32

#: nginx's status for a client that closed the connection; only the metrics have it.
CLIENT_CLOSED_STATUS = 499

#: Longest headers of a request, in bytes, roughly: h11 has this limit itself, httptools has none.
MAX_HEADER_BYTES = 64 << 10

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


class Metrics:
    """The metrics of one server in Prometheus' text format, whose labels are never text of a client's.

    Attributes:
        waiting: requests accepted and not yet answered.
    """

    def __init__(self, gauges: Callable[[], dict[str, float]]) -> None:
        """Create the metrics; `gauges` returns further values by name."""
        self.waiting = 0
        self._gauges = gauges
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, name: str, value: float = 1, **labels: object) -> None:
        """Add to a counter with these labels."""
        text = ",".join(f"{label}={json.dumps(str(each))}" for label, each in labels.items())
        self._counts[name, f"{{{text}}}" if text else ""] += value  # type: ignore[assignment]

    def count_results(self, scorer: str, results: Iterable[ItemResult]) -> None:
        """Count the items of a request."""
        for score, error in results:
            self.count("responses_total", scorer=scorer, status=score.status.value)
            self.count("errors_total", bool(error), scorer=scorer)

    def add_latency(self, seconds: float) -> None:
        """Count the time that a scored request took."""
        self.count("request_seconds_count")
        self.count("request_seconds_sum", seconds)

    def text(self) -> str:
        """Return all metrics in Prometheus' text format 0.0.4."""
        gauges = {(name, ""): value for name, value in self._gauges().items()}
        values = {("waiting", ""): self.waiting, **gauges, **self._counts}
        return "".join(f"rewardkit_{n}{labels} {v}\n" for (n, labels), v in values.items())


class RewardApp:
    """The application for uvicorn, which scores with `scorers` within the limits of `config`."""

    def __init__(self, scorers: ScorerPool, config: ServerConfig) -> None:
        self._scorers, self._config, self._body_bytes = scorers, config, 0
        self._metrics = Metrics(
            lambda: {"waiting_limit": config.max_waiting, "judging": scorers.count_busy()}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI calls it."""
        endpoint = scope["method"], scope["path"]
        path = scope["path"] if endpoint in _ENDPOINTS else "other"

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count("requests_total", path=path, status=message["status"])
            await send(message)

        try:
            response = await self._respond(Request(scope, receive), endpoint)
        except RequestError as error:
            response = _json({"error": str(error)}, error.status, error.headers)
        except ClientDisconnect:
            message = "the client closed the connection."
            response = _json({"error": message}, CLIENT_CLOSED_STATUS)
        await response(scope, receive, count_and_send)

    async def _respond(self, request: Request, endpoint: tuple[str, str]) -> Response:
        if endpoint not in _ENDPOINTS:
            endpoints = ", ".join(map(" ".join, _ENDPOINTS))
            raise RequestError(404, f"Not Found; the endpoints are {endpoints}.")
        if endpoint[1] == "/health":  # shows no setting but the scorer
            return _json({"status": "ok", "scorer": self._scorers.name, "version": VERSION}, 200)
        token = self._config.token.encode()
        if token and not is_authorized(request.headers.get("authorization", ""), token):
            message = "send the server's token: `Authorization: Bearer ...`."
            raise RequestError(401, message, {"WWW-Authenticate": "Bearer"})
        metrics = self._metrics
        if endpoint[1] == "/metrics":
            return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")
        if metrics.waiting >= self._config.max_waiting:
            raise _overload(f"{self._config.max_waiting} requests are waiting.")
        metrics.waiting += 1
        try:
            return await self._score(request, _READERS[endpoint])
        finally:
            metrics.waiting -= 1

    async def _score(
        self, request: Request, read: Callable[[bytes, int], ScoreRequest]
    ) -> Response:
        """Answer `POST /score` or `POST /get_reward`."""
        started, parts = perf_counter(), list[bytes]()
        try:
            await self._receive(request, parts)
            score_request = read(b"".join(parts), self._config.max_batch)
            # Accept or refuse the requests that have arrived before scoring this one.
            await sleep(0)
            results = await self._scorers.score(score_request.items, request.is_disconnected)
        finally:
            self._body_bytes -= sum(map(len, parts))
        if len(results) < len(score_request.items):
            raise ClientDisconnect
        self._metrics.count_results(self._scorers.name, results)
        answer = _json(score_request.reply(results), 200)
        self._metrics.add_latency(perf_counter() - started)
        return answer

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

    def connection_made(self, transport: Transport) -> None:
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
