"""Who may ask a reward server, and how many at a time."""

from __future__ import annotations

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from math import ceil

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewardkit.reward_server.metrics import Metrics

#: Where something is to be found. Those that are open are answered under any load.
PATHS = ("/score", "/get_reward", "/health", "/metrics")
OPEN = ("/health", "/metrics")

#: Longest `Retry-After`, in seconds.
RETRY = 60


@dataclass(frozen=True)
class Limits:
    """What is taken at most: requests waiting, items in a request, bytes in a body."""

    waiting: int = 1024
    batch: int = 1024
    body: int = 8 << 20


class Gate:
    """Counts requests, and refuses one more than may wait before anything is done for it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, limits: Limits) -> None:
        self._app, self._metrics, self._limit = app, metrics, limits.waiting
        self._full = b'{"error":"%d requests are waiting."}' % limits.waiting
        length = str(len(self._full)).encode()
        self._full_headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application's call."""
        path = scope["path"] if scope["path"] in PATHS else "other"
        metrics = self._metrics

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.answered(path, message["status"])
            await send(message)

        if path in OPEN:
            await self._app(scope, receive, counted)
        elif metrics.waiting >= self._limit:
            # By hand: refusing must cost little, or it is all that a full server does.
            headers = [*self._full_headers, (b"retry-after", again(metrics).encode())]
            await counted({"type": "http.response.start", "status": 429, "headers": headers})
            await send({"type": "http.response.body", "body": self._full})
        else:
            metrics.waiting += 1
            try:
                await self._app(scope, receive, counted)
            finally:
                metrics.waiting -= 1


def again(metrics: Metrics) -> str:
    """When to come again, in seconds: after as long as those that are waiting take, as a rule."""
    return str(min(max(1, ceil(metrics.mean)), RETRY))


def allowed(header: str, token: bytes) -> bool:
    """Whether an `Authorization` shows the token: as a bearer, or as a password.

    OpenRLHF sends no header, but what its HTTP client makes of the password in a URL.
    """
    if not token:
        return True
    scheme, _, value = header.partition(" ")
    shown = value.strip().encode()
    if scheme.lower() == "basic":
        shown = _password(shown)
    return scheme.lower() in ("bearer", "basic") and hmac.compare_digest(shown, token)


def _password(encoded: bytes) -> bytes:
    try:
        return b64decode(encoded, validate=True).partition(b":")[2]
    except Base64Error:
        return b""
