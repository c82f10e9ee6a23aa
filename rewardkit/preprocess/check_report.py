"""What `check` found in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.pages.text import row_count
from rewardkit.preprocess.contamination.overlap import Overlap
from rewardkit.preprocess.prompt_lengths import PromptLengths
from rewardkit.preprocess.row_checks import RULES, DataFinding
from rewardkit.preprocess.row_stats import RowStats

#: Findings of each rule that are kept to be shown; all are counted.
EXAMPLES = 10


@dataclass(frozen=True)
class NearDuplicateCluster:
    """Rows that ask nearly the same question.

    Attributes:
        rows: their places in the file, with question and gold.
        conflicting: whether their golds differ: variants, or a wrong gold.
    """

    rows: tuple[tuple[int, str, str], ...]
    conflicting: bool


@dataclass
class CheckReport:
    """What `check` found.

    Attributes:
        path: the file checked.
        rows: how many rows it has.
        bad_rows: how many of them have a finding.
        checked: what was looked at, in words.
        not_checked: what was not, each with the option that asks for it.
        kept: how many were written, where rows are; if none is left, no file is.
        counts: findings by rule.
        examples: the first findings of each rule.
        stats: lengths and kinds of the rows that are no verl rows' faults.
        lengths: of the prompts, in tokens or characters.
        overlaps: evaluation items found in rows, the first of them.
        clusters: near-duplicates, the first clusters.
        cluster_rows: how many rows are in a cluster, and in how many clusters: `(rows, clusters)`.
    """

    path: Path
    rows: int = 0
    bad_rows: int = 0
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    kept: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[DataFinding] = field(default_factory=list)
    stats: RowStats = field(default_factory=RowStats)
    lengths: PromptLengths = field(default_factory=lambda: PromptLengths("characters"))
    overlaps: list[Overlap] = field(default_factory=list)
    clusters: list[NearDuplicateCluster] = field(default_factory=list)
    cluster_rows: tuple[int, int] = (0, 0)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.counts

    def add(self, finding: DataFinding) -> None:
        """Count a finding and keep it if few of its kind were seen."""
        self.counts[finding.rule] += 1
        if self.counts[finding.rule] <= EXAMPLES:
            self.examples.append(finding)

    def add_row(self, findings: list[DataFinding]) -> None:
        """Count a row and what was found in it."""
        self.rows += 1
        self.bad_rows += bool(findings)
        for finding in findings:
            self.add(finding)

    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.ok:
            return f"{row_count(self.rows)}, all good"
        if self.counts["missing"]:
            return f"{row_count(self.rows)}, not checked: verl needs other columns"
        if not self.rows:
            return "the file has no rows"
        if not self.bad_rows:
            return f"{row_count(self.rows)} without a finding, but the schema has one"
        return f"{self.bad_rows:,} of {self.rows:,} rows are bad"

    def listed(self) -> Iterator[tuple[str, str, str]]:
        """The findings kept, rule by rule: where, rule and what; and how many more there are."""
        for rule in RULES:
            found = [finding for finding in self.examples if finding.rule == rule]
            for finding in found:
                where = "file" if finding.row is None else f"row {finding.row}"
                yield where, rule, finding.message
            if len(found) < self.counts[rule]:
                yield "...", rule, f"{len(found):,} of {self.counts[rule]:,} are listed"
