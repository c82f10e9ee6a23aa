"""`rewardkit select`: keep training rows by the pass rate of the policy on their prompts.

A group of responses that are all correct or all wrong has no advantage. DAPO's dynamic sampling
generates it, discards it and generates another, which costs GPU time. Existing responses show which
prompts would have such groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.errors import DataError, UsageError
from rewardkit.jsonl import json_line
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.pages.model import Bars, Histogram, Page, Section, Steps
from rewardkit.pages.text import row_count, sentence, share
from rewardkit.preprocess.dropped_rows import (
    atomic_with_dropped,
    dropped_path,
    require_dropped_path,
)
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.matching import TrainIndex, index_rows, match_row
from rewardkit.responses.samples import (
    Sample,
    SkippedRow,
    finite_number,
    read_samples,
    row_result,
    rule_of_files,
)
from rewardkit.responses.tally import GradientGroups, PromptStepCounts, count_groups, step_of
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.base import Status
from rewardkit.scorers.reward_result import RightRule

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


#: The columns by which responses match rows; the others are copied.
_MATCH_COLUMNS = ("data_source", "prompt", "reward_model", "extra_info", "images")
#: Statuses of responses without a verdict.
_NO_VERDICT = frozenset({Status.BAD_GROUND_TRUTH.value, Status.FAILED.value})


def parse_bounds(text: str) -> tuple[float, float]:
    """Parse `0.1:0.9` as two numbers.

    Raises:
        UsageError: it is not two shares, the lower one first.
    """
    low, colon, high = text.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError:
        bounds = (-1.0, -1.0)
    if colon and 0 <= bounds[1] < bounds[0] <= 1:
        raise UsageError(f"--pass-rate {text}: low is above high; write {high}:{low} (LOW:HIGH).")
    if not colon or not 0 <= bounds[0] <= bounds[1] <= 1:
        raise UsageError(f"--pass-rate {text}: write it as LOW:HIGH, two shares as in 0.1:0.9.")
    return bounds


def select(
    scored: Sequence[str] | Path,
    train: Path,
    out: Path,
    condition: PassRateFilter,
    *,
    response_key: str | None = None,
    gold_key: str | None = None,
    right_score: float | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> SelectReport:
    """Write the rows of a training file that satisfy a condition, unchanged and in order.

    Args:
        scored: files, folders and patterns of responses with `acc`, or `score`, as `rewardkit
            score --out` writes them; `scorers.reward_result` says which are right.
        train: a verl parquet.
        out: the parquet to write; the other rows go to `<out>.dropped.jsonl`.
        condition: which rows are kept.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        right_score: the lowest right score; None if an `acc` of 0 or 1 states what is right.
        overwrite: replace what exists.
        progress: called with 1 for every scored row.

    Raises:
        UsageError: `out` does not end in .parquet.
        DataError: a file cannot be read, it is not known which scores are right, a response
            contradicts its row or matches several rows, no response matches a row, or no row would
            be kept.
        OutputError: `out` cannot be written.
    """
    files, name = require_files(scored, train, out, "--out", overwrite=overwrite)
    report = SelectReport(name, train, out, condition)
    rule = required_rule(files, response_key, gold_key, right_score)
    index = index_train(train)
    rates = [PassRate() for _ in index.prompts]
    groups: dict[tuple[int, int | None], PromptStepCounts] = {}
    for sample in read_samples(files, response_key, gold_key):
        _count(sample, rule, index, rates, groups, report)
        progress(1)
    report.groups = count_groups(groups.values())
    if not report.responses:
        raise DataError(no_match_message(report))
    reasons = [condition.drop_reason(rate) for rate in rates]
    for place in index.rows:
        report.add_row(rates[place], reasons[place])
    if report.dropped.total() == report.rows:
        raise DataError(f"{train}: no row would be kept ({count_list(report.dropped)}).")
    _write(index, rates, reasons, report, overwrite=overwrite)
    return report


def require_files(
    scored: Sequence[str] | Path, train: Path, out: Path, option: str, *, overwrite: bool
) -> tuple[list[str], str]:
    """Return the files of scored responses and their name in reports, if `out` can be written.

    Raises:
        UsageError: `out`, which the user named with `option`, does not end in .parquet.
        OutputError: `out` exists, or is an input.
    """
    files = expand_paths([str(scored)] if isinstance(scored, Path) else scored)
    for source in (*map(Path, files), train):
        require_not_input(out, source)
        require_not_input(dropped_path(out), source)
    require_suffix(option, out, ".parquet")
    require_absent(out, overwrite=overwrite)
    require_dropped_path(out, overwrite=overwrite)
    return files, files[0] if len(files) == 1 else f"{len(files):,} files"


def index_train(train: Path) -> TrainIndex:
    """Return the index of a verl parquet's rows.

    Raises:
        DataError: the file is not a verl parquet.
    """
    with open_parquet(train) as file:
        columns = [name for name in file.schema_arrow.names if name in _MATCH_COLUMNS]
        if "prompt" not in columns:
            raise DataError(f"{train}: has no 'prompt': not a verl parquet.")
        batches = file.iter_batches(BATCH_ROWS, columns=columns)
        rows = (row for batch in batches for row in batch.to_pylist())
        return index_rows(rows, str(train))


def required_rule(
    files: Sequence[str], response_key: str | None, gold_key: str | None, right_score: float | None
) -> RightRule:
    """Return `rule_of_files`.

    Raises:
        DataError: a file cannot be read, or it is not known which scores are right.
    """
    rule = rule_of_files(files, response_key, gold_key, right_score)
    if not rule.is_known:
        name = files[0] if len(files) == 1 else f"{len(files):,} files"
        raise DataError(f"{name}: {rule.sentence}")
    return rule


def _count(
    sample: Sample | SkippedRow,
    rule: RightRule,
    index: TrainIndex,
    rates: list[PassRate],
    groups: dict[tuple[int, int | None], PromptStepCounts],
    report: SelectReport,
) -> None:
    correct = sample if isinstance(sample, SkippedRow) else is_right(sample, rule)
    score = None if isinstance(sample, SkippedRow) else _score_of(sample)
    match = None
    if isinstance(sample, Sample) and (score is not None or isinstance(correct, bool)):
        match = match_row(index, sample)
        if match and score is not None:
            group = groups.setdefault((match.place, step_of(sample.fields)), PromptStepCounts())
            group.add(score, is_correct=correct is True)
    if isinstance(correct, SkippedRow):
        report.unread += 1
        report.add_example(correct)
    elif match is None:
        report.unjoined += 1
        report.add_example(SkippedRow(sample.where, f"answers no row of {report.train}"))
    else:
        report.responses[match.way] += 1
        rates[match.place].add(correct)


def _score_of(sample: Sample) -> float | None:
    """Return the score of a response, else its `acc`; None if it is not a finite number."""
    score = sample.fields.get("score")
    return finite_number(sample.fields.get("acc") if score is None else score)


def is_right(sample: Sample, rule: RightRule) -> bool | SkippedRow:
    """Return whether a scored response is right, or why it has no verdict.

    A gold that cannot be scored says nothing about its prompt: it is not a prompt that is never solved.

    Raises:
        DataError: the rule does not say which of its scores is right, although it did of the first rows.
    """
    if (status := str(sample.fields.get("status"))) in _NO_VERDICT:
        return SkippedRow(sample.where, f"its status is {status}")
    name = "score" if sample.fields.get("acc") is None else "acc"
    value = sample.fields.get(name)
    if value is not None and finite_number(value) is None:
        return SkippedRow(sample.where, f"{name} is {value!r:.40}, not a number")
    result = row_result(sample.fields)
    if result is None:
        return SkippedRow(sample.where, "neither acc nor score: run rewardkit score --out first")
    correct = rule.judge(result.as_score()).correct
    if correct is None:
        raise DataError(
            f"{sample.where}: a score of {result.score:g} is neither right nor wrong, unlike those of "
            "the first rows, which are 0 or 1. Name the lowest right one with --right-score."
        )
    return correct


def no_match_message(report: SelectReport | SftReport) -> str:
    """Return the error of a command for which no response matches a row."""
    first = f" First: {report.examples[0]}." if report.examples else ""
    return (
        f"{report.scored}: no response matches a row of {report.train}: {report.unjoined:,} answer other "
        f"prompts, {report.unread:,} lines cannot be read. Responses are matched by data_source, "
        f"extra_info.split and index, by prompt, or by source_id.{first}"
    )


def count_list(reasons: Counter[str]) -> str:
    """Return reasons with their counts as text, the most frequent first."""
    return ", ".join(f"{reason}: {n:,}" for reason, n in reasons.most_common())


def _write(
    index: TrainIndex,
    rates: list[PassRate],
    reasons: list[str],
    report: SelectReport,
    *,
    overwrite: bool,
) -> None:
    """Write the kept rows unchanged, and the dropped rows with the reason as jsonl."""
    with (
        open_parquet(report.train) as file,
        atomic_with_dropped(report.out, overwrite=overwrite) as (out_path, lines_path),
        lines_path.open("w") as lines,
        pq.ParquetWriter(out_path, file.schema_arrow, compression="zstd") as writer,
    ):
        start = 0
        for batch in file.iter_batches(BATCH_ROWS):
            places = index.rows[start : start + batch.num_rows]
            is_kept = pa.array([not reasons[place] for place in places])
            writer.write_batch(batch.filter(is_kept))
            dropped = [(start + i, place) for i, place in enumerate(places) if reasons[place]]
            rows = batch.filter(pc.invert(is_kept)).to_pylist()
            for (number, place), row in zip(dropped, rows, strict=True):
                lines.write(json_line(dropped_row(number, rates[place], reasons[place], row)))
            report.written += len(places) - len(dropped)
            start += len(places)


def dropped_row(number: int, rate: PassRate, reason: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of `OUT.dropped.jsonl`."""
    return {
        "index": number,
        "reasons": [reason],
        "pass_rate": rate.share if rate.n else None,
        "responses": rate.n,
        "row": row,
    }


def select_page(report: SelectReport) -> Page:
    """Return the page of a selection."""
    condition = report.wanted
    facts = (
        ("training file", str(report.train)),
        ("scored responses", str(report.scored)),
        ("written", str(report.out)),
        ("pass rate kept", f"{condition.low:g} to {condition.high:g}"),
        ("responses at least", f"{condition.min_samples:,}"),
        ("rows with fewer", "kept" if condition.unseen else "dropped"),
    )
    title = f"{report.out.name}: {report.written:,} of {row_count(report.rows)} kept"
    return Page(title, facts, tuple(_sections(report)))


def match_sentence(report: SelectReport | SftReport) -> str:
    """Return a sentence with the number of responses by the way they match a row."""
    ways = [f"{n:,} by {way}" for way, n in report.responses.most_common()]
    return f"responses matched to rows: {', '.join(ways)}; matched to none: {report.unjoined:,}"


def groups_sentence(report: SelectReport) -> str:
    """Return a sentence with the number of groups without a gradient, as `report` counts them."""
    groups = report.groups
    return (
        f"groups without a gradient: {groups.without_gradient:,} of {groups.n:,} "
        f"({share(groups.without_gradient, groups.n)}); a group is the responses to one prompt at one "
        "step, two or more"
    )


def _sections(report: SelectReport) -> Iterator[Section]:
    note = f"{dropped_path(report.out)} has the dropped rows with their pass rates."
    yield Steps("Rows left after each step", tuple(_steps(report)), note)
    note = f"{sentence(groups_sentence(report))} Rows with too few responses are not counted below."
    yield Bars("Rows by pass rate over all steps", tuple(report.bands().items()), note)
    yield Histogram("Pass rates in percent", report.percents, "percent correct")
    yield Bars(
        "Responses matched to rows",
        _responses_by_match(report),
        sentence(match_sentence(report)),
        "responses",
    )


def _steps(report: SelectReport) -> Iterator[tuple[str, int]]:
    n_left = report.rows
    yield "training rows", n_left
    for reason, n in report.dropped.items():
        n_left -= n
        yield f"dropped: {reason}", n_left


def _responses_by_match(report: SelectReport) -> tuple[tuple[str, int], ...]:
    ways = tuple((f"matched by {way}", n) for way, n in report.responses.most_common())
    return *ways, ("matched to no row", report.unjoined), ("not read", report.unread)
