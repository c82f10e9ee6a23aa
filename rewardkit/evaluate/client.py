"""One request to an OpenAI-compatible server, and what its answer means."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from typing import Any

import httpx

from rewardkit.errors import SourceError, UsageError
from rewardkit.evaluate.sampling import ENDPOINTS
from rewardkit.responses.completions import Reply, read_json, reply_of

#: Characters of what a server says that are told.
TOLD = 300

#: A server that asks to wait longer than this many seconds is not waited for.
LONGEST_WAIT = 600.0

#: Bytes of an answer, unpacked; a longer one is read no further.
LONGEST_ANSWER = 1 << 28

#: Statuses about this one prompt: it is too long, say. Those that another try may change, and of
#: them those of a server that has too many requests.
OF_PROMPT = frozenset({400, 413, 422})
PASSING = frozenset({408, 409, 425, 429})
BUSY = frozenset({429, 503, 529})

#: Sent with every request.
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}


@dataclass(frozen=True)
class Server:
    """Where requests go.

    Attributes:
        base_url: as in `http://127.0.0.1:8000/v1`.
        api: `chat` or `completions`.
        key: the API key, sent with every request; never written and never shown.
        seconds: that a request may take.
        check: called where a request fails; raises `SourceError` if the server is known to be gone.
    """

    base_url: str
    api: str = "chat"
    key: str = ""
    seconds: float = 600.0
    check: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Refuse what is no base URL, and one with a password, which messages would show."""
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise UsageError(f"--base-url {self.base_url}: no URL ({error}).") from error
        if url.userinfo:
            raise UsageError("--base-url has a password in it; use --api-key-env.")
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError(f"--base-url {self.base_url}: write it as http://HOST:PORT/v1.")
        if url.port is not None and not 0 < url.port < 1 << 16:
            raise UsageError(f"--base-url {self.base_url}: {url.port} is no port.")
        ends = tuple(ENDPOINTS.values())
        if url.query or url.fragment or url.path.rstrip("/").endswith(ends):
            raise UsageError(f"--base-url {self.base_url}: end it where the API begins, in /v1.")

    @property
    def url(self) -> str:
        """Where requests of its API go."""
        return f"{self.base_url.rstrip('/')}/{ENDPOINTS[self.api]}"

    def __repr__(self) -> str:
        """Without the key: a traceback shows this."""
        return f"Server({self.base_url!r}, {self.api!r})"


class TryAgainError(Exception):
    """Another try may be answered.

    Attributes:
        busy: the server has too many requests.
        late: it did not answer in time.
        wait: seconds that it asks to wait, 0.0 if it does not say.
    """

    def __init__(
        self, reason: str, *, busy: bool = False, late: bool = False, wait: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.busy, self.late, self.wait = busy, late, wait


class NoContactError(TryAgainError):
    """There may be no such server: no connection, or an answer that is none of its API."""


class UnusableError(TryAgainError):
    """The answer has choices, and none of them is the model's response.

    Attributes:
        finish_reason: of the first; see `choices.UNUSABLE`.
    """

    def __init__(self, finish_reason: str) -> None:
        super().__init__(f"an answer without a usable response: finish_reason is {finish_reason}.")
        self.finish_reason = finish_reason


class PromptRefusedError(Exception):
    """The server will not answer this prompt."""


class Clients:
    """Clients of one connection each, used again, the last first; `close` them in the end.

    One client for all looks at each of its connections before each request (httpcore 1.0): with
    256 under way that took 8 ms of CPU for a request, and this takes under 1.
    """

    def __init__(self, server: Server) -> None:
        self._server, self._context = server, _ssl_context()
        # A proxy of the environment is for the outside, whether or not NO_PROXY says so.
        self._outside = not _is_loopback(httpx.URL(server.base_url).host)
        self._all: list[httpx.AsyncClient] = []
        self._free = [self._first()]

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

    def _first(self) -> httpx.AsyncClient:
        try:
            return self._client()
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise UsageError(
                f"the proxy that the environment names cannot be used ({error}); unset ALL_PROXY, "
                "HTTP_PROXY and HTTPS_PROXY, or name the server's host in NO_PROXY."
            ) from error

    def _client(self) -> httpx.AsyncClient:
        key, seconds = self._server.key, self._server.seconds
        client = httpx.AsyncClient(
            headers=_HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            trust_env=self._outside,
            limits=httpx.Limits(max_connections=1),
            timeout=httpx.Timeout(seconds, connect=min(30.0, seconds)),
            verify=self._context,
        )
        self._all.append(client)
        return client


def _ssl_context() -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise UsageError(
            f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR name cannot be read ({error})."
        ) from error


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


async def ask(http: httpx.AsyncClient, server: Server, body: Mapping[str, Any]) -> Reply:
    """The server's answer to a request.

    Raises:
        TryAgainError: it may be answered another time; `NoContactError` if there is no server,
            `UnusableError` if it has no usable choice.
        PromptRefusedError: this prompt never will be.
        SourceError: nothing will be: a wrong model, URL or key.
    """
    try:
        sending = _sent(http, server, json.dumps(body, allow_nan=False).encode())
        response, text = await asyncio.wait_for(sending, server.seconds)
    except (asyncio.TimeoutError, httpx.TimeoutException) as error:
        said = f"no answer within {server.seconds:g} s."
        if isinstance(error, httpx.ConnectTimeout):
            raise NoContactError(said) from error
        raise TryAgainError(said, late=True) from error
    except httpx.ConnectError as error:
        raise NoContactError(f"cannot connect: {_line(str(error), server)}") from error
    except httpx.RequestError as error:
        said = _line(str(error) or type(error).__name__, server)
        raise TryAgainError(f"the connection broke: {said}") from error
    if response.status_code != httpx.codes.OK:
        raise _refusal(response, text, server)
    return _reply(text, server)


async def _sent(
    http: httpx.AsyncClient, server: Server, body: bytes
) -> tuple[httpx.Response, bytes]:
    """The response to a request, and what it says."""
    text = bytearray()
    async with http.stream("POST", server.url, content=body) as response:
        async for piece in response.aiter_bytes():
            text += piece
            if len(text) > LONGEST_ANSWER:
                raise TryAgainError(f"the answer is longer than {LONGEST_ANSWER:,} bytes.")
    return response, bytes(text)


def _refusal(response: httpx.Response, text: bytes, server: Server) -> Exception:
    status = response.status_code
    said = f"{status}: {_line(_message(text) or response.reason_phrase, server)}"
    if status in PASSING or status >= 500:
        wait = _retry_after(response.headers.get("retry-after", ""))
        if wait > LONGEST_WAIT:
            return SourceError(f"{server.url}: {said} It asks to wait {wait:,.0f} s; go on then.")
        return TryAgainError(said, busy=status in BUSY, wait=wait)
    if status in OF_PROMPT:
        return PromptRefusedError(said)
    if response.has_redirect_location:
        place = _line(response.headers["location"], server)
        return SourceError(f"{server.url}: {said} Give --base-url as of where it leads: {place}")
    hints = {
        401: "Name the variable that holds the API key with --api-key-env.",
        403: "Name the variable that holds the API key with --api-key-env.",
        404: "Look at --model and --base-url (it ends in /v1, as a rule).",
    }
    return SourceError(f"{server.url}: {said} {hints.get(status, 'Look at --base-url.')}")


def _message(text: bytes) -> str:
    """What an error says, in OpenAI's form or any other."""
    try:
        body = read_json(text)
    except ValueError:
        return text[: 8 * TOLD].decode(errors="replace")
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
        date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
        return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _reply(text: bytes, server: Server) -> Reply:
    try:
        reply = reply_of(read_json(text))
    except ValueError as error:
        said = _line(_message(text), server) or "it is empty."
        raise NoContactError(f"the answer is no JSON: {said}") from error
    if not reply.choices:
        raise NoContactError(f"the answer has no choices: {_line(_message(text), server)}")
    usable = tuple(choice for choice in reply.choices if choice.is_usable)
    if not usable:
        raise UnusableError(reply.choices[0].finish_reason)
    return replace(reply, choices=usable)
