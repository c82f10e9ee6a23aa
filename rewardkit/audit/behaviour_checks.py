"""Conduct: what a reward must not do in verl's hands, whatever it is given.

Most of it is told from the calls that the other attacks make: `Journal` makes them and keeps what
went wrong. The rest are calls of their own, by the functions below.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TypeAlias

from rewardkit.audit.model import (
    EXAMPLES,
    Attack,
    Case,
    Failure,
    Finding,
    Severity,
    Target,
    clipped,
)
from rewardkit.audit.process import Outcome, Process

#: Calls that may hang before no more are made: each costs a deadline and a start.
MAX_HANGS = 5
#: Calls made again in another order, and by several threads.
REPEATED = 48
#: No reward in use is larger.
SANE = 10.0
#: What is slow: the median in seconds, and 1 MB against 50 KB, where linear is 20.
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

#: A call that was made, and its score.
Scored: TypeAlias = tuple[Case, str, "float | None"]


@dataclass
class Journal:
    """Makes the calls of an audit and notes what went wrong with any of them.

    Attributes:
        process: where the scorer runs.
        calls: how many were made.
        seconds: how long each of them took.
        failed: how often each check failed.
        failures: the first failures of each check.
        repeatable: calls to be made again, with their scores.
    """

    process: Process
    calls: int = 0
    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    repeatable: list[Scored] = field(default_factory=list)
    keys: tuple[str, ...] | None = None

    def call(self, case: Case, response: str, gold: str | None = None) -> Outcome | None:
        """What the scorer says, None if it hung so often that it is not asked any more."""
        if self.failed["hangs"] >= MAX_HANGS:
            return None
        gold = case.gold if gold is None else gold
        outcome = self.process.call(case, response, gold)
        self.calls += 1
        self.seconds.append(outcome.seconds)
        for check in self._faults(outcome):
            self.note(check, response, gold, _told(check, outcome))
        if gold == case.gold and len(response) < 2000 and not outcome.problem:
            self.repeatable.append((case, response, outcome.score))
        return outcome

    def repeated(self) -> list[Scored]:
        """Calls from all of the audit, to be made again."""
        return self.repeatable[:: -(-len(self.repeatable) // REPEATED) or 1]

    def note(self, check: str, response: str, gold: str, got: str) -> None:
        """Keep a failure of a check."""
        self.failed[check] += 1
        kept = self.failures.setdefault(check, [])
        if len(kept) < EXAMPLES:
            kept.append(Failure(clipped(response), clipped(gold), clipped(got)))

    def _faults(self, outcome: Outcome) -> Iterator[str]:
        if outcome.problem:
            yield _CHECK_OF[outcome.problem]
        if outcome.score is not None and abs(outcome.score) > SANE:
            yield "out_of_range"
        if outcome.mutated:
            yield "changes_extra_info"
        if outcome.printed:
            yield "prints"
        if outcome.score is not None:
            self.keys = outcome.keys if self.keys is None else self.keys
            if outcome.keys != self.keys:
                yield "keys_differ"


_CHECK_OF = {
    "raised": "raises",
    "hung": "hangs",
    "exited": "exits",
    "died": "exits",
    "bad": "no_number",
    "nan": "no_number",
}


def _told(check: str, outcome: Outcome) -> str:
    if check == "keys_differ":
        return f"keys {', '.join(outcome.keys) or 'none, a bare number'}"
    if check == "changes_extra_info":
        return "extra_info is not what it was"
    return "text on stdout" if check == "prints" else outcome.said


def check_conduct(journal: Journal, targets: list[Target], programs: int) -> None:
    """Make the calls that only conduct is about, and note what they come to.

    Args:
        journal: of the audit.
        targets: the rows in the scorer's own form.
        programs: how many of them are answered with programs.
    """
    runs_code(journal, targets[:programs])  # also of one that hangs: on a busy machine many do
    if journal.failed["hangs"] < MAX_HANGS:
        odd_types(journal, targets[0])
        in_another_order(journal)
        in_threads(journal)
        slow(journal)


def odd_types(journal: Journal, t: Target) -> None:
    """What verl hands over besides text: NumPy's text, and None for a null."""
    said = t.say(t.gold)
    plain = journal.process.call(t.case, said, t.gold)
    dressed = journal.process.call(t.case, said, t.gold, "numpy")
    if dressed.score != plain.score:
        journal.note("odd_types", f"np.str_({said!r})", f"np.str_({t.gold!r})", dressed.said)
    for response, gold in ((None, t.gold), (said, None), (None, None)):
        outcome = journal.process.call(t.case, response, gold)
        if outcome.problem:
            journal.note("odd_types", str(response), str(gold), outcome.said)


def in_another_order(journal: Journal) -> None:
    """The same calls again, the last first: a score must not depend on what came before."""
    for case, response, score in reversed(journal.repeated()):
        again = journal.process.call(case, response, case.gold)
        if again.score != score:
            got = f"score {score}, and then {again.said}"
            journal.note("depends_on_order", response, case.gold, got)


def in_threads(journal: Journal) -> None:
    """The same calls by eight threads at once, as verl's executors make them."""
    made = journal.repeated()
    runs = journal.process.in_threads([call[:2] for call in made])
    if isinstance(runs, Outcome):
        journal.note("thread_unsafe", "(calls by 8 threads)", "", runs.said)
        return
    for (case, response, score), *others in zip(made, *runs, strict=True):
        if odd := [other for other in others if other != score]:
            got = f"score {score}, but {odd[0]} in {len(odd)} of {len(others)} threads"
            journal.note("thread_unsafe", response, case.gold, got)


def runs_code(journal: Journal, targets: list[Target]) -> None:
    """Answers that are programs: an empty file in a folder of ours tells whether one was run."""
    hung = 0
    with _folder() as folder:
        marker = folder / "ran"
        for target in targets:
            for program, gold in product(_programs(str(marker)), (target.gold, _MATRIX)):
                outcome = journal.process.call(target.case, target.say(program), gold)
                if marker.exists():
                    marker.unlink()
                    journal.note("runs_code", target.say(program), gold, "the program was run")
                hung += outcome.problem == "hung"
                if hung >= MAX_HANGS:
                    return


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder whose name is one word to what reads LaTeX: `tempfile` has `_` in every fifth."""
    folder = Path(tempfile.gettempdir()) / f"audit{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


#: A gold that some scorers compare entry by entry, each through a parser of its own.
_MATRIX = r"\begin{pmatrix}1\\2\end{pmatrix}"


def _programs(marker: str) -> Iterator[str]:
    code = f"open('{marker}','w')"
    yield from (code, f"[{code}]", f"0*len([{code}])", rf"\pi*len([{code}])")
    yield f"__import__('os').system('touch {marker}')"
    yield f"lambda:{code}"


def slow(journal: Journal) -> None:
    """The time of an ordinary call."""
    median = statistics.median(journal.seconds)
    if median > SLOW_SECONDS:
        journal.note("slow", "(all responses)", "", f"median {median * 1000:.0f} ms a call")


def growth(journal: Journal, t: Target) -> None:
    """How the time grows with the text: twenty times as long, 50 KB to 1 MB."""
    for name, piece in _LONG_TEXTS.items():
        if journal.failed["hangs"] >= MAX_HANGS:
            return
        short, long = (_seconds(journal, t, piece, size) for size in (50_000, 1_000_000))
        times = long / max(short, 1e-6)
        if long > SLOW_LONG_SECONDS or (times > SLOW_GROWTH and long > SLOW_LONG_SECONDS / 10):
            got = f"{short * 1000:.1f} ms for 50 KB, {long * 1000:.0f} ms for 1 MB"
            journal.note("grows", f"{piece!r} repeated ({name})", t.gold, got)


def _seconds(journal: Journal, t: Target, piece: str, size: int) -> float:
    """The time of a call on so much text, the better of two."""
    response = piece * (size // len(piece)) + t.say(t.wrong)
    times = []
    for _ in range(2):
        outcome = journal.call(t.case, response)
        times.append(outcome.seconds if outcome else journal.process.seconds)
        if times[-1] > SLOW_LONG_SECONDS:
            break
    return min(times)


def findings_of(journal: Journal) -> list[Finding]:
    """A finding for each check."""
    return [
        Finding(
            check.name,
            "conduct",
            check.severity,
            check.about,
            journal.calls,
            journal.failed[check.name],
            tuple(journal.failures.get(check.name, ())),
        )
        for check in CHECKS
    ]


def _check(name: str, severity: Severity, about: str) -> Attack:
    return Attack(name, "conduct", severity, about, lambda _: iter(()))


CHECKS = (
    _check("raises", "high", "An exception: verl 0.9 drops the sample without a word."),
    _check("hangs", "high", "No verdict within the deadline: the step waits for it."),
    _check("exits", "high", "sys.exit, or the end of the process."),
    _check("no_number", "high", "None, text, NaN or infinity for a score."),
    _check("keys_differ", "high", "Other keys for one sample than for another: verl fails on it."),
    _check("runs_code", "high", "Runs code that a response holds."),
    _check("depends_on_order", "high", "Another score for the same call, later."),
    _check("thread_unsafe", "high", "Another score when eight threads call at once."),
    _check("changes_extra_info", "medium", "Writes into the row's extra_info."),
    _check("odd_types", "medium", "NumPy's text, or None for a response or gold."),
    _check("slow", "medium", "More than 50 ms for an ordinary call."),
    _check("grows", "medium", "More than a second for 1 MB, or growth far above linear."),
    _check("out_of_range", "low", "A score beyond 10 in either direction."),
    _check("prints", "low", "Writes to stdout at every call."),
)
