"""The process in which a scorer is audited: calls with a deadline, each with its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rewardkit import errors
from rewardkit.audit.model import ANSWER_MARK, REQUESTS_AT_ONCE, AnswerForm, AuditRow
from rewardkit.isolate.child_process import (
    ChildCrashError,
    ChildProcess,
    ChildTimeoutError,
    FailureKind,
)
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS, place_in_stacks, start_and_load

#: Share of the timeout of a call after which its process notes where it stands.
WATCHED_SHARE = 0.9

#: How a call fails: as in `isolate`, or it calls `sys.exit`, or returns a value that verl does not
#: accept as a reward.
CallProblem: TypeAlias = FailureKind | Literal["exit", "not_a_number", ""]


@dataclass(frozen=True, kw_only=True)
class CallOutcome:
    """The outcome of one call.

    Attributes:
        score: the reward; None if the call failed.
        keys: keys of the result, if it is a dictionary.
        numeric_keys: those of them whose values are numbers.
        problem: how the call failed; "" if it did not.
        detail: the problem in one line.
        seconds: the duration of the call.
        has_printed: whether it wrote to stdout.
        has_changed_info: whether it changed `extra_info`.
        has_verdict: whether the result is a verdict: neither `error` nor `timeout` is set in it.
    """

    score: float | None = None
    keys: tuple[str, ...] = ()
    numeric_keys: tuple[str, ...] = ()
    problem: CallProblem = ""
    detail: str = ""
    seconds: float = 0.0
    has_printed: bool = False
    has_changed_info: bool = False
    has_verdict: bool = True

    @property
    def is_verdict(self) -> bool:
        """Whether the call returned a score that is a verdict."""
        return self.score is not None and self.has_verdict

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        return self.detail if self.problem else f"score {self.score:g}"


class ScorerProcess:
    """A scorer in a process of its own, which is killed and started again when a call hangs.

    Attributes:
        form: the form of answers that the scorer asks for, if it declares one.
        signature_error: why verl cannot call the function with its keywords; "" if it can.
        asks_server: whether each score is a request to a model, so that calls are few and many of
            them are made at once: `ASKS_SERVER` of the scorer's module.
        is_async: whether the function is `async`.
    """

    def __init__(
        self,
        spec: str,
        options: Mapping[str, Any],
        seconds: float,
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
    ) -> None:
        self.spec, self.options = spec, dict(options)
        self.seconds, self.load_seconds = seconds, load_seconds
        self.form: AnswerForm | None = None
        self.signature_error = ""
        self.asks_server = False
        self.is_async = False
        self._process: ChildProcess | None = None

    def __enter__(self) -> ScorerProcess:  # noqa: PYI034 - Self needs Python 3.11; no subclass
        """Start the process, so that a scorer that does not load is reported at once."""
        self._process = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.close()

    def call(
        self, row: AuditRow, response: str | None, gold: str | None, *, as_numpy: bool = False
    ) -> CallOutcome:
        """Score a response. Nothing that the scorer does raises here.

        Args:
            row: for its data source and extra_info.
            response: the response.
            gold: the ground truth.
            as_numpy: whether the texts are passed as NumPy's type of text.
        """
        request = {"call": _call_fields(row, response, gold) | {"as_numpy": as_numpy}}
        reply = self._exchange(request, self.seconds)
        return reply if isinstance(reply, CallOutcome) else _outcome(reply)

    def call_in_threads(self, calls: list[tuple[AuditRow, str]]) -> list[list[Any]] | CallOutcome:
        """Make the same calls in several threads at once; return a list of scores for each thread."""
        requests = [_call_fields(row, response, row.gold) for row, response in calls]
        scores: list[list[Any]] | CallOutcome = self._exchange(
            {"calls": requests}, 12 * self.seconds
        )
        return scores

    def call_at_once(self, calls: Sequence[tuple[AuditRow, str]]) -> list[CallOutcome]:
        """Score responses, `REQUESTS_AT_ONCE` at a time. A call that hangs costs its own score."""
        requests = [_call_fields(row, response, row.gold) for row, response in calls]
        rounds = -(-len(calls) // REQUESTS_AT_ONCE)
        request = {"requests": requests, "call_seconds": rounds * self.seconds}
        replies = self._exchange(request, (rounds + 1) * self.seconds)
        if isinstance(replies, CallOutcome):
            return [replies] * len(calls)
        return [_outcome(reply) for reply in replies]

    def _exchange(self, request: dict[str, Any], seconds: float) -> Any:
        if self._process is None or not self._process.is_alive:
            self._process = self._start()
        request = {**request, "seconds": WATCHED_SHARE * seconds}
        try:
            return self._process.exchange(request, seconds)
        except ChildTimeoutError:
            place = place_in_stacks(self._process.stacks, self.spec)
            detail = f"no verdict within {seconds:g} s{place and f', at {place}'}"
            return CallOutcome(problem="timeout", detail=detail, seconds=seconds)
        except ChildCrashError as error:
            return CallOutcome(problem="crash", detail=f"the process ended ({error})")

    def _start(self) -> ChildProcess:
        module, request = "rewardkit.audit.audit_child", (self.spec, self.options)
        process, description = start_and_load(
            module, request, self.spec, self.load_seconds, is_quiet=True
        )
        if "error" in description:
            process.close()
            raise getattr(errors, description["error_type"])(description["error"])
        self.signature_error = description["signature_error"]
        self.asks_server = description["asks_server"]
        self.is_async = description["is_async"]
        before, mark, after = (description["form"] or "").partition(ANSWER_MARK)
        self.form = AnswerForm("its own", before, after) if mark else None
        return process


def _call_fields(row: AuditRow, response: str | None, gold: str | None) -> dict[str, Any]:
    return {
        "response": response,
        "gold": gold,
        "data_source": row.data_source,
        "extra_info": row.extra_info,
    }


def _outcome(reply: dict[str, Any]) -> CallOutcome:
    lists = {name: tuple(reply.get(name, ())) for name in ("keys", "numeric_keys")}
    return CallOutcome(**reply | lists)
