"""Which requests a reward server accepts: the token, and the limit of waiting requests."""

from __future__ import annotations

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from math import ceil

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewardkit.reward_server.metrics import Metrics

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
