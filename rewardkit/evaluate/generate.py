"""Generate responses with a server: request what is missing, and log each response at once."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any, NamedTuple

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.evaluate.questions import Question, messages_with_pictures
from rewardkit.model_client.client import (
    ENDPOINTS,
    PromptRefusedError,
    Server,
    TryAgainError,
    UnusableError,
)
from rewardkit.model_client.completions import REFUSED, WITHHELD, CompletionReply
from rewardkit.model_client.retries import ModelClient
from rewardkit.redact import Redactor
from rewardkit.responses.response_log import ResponseIndex, ResponseLog

#: After this many failed requests without an answer in between, the run ends.
MAX_FAILURES = 5

#: No further request starts while the pictures of those that have started are larger, in bytes.
MAX_PICTURE_BYTES = 64 << 20

#: Fields that `extra` must not set: they have an option, or change the shape of the reply.
RESERVED_FIELDS = frozenset({"model", "messages", "prompt", "n", "stream"})


@dataclass(frozen=True)
class ProgressCallbacks:
    """Functions that an evaluation calls while it runs; the defaults do nothing.

    Attributes:
        message: called with a sentence for a person to read.
        start: called when a set of questions begins, with its name, the number of responses that an
            earlier run already has, and the number of responses in the end.
        advance: called after each reply with the number of its responses and of their tokens.
    """

    message: Callable[[str], object] = lambda _: None
    start: Callable[[str, int, int], object] = lambda _name, _finished, _total: None
    advance: Callable[[int, int], object] = lambda _responses, _tokens: None


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of a request; None leaves a parameter to the server.

    Attributes:
        api: `chat`, or `completions`, which sends the contents of the messages joined by empty
            lines, without a chat template.
        temperature: 0 is greedy.
        top_p: from 0 to 1.
        top_k: understood by vLLM and SGLang; OpenAI's API does not define it.
        max_tokens: maximum tokens per response.
        stop: strings that end a response.
        seed: each request gets a seed of its own, derived from this one, the row and the sample.
        extra: additional fields of the request.
    """

    api: str = "chat"
    _: KW_ONLY
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an API or for extra fields that this client cannot use."""
        if self.api not in ENDPOINTS:
            raise UsageError(f"--api {self.api}: use one of {', '.join(ENDPOINTS)}.")
        if reserved := sorted(RESERVED_FIELDS & self.extra.keys()):
            raise UsageError(f"--extra-body: {', '.join(reserved)} cannot be set there.")
        try:
            json.dumps(self.record(), allow_nan=False)
        except ValueError as error:
            raise UsageError("sampling: JSON cannot represent nan and inf; use numbers.") from error

    def record(self) -> dict[str, Any]:
        """Return the parameters that are set, as results record them; secrets are redacted."""
        named = {name: value for name, value in vars(self).items() if value not in (None, (), {})}
        if self.extra:
            named["extra"] = Redactor().tree(self.extra)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in named.items()}

    def request_body(self, model: str, question: Question, first: int, n: int) -> dict[str, Any]:
        """Return the body of the request for samples `first` to `first + n - 1` of a question."""
        body: dict[str, Any] = {**self.extra, "model": model}
        if self.api == "chat":
            body["messages"] = messages_with_pictures(question.prompt, question.images)
        else:
            body["prompt"] = "\n\n".join(message["content"] for message in question.prompt)
        for name in ("temperature", "top_p", "top_k", "max_tokens"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if n > 1:  # some servers refuse the field
            body["n"] = n
        if self.stop:
            body["stop"] = list(self.stop)
        if self.seed is not None:
            body["seed"] = _request_seed(self.seed, question.row, first)
        return body


class ResponseRequest(NamedTuple):
    """A request for samples `first` to `first + n - 1` of a question."""

    question: Question
    first: int
    n: int


@dataclass(frozen=True)
class GenerationConfig:
    """The server, the model and how responses are requested.

    Attributes:
        server: the server that generates.
        model: model name sent to the server.
        sampling: the sampling parameters.
        n: responses per question.
        choices_per_request: choices that one request asks for. With 1, each response is saved as
            soon as it is finished; with more, a vendor charges for the prompt only once.
        concurrency: upper limit of concurrent requests.
        tries: tries per request.
    """

    server: Server
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    _: KW_ONLY
    n: int = 1
    choices_per_request: int = 1
    concurrency: int = 256
    tries: int = 9

    def key(self) -> dict[str, Any]:
        """Return the fields that identify responses, besides row, sample and prompt."""
        return {"model": self.model, "sampling": self.sampling.record()}


@dataclass
class GenerationResult:
    """The responses that a run did not get, and why.

    Attributes:
        missing: fields of the responses that the server refused or withheld, by (row, first sample,
            number of samples): model, sampling, `finish_reason`, and `refusal` for a prompt that
            was refused.
        lost: number of responses whose requests failed in all tries.
        reason: message of the last failure.
        failures: failed requests since the last answer.
    """

    missing: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    lost: int = 0
    reason: str = ""
    failures: int = 0

    def require_progress(self, server: Server) -> None:
        """Raise if `MAX_FAILURES` requests failed since the last answer.

        Raises:
            SourceError: they did.
        """
        if self.failures >= MAX_FAILURES:
            reason = self.reason.rstrip(".")
            raise SourceError(
                f"{server.url}: {self.failures} requests in a row failed: {reason}. See that the "
                "server runs and that --base-url is right, then run the same command again; the "
                "responses so far are kept."
            )


def generate(
    generation: GenerationConfig,
    questions: Iterable[Question],
    log: ResponseLog,
    index: ResponseIndex,
    advance: Callable[[int, int], object] = lambda _responses, _tokens: None,
) -> GenerationResult:
    """Request every response that the log does not have yet, and append it to the log.

    Args:
        generation: the server, the model and the sampling.
        questions: read as they are needed.
        log: log that gets the responses.
        index: index of the responses that the log already has.
        advance: called after each reply with the number of its responses and tokens.

    Raises:
        SourceError: the model, URL or key is wrong, or the server never answers, or stops answering.
        DataError: a logged response answers another prompt than its row's.
    """
    requests = _missing_requests(questions, index, generation)
    result = asyncio.run(_RequestLoop(generation, log, advance).run(requests))
    if log.is_empty and (result.lost or result.missing):
        reasons = {fields["finish_reason"] for fields in result.missing.values()}
        if result.lost:
            failure = "no answer to any request"
        elif reasons == {REFUSED}:
            failure = "it refuses every prompt"
        else:
            failure = "it sent no usable response"
        raise SourceError(f"{generation.server.url}: {failure}: {result.reason}")
    return result


def _missing_requests(
    questions: Iterable[Question], index: ResponseIndex, generation: GenerationConfig
) -> Iterator[ResponseRequest]:
    places, size = index.by_row(), generation.choices_per_request
    for question in questions:
        if not index.answers_prompt(question.row, question.digest):
            raise DataError(
                f"row {question.row}: its prompt has changed since the earlier run, or a picture in it; choose "
                "another --out, or discard its responses with --overwrite."
            )
        finished = {index.samples[place] for place in places.get(question.row, array("q"))}
        missing = [sample for sample in range(generation.n) if sample not in finished]
        # Requests end at multiples of `size`, as those of an uninterrupted run do.
        for _, group in groupby(enumerate(missing), lambda at: (at[1] - at[0], at[1] // size)):
            samples = [sample for _, sample in group]
            yield ResponseRequest(question, samples[0], len(samples))


class _RequestLoop:
    """The state that the requests of a run share."""

    def __init__(
        self, generation: GenerationConfig, log: ResponseLog, advance: Callable[[int, int], object]
    ) -> None:
        self.generation, self.log, self.advance = generation, log, advance
        self.result = GenerationResult()
        self.client = ModelClient(generation.server, generation.concurrency, generation.tries)
        self.redactor = Redactor().learn(generation.sampling.extra)
        self.picture_bytes = 0  # of the requests that have started

    async def run(self, requests: Iterator[ResponseRequest]) -> GenerationResult:
        """Send all requests, a bounded number at a time."""
        finished: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                for request in self._next_requests(requests, len(tasks)):
                    task = asyncio.create_task(self._complete(request))
                    task.add_done_callback(finished.put_nowait)
                    tasks.add(task)
                if not tasks:
                    return self.result
                task = await finished.get()
                tasks.discard(task)
                task.result()
                self.result.require_progress(self.generation.server)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.client.close()

    def _next_requests(
        self, requests: Iterator[ResponseRequest], active: int
    ) -> Iterator[ResponseRequest]:
        """Yield the requests that may start now: their number and their pictures are limited."""
        while active < self.generation.concurrency and (
            not active or self.picture_bytes < MAX_PICTURE_BYTES
        ):
            request = next(requests, None)
            if request is None:
                return
            active += 1
            self.picture_bytes += _picture_bytes(request)
            yield request

    async def _complete(self, request: ResponseRequest) -> None:
        """Get all samples of a request, and count its pictures no more."""
        try:
            await self._complete_all(request)
        finally:
            self.picture_bytes -= _picture_bytes(request)

    async def _complete_all(self, request: ResponseRequest) -> None:
        """Get all samples of a request; those that a reply leaves out are requested again."""
        while request.n:
            try:
                reply = await self.client.ask(self._body(request))
            except PromptRefusedError as error:
                refusal = self.redactor.text(str(error))  # servers repeat what they were sent
                self._record_missing(request, error, finish_reason=REFUSED, refusal=refusal)
                return
            except UnusableError as error:
                self._record_missing(request, error, finish_reason=error.finish_reason)
                return
            except TryAgainError as error:
                self.result.lost += request.n
                self._record_failure(str(error), counts=True)
                return
            self.result.failures = 0
            n = self._save(request, reply)
            request = request._replace(first=request.first + n, n=request.n - n)

    def _record_missing(self, request: ResponseRequest, error: Exception, **fields: str) -> None:
        """Record responses that the server refused or withheld."""
        place = request.question.row, request.first, request.n
        self.result.missing[place] = {**self.generation.key(), **fields}
        # While the server answers others, a refused or withheld response is not a sign of a fault.
        concerns_prompt = fields["finish_reason"] in WITHHELD | {REFUSED}
        self._record_failure(str(error), counts=not (concerns_prompt and self.client.answers))

    def _record_failure(self, reason: str, *, counts: bool) -> None:
        self.result.reason = self.redactor.text(reason)
        self.result.failures += counts

    def _body(self, request: ResponseRequest) -> dict[str, Any]:
        model, sampling = self.generation.model, self.generation.sampling
        return sampling.request_body(model, request.question, request.first, request.n)

    def _save(self, request: ResponseRequest, reply: CompletionReply) -> int:
        choices = reply.choices[: request.n]
        tokens = reply.tokens if len(reply.choices) == 1 else None  # else it is the sum of all
        responses = [
            {
                "response": choice.text,
                **({"reasoning": choice.reasoning} if choice.reasoning else {}),
                "finish_reason": choice.finish_reason,
                "tokens": tokens,
            }
            for choice in choices
        ]
        question = request.question
        self.log.append(question.row, question.digest, request.first, responses)
        self.advance(len(choices), reply.tokens or 0)
        return len(choices)


def _picture_bytes(request: ResponseRequest) -> int:
    return sum(map(len, request.question.images))


def _request_seed(seed: int, row: int, sample: int) -> int:
    """Derive a request's seed: with one seed for all, all samples would be the same response."""
    key = f"{seed} {row} {sample}".encode()
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1
