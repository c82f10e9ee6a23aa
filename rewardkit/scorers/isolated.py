"""A user's scorer in a process of its own, where it may hang, print, fork or exit.

A response that takes too long, or that ends the process, costs its own score and no other (see
`isolate.function`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from itertools import starmap
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.errors import DataError, RewardkitError, UnknownNameError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import (
    LOAD_TIMEOUT_SECONDS,
    CallError,
    IsolatedFunction,
    Outcome,
    Reply,
)
from rewardkit.isolate.serve import Limits, Loaded
from rewardkit.scorers.base import (
    InvalidScoreError,
    NeverAnswersError,
    NoVerdictError,
    Score,
    Scorer,
    ScorerSpec,
    Status,
    call_scorer,
    spec_of,
)
from rewardkit.scorers.conversation import one_turn
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import inner_function, is_verl_function
from rewardkit.scorers.right_score import AnswerForm, GoldRow, ScoreAll, learn_right, own_form
from rewardkit.scorers.score import RightRule

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
    """A scorer in a process of its own, called like any other. `close` ends the process."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        seconds: float,
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
        workers: int = 1,
    ) -> None:
        """Load the scorer in its process. Raises `UsageError` if it does not load."""
        self.name, self.seconds = name, seconds
        self.rule: RightRule | None = None  # which of its results are right, once that is learned
        self._failures, self._has_replied = 0, False
        limits = Limits(seconds=seconds, load_seconds=load_seconds, workers=workers)
        self._function = IsolatedFunction(load_isolated, (name, dict(options)), name, limits)
        self._function.start()
        summary, form = self._function.greeting
        ScorerSpec(self, summary, AnswerForm(*form) if form else None)  # for `spec_of`

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

        Raises:
            NeverAnswersError: it failed on each of its first `MAX_FIRST_FAILURES` responses.
        """
        results: list[Score | Exception] = []
        while not self._has_replied and len(results) < len(requests):
            request = requests[len(results)]
            outcome = self._function.call(request)
            results.append(self._result(outcome, request))
            self._has_replied = isinstance(outcome, Reply | CallError)
            self._failures += not self._has_replied
            if self._failures >= MAX_FIRST_FAILURES:
                raise NeverAnswersError(
                    f"{self.name}: no verdict on its first {MAX_FIRST_FAILURES} responses: "
                    f"{results[-1]}. Try it by itself; if it is only slow, raise --seconds-per-row."
                )
        requests = requests[len(results) :]
        return [*results, *map(self._result, self._function.call_all(requests), requests)]

    def close(self) -> None:
        """End the process, and everything it started."""
        self._function.close()

    def _result(self, outcome: Outcome, request: Request) -> Score | Exception:
        if isinstance(outcome, CallError):
            error_type: type[Exception] = _OWN_ERRORS.get(outcome.name) or type(
                outcome.name, (Exception,), {}
            )
            return error_type(str(outcome))
        if isinstance(outcome, ChildTimeoutError):
            return ScorerTimeoutError(f"no verdict within {self.seconds:g} s")
        if isinstance(outcome, ChildCrashError):
            return ScorerCrashError(f"the scorer ended its process ({outcome})")
        if isinstance(outcome, Exception):
            return outcome
        number, correct, pred, status = outcome.value
        score = Score(number, correct, pred, Status(status))
        if self.rule is None:
            return score
        return self.rule.judge(score, str(request[2].get("data_source") or ""))


def load_isolated(name: str, options: Mapping[str, Any]) -> Loaded:
    """Load a scorer; its calls return the fields of a `Score`."""
    scorer = load_scorer(name, **options)

    def call(request: tuple[str, str, Mapping[str, Any]]) -> list[Any]:
        result = call_scorer(scorer, *request)
        if isinstance(result, Exception):
            raise result
        return [*result]

    form = own_form(scorer)
    return Loaded(call, [spec_of(scorer).summary, form and astuple(form)])


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
    rule: RightRule | None = None,
    workers: int = 1,
) -> Scorer:
    """Load a scorer: a built-in one in this process, any other in one of its own.

    Raises:
        UsageError: the scorer does not exist, cannot be loaded or refuses an option.
    """
    if not registry.is_path(name):
        registry.target("scorers", name)  # report an unknown name before a process is started
    if is_built_in(name):
        return load_scorer(name, **options)
    scorer = IsolatedScorer(name, options, seconds, load_seconds, workers)
    scorer.rule = rule
    return scorer


def learn_rule(
    scorer: Scorer,
    rows: Iterable[GoldRow],
    right_score: float | None = None,
    *,
    is_required: bool = False,
) -> tuple[Scorer, RightRule]:
    """Let a custom scorer learn which of its scores is right; return it with the rule, which it follows.

    Raises:
        UsageError: `right_score` is given for a built-in scorer.
        DataError: the rule is required and not known, or the scorer fails on every call.
    """
    score_all: ScoreAll
    if isinstance(scorer, IsolatedScorer):
        scorer.rule = None
        name, score_all = scorer.name, scorer.score_batch
    elif is_verl_function(scorer):
        name = inner_function(scorer).__name__
        score_all = partial(starmap, partial(call_scorer, scorer))
    elif right_score is not None:
        raise UsageError("--right-score is for a reward of your own: leave it out.")
    else:
        return scorer, RightRule()
    rule = RightRule(right_score, False, "--right-score")
    if right_score is None:
        golds = ((gold, one_turn(info)) for gold, info in rows)
        rule = learn_right(score_all, golds, own_form(scorer))
    if is_required and not rule.is_known and not rule.takes_verdict:
        raise DataError(f"{name}: {rule.sentence}")
    if isinstance(scorer, IsolatedScorer):
        scorer.rule = rule
        return scorer, rule
    return partial(scorer, _rule=rule), rule


@contextmanager
def open_scorer(
    name: str,
    options: Mapping[str, Any],
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    rule: RightRule | None = None,
) -> Iterator[Scorer]:
    """`start_scorer`, whose process ends with the block."""
    scorer = start_scorer(name, options, seconds, load_seconds, rule)
    try:
        yield scorer
    finally:
        close_scorer(scorer)


def close_scorer(scorer: Scorer) -> None:
    """End the process of a scorer that has one."""
    if isinstance(scorer, IsolatedScorer):
        scorer.close()


def scorer_summary(name: str, load_seconds: float = LOAD_TIMEOUT_SECONDS) -> str:
    """Return the first line of the docstring of a scorer's file, or the reason why it does not load.

    A custom scorer is loaded in a process of its own and under a deadline.
    """
    try:
        if is_built_in(name):
            return spec_of(registry.load("scorers", name)).summary
        scorer = IsolatedScorer(name, {}, CALL_TIMEOUT_SECONDS, load_seconds)
    except RewardkitError as error:
        return f"broken: {error}"
    scorer.close()
    return spec_of(scorer).summary


def require_scorer_loads(name: str, options: Mapping[str, Any], load_seconds: float) -> None:
    """Load a scorer as `start_scorer` does, only to see that it loads and takes its options."""
    with open_scorer(name, options, load_seconds=load_seconds):
        pass
