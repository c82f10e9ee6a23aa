"""The ASGI application of a reward server: its endpoints, and how requests are read and answered.

Every refusal is a JSON object with `error` and an HTTP status of 4xx. A scorer that fails is a
result with `error` in an answer with status 200. A status of 5xx is a bug of rewardkit.
"""

from __future__ import annotations

import hmac
import json
from asyncio import create_task, sleep
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from threading import Event
from time import perf_counter
from typing import Any

from anyio import fail_after
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewardkit.reward_server.metrics import Metrics
from rewardkit.reward_server.openrlhf import openrlhf_reply, read_openrlhf
from rewardkit.reward_server.payload import (
    ItemResult,
    RequestError,
    RequestItem,
    ScoreRequest,
    read_score,
    score_reply,
)
from rewardkit.reward_server.scoring import ScorerPool
from rewardkit.versions import VERSION

#: The paths of the server, and those that are answered under any load.
PATHS = ("/score", "/get_reward", "/health", "/metrics")
UNLIMITED_PATHS = ("/health", "/metrics")

#: Longest `Retry-After`, in seconds.
MAX_RETRY_SECONDS = 60


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a server.

    Attributes:
        max_waiting: requests that may wait for their answer.
        max_batch: items in one request.
        max_body_bytes: bytes in the body of one request.
    """

    max_waiting: int = 1024
    max_batch: int = 1024
    max_body_bytes: int = 8 << 20


class WaitingLimit:
    """ASGI middleware that counts requests and refuses one if too many are waiting already."""

    def __init__(self, app: ASGIApp, metrics: Metrics, max_waiting: int) -> None:
        self._app, self._metrics, self._max_waiting = app, metrics, max_waiting
        self._body = b'{"error":"%d requests are waiting."}' % max_waiting
        length = str(len(self._body)).encode()
        self._headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI calls it."""
        path = scope["path"] if scope["path"] in PATHS else "other"
        metrics = self._metrics

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.count_request(path, message["status"])
            await send(message)

        if path in UNLIMITED_PATHS:
            await self._app(scope, receive, count_and_send)
        elif metrics.waiting >= self._max_waiting:
            # Without Starlette: a refusal must be cheap, or an overloaded server does nothing else.
            headers = [*self._headers, (b"retry-after", retry_after(metrics).encode())]
            start = {"type": "http.response.start", "status": 429, "headers": headers}
            await count_and_send(start)
            await send({"type": "http.response.body", "body": self._body})
        else:
            metrics.waiting += 1
            try:
                await self._app(scope, receive, count_and_send)
            finally:
                metrics.waiting -= 1


def retry_after(metrics: Metrics) -> str:
    """Return the seconds for `Retry-After`: the mean latency, at least 1."""
    return str(min(max(1, ceil(metrics.mean_seconds)), MAX_RETRY_SECONDS))


def is_authorized(header: str, token: bytes) -> bool:
    """Return whether an `Authorization` header has the token, as a bearer token or as a password.

    OpenRLHF can send no header, but its HTTP client makes one of the password in a URL.
    """
    if not token:
        return True
    scheme, _, value = header.partition(" ")
    credential = value.strip().encode()
    if scheme.lower() == "basic":
        credential = _password(credential)
    return scheme.lower() in ("bearer", "basic") and hmac.compare_digest(credential, token)


def _password(encoded: bytes) -> bytes:
    try:
        return b64decode(encoded, validate=True).partition(b":")[2]
    except Base64Error:
        return b""


#: Timeout for the body of a request, in seconds.
BODY_TIMEOUT_SECONDS = 30.0

#: Bytes of all bodies that are held at a time, as a multiple of the largest body.
MAX_BODIES = 32

#: Statuses of refusals before the body was read, after which the connection is closed.
UNREAD_STATUSES = frozenset({401, 408, 415})

#: nginx's status for a client that closed the connection; only the metrics have it.
CLIENT_CLOSED_STATUS = 499


def make_app(scorers: ScorerPool, limits: RequestLimits, token: str = "") -> ASGIApp:
    """Return the application for uvicorn.

    Args:
        scorers: scores the items of requests.
        limits: the limits of requests.
        token: the token that requests must have, "" for none.
    """
    endpoints = _Endpoints(scorers, limits, token)

    async def score(request: Request) -> Response:
        return await endpoints.answer(request, read_score, score_reply)

    async def get_reward(request: Request) -> Response:
        return await endpoints.answer(request, read_openrlhf, openrlhf_reply)

    routes = [
        Route("/score", score, methods=["POST"]),
        Route("/get_reward", get_reward, methods=["POST"]),
        Route("/health", endpoints.health),
        Route("/metrics", endpoints.metrics_text),
    ]
    handlers: dict[Any, Any] = {HTTPException: _routing_error, RequestError: _request_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return WaitingLimit(app, endpoints.metrics, limits.max_waiting)


class _Endpoints:
    def __init__(self, scorers: ScorerPool, limits: RequestLimits, token: str) -> None:
        self.metrics = Metrics(limits.max_waiting, scorers.count_busy)
        self._scorers, self._limits, self._token = scorers, limits, token.encode()
        self._body_bytes = 0

    async def health(self, _: Request) -> Response:
        """Answer `GET /health`, which shows no setting but the scorer."""
        health = {"status": "ok", "scorer": self._scorers.name, "version": VERSION}
        return _json(health, 200)

    async def metrics_text(self, request: Request) -> Response:
        """Answer `GET /metrics`."""
        self._authorize(request)
        return Response(self.metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def answer(
        self,
        request: Request,
        read: Callable[[bytes, int], ScoreRequest],
        reply: Callable[..., dict[str, Any]],
    ) -> Response:
        """Answer `POST /score` or `POST /get_reward`."""
        started = perf_counter()
        self._authorize(request)
        parts: list[bytes] = []
        try:
            with fail_after(BODY_TIMEOUT_SECONDS):
                await self._receive(request, parts)
            items, is_single = read(b"".join(parts), self._limits.max_batch)
            # Accept or refuse the requests that have arrived before scoring this one.
            await sleep(0)
            results = await self._score_items(items, request)
        except TimeoutError as error:
            message = f"the body has not arrived within {BODY_TIMEOUT_SECONDS:g} s."
            raise RequestError(408, message) from error
        except ClientDisconnect as error:
            raise RequestError(CLIENT_CLOSED_STATUS, "the client closed the connection.") from error
        finally:
            self._body_bytes -= sum(map(len, parts))
        answer = _json(reply(results, is_single=is_single), 200)
        self.metrics.add_latency(perf_counter() - started)
        return answer

    async def _score_items(
        self, items: Sequence[RequestItem], request: Request
    ) -> list[ItemResult]:
        names = [self._scorers.name_for(item) for item in items]
        if self._scorers.are_fast(names):
            results = self._scorers.score(items)
        else:
            is_closed = Event()

            async def watch_connection() -> None:
                """Set the event when the client closes the connection: no item needs a score then."""
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                is_closed.set()

            watcher = create_task(watch_connection())
            try:
                results = await self._scorers.score_in_threads(items, is_closed)
            finally:
                watcher.cancel()
            if len(results) < len(items):
                raise ClientDisconnect
        self.metrics.count_results(names, results)
        return results

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """Read the body in parts; refuse it once it, or all bodies together, are too long."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":  # a browser cannot send this to another site
            raise RequestError(415, "send JSON, with `Content-Type: application/json`.")
        max_bytes, size = self._limits.max_body_bytes, 0
        length = request.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > max_bytes:
            raise _too_long(max_bytes)
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            self._body_bytes += len(part)
            if size > max_bytes:
                raise _too_long(max_bytes)
            if self._body_bytes > MAX_BODIES * max_bytes:
                headers = {"Retry-After": retry_after(self.metrics)}
                raise RequestError(429, "too many bytes are waiting.", headers)

    def _authorize(self, request: Request) -> None:
        if not is_authorized(request.headers.get("authorization", ""), self._token):
            message = "send the server's token: `Authorization: Bearer ...`."
            raise RequestError(401, message, {"WWW-Authenticate": "Bearer"})


def _too_long(max_bytes: int) -> RequestError:
    return RequestError(413, f"the body has more than {max_bytes:,} bytes: send it in parts.")


def _json(value: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in ASCII, because the text of a model may hold any character."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers, media_type="application/json")


async def _request_error(_: Request, error: RequestError) -> Response:
    headers = dict(error.headers)
    if error.status in UNREAD_STATUSES:
        headers["Connection"] = "close"
    return _json({"error": str(error)}, error.status, headers)


async def _routing_error(_: Request, error: HTTPException) -> Response:
    """Answer a request for an unknown path or method, which Starlette refuses, in our form."""
    endpoints = "POST /score, POST /get_reward, GET /health, GET /metrics"
    message = f"{error.detail}; the endpoints are {endpoints}."
    return _json({"error": message}, error.status_code, dict(error.headers or {}))
