"""The reward server's application: its endpoints, and what is read and answered there.

Every refusal is a JSON object with `error` and a status of 4xx. What a scorer does wrong is a score
with `error` in an answer of 200; a status of 5xx is a bug of ours.
"""

from __future__ import annotations

import json
from asyncio import create_task, sleep
from collections.abc import Callable, Sequence
from threading import Event
from time import perf_counter
from typing import Any

from anyio import fail_after
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rewardkit import __version__
from rewardkit.reward_server.gate import Gate, Limits, again, allowed
from rewardkit.reward_server.metrics import Metrics
from rewardkit.reward_server.openrlhf import openrlhf_reply, read_openrlhf
from rewardkit.reward_server.payload import Asked, Item, Verdict, read_score, score_reply
from rewardkit.reward_server.scoring import Judge
from rewardkit.reward_server.strict_json import RefusedError

#: Seconds for a body to arrive.
READING = 30.0

#: Bytes of all bodies that are held at a time, in multiples of the longest body.
BODIES = 32

#: Statuses of refusals before a body was read, of clients that need not be asked to send it again.
UNREAD = frozenset({401, 408, 415})

#: The status, nginx's, under which requests are counted whose client did not wait.
GONE = 499


def make_app(judge: Judge, limits: Limits, token: str = "") -> ASGIApp:
    """The application, for uvicorn.

    Args:
        judge: what scores.
        limits: what is taken at most.
        token: that requests must show, "" for none.
    """
    service = _Service(judge, limits, token)
    routes = [
        Route("/score", service.score, methods=["POST"]),
        Route("/get_reward", service.get_reward, methods=["POST"]),
        Route("/health", service.health),
        Route("/metrics", service.told),
    ]
    handlers: dict[Any, Any] = {HTTPException: _http_refusal, RefusedError: _refusal}
    return Gate(Starlette(routes=routes, exception_handlers=handlers), service.metrics, limits)


class _Service:
    """The endpoints."""

    def __init__(self, judge: Judge, limits: Limits, token: str) -> None:
        self.metrics = Metrics()
        self._judge, self._limits, self._token = judge, limits, token.encode()
        self._held = 0

    async def score(self, request: Request) -> Response:
        """`POST /score`."""
        return await self._answer(request, read_score, score_reply)

    async def get_reward(self, request: Request) -> Response:
        """`POST /get_reward`, as OpenRLHF asks."""
        return await self._answer(request, read_openrlhf, openrlhf_reply)

    async def health(self, _: Request) -> Response:
        """`GET /health`; the scorer is no secret, the rest of the settings are not told."""
        told = {"status": "ok", "scorer": self._judge.name, "version": __version__}
        return _json(told, 200)

    async def told(self, request: Request) -> Response:
        """`GET /metrics`."""
        self._authorise(request)
        text = self.metrics.text(limit=self._limits.waiting, judging=self._judge.judging)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _answer(
        self,
        request: Request,
        read: Callable[[bytes, int], Asked],
        reply: Callable[..., dict[str, Any]],
    ) -> Response:
        started = perf_counter()
        self._authorise(request)
        parts: list[bytes] = []
        try:
            with fail_after(READING):
                await self._receive(request, parts)
            items, single = read(b"".join(parts), self._limits.batch)
            await sleep(0)  # whatever else has arrived is let in, or refused, before it is judged
            verdicts = await self._judged(items, request)
        except TimeoutError as error:
            raise RefusedError(408, f"no whole body within {READING:g} s.") from error
        except ClientDisconnect as error:
            raise RefusedError(GONE, "the client is gone.") from error
        finally:
            self._held -= sum(map(len, parts))
        answer = _json(reply(verdicts, single=single), 200)
        self.metrics.took(perf_counter() - started)
        return answer

    async def _judged(self, items: Sequence[Item], request: Request) -> list[Verdict]:
        """The verdicts, counted."""
        labels = [self._judge.label(item) for item in items]
        verdicts = self._judge.at_once(items, labels)
        if verdicts is None:
            gone = Event()
            watching = create_task(_watch(request, gone))
            try:
                verdicts = await self._judge.in_threads(items, gone)
            finally:
                watching.cancel()
            if len(verdicts) < len(items):
                raise ClientDisconnect
        for label, verdict in zip(labels, verdicts, strict=True):
            self.metrics.responses[label, verdict.score.status.value] += 1
            if verdict.error:
                self.metrics.errors[label] += 1
        return verdicts

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        """The body, in parts; refused as soon as it is too long, or all bodies are."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a page in a browser cannot say so of another's server
            raise RefusedError(415, "send JSON, with `Content-Type: application/json`.")
        most, size = self._limits.body, 0
        said = request.headers.get("content-length", "")
        if said.isdecimal() and len(said) < 20 and int(said) > most:
            raise _too_long(most)
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            self._held += len(part)
            if size > most:
                raise _too_long(most)
            if self._held > BODIES * most:
                raise RefusedError(
                    429, "too many bytes are waiting.", {"Retry-After": again(self.metrics)}
                )

    def _authorise(self, request: Request) -> None:
        if not allowed(request.headers.get("authorization", ""), self._token):
            headers = {"WWW-Authenticate": "Bearer"}
            raise RefusedError(
                401, "send the server's token: `Authorization: Bearer ...`.", headers
            )


async def _watch(request: Request, gone: Event) -> None:
    """Tell when the client closes the connection: what it asked need not be judged any more."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _too_long(most: int) -> RefusedError:
    return RefusedError(413, f"the body has more than {most:,} bytes: send it in parts.")


def _json(value: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response:
    """An answer in ASCII: what a model wrote may hold any character."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers, media_type="application/json")


def _reply_of(refused: RefusedError) -> Response:
    """A refusal; one that came before the body was read closes the connection with it."""
    headers = dict(refused.headers)
    if refused.status in UNREAD:
        headers["Connection"] = "close"
    return _json({"error": str(refused)}, refused.status, headers)


async def _refusal(_: Request, error: RefusedError) -> Response:
    return _reply_of(error)


async def _http_refusal(_: Request, error: HTTPException) -> Response:
    """No such path, or another method: Starlette's refusals, in our form."""
    there = "POST /score, POST /get_reward, GET /health, GET /metrics"
    return _json(
        {"error": f"{error.detail}; there are {there}."},
        error.status_code,
        dict(error.headers or {}),
    )
