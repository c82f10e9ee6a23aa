"""Responses from a server: all that are missing, each kept the moment it comes."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from time import monotonic
from typing import Any, NamedTuple

from rewardkit.errors import DataError, SourceError
from rewardkit.evaluate.adaptive_concurrency import Limit
from rewardkit.evaluate.client import (
    Clients,
    NoContactError,
    PromptRefusedError,
    Server,
    TryAgainError,
    UnusableError,
    ask,
)
from rewardkit.evaluate.questions import Question
from rewardkit.evaluate.sampling import Sampling
from rewardkit.redact import Redactor
from rewardkit.responses.completions import REFUSED, WITHHELD, Reply
from rewardkit.responses.response_log import ResponseIndex, ResponseLog

#: Of so many requests that fail with none answered between them, the server is given up.
FAILURES = 5

#: Tries to connect to a server that has not answered yet: it is not there.
FIRST_TRIES = 3

#: Tries of a request whose response the server keeps back: as a rule it does so again.
WITHHELD_TRIES = 3

#: Seconds to wait before the second try, and at most; they double from try to try.
BACKOFF, LONGEST_BACKOFF = 0.5, 60.0


class Ask(NamedTuple):
    """Samples `first` to `first + n - 1` of a question."""

    question: Question
    first: int
    n: int


@dataclass(frozen=True)
class Generation:
    """What is asked, of whom and how.

    Attributes:
        server: who answers.
        model: as the server calls it.
        sampling: how responses are sampled.
        n: responses to each question.
        per_request: choices that one request asks for. With 1 a response is kept as soon as it is
            finished; more save a vendor's price for the prompt.
        concurrency: requests under way at once, at most.
        tries: of one request, before it is given up.
    """

    server: Server
    model: str
    sampling: Sampling = field(default_factory=Sampling)
    n: int = 1
    per_request: int = 1
    concurrency: int = 256
    tries: int = 9

    def key(self) -> dict[str, Any]:
        """What responses are known by, besides row, sample and prompt."""
        return {"model": self.model, "sampling": self.sampling.recorded()}


@dataclass
class Run:
    """A run, as it goes.

    Attributes:
        missing: what is said of responses that the server would not give, by (row, first sample,
            samples): model, sampling and `finish_reason`, and the `refusal` of a prompt.
        lost: responses that it did not give in all tries.
        reason: of the last failure.
        failures: requests that failed since the last that was answered.
    """

    missing: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    lost: int = 0
    reason: str = ""
    failures: int = 0

    def check(self, server: Server) -> None:
        """Raise if one request after the other fails.

        Raises:
            SourceError: `FAILURES` did since the last that was answered.
        """
        if self.failures >= FAILURES:
            raise SourceError(
                f"{server.url}: {self.failures} requests failed, one after the other: {self.reason}"
            )


def generate(
    generation: Generation,
    questions: Iterable[Question],
    part: ResponseLog,
    kept: ResponseIndex,
    progress: Callable[[int, int], object] = lambda _responses, _tokens: None,
) -> Run:
    """Ask for every response that is not kept yet, and keep it.

    Args:
        generation: what is asked.
        questions: read as they are needed.
        part: where responses are kept.
        kept: those it has.
        progress: called with the responses and the tokens that came.

    Raises:
        SourceError: a wrong model, URL or key, or a server that does not answer any more, or never.
        DataError: a kept response is to another prompt than its row's.
    """
    asks = _missing(questions, kept, generation)
    run = asyncio.run(_Loop(generation, part, progress).all(asks))
    if part.is_empty and (run.lost or run.missing):
        reasons = {fields["finish_reason"] for fields in run.missing.values()}
        what = "it refuses every prompt" if reasons == {REFUSED} else "no usable response at all"
        what = "no answer to any request" if run.lost else what
        raise SourceError(f"{generation.server.url}: {what}: {run.reason}")
    return run


def _missing(
    questions: Iterable[Question], kept: ResponseIndex, generation: Generation
) -> Iterator[Ask]:
    places, size = kept.by_row(), generation.per_request
    for question in questions:
        if not kept.answers_prompt(question.row, question.digest):
            raise DataError(
                f"row {question.row}: its prompt has changed since the interrupted run; name "
                "another --out, or --overwrite to throw its responses away."
            )
        have = {kept.samples[place] for place in places.get(question.row, array("q"))}
        left = [sample for sample in range(generation.n) if sample not in have]
        # Cut at multiples of `size`, as a run that was never interrupted does.
        for _, group in groupby(enumerate(left), lambda at: (at[1] - at[0], at[1] // size)):
            samples = [sample for _, sample in group]
            yield Ask(question, samples[0], len(samples))


class _Loop:
    """What the requests of a run share."""

    def __init__(
        self, generation: Generation, part: ResponseLog, progress: Callable[[int, int], object]
    ) -> None:
        self.generation, self.part, self.progress = generation, part, progress
        self.run = Run()
        self.limit = Limit(generation.concurrency)
        self.redactor = Redactor().learn(generation.sampling.extra)
        self.random = random.Random(0)  # noqa: S311 - spreads the tries, hides nothing

    async def all(self, asks: Iterator[Ask]) -> Run:
        """Ask them all, a bounded number under way."""
        finished: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()
        tasks: set[asyncio.Task[None]] = set()
        clients = Clients(self.generation.server)
        try:
            while True:
                for each in islice(asks, self.generation.concurrency - len(tasks)):
                    task = asyncio.create_task(self._one(clients, each))
                    task.add_done_callback(finished.put_nowait)
                    tasks.add(task)
                if not tasks:
                    return self.run
                done = await finished.get()
                tasks.discard(done)
                done.result()
                self.run.check(self.generation.server)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await clients.close()

    async def _one(self, clients: Clients, asked: Ask) -> None:
        """All samples of one ask: what the server leaves out is asked for again."""
        while asked.n:
            try:
                reply = await self._tried(clients, asked)
            except PromptRefusedError as error:
                why = self.redactor.text(str(error))  # servers repeat what they were sent
                self._miss(asked, error, finish_reason=REFUSED, refusal=why)
                return
            except UnusableError as error:
                self._miss(asked, error, finish_reason=error.finish_reason)
                return
            except TryAgainError as error:
                self.run.lost += asked.n
                self._failed(str(error), counts=True)
                return
            self.run.failures = 0
            got = self._keep(asked, reply)
            asked = asked._replace(first=asked.first + got, n=asked.n - got)

    def _miss(self, asked: Ask, error: Exception, **fields: str) -> None:
        """Note that the server will not give these responses."""
        place = asked.question.row, asked.first, asked.n
        self.run.missing[place] = {**self.generation.key(), **fields}
        # While others are answered, one that is refused or kept back is no sign of a fault.
        of_prompt = fields["finish_reason"] in WITHHELD | {REFUSED}
        self._failed(str(error), counts=not (of_prompt and self.limit.answers))

    def _failed(self, reason: str, *, counts: bool) -> None:
        self.run.reason = self.redactor.text(reason)
        self.run.failures += counts

    async def _tried(self, clients: Clients, asked: Ask) -> Reply:
        """The reply, after as many tries as it takes."""
        sampling = self.generation.sampling
        body = sampling.body(self.generation.model, asked.question, asked.first, asked.n)
        tries = answers = 0
        while True:
            try:
                return await self._once(clients, body)
            except TryAgainError as error:
                self.generation.server.check()
                if error.busy and self.limit.answers > answers:
                    tries, answers = 0, self.limit.answers  # it answers others: our turn will come
                tries += 1
                if tries >= self._most_tries(error):
                    raise
                await asyncio.sleep(self._pause(tries, error))

    async def _once(self, clients: Clients, body: dict[str, Any]) -> Reply:
        async with self.limit.slot():
            start = monotonic()
            try:
                with clients.one() as http:
                    reply = await ask(http, self.generation.server, body)
            except TryAgainError as error:
                if error.busy:
                    self.limit.refused(start, error.wait)
                elif error.late:
                    self.limit.timed_out(start, self.generation.server.seconds)
                raise
            self.limit.answered(monotonic() - start)
            return reply

    def _most_tries(self, error: TryAgainError) -> int:
        most = self.generation.tries
        if isinstance(error, NoContactError) and not self.limit.answers:
            return min(FIRST_TRIES, most)
        is_withheld = isinstance(error, UnusableError) and error.finish_reason in WITHHELD
        return min(WITHHELD_TRIES, most) if is_withheld else most

    def _pause(self, tries: int, error: TryAgainError) -> float:
        """Longer from try to try, and not the same for all; never less than the server asks."""
        pause = min(LONGEST_BACKOFF, BACKOFF * 2.0 ** (tries - 1)) * self.random.uniform(0.5, 1)
        return error.wait + pause / 4 if error.wait else pause

    def _keep(self, asked: Ask, reply: Reply) -> int:
        choices = reply.choices[: asked.n]
        alone = reply.tokens if len(reply.choices) == 1 else None  # else it is the sum of all
        lines = [
            {
                "response": choice.text,
                **({"reasoning": choice.reasoning} if choice.reasoning else {}),
                "finish_reason": choice.finish_reason,
                "tokens": alone,
            }
            for choice in choices
        ]
        self.part.append(asked.question.row, asked.question.digest, asked.first, lines)
        self.progress(len(choices), reply.tokens or 0)
        return len(choices)
