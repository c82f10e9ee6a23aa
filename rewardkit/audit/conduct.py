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
from math import inf
from pathlib import Path
from typing import TypeAlias

from rewardkit.audit.attacks import CHECKS
from rewardkit.audit.model import AttackResult, AuditRow, Target
from rewardkit.audit.scorer_process import CallOutcome, ScorerProcess

#: Hanging calls after which the audit makes no more calls: each costs a timeout and a new process. The
#: same for calls that end the process, each of which is tried twice.
MAX_HANGS = MAX_EXITS = 5
#: The same for calls that end the process if no call has returned.
MAX_FIRST_EXITS = 2
#: Calls that are repeated in another order and by several threads, and those of them with programs.
MAX_REPEATED_CALLS, MAX_REPEATED_PROGRAMS = 48, 4
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
_LONG_PROGRAM_TEXTS = ("and so we go on ", "```python\n", "\n")

#: Checks with many calls of their own, or of time, which a scorer that asks a model is spared.
_OWN_CALLS = frozenset(
    {"runs_code", "depends_on_order", "thread_unsafe", "odd_types", "slow", "grows"}
)


#: A call that can be repeated, and its score.
RecordedCall: TypeAlias = tuple[AuditRow, str, float]


class CallRecorder:
    """Makes the calls of an audit, and records their durations and the results of all checks.

    `keys` are those of the first result with a score, and `numeric_keys` those whose values were numbers
    in every one; `not_run` are the names of attacks and checks of which not all calls were made.
    """

    def __init__(self, process: ScorerProcess) -> None:
        self.process = process
        self.seconds: list[float] = []
        self.checks = {check.name: AttackResult.of(check) for check in CHECKS}
        self.repeatable_calls: list[RecordedCall] = []
        self.keys: tuple[str, ...] | None = None
        self.numeric_keys: tuple[str, ...] = ()
        self.not_run: dict[str, None] = {}

    @property
    def ends(self) -> int:
        """Number of calls that hung or ended the process."""
        return self.checks["hangs"].failed + self.checks["exits"].failed

    @property
    def is_stopped(self) -> bool:
        """Whether the scorer hung or ended too often, so that no more calls are made."""
        hangs, exits = self.checks["hangs"].failed, self.checks["exits"].failed
        has_returned = exits < len(self.seconds)
        return hangs >= MAX_HANGS or exits >= (MAX_EXITS if has_returned else MAX_FIRST_EXITS)

    def call_all(
        self, calls: Sequence[tuple[AuditRow, str]], most_ends: float = inf
    ) -> list[CallOutcome | None]:
        """Score responses; None for a call to which a model has no verdict, or that is not made any more.

        No more are made if the audit is stopped, or after more than `most_ends`.
        """

        def call(row: AuditRow, response: str) -> CallOutcome | None:
            is_over = self.is_stopped or self.ends > most_ends
            return None if is_over else self.process.call(row, response, row.gold)

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
            is_short = len(response) < MAX_REPEATED_CHARS
            if row.problem or (is_short and outcome.seconds < MAX_REPEATED_SECONDS):
                self.repeatable_calls.append((row, response, outcome.score))
        is_verdict = outcome.score is not None and not outcome.fails("no_verdict")
        return outcome if is_verdict or not self.process.asks_server else None

    def sample_calls(self) -> list[RecordedCall]:
        """Return calls from the whole audit, to repeat them; with programs those that come first."""
        programs = [call for call in self.repeatable_calls if call[0].problem]
        answers = [call for call in self.repeatable_calls if not call[0].problem]
        step = -(-len(answers) // MAX_REPEATED_CALLS) or 1
        return [*programs[:MAX_REPEATED_PROGRAMS], *answers[::step]]

    def results(self) -> list[AttackResult]:
        """Return a result for each check that applies to the scorer and was run."""
        others = _OWN_CALLS if self.process.asks_server else {"no_verdict", *self.not_run}
        results = [result for name, result in self.checks.items() if name not in others]
        return [replace(result, tried=len(self.seconds)) for result in results]


def check_conduct(recorder: CallRecorder, targets: list[Target], sources: int) -> None:
    """Make the checks with calls of their own on rows of some data sources in the scorer's form."""
    # Even if calls hang, as many do on a busy machine.
    check_code(recorder, targets[: CODE_ROWS_PER_SOURCE * sources])
    if recorder.is_stopped:
        recorder.not_run.update(dict.fromkeys(sorted(_OWN_CALLS - {"runs_code"})))
    else:
        check_types(recorder, targets[0])
        check_order(recorder)
        check_threads(recorder)
        median = statistics.median(recorder.seconds)
        if median > SLOW_SECONDS and not targets[0].row.problem:  # running a program takes longer
            got = f"median {median * 1000:.0f} ms a call"
            recorder.checks["slow"].add_failure("(all responses)", "", got)


def check_types(recorder: CallRecorder, t: Target) -> None:
    """Check the types that verl passes besides text: NumPy's text, and None for a null."""
    response, call, odd = t.right_response, recorder.process.call, recorder.checks["odd_types"]
    own = t.row.gold
    odd_call = call(t.row, response, own, is_odd=True)
    if odd_call.score != call(t.row, response, own).score:
        odd.add_failure(f"np.str_({response!r})", f"np.str_({own!r})", odd_call.summary)
    for text, gold in ((None, own), (response, None), (None, None)):
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
    rounds = 1 if calls and calls[0][0].problem else ROUNDS  # programs take processes of their own
    shifts = [5 * i % max(len(calls), 1) for i in range(THREADS)]
    orders = [[*indices[shift:], *indices[:shift]] * rounds for shift in shifts]
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
        times = f"{len(scores)} of {rounds * THREADS} calls by {THREADS} threads"
        failures.add_failure(response, row.gold, f"score {score}, but {scores[0]} in {times}")


def check_code(recorder: CallRecorder, targets: list[Target]) -> None:
    """Respond with programs that write a file: if the file exists, the scorer ran one of them."""
    hangs = 0
    # One word in LaTeX, without the `_` of `tempfile`.
    marker = Path(tempfile.gettempdir()) / f"audit{os.urandom(8).hex()}"
    for target in targets:
        calls = [*product(_programs(str(marker)), (target.row.gold, _MATRIX))]
        got = "the program was run"
        if target.row.problem:  # it has to run, but not to write files there
            calls, got = calls[:1], "the program wrote a file outside its folder"
        for program, gold in calls:
            response = target.respond(program)
            outcome = recorder.process.call(target.row, response, gold)
            if marker.exists():
                marker.unlink()
                recorder.checks["runs_code"].add_failure(response, gold, got)
            hangs += outcome.fails("hangs")
            if hangs >= MAX_HANGS or outcome.fails("exits"):
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
    for piece in _LONG_PROGRAM_TEXTS if t.row.problem else _LONG_TEXTS:
        # A second time, because the machine may have been busy.
        if _growth(recorder, t, piece) and (got := _growth(recorder, t, piece)):
            recorder.checks["grows"].add_failure(f"{piece!r} repeated", t.gold, got)


def _growth(recorder: CallRecorder, t: Target, piece: str) -> str:
    """Return the times of two calls if the one with the longer text is slow, else ""."""
    texts = [piece * (size // len(piece)) + t.wrong_response for size in (50_000, 1_000_000)]
    outcomes = recorder.call_all([(t.row, text) for text in texts])
    short, long = (each.seconds if each else 0.0 for each in outcomes)
    added = long - short if t.row.problem else long  # running the program takes its own time
    is_steep = long > SLOW_GROWTH * max(short, 1e-6) and added > SLOW_LONG_SECONDS / 10
    if added > SLOW_LONG_SECONDS or is_steep:
        return f"{short * 1000:.1f} ms for 50 KB, {long * 1000:.0f} ms for 1 MB"
    return ""
