"""Checks of conduct: what breaks a run in verl, whatever the response is.

Most checks use the calls of the other attacks: `CallRecorder` makes the calls and records failures.
The other checks make their own calls, in the functions below.
"""

import os
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product, starmap
from pathlib import Path
from typing import TypeAlias

from rewardkit.audit.attacks import CHECKS
from rewardkit.audit.model import AttackResult, AuditRow, Target
from rewardkit.audit.scorer_process import CallOutcome, ScorerProcess

#: Hanging calls after which the audit makes no more calls: each costs a timeout and a new process.
MAX_HANGS = 5
#: The same for calls that end the process, which takes less time.
MAX_EXITS = 10
#: Calls that are repeated in another order and by several threads.
MAX_REPEATED_CALLS = 48
#: Number of threads that make these calls at once, and number of rounds.
THREADS, ROUNDS = 8, 3
#: Calls of a scorer that asks a model that are made at once.
REQUESTS_AT_ONCE = 16
#: Rows of each data source for which the responses are programs.
CODE_ROWS_PER_SOURCE = 2
#: Longest response in these calls, in characters.
MAX_REPEATED_CHARS = 2000
#: Longest of these calls, in seconds.
MAX_REPEATED_SECONDS = 1.0
#: Limits for a slow scorer: the median of a call; the ratio of the times for 1 MB and 50 KB, which
#: is 20 for a linear scorer; and the time for 1 MB.
SLOW_SECONDS, SLOW_GROWTH, SLOW_LONG_SECONDS = 0.05, 80, 1.0

_LONG_TEXTS = (
    *("and so we go on ", "1234567890 ", r"\boxed{", r"\boxed{1} ", "{", "$", "Answer: "),
    *("#### ", "<answer>", r"\frac{1}{", "\n"),
)

#: Checks with many calls of their own, or of time, which a scorer that asks a model is spared.
_OWN_CALLS = frozenset(
    {"runs_code", "depends_on_order", "thread_unsafe", "odd_types", "slow", "grows"}
)


#: A call that can be repeated, and its score.
RecordedCall: TypeAlias = tuple[AuditRow, str, float]


class CallRecorder:
    """Makes the calls of an audit, and records their durations and the results of all checks.

    `keys` are those of the first result with a score, and `numeric_keys` those whose values were numbers
    in every one.
    """

    def __init__(self, process: ScorerProcess) -> None:
        self.process = process
        self.seconds: list[float] = []
        self.checks = {check.name: AttackResult.of(check) for check in CHECKS}
        self.repeatable_calls: list[RecordedCall] = []
        self.keys: tuple[str, ...] | None = None
        self.numeric_keys: tuple[str, ...] = ()

    @property
    def is_stopped(self) -> bool:
        """Whether the scorer hung or ended too often, so that no more calls are made."""
        checks = self.checks
        return checks["hangs"].failed >= MAX_HANGS or checks["exits"].failed >= MAX_EXITS

    def call_all(self, calls: Sequence[tuple[AuditRow, str]]) -> list[CallOutcome | None]:
        """Score responses; None for a call that is not made any more, or to which a model has no verdict."""

        def call(row: AuditRow, response: str) -> CallOutcome | None:
            return None if self.is_stopped else self.process.call(row, response, row.gold)

        outcomes: Iterable[CallOutcome | None] = starmap(call, calls)
        if self.process.asks_server:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                outcomes = [*pool.map(call, *zip(*calls, strict=True))] if calls else []
        return [
            outcome and self._record(row, response, outcome)
            for (row, response), outcome in zip(calls, outcomes, strict=True)
        ]

    def _record(self, row: AuditRow, response: str, outcome: CallOutcome) -> CallOutcome | None:
        """Count a call, and record the checks that it fails."""
        self.seconds.append(outcome.seconds)
        for check, got in outcome.checks:
            self.checks[check].add_failure(response, row.gold, got)
        if outcome.score is not None:
            keys, numbers = tuple(outcome.keys), tuple(outcome.numeric_keys)
            if self.keys is None:
                self.keys, self.numeric_keys = keys, numbers
            self.numeric_keys = tuple(filter(numbers.__contains__, self.numeric_keys))
            if keys != self.keys:
                got = f"keys {', '.join(keys) or 'none, a bare number'}"
                self.checks["keys_differ"].add_failure(response, row.gold, got)
            if len(response) < MAX_REPEATED_CHARS and outcome.seconds < MAX_REPEATED_SECONDS:
                self.repeatable_calls.append((row, response, outcome.score))
        is_verdict = outcome.score is not None and not outcome.fails("no_verdict")
        return outcome if is_verdict or not self.process.asks_server else None

    def sample_calls(self) -> list[RecordedCall]:
        """Return calls from the whole audit, to repeat them."""
        step = -(-len(self.repeatable_calls) // MAX_REPEATED_CALLS) or 1
        return self.repeatable_calls[::step]

    def results(self) -> list[AttackResult]:
        """Return a result for each check that applies to the scorer."""
        others = _OWN_CALLS if self.process.asks_server else {"no_verdict"}
        results = [result for name, result in self.checks.items() if name not in others]
        return [replace(result, tried=len(self.seconds)) for result in results]


def check_conduct(recorder: CallRecorder, targets: list[Target], sources: int) -> None:
    """Make the checks with calls of their own on rows of some data sources in the scorer's form."""
    # Even if calls hang, as many do on a busy machine.
    check_code(recorder, targets[: CODE_ROWS_PER_SOURCE * sources])
    if not recorder.is_stopped:
        check_types(recorder, targets[0])
        check_order(recorder)
        check_threads(recorder)
        median = statistics.median(recorder.seconds)
        if median > SLOW_SECONDS and not targets[0].problem:  # running a program takes longer
            got = f"median {median * 1000:.0f} ms a call"
            recorder.checks["slow"].add_failure("(all responses)", "", got)


def check_types(recorder: CallRecorder, t: Target) -> None:
    """Check the types that verl passes besides text: NumPy's text, and None for a null."""
    response, call, odd = t.right_response, recorder.process.call, recorder.checks["odd_types"]
    odd_call = call(t.row, response, t.gold, is_odd=True)
    if odd_call.score != call(t.row, response, t.gold).score:
        odd.add_failure(f"np.str_({response!r})", f"np.str_({t.gold!r})", odd_call.summary)
    for text, gold in ((None, t.gold), (response, None), (None, None)):
        if (outcome := call(t.row, text, gold)).score is None:
            odd.add_failure(str(text), str(gold), outcome.summary)


def check_order(recorder: CallRecorder) -> None:
    """Repeat calls in reverse order: a score must not depend on earlier calls."""
    for row, response, score in reversed(recorder.sample_calls()):
        outcome = recorder.process.call(row, response, row.gold)
        if outcome.score != score:
            got = f"score {score}, and then {outcome.summary}"
            recorder.checks["depends_on_order"].add_failure(response, row.gold, got)


def check_threads(recorder: CallRecorder) -> None:
    """Repeat calls in several threads at once, as verl's executors do, each in another order."""
    calls, failures = recorder.sample_calls(), recorder.checks["thread_unsafe"]
    indices = [*range(len(calls))]
    orders = [[*indices[5 * i :], *indices[: 5 * i]] * ROUNDS for i in range(THREADS)]
    results = recorder.process.call_in_threads([[calls[i][:2] for i in o] for o in orders])
    different: dict[int, list[float | None]] = {}
    for order, scores in zip(orders, results, strict=True):
        if isinstance(scores, CallOutcome):
            failures.add_failure(f"(calls by {THREADS} threads)", "", scores.summary)
            return
        for index, score in zip(order, scores, strict=True):
            if score != calls[index][2]:
                different.setdefault(index, []).append(score)
    for index, scores in different.items():
        row, response, score = calls[index]
        times = f"{len(scores)} of {ROUNDS * THREADS} calls by {THREADS} threads"
        failures.add_failure(response, row.gold, f"score {score}, but {scores[0]} in {times}")


def check_code(recorder: CallRecorder, targets: list[Target]) -> None:
    """Respond with programs that write a file: if the file exists, the scorer ran one of them."""
    hangs = 0
    # One word in LaTeX, without the `_` of `tempfile`.
    marker = Path(tempfile.gettempdir()) / f"audit{os.urandom(8).hex()}"
    for target in targets:
        for program, gold in product(_programs(str(marker)), (target.row.gold, _MATRIX)):
            response = target.respond(program)
            outcome = recorder.process.call(target.row, response, gold)
            if marker.exists():
                marker.unlink()
                recorder.checks["runs_code"].add_failure(response, gold, "the program was run")
            hangs += outcome.fails("hangs")
            if hangs >= MAX_HANGS:
                return


#: A gold that some scorers compare entry by entry, with another parser.
_MATRIX = r"\begin{pmatrix}1\\2\end{pmatrix}"


def _programs(marker: str) -> Iterator[str]:
    code = f"open('{marker}','w')"
    yield from (code, f"[{code}]", f"0*len([{code}])", rf"\pi*len([{code}])")
    yield f"__import__('os').system('touch {marker}')"
    yield f"lambda:{code}"


def check_growth(recorder: CallRecorder, t: Target) -> None:
    """Check how the time grows from 50 KB of text to 1 MB."""
    for piece in _LONG_TEXTS:
        if recorder.is_stopped:
            return
        short, long = (_seconds(recorder, t, piece, size) for size in (50_000, 1_000_000))
        ratio = long / max(short, 1e-6)
        if long > SLOW_LONG_SECONDS or (ratio > SLOW_GROWTH and long > SLOW_LONG_SECONDS / 10):
            got = f"{short * 1000:.1f} ms for 50 KB, {long * 1000:.0f} ms for 1 MB"
            recorder.checks["grows"].add_failure(f"{piece!r} repeated", t.gold, got)


def _seconds(recorder: CallRecorder, t: Target, piece: str, size: int) -> float:
    """Return the time of a call on a text of this many characters, the shorter of two."""
    response = piece * (size // len(piece)) + t.wrong_response
    times = []
    for _ in range(2):
        (outcome,) = recorder.call_all([(t.row, response)])
        times.append(outcome.seconds if outcome else recorder.process.seconds)
        if times[-1] > SLOW_LONG_SECONDS:
            break
    return min(times)
