"""Which rows `select` keeps, and its report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.responses.prompt_groups import GradientGroups
from rewardkit.responses.records import SkippedRow

#: Unusable rows that a report lists; all are counted.
MAX_EXAMPLES = 3


@dataclass(frozen=True)
class PassRateFilter:
    """The condition on which a row is kept.

    Attributes:
        low: the lowest pass rate, inclusive.
        high: the highest pass rate, inclusive.
        min_samples: minimum number of responses to a prompt.
        unseen: whether to keep rows with fewer responses.
    """

    low: float
    high: float
    min_samples: int = 1
    unseen: bool = False

    def drop_reason(self, rate: PassRate) -> str:
        """Return why a row with this pass rate is dropped; "" if it is kept."""
        if rate.n < self.min_samples:
            few = f"fewer than {self.min_samples} responses" if rate.n else "no responses"
            return "" if self.unseen else few
        if rate.share < self.low:
            return f"pass rate below {self.low:g}"
        return f"pass rate above {self.high:g}" if rate.share > self.high else ""


@dataclass
class PassRate:
    """The responses to one prompt, over all steps.

    Attributes:
        n: number of responses.
        correct: sum of their accuracies.
        best: the highest accuracy.
    """

    n: int = 0
    correct: float = 0.0
    best: float = 0.0

    def add(self, correct: float) -> None:
        """Count a response with an accuracy from 0 to 1."""
        self.n += 1
        self.correct += correct
        self.best = max(self.best, correct)

    @property
    def share(self) -> float:
        """The pass rate; 0.0 without responses."""
        return self.correct / self.n if self.n else 0.0

    @property
    def percent(self) -> int:
        """The pass rate in whole per cent; only 0.0 is 0, and only 1.0 is 100."""
        if self.share in (0.0, 1.0):
            return int(100 * self.share)
        return min(max(round(100 * self.share), 1), 99)


@dataclass
class JoinReport:
    """What both reports share: the files, and the scored responses by their match with a row.

    Attributes:
        scored: the file of scored responses, or the number of files.
        train: the training file.
        out: the parquet that was written.
        responses: scored responses that match a row, by the way they match.
        unjoined: scored responses that match no row.
        unread: rows without a usable score.
        examples: the first of these two, with the reason.
    """

    scored: str
    train: Path
    out: Path
    responses: Counter[str] = field(default_factory=Counter, kw_only=True)
    unjoined: int = field(default=0, kw_only=True)
    unread: int = field(default=0, kw_only=True)
    examples: list[str] = field(default_factory=list, kw_only=True)

    def add_example(self, row: SkippedRow) -> None:
        """Add an example of a row that does not count."""
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{row.where}: {row.reason}")


@dataclass
class SelectReport(JoinReport):
    """The result of `select`; all numbers are counts.

    Attributes:
        wanted: the condition on which a row is kept.
        rows: rows of the training file.
        written: rows that were kept.
        dropped: rows that were not, by reason.
        unseen: rows without responses.
        few: rows with fewer responses than `wanted.min_samples`, but with some.
        percents: rows with enough responses, by pass rate in per cent.
        groups: the groups of matched responses: to one prompt, at one step.
    """

    wanted: PassRateFilter
    rows: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    unseen: int = 0
    few: int = 0
    percents: Counter[int] = field(default_factory=Counter)
    groups: GradientGroups = field(default_factory=GradientGroups)

    def add_row(self, rate: PassRate, drop_reason: str) -> None:
        """Count a row of the training file; `drop_reason` is "" if it is kept."""
        self.rows += 1
        self.unseen += not rate.n
        if rate.n and rate.n < self.wanted.min_samples:
            self.few += 1
        elif rate.n:
            self.percents[rate.percent] += 1
        if drop_reason:
            self.dropped[drop_reason] += 1

    def bands(self) -> dict[str, int]:
        """Rows by pass rate in tenths; `never` and `always` are bands of their own."""
        counts = {"never": 0, "below 10%": 0}
        counts |= {f"{low}% to {low + 9}%": 0 for low in range(10, 100, 10)} | {"always": 0}
        names = list(counts)
        for percent, rows in self.percents.items():
            band = -1 if percent == 100 else percent // 10 + 1 if percent else 0
            counts[names[band]] += rows
        return counts

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {**vars(self), "bands": self.bands()}


@dataclass
class SftReport(JoinReport):
    """The result of `select_sft`; all numbers are counts.

    Attributes:
        per_prompt: the most responses that are kept for a prompt.
        wrong: matched responses that are not right.
        rejected: right responses that were left out, by reason.
        prompts: distinct prompts of the training file.
        covered: those of `prompts` that have a response in `out`.
        dropped: the other prompts, by reason.
        written: conversations that were written.
        unknown_end: those of `written` whose record does not say why the response ended.
        tool_arguments: how the arguments of tool calls are written: `objects` or `JSON text`; "" if
            there are none.
        null_tool_fields: whether verl reads null fields in the schemas of the tools.
    """

    per_prompt: int
    wrong: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    prompts: int = 0
    covered: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    written: int = 0
    unknown_end: int = 0
    tool_arguments: str = ""
    null_tool_fields: bool = False

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return vars(self).copy()
