"""`rewardkit select`: keep training rows by the pass rate of the policy on their prompts.

A group of responses that are all correct or all wrong has no advantage. DAPO's dynamic sampling
generates it, discards it and generates another, which costs GPU time. Existing responses show which
prompts would have such groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.errors import DataError, UsageError
from rewardkit.json_lines import json_line
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.preprocess.dropped_rows import (
    atomic_with_dropped,
    dropped_path,
    require_dropped_path,
)
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.file_verdicts import finite_number, row_result, rule_of_files
from rewardkit.responses.matching.match import match_row
from rewardkit.responses.matching.train_index import TrainIndex, index_rows
from rewardkit.responses.prompt_groups import PromptStepCounts, count_groups, step_of
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.responses.select.report import (
    PassRate,
    PassRateFilter,
    SelectReport,
    SftReport,
)
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.base import Status
from rewardkit.scorers.reward_result import RightRule

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
