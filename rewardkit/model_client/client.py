"""Requests to a model server or a sandbox: what errors mean, retries and adaptive concurrency."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from random import Random
from time import monotonic
from typing import Any, TypeVar

import httpx

from rewardkit.errors import SourceError, UsageError
from rewardkit.jsonl import parse_json
from rewardkit.model_client.completions import REFUSED, WITHHELD, CompletionReply, parse_reply
from rewardkit.redact import process_redactor

T = TypeVar("T")

#: Path of each kind of request, below the base URL.
ENDPOINTS = {"chat": "chat/completions", "completions": "completions", "sandbox": "run_code"}

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

#: Tries of a request while the server has not answered anything yet (the URL may be wrong), and of one
#: whose response the server withholds, because it usually does so again.
FIRST_TRIES = WITHHELD_TRIES = 3

#: The pause before the second try, which doubles from try to try, and its maximum.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 60.0

#: A timeout counts as overload if the usual answer takes more than this fraction of the timeout;
#: otherwise it is a single outlier, such as a response that never ends.
SLOW_FRACTION = 0.25

#: After this many answers per allowed request the limit grows by half: the server may have more room.
REST_ROUNDS = 16

#: What a status that ends the run hints at.
_HINTS = {
    401: "Name the variable that holds the API key: api_key_env.",
    403: "Name the variable that holds the API key: api_key_env.",
    404: "Check the model and the base URL, which usually ends in /v1.",
}


@dataclass(frozen=True)
class Server:
    """The server that gets the requests.

    Attributes:
        base_url: URL of the API, such as `http://127.0.0.1:8000/v1`.
        api: `chat` or `completions`, or `sandbox` for SandboxFusion.
        key: the API key, sent with every request; never written and never shown.
        timeout_seconds: timeout per request, in seconds.
        max_reply_bytes: bytes of a reply, after decompression; 0 for `MAX_REPLY_BYTES`.
    """

    base_url: str
    api: str = "chat"
    _: KW_ONLY
    key: str = ""
    timeout_seconds: float = 600.0
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
        ends = tuple(ENDPOINTS.values())
        reason = ""
        if url.scheme not in ("http", "https") or not url.host:
            reason = "write it as http://HOST:PORT/v1"
        elif url.port is not None and not 0 < url.port < 1 << 16:
            reason = "the port must be from 1 to 65535"
        elif url.query or url.fragment or url.path.rstrip("/").endswith(ends):
            reason = "it must end where the API begins, in /v1"
        if reason:
            raise UsageError(f"base URL {shown}: {reason}.")

    @property
    def url(self) -> str:
        """URL of the requests of its API."""
        return f"{self.base_url.rstrip('/')}/{ENDPOINTS[self.api]}"

    def __repr__(self) -> str:
        """Leave out the key, because tracebacks show this."""
        return f"Server({self.base_url!r}, {self.api!r})"


@dataclass(eq=False)
class TryAgainError(Exception):
    """A request failed, and another try may succeed.

    Attributes:
        reason: why.
        is_busy: the server has too many requests.
        is_timeout: the server did not answer in time.
        retry_after: seconds that the server asks to wait; 0.0 if it does not say.
        finish_reason: if the reply has choices, but none of them is the model's response: that of the
            first choice, one of `completions.UNUSABLE`.
    """

    reason: str
    _: KW_ONLY
    is_busy: bool = False
    is_timeout: bool = False
    retry_after: float = 0.0
    finish_reason: str = ""

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


class NoContactError(TryAgainError):
    """The URL may be wrong: the connection failed, or the reply is not one of the API."""


class PromptRefusedError(Exception):
    """The server refuses this prompt."""

    finish_reason = REFUSED


class ModelClient:
    """A client of one server, which belongs to one event loop.

    A single HTTP client checks all of its connections before each request (httpcore 1.0): with 256
    requests in flight that took 8 ms of CPU per request. With one connection per client, reused in
    last-in, first-out order, it takes less than 1 ms.

    Attributes:
        server: the server that gets the requests.
        tries: tries per request.
    """

    def __init__(self, server: Server, concurrency: int = 256, tries: int = 9) -> None:
        """Raise `UsageError` if the certificates or the proxy of the environment cannot be used."""
        self.server, self.tries = server, tries
        self._limit = AdaptiveConcurrency(concurrency)
        self._random = Random(0)  # noqa: S311 - spreads the tries, protects nothing
        try:
            self._context = httpx.create_ssl_context()
        except OSError as error:
            raise UsageError(
                f"the certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({error})."
            ) from error
        host = httpx.URL(server.base_url).host
        self._is_loopback = host == "localhost"
        with suppress(ValueError):
            self._is_loopback |= ip_address(host).is_loopback
        self._clients: list[httpx.AsyncClient] = []
        try:
            self._free = [self._new_client()]
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise UsageError(
                f"the proxy of the environment cannot be used ({error}); unset ALL_PROXY, "
                "HTTP_PROXY and HTTPS_PROXY, or add the server's host to NO_PROXY."
            ) from error

    def _new_client(self) -> httpx.AsyncClient:
        key, seconds = self.server.key, self.server.timeout_seconds
        headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
        client = httpx.AsyncClient(
            headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
            # A loopback address is never behind the proxy of the environment, whatever NO_PROXY says.
            trust_env=not self._is_loopback,
            limits=httpx.Limits(max_connections=1),
            timeout=httpx.Timeout(seconds, connect=min(30.0, seconds)),
            verify=self._context,
        )
        self._clients.append(client)
        return client

    @property
    def answers(self) -> int:
        """Number of answered requests so far."""
        return self._limit.answers

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.aclose()

    async def model_names(self) -> list[str]:
        """Return the names of the server's models."""
        url = f"{self.server.base_url.rstrip('/')}/models"
        try:
            reply = parse_json(await self._request("GET", url))
        except (ValueError, RecursionError) as error:
            raise NoContactError(f"{url}: the reply is not JSON.") from error
        except PromptRefusedError as error:
            raise SourceError(f"{url}: {error}") from error
        models = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(models, list):
            raise NoContactError(f"{url}: the reply is not a list of models.")
        return [str(model.get("id")) for model in models if isinstance(model, dict)]

    async def ask(self, body: Mapping[str, Any], *, tries: int = 0) -> CompletionReply:
        """Send a request to a model, and return its reply; raises what `ask_for` raises."""
        return await self.ask_for(body, self._usable, tries=tries)

    async def ask_for(
        self, body: Mapping[str, Any], read: Callable[[bytes], T], *, tries: int = 0
    ) -> T:
        """Send a request, again after failures that may pass, and return what `read` makes of the reply.

        Raises:
            TryAgainError: all tries failed; `NoContactError` if the URL may be wrong.
            PromptRefusedError: the server refuses this prompt.
            SourceError: no request can succeed, because the model, URL or key is wrong.
        """
        failures = answers = 0
        while True:
            try:
                return await self._ask_once(body, read)
            except TryAgainError as error:
                if error.is_busy and self.answers > answers:
                    failures, answers = 0, self.answers  # it answers others: our turn will come
                failures += 1
                most = tries or self.tries
                if isinstance(error, NoContactError) and not self.answers:
                    most = min(FIRST_TRIES, most)
                elif error.finish_reason in WITHHELD:
                    most = min(WITHHELD_TRIES, most)
                if failures >= most:
                    raise
                await asyncio.sleep(self._pause(failures, error))

    def _pause(self, failures: int, error: TryAgainError) -> float:
        """Return the seconds before the next try: longer each time, and at least what it asks."""
        backoff = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** (failures - 1))
        pause = backoff * self._random.uniform(0.5, 1)
        return error.retry_after + pause / 4 if error.retry_after else pause

    async def _ask_once(self, body: Mapping[str, Any], read: Callable[[bytes], T]) -> T:
        async with self._limit.slot():
            start = monotonic()
            try:
                content = json.dumps(body, allow_nan=False).encode()
                reply = read(await self._request("POST", self.server.url, content))
            except TryAgainError as error:
                if error.is_busy:
                    self._limit.record_refusal(start, error.retry_after)
                elif error.is_timeout:
                    self._limit.record_timeout(start, self.server.timeout_seconds)
                raise
            self._limit.record_answer(monotonic() - start)
            return reply

    def _usable(self, text: bytes) -> CompletionReply:
        """Return the usable choices of a reply."""
        try:
            reply = parse_reply(parse_json(text))
        except (ValueError, RecursionError) as error:
            message = self._one_line(_error_message(text)) or "it is empty."
            raise NoContactError(f"the reply is not JSON: {message}") from error
        if not reply.choices:
            message = self._one_line(_error_message(text))
            raise NoContactError(f"the reply has no choices: {message}")
        usable = tuple(choice for choice in reply.choices if choice.is_usable)
        if not usable:
            finish = reply.choices[0].finish_reason
            message = f"the reply has no usable response: finish_reason is {finish}."
            raise TryAgainError(message, finish_reason=finish)
        return replace(reply, choices=usable)

    async def _request(self, method: str, url: str, content: bytes | None = None) -> bytes:
        http = self._free.pop() if self._free else self._new_client()
        seconds = self.server.timeout_seconds
        try:
            response, text = await asyncio.wait_for(
                self._exchange(http, method, url, content), seconds
            )
        except (asyncio.TimeoutError, httpx.TimeoutException) as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise NoContactError("cannot connect: the host does not answer.") from error
            raise TryAgainError(f"no answer within {seconds:g} s.", is_timeout=True) from error
        except httpx.ConnectError as error:
            raise NoContactError(f"cannot connect: {self._one_line(str(error))}") from error
        except (httpx.RequestError, zlib.error) as error:
            message = self._one_line(str(error) or type(error).__name__)
            raise TryAgainError(f"the connection broke: {message}") from error
        finally:
            self._free.append(http)
        if response.status_code != httpx.codes.OK:
            raise self._status_error(response, text)
        return text

    async def _exchange(
        self, http: httpx.AsyncClient, method: str, url: str, content: bytes | None
    ) -> tuple[httpx.Response, bytes]:
        limit = self.server.max_reply_bytes or MAX_REPLY_BYTES
        text, received = bytearray(), 0
        async with http.stream(method, url, content=content) as response:
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if "," in encoding:  # 10 KB of gzip in gzip are 6 GB
                raise TryAgainError(f"the reply is compressed more than once ({encoding[:40]}).")
            is_gzip = encoding in ("gzip", "x-gzip")
            gzip = zlib.decompressobj(16 + zlib.MAX_WBITS) if is_gzip else None
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

    def _status_error(self, response: httpx.Response, text: bytes) -> Exception:
        status, url = response.status_code, self.server.url
        message = f"{status}: {self._one_line(_error_message(text) or response.reason_phrase)}"
        if status in RETRY_STATUSES or status >= 500:
            wait = _retry_after(response.headers.get("retry-after", ""))
            if wait <= MAX_RETRY_AFTER_SECONDS:
                return TryAgainError(message, is_busy=status in BUSY_STATUSES, retry_after=wait)
            hint = f"The server asks to wait {wait:,.0f} s; run the command again after that."
        elif status in PROMPT_STATUSES:
            return PromptRefusedError(message)
        elif response.has_redirect_location:
            target = self._one_line(response.headers["location"])
            hint = f"Set the base URL to where the redirect leads: {target}"
        else:
            hint = _HINTS.get(status, "Check the base URL.")
            hint = "Check sandbox_url." if self.server.api == "sandbox" else hint
        return SourceError(f"{url}: {message} {hint}")

    def _one_line(self, text: str) -> str:
        """Return a message as a line with a full stop, without the key: servers repeat a refused key."""
        if self.server.key:
            text = text.replace(self.server.key, "***")
        text = " ".join(text.split())[:MAX_MESSAGE_CHARACTERS]
        return text if not text or text.endswith((".", "!", "?")) else f"{text}."


class AdaptiveConcurrency:
    """Slots for requests of one event loop, which halve when the server has too many of them.

    The server reports it (429, 503), or shows it: a request times out while most answers take long. The
    limit grows again while no request is refused, up to the user's own limit.

    Attributes:
        max_requests: upper limit of concurrent requests.
        allowed: the current limit.
        answers: number of answered requests so far.
    """

    def __init__(self, max_requests: int, clock: Callable[[], float] = monotonic) -> None:
        self.max_requests = self.allowed = self._slots = max_requests
        self.answers = 0
        self._clock = clock
        self._free = asyncio.Semaphore(max_requests)
        self._resume_time = 0.0  # no request starts before this time
        self._cut_time = -1.0  # a refusal of a request sent before this time is old news
        self._answers_since_change = 0
        self._usual_seconds = 0.0  # moving average of the time of an answer

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a request may start, and hold its slot during the block."""
        await self._free.acquire()
        try:
            await asyncio.sleep(max(0.0, self._resume_time - self._clock()))
            yield
        finally:
            if self._slots > self.allowed:
                self._slots -= 1
            else:
                self._free.release()

    def record_answer(self, seconds: float) -> None:
        """Count a request that was answered after `seconds`."""
        self.answers += 1
        self._answers_since_change += 1
        self._usual_seconds += (seconds - self._usual_seconds) / min(self.answers, self.allowed)
        if self._answers_since_change >= REST_ROUNDS * self.allowed:
            self.allowed = min(self.max_requests, int(self.allowed * 1.5 + 0.5))
            self._answers_since_change = 0
            for _ in range(self.allowed - self._slots):
                self._slots += 1
                self._free.release()

    def record_refusal(self, sent: float, pause: float) -> None:
        """Halve the limit, because the server refused a request as one too many."""
        now = self._clock()
        self._resume_time = max(self._resume_time, now + pause)
        if sent > self._cut_time:
            self.allowed = max(1, self.allowed // 2)
            self._cut_time, self._answers_since_change = now, 0

    def record_timeout(self, sent: float, seconds: float) -> None:
        """Count a request that was sent at `sent` and had no answer after `seconds`."""
        if self._usual_seconds > SLOW_FRACTION * seconds or not self.answers:
            self.record_refusal(sent, 0.0)


def _error_message(text: bytes) -> str:
    try:
        body = parse_json(text)
    except (ValueError, RecursionError):
        return text[: 8 * MAX_MESSAGE_CHARACTERS].decode(errors="replace")
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)


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
