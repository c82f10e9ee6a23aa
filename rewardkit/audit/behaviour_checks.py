"""Checks of behaviour that breaks a run in verl, whatever the response is.

Most checks use the calls of the other attacks: `CallRecorder` makes the calls and records failures.
The other checks make their own calls, in the functions below.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NamedTuple

from rewardkit.audit.model import (
    MAX_EXAMPLES,
    Attack,
    AttackResult,
    AuditRow,
    Failure,
    Severity,
    Target,
)
from rewardkit.audit.scorer_process import CallOutcome, ScorerProcess

#: Hanging calls after which the audit makes no more calls: each costs a timeout and a new process.
MAX_HANGS = 5
#: The same for calls that end the process, which takes less time.
MAX_EXITS = 10
#: Calls that are repeated in another order and by several threads.
MAX_REPEATED_CALLS = 48
#: Calls of a scorer that asks a model in one message to its process.
BATCH_CALLS = 256
#: Longest response in these calls, in characters.
MAX_REPEATED_CHARS = 2000
#: Larger rewards are out of range: none is in use.
MAX_SANE_SCORE = 10.0
#: Limits for a slow scorer: the median of a call; the ratio of the times for 1 MB and 50 KB, which
#: is 20 for a linear scorer; and the time for 1 MB.
SLOW_SECONDS, SLOW_GROWTH, SLOW_LONG_SECONDS = 0.05, 80, 1.0

_LONG_TEXTS = {
    "prose": "and so we go on ",
    "digits": "1234567890 ",
    "open boxes": r"\boxed{",
    "boxes": r"\boxed{1} ",
    "braces": "{",
    "dollars": "$",
    "Answer:": "Answer: ",
    "hashes": "#### ",
    "tags": "<answer>",
    "fractions": r"\frac{1}{",
    "line ends": "\n",
}


class RecordedCall(NamedTuple):
    """A call and its score."""

    row: AuditRow
    response: str
    score: float | None


@dataclass
class CallRecorder:
    """Makes the calls of an audit, and records their failures.

    Attributes:
        process: the scorer.
        calls: number of calls.
        seconds: duration of each call.
        failure_counts: number of failures of each check.
        failures: the first failures of each check.
        repeatable_calls: calls that can be repeated.
        keys: keys of the first result with a score; None before it.
        numeric_keys: the keys whose values were numbers in every result with a score.
    """

    process: ScorerProcess
    calls: int = 0
    seconds: list[float] = field(default_factory=list)
    failure_counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    repeatable_calls: list[RecordedCall] = field(default_factory=list)
    keys: tuple[str, ...] | None = None
    numeric_keys: tuple[str, ...] = ()

    @property
    def is_stopped(self) -> bool:
        """Whether the scorer hung or ended too often, so that no more calls are made."""
        counts = self.failure_counts
        return counts["hangs"] >= MAX_HANGS or counts["exits"] >= MAX_EXITS

    def call(self, row: AuditRow, response: str) -> CallOutcome | None:
        """Score a response; None if the recorder is stopped."""
        if self.is_stopped:
            return None
        return self._record(row, response, self.process.call(row, response, row.gold))

    def call_all(self, calls: Sequence[tuple[AuditRow, str]]) -> list[CallOutcome | None]:
        """Score responses: one after the other, or many at once if the scorer asks a model.

        A call to a model that has no verdict is None, too.
        """
        if not self.process.asks_server:
            return [self.call(row, response) for row, response in calls]
        outcomes: list[CallOutcome | None] = []
        for start in range(0, len(calls), BATCH_CALLS):
            batch = calls[start : start + BATCH_CALLS]
            replies = [None] * len(batch) if self.is_stopped else self.process.call_at_once(batch)
            for (row, response), reply in zip(batch, replies, strict=True):
                if reply is not None:
                    self._record(row, response, reply)
                outcomes.append(reply if reply and reply.is_verdict else None)
        return outcomes

    def _record(self, row: AuditRow, response: str, outcome: CallOutcome) -> CallOutcome:
        """Count a call, and record the checks that it fails."""
        self.calls += 1
        self.seconds.append(outcome.seconds)
        for check in self._failed_checks(outcome):
            self.record_failure(check, response, row.gold, _description(check, outcome))
        if len(response) < MAX_REPEATED_CHARS and not outcome.problem:
            self.repeatable_calls.append(RecordedCall(row, response, outcome.score))
        return outcome

    def sample_calls(self) -> list[RecordedCall]:
        """Return calls from the whole audit, to repeat them."""
        step = -(-len(self.repeatable_calls) // MAX_REPEATED_CALLS) or 1
        return self.repeatable_calls[::step]

    def record_failure(self, check: str, response: str, gold: str, got: str) -> None:
        """Count a failure of a check, and keep it if it is one of the first."""
        self.failure_counts[check] += 1
        examples = self.failures.setdefault(check, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(Failure.of(response, gold, got))

    def results(self) -> list[AttackResult]:
        """Return a result for each check that applies to the scorer."""
        return [
            check.result(
                self.calls, self.failure_counts[check.name], self.failures.get(check.name, ())
            )
            for check in CHECKS
            if check.name not in (_OWN_CALLS if self.process.asks_server else _MODEL_CHECKS)
        ]

    def _failed_checks(self, outcome: CallOutcome) -> Iterator[str]:
        if self.process.asks_server and not outcome.has_verdict:
            yield "no_verdict"
        if outcome.problem:
            yield _CHECK_OF_PROBLEM[outcome.problem]
        if outcome.score is not None and abs(outcome.score) > MAX_SANE_SCORE:
            yield "out_of_range"
        if outcome.has_changed_info:
            yield "changes_extra_info"
        if outcome.has_printed:
            yield "prints"
        if outcome.score is not None:
            if self.keys is None:
                self.keys, self.numeric_keys = outcome.keys, outcome.numeric_keys
            is_common = set(outcome.numeric_keys).__contains__
            self.numeric_keys = tuple(filter(is_common, self.numeric_keys))
            if outcome.keys != self.keys:
                yield "keys_differ"


_CHECK_OF_PROBLEM = {
    "error": "raises",
    "timeout": "hangs",
    "exit": "exits",
    "crash": "exits",
    "not_a_number": "no_number",
}


def _description(check: str, outcome: CallOutcome) -> str:
    if check == "keys_differ":
        return f"keys {', '.join(outcome.keys) or 'none, a bare number'}"
    if check == "changes_extra_info":
        return "extra_info changed"
    if check == "no_verdict":
        return outcome.detail or "error or timeout is set"
    return "text on stdout" if check == "prints" else outcome.summary


def check_calls(recorder: CallRecorder, targets: list[Target], code_rows: int) -> None:
    """Make the calls of the checks with their own calls, and record the failures.

    Args:
        recorder: recorder of the audit.
        targets: the rows in the scorer's own form.
        code_rows: number of rows for which the responses are programs.
    """
    check_code(recorder, targets[:code_rows])  # even if calls hang, as many do on a busy machine
    if not recorder.is_stopped:
        check_types(recorder, targets[0])
        check_order(recorder)
        check_threads(recorder)
        check_median_time(recorder)


def check_types(recorder: CallRecorder, t: Target) -> None:
    """Check the types that verl passes besides text: NumPy's text, and None for a null."""
    response, process = t.respond(t.gold), recorder.process
    plain = process.call(t.row, response, t.gold)
    numpy = process.call(t.row, response, t.gold, as_numpy=True)
    if numpy.score != plain.score:
        recorder.record_failure(
            "odd_types", f"np.str_({response!r})", f"np.str_({t.gold!r})", numpy.summary
        )
    for text, gold in ((None, t.gold), (response, None), (None, None)):
        outcome = process.call(t.row, text, gold)
        if outcome.problem:
            recorder.record_failure("odd_types", str(text), str(gold), outcome.summary)


def check_order(recorder: CallRecorder) -> None:
    """Repeat calls in reverse order: a score must not depend on earlier calls."""
    for row, response, score in reversed(recorder.sample_calls()):
        outcome = recorder.process.call(row, response, row.gold)
        if outcome.score != score:
            got = f"score {score}, and then {outcome.summary}"
            recorder.record_failure("depends_on_order", response, row.gold, got)


def check_threads(recorder: CallRecorder) -> None:
    """Repeat calls in eight threads at once, as verl's executors do."""
    calls = recorder.sample_calls()
    scores = recorder.process.call_in_threads([call[:2] for call in calls])
    if isinstance(scores, CallOutcome):
        recorder.record_failure("thread_unsafe", "(calls by 8 threads)", "", scores.summary)
        return
    for (row, response, score), *others in zip(calls, *scores, strict=True):
        if different := [other for other in others if other != score]:
            got = f"score {score}, but {different[0]} in {len(different)} of {len(others)} threads"
            recorder.record_failure("thread_unsafe", response, row.gold, got)


def check_code(recorder: CallRecorder, targets: list[Target]) -> None:
    """Respond with programs that write a file: if the file exists, the scorer ran one of them."""
    hangs = 0
    with _folder() as folder:
        marker = folder / "ran"
        for target in targets:
            for program, gold in product(_programs(str(marker)), (target.gold, _MATRIX)):
                response = target.respond(program)
                outcome = recorder.process.call(target.row, response, gold)
                if marker.exists():
                    marker.unlink()
                    recorder.record_failure("runs_code", response, gold, "the program was run")
                hangs += outcome.problem == "timeout"
                if hangs >= MAX_HANGS:
                    return


@contextmanager
def _folder() -> Iterator[Path]:
    """Create a folder whose name is one word in LaTeX, without the `_` of `tempfile`."""
    folder = Path(tempfile.gettempdir()) / f"audit{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


#: A gold that some scorers compare entry by entry, with another parser.
_MATRIX = r"\begin{pmatrix}1\\2\end{pmatrix}"


def _programs(marker: str) -> Iterator[str]:
    code = f"open('{marker}','w')"
    yield from (code, f"[{code}]", f"0*len([{code}])", rf"\pi*len([{code}])")
    yield f"__import__('os').system('touch {marker}')"
    yield f"lambda:{code}"


def check_median_time(recorder: CallRecorder) -> None:
    """Check the time of an ordinary call."""
    median = statistics.median(recorder.seconds)
    if median > SLOW_SECONDS:
        got = f"median {median * 1000:.0f} ms a call"
        recorder.record_failure("slow", "(all responses)", "", got)


def check_growth(recorder: CallRecorder, t: Target) -> None:
    """Check how the time grows from 50 KB of text to 1 MB."""
    for name, piece in _LONG_TEXTS.items():
        if recorder.is_stopped:
            return
        short, long = (_seconds(recorder, t, piece, size) for size in (50_000, 1_000_000))
        ratio = long / max(short, 1e-6)
        if long > SLOW_LONG_SECONDS or (ratio > SLOW_GROWTH and long > SLOW_LONG_SECONDS / 10):
            got = f"{short * 1000:.1f} ms for 50 KB, {long * 1000:.0f} ms for 1 MB"
            recorder.record_failure("grows", f"{piece!r} repeated ({name})", t.gold, got)


def _seconds(recorder: CallRecorder, t: Target, piece: str, size: int) -> float:
    """Return the time of a call on a text of this many characters, the shorter of two."""
    response = piece * (size // len(piece)) + t.respond(t.wrong)
    times = []
    for _ in range(2):
        outcome = recorder.call(t.row, response)
        times.append(outcome.seconds if outcome else recorder.process.seconds)
        if times[-1] > SLOW_LONG_SECONDS:
            break
    return min(times)


def _check(name: str, severity: Severity, about: str) -> Attack:
    return Attack(
        name=name,
        kind="conduct",
        severity=severity,
        about=about,
        responses=lambda _: iter(()),
    )


CHECKS = (
    _check("raises", "high", "An exception: verl 0.9 drops the sample without a message."),
    _check("hangs", "high", "No verdict within the deadline: the step waits for it."),
    _check("exits", "high", "sys.exit, or the end of the process."),
    _check("no_verdict", "medium", "A judge that fails: `error` or `timeout` is set."),
    _check("no_number", "high", "None, text, NaN or infinity for a score."),
    _check("keys_differ", "high", "Other keys for one sample than for another: verl fails on it."),
    _check("runs_code", "high", "Runs code from a response."),
    _check("depends_on_order", "high", "Another score for the same call, later."),
    _check("thread_unsafe", "high", "Another score when eight threads call at once."),
    _check("changes_extra_info", "medium", "Writes into the row's extra_info."),
    _check("odd_types", "medium", "NumPy's text, or None for a response or gold."),
    _check("slow", "medium", "More than 50 ms for an ordinary call."),
    _check("grows", "medium", "More than a second for 1 MB, or growth far above linear."),
    _check("out_of_range", "low", "A score beyond 10 in either direction."),
    _check("prints", "low", "Writes to stdout at every call."),
)

#: Checks with many calls of their own, or of time, which a scorer that asks a model is spared.
_OWN_CALLS = frozenset(
    {"runs_code", "depends_on_order", "thread_unsafe", "odd_types", "slow", "grows"}
)
#: Checks of scorers that ask a model; others set `error` for a gold that cannot be scored.
_MODEL_CHECKS = frozenset({"no_verdict"})
