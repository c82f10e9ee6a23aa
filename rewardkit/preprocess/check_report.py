"""The report of `rewardkit check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.pages.text import row_count
from rewardkit.preprocess.contamination.overlap import Overlap
from rewardkit.preprocess.prompt_lengths import PromptLengths
from rewardkit.preprocess.row_checks import RULES, DataFinding
from rewardkit.preprocess.row_stats import RowStats
from rewardkit.scorers.reward_result import RightRule

#: Maximum number of findings of each rule in a report; all are counted.
MAX_EXAMPLES = 10


@dataclass(frozen=True)
class NearDuplicateCluster:
    """Rows that ask nearly the same question.

    Attributes:
        rows: place in the file, question and gold of each row.
        conflicting: whether the golds differ, because the rows are variants or a gold is wrong.
    """

    rows: tuple[tuple[int, str, str], ...]
    conflicting: bool


@dataclass
class CheckReport:
    """What `check` found in a file.

    Attributes:
        path: the file.
        rows: number of rows in the file.
        bad_rows: number of rows with a finding.
        checked: the aspects that were checked, in words.
        not_checked: the aspects that were not checked, each with the option that requests it.
        missing_sets: the evaluation sets of `all-eval` that could not be read, each with the reason.
        kept: number of rows written to the output, if there is one; no file is written for 0 rows.
        right: a sentence about which scores of a custom scorer are right; "" for other scorers.
        counts: number of findings by rule.
        examples: the first findings of each rule.
        stats: statistics of the readable rows.
        lengths: lengths of the prompts in tokens or characters.
        overlaps: the first evaluation items found in rows.
        near_misses: the first pairs of a row and an evaluation item that are alike; they are
            not findings.
        near_miss_count: number of all such pairs.
        pairs_by_set: number of pairs by evaluation set, and in it by rule: `copy`, `reworded` and
            `near_miss`.
        clusters: the first clusters of near-duplicates.
        cluster_rows: number of rows in clusters, and number of clusters.
        shared_prompts: number of rows whose prompt is in a file that was checked before, by file.
    """

    path: Path
    rows: int = 0
    bad_rows: int = 0
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    missing_sets: Mapping[str, str] = field(default_factory=dict)
    kept: int = 0
    right: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[DataFinding] = field(default_factory=list)
    stats: RowStats = field(default_factory=RowStats)
    lengths: PromptLengths = field(default_factory=lambda: PromptLengths("characters"))
    overlaps: list[Overlap] = field(default_factory=list)
    near_misses: list[Overlap] = field(default_factory=list)
    near_miss_count: int = 0
    pairs_by_set: dict[str, Counter[str]] = field(default_factory=dict)
    clusters: list[NearDuplicateCluster] = field(default_factory=list)
    cluster_rows: tuple[int, int] = (0, 0)
    shared_prompts: Counter[str] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Whether the file has no findings."""
        return not self.counts

    @property
    def exit_code(self) -> int:
        """1 if there are findings, otherwise 0."""
        return int(not self.ok)

    def add(self, finding: DataFinding) -> None:
        """Count a finding, and keep it as an example if it is one of the first of its rule."""
        self.counts[finding.rule] += 1
        if self.counts[finding.rule] <= MAX_EXAMPLES:
            self.examples.append(finding)

    def add_rule(self, rule: RightRule) -> None:
        """Keep which scores of a custom scorer are right, or that it is not known."""
        if rule.is_known:
            self.right = rule.sentence
        else:
            self.add(DataFinding(None, "unknown_right", rule.sentence))

    def add_all(self, findings: Iterable[DataFinding]) -> None:
        """Count findings."""
        for finding in findings:
            self.add(finding)

    def add_row(self, findings: list[DataFinding]) -> None:
        """Count a row and its findings."""
        self.rows += 1
        self.bad_rows += bool(findings)
        self.add_all(findings)

    def missing_set_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the names of missing evaluation sets, and the reason that they have in common."""
        for reason in dict.fromkeys(self.missing_sets.values()):
            names = [name for name, why in self.missing_sets.items() if why == reason]
            yield ", ".join(names), reason

    def verdict(self) -> str:
        """Return the result in a few words."""
        if self.ok:
            return f"{row_count(self.rows)}, all good"
        if self.counts["missing"]:
            return f"{row_count(self.rows)}, not checked: columns that verl needs are missing"
        if not self.rows:
            return "the file has no rows"
        if not self.bad_rows:
            return f"{row_count(self.rows)} without findings, but the schema has one"
        if self.bad_rows == 1:
            return f"1 of {self.rows:,} rows is bad"
        return f"{self.bad_rows:,} of {self.rows:,} rows are bad"

    def example_lines(self) -> Iterator[tuple[str, str, str]]:
        """Yield place, rule and message of the examples, and how many of all findings they are."""
        for rule in RULES:
            examples = [finding for finding in self.examples if finding.rule == rule]
            for finding in examples:
                where = "file" if finding.row is None else f"row {finding.row}"
                yield where, rule, finding.message
            if len(examples) < self.counts[rule]:
                yield "...", rule, f"{len(examples):,} of {self.counts[rule]:,} are listed"
