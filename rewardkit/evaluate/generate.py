"""Generate responses with a server: request what is missing, and store each response at once."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from typing import Any

from rewardkit.errors import SourceError, UsageError
from rewardkit.evaluate.questions import Question
from rewardkit.jsonl import json_line
from rewardkit.model_client.client import (
    ENDPOINTS,
    ModelClient,
    PromptRefusedError,
    Server,
    TryAgainError,
)
from rewardkit.model_client.completions import REFUSED, WITHHELD
from rewardkit.redact import Redactor
from rewardkit.responses.store import Store

#: After this many failed requests without an answer in between, the run ends.
MAX_FAILURES = 5

#: No further request starts while the images of those that have started are larger, in bytes.
MAX_IMAGE_BYTES = 64 << 20

#: Fields that `extra` must not set: they have an option, or change the shape of the reply.
RESERVED_FIELDS = frozenset({"model", "messages", "prompt", "n", "stream"})


@dataclass(frozen=True)
class ProgressCallbacks:
    """Functions that an evaluation calls while it runs; the defaults do nothing.

    Attributes:
        start: called when a set of questions begins, with its name, the number of responses that an
            earlier run already has, and the number of responses in the end.
        advance: called after each response with the number of its tokens.
    """

    start: Callable[[str, int, int], object] = lambda _name, _finished, _total: None
    advance: Callable[[int], object] = lambda _tokens: None


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of a request; None leaves a parameter to the server.

    `api` is `chat`, or `completions`, which sends the contents of the messages joined by empty lines, without
    a chat template. `top_k` is understood by vLLM and SGLang; OpenAI's API does not define it. Each request
    gets a seed of its own, derived from `seed`, the row and the sample. `extra` are additional fields.
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
        values = {**vars(self), "stop": list(self.stop), "extra": Redactor().tree(self.extra)}
        return {name: value for name, value in values.items() if value not in (None, [], {})}

    def request_body(self, model: str, question: Question, sample: int) -> dict[str, Any]:
        """Return the body of the request for a sample of a question."""
        others = {"api", "seed", "extra"}
        own = {name: value for name, value in self.record().items() if name not in others}
        body: dict[str, Any] = {**self.extra, "model": model, **own}
        if self.api == "chat":
            body["messages"] = question.messages()
        else:
            body["prompt"] = "\n\n".join(message["content"] for message in question.prompt)
        if self.seed is not None:  # with one seed for all, all samples would be the same response
            key = f"{self.seed} {question.row} {sample}".encode()
            digest = blake2b(key, digest_size=4).digest()
            body["seed"] = int.from_bytes(digest, "big") >> 1
        return body


@dataclass(frozen=True)
class GenerationConfig:
    """The server, the model and how responses are requested: `n` for each question.

    `concurrency` is the upper limit of concurrent requests, each for one response.
    """

    server: Server
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    _: KW_ONLY
    n: int = 1
    concurrency: int = 256
    tries: int = 9

    def key(self) -> dict[str, Any]:
        """Return the fields that identify responses, besides row, sample and prompt."""
        return {"model": self.model, "sampling": self.sampling.record()}


class ResponseIndex:
    """Where the responses of a store begin in its file, by row and sample; no text is in memory."""

    def __init__(self, store: Store) -> None:
        """Read the heads of the records that `add_response` appended."""
        self.starts: dict[int, dict[int, int]] = {}
        for record in store.records():
            row, sample = record.head["response"]
            self.starts.setdefault(row, {}).setdefault(sample, record.start)

    @property
    def n(self) -> int:
        """The number of responses."""
        return sum(map(len, self.starts.values()))


def add_response(
    store: Store,
    question: Question,
    sample: int,
    response: Mapping[str, Any],
    key: Mapping[str, Any],
) -> None:
    """Append a response to a store.

    Its line has the prompt, so that `eval responses` can read the file of an unfinished run, and
    the fields of `key`, which all responses of the run have.
    """
    own = {**key, "prompt_sha256": question.digest, "prompt": question.prompt}
    line = json_line({"row": question.row, "sample": sample, **own, **response})
    store.append({"response": [question.row, sample]}, line.encode())


def generate(
    generation: GenerationConfig,
    questions: Iterable[Question],
    store: Store,
    index: ResponseIndex,
    advance: Callable[[int], object] = lambda _tokens: None,
) -> tuple[int, str]:
    """Request every response that a store does not have yet, and append it to the store.

    Responses that the server refused or withheld are appended at the end, if none was lost.
    `advance` is called after each response with the number of its tokens.

    Returns:
        The number of responses that were lost, because their requests failed in all tries, and why.

    Raises:
        SourceError: the model, URL or key is wrong, or the server never answers, or stops answering.
    """
    loop = _RequestLoop(generation, store, advance)
    requests = (
        (question, sample)
        for question in questions
        for sample in range(generation.n)
        if sample not in index.starts.get(question.row, {})
    )
    asyncio.run(loop.run(requests))
    if not store.count and (loop.lost or loop.missing):
        failure = "it sent no usable response"
        if loop.lost:
            failure = "no answer to any request"
        elif all(response["finish_reason"] == REFUSED for *_, response in loop.missing):
            failure = "it refuses every prompt"
        raise SourceError(f"{generation.server.url}: {failure}: {loop.reason}")
    for question, sample, response in loop.missing if not loop.lost else ():
        add_response(store, question, sample, response, loop.key)
    return loop.lost, loop.reason


class _RequestLoop:
    """The state that the requests of a run share.

    Attributes:
        missing: samples that the server refused or withheld, with the fields of their responses.
        lost: number of responses whose requests failed in all tries.
        reason: message of the last failure.
        failures: failed requests since the last answer.
        image_bytes: size of the images of the requests that have started.
    """

    def __init__(
        self, generation: GenerationConfig, store: Store, advance: Callable[[int], object]
    ) -> None:
        self.generation, self.store, self.advance = generation, store, advance
        self.key = generation.key()
        self.missing: list[tuple[Question, int, dict[str, Any]]] = []
        self.reason, self.lost, self.failures = "", 0, 0
        self.client = ModelClient(generation.server, generation.concurrency, generation.tries)
        self.redactor = Redactor().learn(generation.sampling.extra)
        self.image_bytes, self.has_room = 0, asyncio.Event()

    async def run(self, requests: Iterator[tuple[Question, int]]) -> None:
        """Send all requests, a bounded number at a time."""
        workers = range(self.generation.concurrency)
        tasks = [asyncio.create_task(self._work(requests)) for _ in workers]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.client.close()

    async def _work(self, requests: Iterator[tuple[Question, int]]) -> None:
        """Send one request after the other, while the images of all are not too large."""
        while True:
            while self.image_bytes >= MAX_IMAGE_BYTES:
                self.has_room.clear()
                await self.has_room.wait()
            request = next(requests, None)
            if request is None:
                return
            size = sum(map(len, request[0].images))
            self.image_bytes += size
            try:
                await self._complete(*request)
            finally:
                self.image_bytes -= size
                self.has_room.set()
            if self.failures >= MAX_FAILURES:
                raise SourceError(
                    f"{self.generation.server.url}: {self.failures} requests in a row "
                    f"failed: {self.reason.rstrip('.')}. See that the server runs and that "
                    "--base-url is right, then run the same command again; the responses so far "
                    "are kept."
                )

    async def _complete(self, question: Question, sample: int) -> None:
        body = self.generation.sampling.request_body(self.generation.model, question, sample)
        try:
            reply = await self.client.ask(body)
        except SourceError as error:  # servers repeat what they were sent
            raise SourceError(self.redactor.text(str(error))) from None
        except (PromptRefusedError, TryAgainError) as error:
            self.reason, finish = self.redactor.text(str(error)), error.finish_reason
            if not finish:
                self.lost += 1
                self.failures += 1
                return
            response = {"response": "", "tokens": 0, "finish_reason": finish}
            if finish == REFUSED:
                response["refusal"] = self.reason
            self.missing.append((question._replace(images=()), sample, response))
            # While the server answers others, a refused or withheld response does not point to a fault.
            concerns_prompt = finish in WITHHELD | {REFUSED}
            self.failures += not (concerns_prompt and self.client.answers)
        else:
            self.failures = 0
            response = {**reply.choices[0].fields(), "tokens": reply.tokens}
            add_response(self.store, question, sample, response, self.key)
            self.advance(reply.tokens or 0)
