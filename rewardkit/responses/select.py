"""`rewardkit select`: keep training rows by the pass rate of the policy on their prompts.

A group of responses that are all correct or all wrong has no advantage. DAPO's dynamic sampling
generates it, discards it and generates another, which costs GPU time. Existing responses show which
prompts would have such groups.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.dropped_rows import atomic_with_dropped, dropped_path, require_dropped_path
from rewardkit.errors import DataError, UsageError
from rewardkit.jsonl import json_line
from rewardkit.output import require_absent, require_not_input
from rewardkit.responses.figures import Cell, GradientGroups
from rewardkit.responses.files import SkippedRow, files_name, input_files
from rewardkit.responses.matching import INDEX_ALONE, Match, TrainIndex, index_parquet
from rewardkit.responses.samples import USUAL_NAMES, FieldNames, Sample, read_scores
from rewardkit.row import BATCH_ROWS, IMAGES, open_parquet, python_rows
from rewardkit.scorers.base import Score, Status
from rewardkit.text import count_of, percentage

#: Unusable rows that a report lists; all are counted.
MAX_EXAMPLES = 3

#: Training rows that are read together if they have images.
IMAGE_BATCH_ROWS = 256

#: Bands of pass rates.
BANDS = ("never", "below 10%", *(f"{n}% to {n + 9}%" for n in range(10, 100, 10)), "always")

#: Statuses of responses that say nothing about their prompt: it is not one that is never solved.
NO_VERDICT = frozenset({Status.BAD_GROUND_TRUTH, Status.FAILED})


@dataclass(frozen=True)
class PassRateFilter:
    """Selects rows whose pass rate is from `low` to `high`, both inclusive.

    With `unseen` it also selects rows with fewer than `min_samples` responses.
    """

    low: float
    high: float
    min_samples: int = 1
    unseen: bool = False

    @classmethod
    def parse(cls, text: str, min_samples: int = 1, *, unseen: bool = False) -> "PassRateFilter":
        """Parse bounds such as `0.1:0.9`."""
        try:
            low, high = map(float, text.split(":"))
        except ValueError:
            low = high = -1.0
        if 0 <= high < low <= 1:
            swapped = ":".join(reversed(text.split(":")))
            raise UsageError(f"--pass-rate {text}: low is above high; write {swapped} (LOW:HIGH).")
        if not 0 <= low <= high <= 1:
            raise UsageError(
                f"--pass-rate {text}: write it as LOW:HIGH, two fractions as in 0.1:0.9."
            )
        return cls(low, high, min_samples, unseen)

    def drop_reason(self, responses: Cell) -> str:
        """Return why a row with these responses is dropped; "" if it is kept."""
        if responses.n < self.min_samples:
            few = f"fewer than {self.min_samples} responses" if responses.n else "no responses"
            return "" if self.unseen else few
        if responses.rate < self.low:
            return f"pass rate below {self.low:g}"
        return f"pass rate above {self.high:g}" if responses.rate > self.high else ""


@dataclass
class JoinReport:
    """What the reports of `select` share: the files, and the responses by their match with a row.

    `responses` are the scored ones that match a row, by the way they match; `unjoined` match no row and
    `unread` have no usable score; `examples` are the first of these two, with the reason. `dropped` are
    rows or prompts that were not written, by reason.
    """

    scored: str
    train: Path
    out: Path
    responses: Counter[str] = field(default_factory=Counter)
    unjoined: int = 0
    unread: int = 0
    examples: list[str] = field(default_factory=list)
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return vars(self).copy()

    def join(
        self,
        scores: Iterable[tuple[Sample, Score] | SkippedRow],
        index: TrainIndex,
        progress: Callable[[int], object] = lambda _: None,
    ) -> Iterator[tuple[Sample, Score, Match]]:
        """Yield the scored responses that match a row, and count all.

        Those with a status of `NO_VERDICT` are yielded, too, and counted as not read.
        """
        for each in scores:
            progress(1)
            if isinstance(each, SkippedRow):
                self._skip(*each)
                continue
            sample, score = each
            match = index.match(sample)
            if score.status in NO_VERDICT:
                self._skip(sample.where, f"its status is {score.status.value}")
            elif match:
                self.responses[match.way] += 1
            else:
                self._skip(sample.where, f"answers no row of {self.train}", is_read=True)
            if match:
                yield sample, score, match
        if not self.responses:
            first = f" First: {self.examples[0]}." if self.examples else ""
            raise DataError(
                f"{self.scored}: no response matches a row of {self.train}: {self.unjoined:,} answer "
                f"other prompts, {self.unread:,} lines cannot be read. Responses are matched by "
                f"data_source, extra_info.split and index, by prompt, or by source_id.{first}"
            )

    def _skip(self, where: str, reason: str, *, is_read: bool = False) -> None:
        self.unjoined += is_read
        self.unread += not is_read
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{where}: {reason}")

    def warnings(self) -> list[str]:
        """Return sentences about what is doubtful."""
        return []

    def lines(self) -> list[str]:
        """Return the report in sentences; the last one has the responses by the way they match a row."""
        ways = ", ".join(f"{n:,} by {way}" for way, n in self.responses.most_common())
        skipped = f"; lines skipped: {self.unread:,}" if self.unread else ""
        return [f"responses matched to rows: {ways}; matched to none: {self.unjoined:,}{skipped}"]


@dataclass
class SelectReport(JoinReport):
    """The result of `select`; all numbers are counts.

    `few` are rows with fewer responses than `wanted.min_samples`, but with some. `bands` are rows with
    enough, by pass rate, and `groups` the groups of matched responses: to one prompt, at one step.
    """

    wanted: PassRateFilter = field(default_factory=lambda: PassRateFilter(0.0, 1.0))
    rows: int = 0
    unseen: int = 0
    few: int = 0
    bands: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BANDS, 0))
    groups: GradientGroups = field(default_factory=GradientGroups)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {**vars(self), "groups": self.groups._asdict()}

    def warnings(self) -> list[str]:
        """Return a sentence about matches that nothing confirms."""
        alone = self.responses[INDEX_ALONE]
        sentence = (
            f"{alone:,} responses were matched by {INDEX_ALONE}: nothing else in them or their rows "
            "confirms the match."
        )
        return [sentence] if alone else []

    def lines(self) -> list[str]:
        """Return the report in sentences; groups without a gradient are those that `score` counts."""
        flat, n = self.groups.without_gradient, self.groups.n
        groups = f"groups without a gradient: {flat:,} of {n:,} ({percentage(flat, n)})"
        action = "kept" if self.wanted.unseen else "dropped"
        return [
            *(f"dropped, {why}: {count_of(n, self.rows)}" for why, n in self.dropped.items()),
            f"rows without responses: {self.unseen:,}, with too few: {self.few:,} (both {action})",
            *super().lines(),
            f"{groups}; a group is the responses to one prompt at one step, two or more",
        ]


def band(rate: float) -> str:
    """Return the band of a pass rate: tenths, of which `never` and `always` are apart."""
    return BANDS[-1 if rate == 1 else 1 + int(10 * rate) if rate else 0]


def select(
    scored: Sequence[str | Path],
    train: Path,
    out: Path,
    condition: PassRateFilter,
    *,
    names: FieldNames = USUAL_NAMES,
    right_score: float | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> SelectReport:
    """Write the rows of a training file that satisfy a condition, unchanged and in order.

    `scored` are files, folders and patterns of responses with `acc`, or `score`, as `rewardkit score --out`
    writes them; `right_score` is the lowest right one, None if an `acc` of 0 or 1 states what is right. The
    other rows go to `<out>.dropped.jsonl`.

    Raises:
        DataError: a file cannot be read, it is not known which scores are right, a response
            contradicts its row or matches several rows, no response matches a row, or no row would
            be kept.
    """
    files, name = scored_files(scored, train, out, "--out", overwrite=overwrite)
    report = SelectReport(name, train, out, wanted=condition)
    index = index_parquet(train)
    rates = [Cell() for _ in index.prompts]
    groups: dict[tuple[int, int | None], Cell] = {}
    scores = read_scores(files, names, right_score)
    for sample, score, match in report.join(scores, index, progress):
        if score.status not in NO_VERDICT:
            rates[match.prompt].add(score)
        groups.setdefault((match.prompt, sample.step), Cell()).add(score)
    report.groups = GradientGroups.of(groups.values())
    report.rows = len(index.rows)
    reasons = [condition.drop_reason(rates[i]) for i in index.rows]
    report.dropped.update(filter(None, reasons))
    if report.dropped.total() == report.rows:
        raise DataError(f"{train}: no row would be kept ({count_list(report.dropped)}).")
    for rate in (rates[i] for i in index.rows):
        report.unseen += not rate.n
        report.few += 0 < rate.n < condition.min_samples
        if rate.n >= max(1, condition.min_samples):
            report.bands[band(rate.rate)] += 1
    with open_parquet(train) as file:
        schema = file.schema_arrow
    write_selection(report, index, rates, reasons, schema, lambda batch, _: batch, overwrite)
    return report


def scored_files(
    scored: Sequence[str | Path], train: Path, out: Path, option: str, *, overwrite: bool
) -> tuple[list[str], str]:
    """Return the files of scored responses and their name in reports, if `out` can be written.

    `option` is what the user named `out` with.
    """
    files = input_files(scored, option, out, ".parquet", train)
    require_not_input(dropped_path(out), *map(Path, files), train)
    require_absent(out, overwrite=overwrite)
    require_dropped_path(out, overwrite=overwrite)
    return files, files_name(files)


def count_list(reasons: Counter[str]) -> str:
    """Return reasons with their counts as text, the most frequent first."""
    return ", ".join(f"{reason}: {n:,}" for reason, n in reasons.most_common())


def write_selection(
    report: JoinReport,
    index: TrainIndex,
    rates: Sequence[Cell],
    reasons: Sequence[str | None],
    schema: pa.Schema,
    convert: Callable[[pa.RecordBatch, list[int]], pa.RecordBatch],
    overwrite: bool,
) -> None:
    """Write what `convert` makes of selected rows and their numbers, and the dropped ones as jsonl.

    `reasons` say for each row why it is dropped: "" if it is selected, None if it is left out of both.
    """
    with (
        open_parquet(report.train) as file,
        atomic_with_dropped(report.out, overwrite=overwrite) as (out_path, lines_path),
        lines_path.open("w") as lines,
        pq.ParquetWriter(out_path, schema, compression="zstd") as writer,
    ):
        numbers = range(0)
        size = IMAGE_BATCH_ROWS if IMAGES.name in file.schema_arrow.names else BATCH_ROWS
        for batch in file.iter_batches(size):
            numbers = range(numbers.stop, numbers.stop + batch.num_rows)
            selected = [n for n in numbers if reasons[n] == ""]
            written = convert(batch.filter(pa.array([reasons[n] == "" for n in numbers])), selected)
            writer.write_batch(written)
            report.written += written.num_rows
            rows = python_rows(batch.filter(pa.array([bool(reasons[n]) for n in numbers])))
            for number, row in zip((n for n in numbers if reasons[n]), rows, strict=True):
                rate = rates[index.rows[number]]
                values = {"pass_rate": rate.rate if rate.n else None, "responses": rate.n}
                line = {"index": number, "reasons": [reasons[number]], **values, "row": row}
                lines.write(json_line(line))
