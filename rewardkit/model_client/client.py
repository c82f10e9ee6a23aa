"""One request to an OpenAI-compatible server, and the errors that its reply may mean."""

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from typing import Any

import httpx

from rewardkit.errors import SourceError, UsageError
from rewardkit.jsonl import parse_json
from rewardkit.model_client.completions import CompletionReply, parse_reply
from rewardkit.redact import process_redactor

#: Path of each kind of request, below the base URL.
ENDPOINTS = {"chat": "chat/completions", "completions": "completions"}

#: Characters of a server's error message that are shown.
MAX_MESSAGE_CHARACTERS = 300

#: If a server asks to wait longer than this, the run ends instead.
MAX_RETRY_AFTER_SECONDS = 600.0

#: Bytes of a reply, after decompression; reading stops there.
MAX_REPLY_BYTES = 1 << 28

#: HTTP statuses that concern this prompt only, such as a prompt that is too long.
PROMPT_STATUSES = frozenset({400, 413, 422})

#: HTTP statuses below 500 after which another try may succeed.
RETRY_STATUSES = frozenset({408, 409, 425, 429})

#: HTTP statuses of a server with too many requests.
BUSY_STATUSES = frozenset({429, 503, 529})

#: Sent with every request.
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}


@dataclass(frozen=True)
class Server:
    """The server that gets the requests.

    Attributes:
        base_url: URL of the API, such as `http://127.0.0.1:8000/v1`.
        api: `chat` or `completions`.
        key: the API key, sent with every request; never written and never shown.
        timeout_seconds: timeout per request, in seconds.
        check: called after a failed request; raises `SourceError` if the server has ended.
        max_reply_bytes: bytes of a reply, after decompression; 0 for `MAX_REPLY_BYTES`.
    """

    base_url: str
    api: str = "chat"
    _: KW_ONLY
    key: str = ""
    timeout_seconds: float = 600.0
    check: Callable[[], None] = lambda: None
    max_reply_bytes: int = 0

    def __post_init__(self) -> None:
        """Raise `UsageError` for an invalid base URL, or one with a password, which messages show."""
        shown = process_redactor().text(self.base_url)  # verl logs what a judge raises
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise UsageError(f"base URL {shown}: not a URL ({error}).") from error
        if url.userinfo:
            raise UsageError(
                "the base URL contains a password; name the variable that holds the key instead: "
                "api_key_env."
            )
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError(f"base URL {shown}: write it as http://HOST:PORT/v1.")
        if url.port is not None and not 0 < url.port < 1 << 16:
            raise UsageError(f"base URL {shown}: the port must be from 1 to 65535.")
        ends = tuple(ENDPOINTS.values())
        if url.query or url.fragment or url.path.rstrip("/").endswith(ends):
            raise UsageError(f"base URL {shown}: it must end where the API begins, in /v1.")

    @property
    def url(self) -> str:
        """URL of the requests of its API."""
        return f"{self.base_url.rstrip('/')}/{ENDPOINTS[self.api]}"

    def __repr__(self) -> str:
        """Leave out the key, because tracebacks show this."""
        return f"Server({self.base_url!r}, {self.api!r})"


class TryAgainError(Exception):
    """A request failed, and another try may succeed.

    Attributes:
        is_busy: the server has too many requests.
        is_timeout: the server did not answer in time.
        retry_after: seconds that the server asks to wait; 0.0 if it does not say.
    """

    def __init__(
        self,
        reason: str,
        *,
        is_busy: bool = False,
        is_timeout: bool = False,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(reason)
        self.is_busy, self.is_timeout, self.retry_after = is_busy, is_timeout, retry_after


class NoContactError(TryAgainError):
    """The URL may be wrong: the connection failed, or the reply is not one of the API."""


class UnusableError(TryAgainError):
    """The reply has choices, but none of them is the model's response.

    Attributes:
        finish_reason: of the first choice; one of `completions.UNUSABLE`.
    """

    def __init__(self, finish_reason: str) -> None:
        super().__init__(f"the reply has no usable response: finish_reason is {finish_reason}.")
        self.finish_reason = finish_reason


class PromptRefusedError(Exception):
    """The server refuses this prompt."""


class ClientPool:
    """HTTP clients with one connection each, reused in last-in, first-out order.

    A single client checks all of its connections before each request (httpcore 1.0). With 256
    requests in flight that took 8 ms of CPU per request; one connection per client takes less than
    1 ms.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        try:
            self._context = httpx.create_ssl_context()
        except OSError as error:
            raise UsageError(
                f"the certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({error})."
            ) from error
        # A loopback address is never behind the proxy of the environment, whatever NO_PROXY says.
        self._uses_proxy = not _is_loopback(httpx.URL(server.base_url).host)
        self._all: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []
        try:
            self._free.append(self._new_client())
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise UsageError(
                f"the proxy of the environment cannot be used ({error}); unset ALL_PROXY, "
                "HTTP_PROXY and HTTPS_PROXY, or add the server's host to NO_PROXY."
            ) from error

    async def close(self) -> None:
        """Close all clients."""
        for client in self._all:
            await client.aclose()

    @contextmanager
    def client(self) -> Iterator[httpx.AsyncClient]:
        """Lend a client that no other request uses."""
        if not self._free:
            self._free.append(self._new_client())
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    def _new_client(self) -> httpx.AsyncClient:
        key, seconds = self._server.key, self._server.timeout_seconds
        client = httpx.AsyncClient(
            headers=_HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            trust_env=self._uses_proxy,
            limits=httpx.Limits(max_connections=1),
            timeout=httpx.Timeout(seconds, connect=min(30.0, seconds)),
            verify=self._context,
        )
        self._all.append(client)
        return client


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


async def send_request(
    http: httpx.AsyncClient, server: Server, body: Mapping[str, Any]
) -> CompletionReply:
    """Send a request and return the server's reply.

    Raises:
        TryAgainError: another try may succeed; `NoContactError` if the URL may be wrong,
            `UnusableError` if the reply has no usable choice.
        PromptRefusedError: the server refuses this prompt.
        SourceError: no request can succeed, because the model, URL or key is wrong.
    """
    content = json.dumps(body, allow_nan=False).encode()
    text = await _request(http, server, "POST", server.url, content)
    try:
        reply = parse_reply(parse_json(text))
    except (ValueError, RecursionError) as error:
        message = _one_line(_error_message(text), server) or "it is empty."
        raise NoContactError(f"the reply is not JSON: {message}") from error
    if not reply.choices:
        message = _one_line(_error_message(text), server)
        raise NoContactError(f"the reply has no choices: {message}")
    usable = tuple(choice for choice in reply.choices if choice.is_usable)
    if not usable:
        raise UnusableError(reply.choices[0].finish_reason)
    return replace(reply, choices=usable)


async def request_model_names(http: httpx.AsyncClient, server: Server) -> list[str]:
    """Return the names of the server's models.

    Raises:
        TryAgainError: the server does not answer, or not with a list of models.
        SourceError: it has no such list.
    """
    url = f"{server.base_url.rstrip('/')}/models"
    try:
        reply = parse_json(await _request(http, server, "GET", url))
    except (ValueError, RecursionError) as error:
        raise NoContactError(f"{url}: the reply is not JSON.") from error
    except PromptRefusedError as error:
        raise SourceError(f"{url}: {error}") from error
    models = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(models, list):
        raise NoContactError(f"{url}: the reply is not a list of models.")
    return [str(model.get("id")) for model in models if isinstance(model, dict)]


async def _request(
    http: httpx.AsyncClient, server: Server, method: str, url: str, content: bytes | None = None
) -> bytes:
    try:
        limit = server.max_reply_bytes or MAX_REPLY_BYTES
        exchange = _exchange(http, method, url, content, limit)
        response, text = await asyncio.wait_for(exchange, server.timeout_seconds)
    except (asyncio.TimeoutError, httpx.TimeoutException) as error:
        if isinstance(error, httpx.ConnectTimeout):
            raise NoContactError("cannot connect: the host does not answer.") from error
        message = f"no answer within {server.timeout_seconds:g} s."
        raise TryAgainError(message, is_timeout=True) from error
    except httpx.ConnectError as error:
        raise NoContactError(f"cannot connect: {_one_line(str(error), server)}") from error
    except (httpx.RequestError, zlib.error) as error:
        message = _one_line(str(error) or type(error).__name__, server)
        raise TryAgainError(f"the connection broke: {message}") from error
    if response.status_code != httpx.codes.OK:
        raise _status_error(response, text, server)
    return text


async def _exchange(
    http: httpx.AsyncClient, method: str, url: str, content: bytes | None, limit: int
) -> tuple[httpx.Response, bytes]:
    text, received = bytearray(), 0
    async with http.stream(method, url, content=content) as response:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if "," in encoding:  # 10 KB of gzip in gzip are 6 GB
            raise TryAgainError(f"the reply is compressed more than once ({encoding[:40]}).")
        gzip = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding in ("gzip", "x-gzip") else None
        async for piece in response.aiter_raw():
            received += len(piece)
            # What follows the end of the compressed text is not read, as httpx does.
            if gzip is None:
                text += piece
            elif not gzip.eof:
                text += gzip.decompress(piece, limit + 1 - len(text))
            if max(len(text), received) > limit:
                raise TryAgainError(f"the reply is longer than {limit:,} bytes.")
    return response, bytes(text)


def _status_error(response: httpx.Response, text: bytes, server: Server) -> Exception:
    status = response.status_code
    message = f"{status}: {_one_line(_error_message(text) or response.reason_phrase, server)}"
    if status in RETRY_STATUSES or status >= 500:
        wait = _retry_after(response.headers.get("retry-after", ""))
        if wait > MAX_RETRY_AFTER_SECONDS:
            return SourceError(
                f"{server.url}: {message} The server asks to wait {wait:,.0f} s; run the command "
                "again after that."
            )
        return TryAgainError(message, is_busy=status in BUSY_STATUSES, retry_after=wait)
    if status in PROMPT_STATUSES:
        return PromptRefusedError(message)
    if response.has_redirect_location:
        target = _one_line(response.headers["location"], server)
        return SourceError(
            f"{server.url}: {message} Set the base URL to where the redirect leads: {target}"
        )
    hints = {
        401: "Name the variable that holds the API key: api_key_env.",
        403: "Name the variable that holds the API key: api_key_env.",
        404: "Check the model and the base URL, which usually ends in /v1.",
    }
    return SourceError(f"{server.url}: {message} {hints.get(status, 'Check the base URL.')}")


def _error_message(text: bytes) -> str:
    try:
        body = parse_json(text)
    except (ValueError, RecursionError):
        return text[: 8 * MAX_MESSAGE_CHARACTERS].decode(errors="replace")
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)


def _one_line(text: str, server: Server) -> str:
    """Return a message as one line with a full stop, without the key: servers repeat a refused key."""
    if server.key:
        text = text.replace(server.key, "***")
    text = " ".join(text.split())[:MAX_MESSAGE_CHARACTERS]
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _retry_after(value: str) -> float:
    """Return the seconds of a `Retry-After`, which is a number or a date (RFC 9110, 10.2.3)."""
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if isfinite(seconds) else 0.0
    try:
        date = parsedate_to_datetime(value)
        date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
        return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return 0.0
