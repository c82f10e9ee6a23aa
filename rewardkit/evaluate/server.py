"""One request to an OpenAI-compatible server, and what its answer means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import httpx

from rewardkit.errors import SourceError, UsageError
from rewardkit.evaluate.choices import Choice, choice_of
from rewardkit.evaluate.sampling import ENDPOINTS

#: Characters of what a server says that are told.
TOLD = 300

#: A server that asks to wait longer than this many seconds is not waited for.
LONGEST_WAIT = 600.0

#: Statuses about this one prompt: it is too long, say. And those that another try may change.
OF_PROMPT = frozenset({400, 413, 422})
PASSING = frozenset({408, 409, 425, 429})


@dataclass(frozen=True)
class Server:
    """Where requests go.

    Attributes:
        base_url: as in `http://127.0.0.1:8000/v1`.
        api: `chat` or `completions`.
        key: the API key, sent with every request; never written and never shown.
        seconds: that a request may take.
    """

    base_url: str
    api: str = "chat"
    key: str = ""
    seconds: float = 600.0

    def __post_init__(self) -> None:
        """Refuse what is no URL, and one with a password, which messages would show."""
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise UsageError(f"--base-url {self.base_url}: no URL ({error}).") from error
        if url.userinfo:
            raise UsageError("--base-url has a password in it; use --api-key-env.")
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError(f"--base-url {self.base_url}: write it as http://HOST:PORT/v1.")

    @property
    def url(self) -> str:
        """Where requests of its API go."""
        return f"{self.base_url.rstrip('/')}/{ENDPOINTS[self.api]}"

    def __repr__(self) -> str:
        """Without the key: a traceback shows this."""
        return f"Server({self.base_url!r}, {self.api!r})"


@dataclass(frozen=True)
class Reply:
    """The choices of one request, perhaps fewer than asked for; and their tokens, if told."""

    choices: tuple[Choice, ...]
    tokens: int | None


class TryAgainError(Exception):
    """Another try may be answered.

    Attributes:
        busy: the server has too many requests.
        wait: seconds that it asks to wait, 0.0 if it does not say.
    """

    def __init__(self, reason: str, *, busy: bool = False, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.busy, self.wait = busy, wait


class NoContactError(TryAgainError):
    """The server cannot be connected to."""


class PromptRefusedError(Exception):
    """The server will not answer this prompt."""


class Clients:
    """Clients of one connection each, used again, the last first; `close` them in the end.

    One client for all looks at each of its connections before each request (httpcore 1.0): with
    256 under way that took 8 ms of CPU for a request, and this takes under 1.
    """

    def __init__(self, server: Server) -> None:
        self._server, self._context = server, httpx.create_ssl_context()
        self._all: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []

    async def close(self) -> None:
        """Close them all."""
        for client in self._all:
            await client.aclose()

    @contextmanager
    def one(self) -> Iterator[httpx.AsyncClient]:
        """A client that nobody else uses."""
        if not self._free:
            self._free.append(self._client())
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    def _client(self) -> httpx.AsyncClient:
        key, seconds = self._server.key, self._server.seconds
        client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx.Limits(max_connections=1),
            timeout=httpx.Timeout(seconds, connect=min(30.0, seconds)),
            verify=self._context,
        )
        self._all.append(client)
        return client


async def ask(http: httpx.AsyncClient, server: Server, body: Mapping[str, Any]) -> Reply:
    """The server's answer to a request.

    Raises:
        TryAgainError: it may be answered another time; `NoContactError` if there is no server.
        PromptRefusedError: this prompt never will be.
        SourceError: nothing will be: a wrong model, URL or key.
    """
    try:
        sending = http.post(server.url, json=body)
        response = await asyncio.wait_for(sending, server.seconds)
    except (asyncio.TimeoutError, httpx.TimeoutException) as error:
        connecting = isinstance(error, httpx.ConnectTimeout)
        kind = NoContactError if connecting else TryAgainError
        raise kind(f"no answer within {server.seconds:g} s") from error
    except httpx.ConnectError as error:
        raise NoContactError(f"cannot connect ({_line(str(error), server)})") from error
    except httpx.TransportError as error:
        said = _line(str(error), server) or type(error).__name__
        raise TryAgainError(f"the connection broke ({said})") from error
    if response.status_code != httpx.codes.OK:
        raise _refusal(response, server)
    return _reply(response)


def _refusal(response: httpx.Response, server: Server) -> Exception:
    status = response.status_code
    said = f"{status}: {_line(_message(response), server)}"
    if status in PASSING or status >= 500:
        wait = _retry_after(response.headers.get("retry-after", ""))
        if wait > LONGEST_WAIT:
            return SourceError(f"{server.url}: {said} It asks to wait {wait:,.0f} s; go on then.")
        return TryAgainError(said, busy=status in (429, 503), wait=wait)
    if status in OF_PROMPT:
        return PromptRefusedError(said)
    hints = {
        401: "Name the variable that holds the API key with --api-key-env.",
        403: "Name the variable that holds the API key with --api-key-env.",
        404: "Look at --model and --base-url (it ends in /v1, as a rule).",
    }
    return SourceError(f"{server.url}: {said} {hints.get(status, 'Look at --base-url.')}")


def _message(response: httpx.Response) -> str:
    """What an error says, in OpenAI's form or any other."""
    try:
        body = response.json()
    except ValueError:
        return response.text or response.reason_phrase
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)


def _line(text: str, server: Server) -> str:
    """A text in a line, ending in a full stop; servers repeat the key that they refuse."""
    if server.key:
        text = text.replace(server.key, "***")
    text = " ".join(text.split())[:TOLD]
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _retry_after(value: str) -> float:
    """Seconds that a `Retry-After` asks for, as a number or a date (RFC 9110, 10.2.3)."""
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if isfinite(seconds) else 0.0
    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())


def _reply(response: httpx.Response) -> Reply:
    try:
        body = response.json()
    except ValueError as error:
        raise TryAgainError(f"the answer is no JSON ({error})") from error
    listed = body.get("choices") if isinstance(body, dict) else None
    found = [choice for choice in listed or () if isinstance(choice, dict)]
    choices = [made for choice in found if (made := choice_of(choice)) is not None]
    if not choices:
        raise TryAgainError("the answer has no choices")
    usage = body.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return Reply(tuple(choices), tokens if type(tokens) is int else None)
