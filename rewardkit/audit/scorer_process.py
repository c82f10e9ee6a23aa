"""The process in which a scorer is audited: it may hang, exit, print or crash.

Calls run in threads other than the main one, as in verl: a scorer that needs signals fails in both.
"""

import asyncio
import io
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import astuple, dataclass
from functools import partial
from inspect import iscoroutine, iscoroutinefunction, signature, unwrap
from math import isfinite
from time import perf_counter
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.audit.model import AuditRow
from rewardkit.errors import ScorerExitedError, call_catching
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import (
    LOAD_TIMEOUT_SECONDS,
    IsolatedFunction,
    Outcome,
    Reply,
    place_in_stacks,
)
from rewardkit.isolate.serve import Limits, Loaded
from rewardkit.scorers.base import Status, as_text, error_text, spec_of, to_verl
from rewardkit.scorers.conversation import text_to_judge
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import VERL_PARAMETERS
from rewardkit.scorers.right_score import AnswerForm, own_form
from rewardkit.scorers.score import RewardResult

#: Calls at a time, and calls that never return.
MAX_THREADS = 64

#: Timeout of calls that several threads make, as a multiple of that of a call.
THREADS_FACTOR = 12

#: Larger rewards are out of range: none is in use.
MAX_SANE_SCORE = 10.0

#: verl's arguments of a call, and whether texts have another type.
Call: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of one call.

    `checks` are those of conduct that it fails, each with what happened; the first says why there is no
    `score`. `keys` are those of the result, and `numeric_keys` those of numbers.
    """

    checks: Sequence[tuple[str, str]] = ()
    score: float | None = None
    keys: Sequence[str] = ()
    numeric_keys: Sequence[str] = ()
    seconds: float = 0.0

    def fails(self, check: str) -> bool:
        """Return whether the call fails a check."""
        return check in dict(self.checks)

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        return self.checks[0][1] if self.score is None else f"score {self.score:g}"


class ScorerProcess:
    """A scorer in a process of its own, which is killed and started again when a call hangs.

    `form` is the one that it declares, and `signature_error` why verl cannot call the function with its
    keywords. If `asks_server`, each score is a request to a model: calls are few, and many at once.
    """

    form: AnswerForm | None = None
    signature_error = ""
    asks_server = is_async = False

    def __init__(
        self,
        spec: str,
        options: Mapping[str, Any],
        seconds: float,
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
    ) -> None:
        self.spec, self.options, self.seconds = spec, dict(options), seconds
        limits = Limits(seconds=THREADS_FACTOR * seconds, load_seconds=load_seconds)
        arguments = spec, self.options
        self._function = IsolatedFunction(load_audited, arguments, spec, limits, is_quiet=True)

    def __enter__(self) -> "ScorerProcess":  # noqa: PYI034 - Self needs Python 3.11; no subclass
        """Start the process, so that a scorer that does not load is reported at once."""
        self._function.start()
        form, self.signature_error, self.asks_server, self.is_async = self._function.greeting
        self.form = AnswerForm(*form) if form else None
        return self

    def __exit__(self, *_: object) -> None:
        self._function.close()

    def call(
        self, row: AuditRow, response: str | None, gold: str | None, *, is_odd: bool = False
    ) -> CallOutcome:
        """Score a response; nothing that the scorer does raises here. `is_odd` passes text of a type like NumPy's."""
        request = {**_call(row, response, gold), "is_odd": is_odd}
        value = self._value(self._function.call(request, self.seconds), self.seconds)
        return value if isinstance(value, CallOutcome) else CallOutcome(**value)

    def call_in_threads(
        self, threads: Sequence[Sequence[tuple[AuditRow, str]]]
    ) -> list[list[float | None] | CallOutcome]:
        """Make calls in several threads at once; return the scores of each thread."""
        requests = [[_call(row, text, row.gold) for row, text in calls] for calls in threads]
        seconds = THREADS_FACTOR * self.seconds
        return [self._value(each, seconds) for each in self._function.call_all(requests, seconds)]

    def _value(self, outcome: Outcome, seconds: float) -> Any:
        if isinstance(outcome, Reply):
            return outcome.value
        if isinstance(outcome, ChildTimeoutError):
            got = f"no verdict within {seconds:g} s{place_in_stacks(outcome, self.spec)}"
            return CallOutcome([("hangs", got)], seconds=seconds)
        if isinstance(outcome, ChildCrashError):
            return CallOutcome([("exits", f"the process ended ({outcome})")])
        raise outcome


def _call(row: AuditRow, response: str | None, gold: str | None) -> Call:
    values = row.data_source, response, gold, row.extra_info
    return dict(zip(VERL_PARAMETERS, values, strict=True))


# The rest runs in the process of the scorer.


class _OddText(str):
    """Stands in for NumPy's type of text."""

    __slots__ = ()


class _LogMessages(logging.Handler):
    """Keeps the last message of our log, which says why a result has `error` set."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:300]


def load_audited(spec: str, options: Mapping[str, Any]) -> Loaded:
    """Load a scorer and describe it; the reply to a call has the fields of a `CallOutcome`."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - a reward beside which verl is started
    scorer = load_scorer(spec, **options)
    function, declared = registry.load("scorers", spec), spec_of(scorer)
    entry = partial(_call_scorer, scorer)
    if "solution_str" in signature(function).parameters:
        entry = partial(_call_verl, partial(function, **options))
    observer, threads = _Observer(entry), ThreadPoolExecutor(MAX_THREADS)
    sys.setswitchinterval(1e-6)  # makes race conditions likely

    async def call(request: Call | list[Call]) -> Any:
        """Return the outcome of a call, or the scores of several in their order."""
        return await asyncio.wrap_future(threads.submit(observer.answer, request))

    form, error = own_form(scorer), _signature_error(function, options)
    return Loaded(
        call, (form and astuple(form), error, declared.asks_server, iscoroutinefunction(function))
    )


def _signature_error(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return why verl cannot call a function with its keywords and the options; "" if it can."""
    own = signature(function)
    try:
        own.bind(**dict.fromkeys((*VERL_PARAMETERS, *options)))
    except TypeError as error:
        code = getattr(unwrap(function), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        return f"{place}{getattr(function, '__name__', '')}{own}: {error}"
    return ""


def _call_verl(function: Callable[..., Any], call: Call) -> Any:
    result = function(**call)
    return asyncio.run(result) if iscoroutine(result) else result


def _call_scorer(scorer: Callable[..., Any], call: Call) -> Any:
    info = {"data_source": call["data_source"], **call["extra_info"]}
    before = deepcopy(info)
    text = text_to_judge(as_text(call["solution_str"]), info)
    result = scorer(text, as_text(call["ground_truth"]), info)
    if info != before:
        call["extra_info"] = info  # for the observer to notice the change
    return to_verl(result)


class _Observer:
    """Calls the scorer, and observes what it does beside returning a score."""

    def __init__(self, entry: Callable[[Call], Any]) -> None:
        self._entry, self._log = entry, _LogMessages()
        sys.stdout = self._stdout = io.StringIO()
        logging.getLogger("rewardkit").addHandler(self._log)

    def answer(self, request: Call | list[Call]) -> Any:
        """Return the outcome of a call, or the scores of several."""
        if isinstance(request, list):
            return [self.answer(call).get("score") for call in request]
        own, start = deepcopy(request), perf_counter()
        self._stdout.seek(0)
        self._stdout.truncate()
        if own.pop("is_odd", False):
            own |= {name: _OddText(own[name]) for name in ("solution_str", "ground_truth")}
        result = call_catching(self._entry, own)
        values, seconds = self._read(result), perf_counter() - start
        if own["extra_info"] != request["extra_info"]:
            values["checks"].append(("changes_extra_info", "extra_info changed"))
        if self._stdout.tell():
            values["checks"].append(("prints", "text on stdout"))
        return {**values, "seconds": seconds}

    def _read(self, result: Any) -> dict[str, Any]:
        """Return the score of a result as verl 0.9 reads it: a number, or a mapping with `score`."""
        if isinstance(result, ScorerExitedError):
            return {"checks": [("exits", "called sys.exit")]}
        if isinstance(result, Exception):
            message = f"{type(result).__name__}: {error_text(result)}"[:300]
            return {"checks": [("raises", f"raised {message}")]}
        keys = sorted(map(str, result)) if isinstance(result, Mapping) else []
        read = call_catching(RewardResult.of, result)
        if isinstance(read, Exception) or not isfinite(read.score):
            got = str(read) if isinstance(read, Exception) else f"returned {read.score}"
            return {"keys": keys, "checks": [("no_number", got)]}
        checks = []
        if read.as_score().status in (Status.FAILED, Status.TIMEOUT):
            checks.append(("no_verdict", self._log.last or "error or timeout is set"))
        if abs(read.score) > MAX_SANE_SCORE:
            checks.append(("out_of_range", f"score {read.score:g}"))
        numbers = [name for name in keys if isinstance(read.fields.get(name), float)]
        return {"score": read.score, "keys": keys, "numeric_keys": numbers, "checks": checks}
