"""A user's scorer in a process of its own, where it may hang, print, fork or exit.

Responses are sent in batches. A response that takes too long, or that ends the process, costs its
own score and no other: the process is ended with everything it started, and a new one scores on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS, start_and_load
from rewardkit.scorers.base import Score, Scorer, Status
from rewardkit.scorers.call import InvalidScoreError, NeverAnswersError, NoVerdictError
from rewardkit.scorers.load import load_scorer, summary

#: Default timeout per response.
CALL_TIMEOUT_SECONDS = 60.0

#: The command stops if a scorer fails on this many responses before it scores one.
MAX_FIRST_FAILURES = 5

#: A response, its ground truth and its extra_info.
Request: TypeAlias = tuple[str, str, Mapping[str, Any]]

#: Errors of rewardkit that the process sends by name; other errors get a new type with their name.
_OWN_ERRORS: Mapping[str, type[Exception]] = {
    error.__name__: error for error in (InvalidScoreError, UnknownNameError, UsageError)
}


class ScorerCrashError(NoVerdictError):
    """A scorer ended its process."""

    description = "ended its process"


class ScorerTimeoutError(NoVerdictError):
    """A scorer did not return in time."""

    description = "took too long"
    status = Status.TIMEOUT


class IsolatedScorer:
    """A scorer in a process of its own, called like any other. `close` ends the process.

    Attributes:
        last_call_ns: nanoseconds that the scorer took for the last response.
        summary: the first line of the docstring of its module.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        seconds: float,
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
    ) -> None:
        """Load the scorer in its process.

        Args:
            name: as `load_scorer` takes it.
            options: options of the scorer.
            seconds: timeout per response.
            load_seconds: timeout for importing the scorer.

        Raises:
            UsageError: it does not load.
        """
        self.name, self.options = name, dict(options)
        self.seconds, self.load_seconds = seconds, load_seconds
        self.last_call_ns, self.summary = 0, ""
        self._batches = 0
        self._failures = 0
        self._has_scored = False
        self._process = self._start()

    def __call__(
        self, response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None
    ) -> Score:
        """Return the scorer's `Score`. What it raises is raised here, with its name and message.

        Raises:
            ScorerCrashError: it ended its process, twice.
            ScorerTimeoutError: it did not return within `seconds`.
            NeverAnswersError: it failed in these ways on each of its first `MAX_FIRST_FAILURES` responses.
        """
        (result,) = self.score_batch([(response, ground_truth, dict(extra_info or {}))])
        if isinstance(result, Exception):
            raise result
        return result

    def score_batch(self, requests: Sequence[Request]) -> list[Score | Exception]:
        """Return the score of each response, or what the scorer raised or did instead.

        A response on which the process ends is tried once more, alone: the kernel may have ended
        it because memory was short. Responses before it whose scores were not sent yet are scored again.

        Raises:
            NeverAnswersError: it failed on each of its first `MAX_FIRST_FAILURES` responses.
        """
        results: list[Score | Exception | None] = [None] * len(requests)
        retries: set[int] = set()
        ranges = [(0, len(requests))]
        while ranges:
            start, stop = ranges.pop()
            replies, failure = self._exchange(requests[start:stop])
            next_place = start + len(replies)
            results[start:next_place] = replies
            if failure is None:
                continue
            failure_place = min(max(start + self._process.mark[1], next_place), stop - 1)
            ranges += [(failure_place + 1, stop)] if failure_place + 1 < stop else []
            if isinstance(failure, ScorerCrashError) and failure_place not in retries:
                retries.add(failure_place)
                ranges.append((failure_place, failure_place + 1))
            else:
                results[failure_place] = self._count_failure(failure)
            ranges += [(next_place, failure_place)] if next_place < failure_place else []
        return [result for result in results if result is not None]

    def close(self) -> None:
        """End the process, and everything it started."""
        self._process.close()

    def _start(self) -> ChildProcess:
        """Start a process and load the scorer there."""
        request = self.name, self.options
        process, (problem, self.summary) = start_and_load(
            "rewardkit.scorers.isolated_child", request, self.name, self.load_seconds
        )
        if problem:
            process.close()
            raise UsageError(problem)
        return process

    def _exchange(
        self, requests: Sequence[Request]
    ) -> tuple[list[Score | Exception], NoVerdictError | None]:
        """Return the scores of the first responses, and the failure that ended them, if any."""
        if not self._process.is_alive:
            self._process.close()
            self._process = self._start()
        self._batches += 1
        self._process.reset_mark()
        scores: list[Score | Exception] = []
        try:
            self._process.send((self._batches, list(requests)), self.seconds)
            while len(scores) < len(requests):
                reply = self._process.receive(lambda: self._process.mark[0] + self.seconds)
                scores += self._read_scores(reply, len(scores))
        except ChildTimeoutError:
            return scores, ScorerTimeoutError(f"no verdict within {self.seconds:g} s")
        except ChildCrashError as error:
            return scores, ScorerCrashError(f"the scorer ended its process ({error})")
        return scores, None

    def _read_scores(self, reply: Any, place: int) -> list[Score | Exception]:
        """Return the scores of a reply, which must be the next ones of this batch."""
        try:
            batch, first, results = reply
            scores = [_score_or_error(*result) for result in results]
            last_call_ns = results[-1][-1]
        except (TypeError, ValueError, IndexError):
            batch = first = last_call_ns = -1
        if (batch, first) != (self._batches, place):
            raise self._process.stray_output()
        self.last_call_ns, self._has_scored = last_call_ns, True
        return scores

    def _count_failure(self, failure: NoVerdictError) -> NoVerdictError:
        """Count a failure; give up on a scorer that has never returned anything."""
        self._failures += 1
        if not self._has_scored and self._failures >= MAX_FIRST_FAILURES:
            raise NeverAnswersError(
                f"{self.name}: no verdict on its first {MAX_FIRST_FAILURES} responses: {failure}. "
                "Try it by itself; if it is only slow, raise --seconds-per-row."
            )
        return failure


def _score_or_error(*result: Any) -> Score | Exception:
    """Return a score, or an exception, from the values that `isolated_child` sends."""
    if len(result) == 3:
        name, message, _ = result
        error: type[Exception] = _OWN_ERRORS.get(name) or type(name, (Exception,), {})
        return error(message)
    score, correct, pred, status, _ = result
    return Score(score, correct, pred, Status(status))


def is_built_in(name: str) -> bool:
    """Whether a scorer is of this package; `auto` may call those of other packages, if any are."""
    if name != "auto":
        return name in registry.SCORERS
    built_in = {"scorers": registry.SCORERS, "data_sources": registry.DATA_SOURCES}
    return all(registry.known(group) == names for group, names in built_in.items())


def start_scorer(
    name: str,
    options: Mapping[str, Any],
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> Scorer:
    """Load a scorer: a built-in one in this process, any other in one of its own.

    Args:
        name: as `load_scorer` takes it.
        options: options of the scorer.
        seconds: timeout per response for an isolated scorer.
        load_seconds: timeout for importing an isolated scorer.

    Raises:
        UsageError: the scorer does not exist, cannot be loaded or refuses an option.
    """
    if not registry.is_path(name):
        registry.target("scorers", name)  # report an unknown name before a process is started
    if is_built_in(name):
        return load_scorer(name, **options)
    return IsolatedScorer(name, options, seconds, load_seconds)


@contextmanager
def open_scorer(
    name: str,
    options: Mapping[str, Any],
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> Iterator[Scorer]:
    """`start_scorer`, whose process ends with the block."""
    scorer = start_scorer(name, options, seconds, load_seconds)
    try:
        yield scorer
    finally:
        close_scorer(scorer)


def close_scorer(scorer: Scorer) -> None:
    """End the process of a scorer that has one."""
    if isinstance(scorer, IsolatedScorer):
        scorer.close()


def scorer_summary(name: str, load_seconds: float) -> str:
    """`load.summary`, in a process of its own and under a deadline for a custom scorer."""
    if is_built_in(name):
        return summary(name)
    try:
        scorer = IsolatedScorer(name, {}, CALL_TIMEOUT_SECONDS, load_seconds)
    except UsageError as error:
        return f"broken: {error}"
    scorer.close()
    return scorer.summary


def require_scorer_loads(name: str, options: Mapping[str, Any], load_seconds: float) -> None:
    """Load a scorer as `start_scorer` does, only to see that it loads and takes its options.

    Raises:
        UsageError: the scorer does not exist, cannot be loaded or refuses an option.
    """
    with open_scorer(name, options, load_seconds=load_seconds):
        pass
