"""`rewardkit mix`: write several verl parquets as one in our schema, each with its share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewardkit.errors import DataError, UsageError
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.preprocess.duplicates import gold_key, question_key
from rewardkit.preprocess.foreign_rows import describe_changes, to_schema_row
from rewardkit.preprocess.mix_report import MixPartReport, MixReport
from rewardkit.preprocess.mix_schema import complete_row, mix_schema
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.row import BATCH_ROWS, IMAGES, Row, open_parquet, question_of, write_rows
from rewardkit.versions import VERSION


@dataclass(frozen=True)
class MixPart:
    """A verl parquet and its weight relative to the other parts; None if the user names none."""

    path: Path
    weight: float | None = None


def parse_part(text: str) -> MixPart:
    """Parse a part, such as `a.parquet:0.7`; without a number it has no weight.

    Only a number after the last colon is a weight: write `run:2:1` for a file named `run:2`.

    Raises:
        UsageError: the weight is not above 0, or the path is empty.
    """
    path, colon, number = text.rpartition(":")
    try:
        weight = float(number) if colon else None
    except ValueError:
        weight = None
        if Path(path).is_file() and not Path(text).exists():
            raise UsageError(f"{text}: {number!r} is not a weight. Write FILE:0.7.") from None
    if weight is None:
        return MixPart(Path(text))
    if not path:
        raise UsageError(f"{text}: the file is missing. Write FILE:WEIGHT.")
    if not isfinite(weight) or weight <= 0:
        raise UsageError(f"{text}: the weight must be above 0.")
    return MixPart(Path(path), weight)


def mix(
    parts: Sequence[MixPart],
    out: Path | str,
    *,
    rows: int | None = None,
    seed: int = 0,
    oversample: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> MixReport:
    """Write verl parquets as one parquet that contains each with its share.

    Without weights the mix has all rows of all parts. With weights, the rows of a part are a random
    sample without replacement. The parts are interleaved at random. Sample and order depend only on
    the arguments, not on the machine or the Python version. Within a part the rows keep their file's
    order, so that every file is streamed in bounded memory; verl shuffles in training anyway
    (`data.shuffle`). Only the digests of the questions, which find questions of several parts, grow
    with the number of rows.

    Args:
        parts: the files and their weights; only the ratios of the weights count. If some parts have
            a weight, the others have the weight 1; if none has one, each weighs as many rows as it has.
        out: the parquet to write.
        rows: number of rows to write; None for the most that need no repetition.
        seed: random seed of the sample and the order.
        oversample: repeat the rows of a part that has too few, each n or n + 1 times. Needs `rows`.
        overwrite: replace `out` if it exists.
        progress: called with the number of rows processed since the last call.

    Raises:
        UsageError: a weight, `rows` or the parts are invalid, or a part has too few rows.
        DataError: a file cannot be read, a row cannot be converted to our schema, or a tool's field
            has different types in two files; the message says which and why.
        OutputError: `out` exists or cannot be written.
    """
    out = Path(out)
    _check_arguments(parts, out, rows=rows, oversample=oversample)
    require_absent(out, overwrite=overwrite)
    available = [_count_rows(part.path) for part in parts]
    weights = _weights(parts, available)
    most = largest_total(weights, available)
    total = most if rows is None else rows
    counts = share_out(weights, total)
    if not total or (not oversample and _exceeds(counts, available)):
        raise UsageError(_too_few_message(parts, counts, available, most))
    reports = (
        MixPartReport(part.path, weight, float(share), size, count, ceil(count / size))
        for part, weight, share, size, count in zip(
            parts, weights, shares(weights), available, counts, strict=True
        )
    )
    report = MixReport(out, seed, tuple(reports))
    schema = mix_schema([part.path for part in parts])
    report.written = write_rows(
        _rows(report, schema, progress),
        out,
        _metadata(report, oversample),
        schema=schema,
        overwrite=overwrite,
    )
    return report


def _weights(parts: Sequence[MixPart], available: Sequence[int]) -> list[float]:
    """Return the weight of each part: the number of its rows if the user names no weight at all."""
    if all(part.weight is None for part in parts):
        return list(map(float, available))
    return [1.0 if part.weight is None else part.weight for part in parts]


def shares(weights: Sequence[float]) -> list[Fraction]:
    """Return the weights divided by their sum; 0.7 is exactly seven tenths, not the nearest double."""
    exact = [Fraction(repr(float(weight))) for weight in weights]
    return [weight / sum(exact) for weight in exact]


def share_out(weights: Sequence[float], rows: int) -> list[int]:
    """Distribute `rows` by largest remainder: each count differs from its share by less than 1."""
    quotas = [share * rows for share in shares(weights)]
    counts = list(map(floor, quotas))
    by_remainder = sorted(range(len(quotas)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def largest_total(weights: Sequence[float], available: Sequence[int]) -> int:
    """Return the largest number of rows for which no part needs more rows than it has."""
    pairs = list(zip(shares(weights), available, strict=True))
    lower = min(floor(size / share) for share, size in pairs)
    upper = min(ceil((size + 1) / share) for share, size in pairs)
    totals = (n for n in range(upper, lower, -1) if not _exceeds(share_out(weights, n), available))
    return next(totals, lower)


def _exceeds(counts: Sequence[int], available: Sequence[int]) -> bool:
    return any(count > size for count, size in zip(counts, available, strict=True))


def _too_few_message(
    parts: Sequence[MixPart], counts: Sequence[int], available: Sequence[int], most: int
) -> str:
    """Return a message about the first part with too few rows, and what to do."""
    sizes = zip(parts, counts, available, strict=True)
    part, count, size = next((p for p in sizes if p[1] > p[2]), (parts[0], 1, available[0]))
    remedy = f"--rows {most}, or " if most else ""
    return (
        f"{part.path} has {size:,} rows, but the mix needs {count:,} of them. With these shares a "
        f"mix has at most {most:,} rows. Use {remedy}--rows N with --oversample to repeat rows."
    )


def _check_arguments(
    parts: Sequence[MixPart], out: Path, *, rows: int | None, oversample: bool
) -> None:
    if not parts:
        raise UsageError("Name at least one file to mix.")
    require_suffix("--out", out, ".parquet")
    if rows is not None and rows < 1:
        raise UsageError(f"--rows {rows}: a mix has at least one row.")
    if oversample and rows is None:
        raise UsageError("--oversample needs --rows, the number of rows to write.")
    for part in parts:
        if part.weight is not None and not (isfinite(part.weight) and part.weight > 0):
            raise UsageError(f"{part.path}: the weight is {part.weight}; it must be above 0.")
        require_not_input(out, part.path)
    for one, other in combinations(parts, 2):
        if one.path.resolve() == other.path.resolve():
            raise UsageError(f"{one.path} is named twice. Name it once, with one weight.")


def _count_rows(path: Path) -> int:
    with open_parquet(path) as file:
        rows = int(file.metadata.num_rows)
    if not rows:
        raise DataError(f"{path}: the file has no rows. Leave it out of the mix.")
    return rows


def _metadata(report: MixReport, oversample: bool) -> dict[str, Any]:
    """Return how the file was made, for the metadata of the parquet."""
    parts = [
        {"name": str(part.path), "weight": part.weight, "rows": part.rows} for part in report.parts
    ]
    return {
        "rewardkit": VERSION,
        "mix": parts,
        "seed": report.seed,
        "oversample": oversample,
    }


@dataclass
class _SharedQuestions:
    """The questions of the rows so far, to count the questions of several parts.

    Attributes:
        first: part and gold of the first row with each question.
        shared: questions that are in several parts.
        several_golds: questions with several golds.
    """

    first: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    shared: set[bytes] = field(default_factory=set)
    several_golds: set[bytes] = field(default_factory=set)

    def add(self, row: Row, part: int) -> None:
        """Add the question of a row, which is from the part with this number."""
        images = (image["bytes"] for image in row.get(IMAGES.name) or ())
        key = question_key(question_of(row), images)
        gold = gold_key(row["reward_model"]["ground_truth"])
        first_part, first_gold = self.first.setdefault(key, (part, gold))
        if part != first_part:
            self.shared.add(key)
        if gold != first_gold:
            self.several_golds.add(key)


def _rows(report: MixReport, schema: pa.Schema, progress: Callable[[int], object]) -> Iterator[Row]:
    """Yield the rows of the mix, and count them in the report."""
    rng, questions = random.Random(report.seed), _SharedQuestions()  # noqa: S311 - not a secret
    streams = [
        _part_rows(part, schema, random.Random(int(rng.random() * 2**53)))  # noqa: S311
        for part in report.parts
    ]
    for part in _order([part.rows for part in report.parts], rng):
        row = next(streams[part])
        questions.add(row, part)
        report.stats.add(row)
        if report.stats.rows % BATCH_ROWS == 0:
            progress(BATCH_ROWS)
        yield row
    progress(report.stats.rows % BATCH_ROWS)
    report.shared = len(questions.shared)
    report.conflicting = len(questions.shared & questions.several_golds)


def _order(counts: Sequence[int], rng: random.Random) -> Iterator[int]:
    """Yield the part of each row of the mix; every order of the parts is equally likely."""
    left = list(counts)
    for total in range(sum(left), 0, -1):
        offset, part = _draw(rng, total), 0
        while offset >= left[part]:
            offset -= left[part]
            part += 1
        left[part] -= 1
        yield part


def _part_rows(part: MixPartReport, schema: pa.Schema, rng: random.Random) -> Iterator[Row]:
    """Yield the rows of a part: the whole file as often as necessary, then a sample of it."""
    passes, rest = divmod(part.rows, part.available)
    for _ in range(passes):
        yield from _schema_rows(part, schema, iter(range(part.available)))
    if rest:
        yield from _schema_rows(part, schema, _sample(part.available, rest, rng))


def _sample(available: int, size: int, rng: random.Random) -> Iterator[int]:
    """Yield `size` of `available` places in order, without memory (Knuth's selection sampling)."""
    for place in range(available):
        if _draw(rng, available - place) < size:
            size -= 1
            yield place


def _draw(rng: random.Random, below: int) -> int:
    """Return a random number from 0 to `below` - 1.

    Python guarantees only for `random()` that all versions return the same numbers.
    """
    return min(int(rng.random() * below), below - 1)


def _schema_rows(part: MixPartReport, schema: pa.Schema, places: Iterator[int]) -> Iterator[Row]:
    for place, raw in _rows_at(part.path, places):
        try:
            row, left_out = to_schema_row(raw, place)
        except DataError as error:
            raise DataError(f"{part.path}: row {place}: {error}") from error
        part.left_out.update(left_out)
        part.changes.update(describe_changes(raw, row))
        part.changes.update(complete_row(row, schema))
        yield row


def _rows_at(path: Path, places: Iterator[int]) -> Iterator[tuple[int, Row]]:
    """Yield the rows at ascending places, with one batch of the file in memory at a time."""
    cursor = PlaceCursor(places)
    with open_parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            chosen, rows = cursor.take(batch)
            yield from zip(chosen, _as_rows(path, rows), strict=True)
            if cursor.is_done():
                return


def _as_rows(path: Path, batch: pa.RecordBatch) -> list[Row]:
    try:
        return list(batch.to_pylist())
    except ValueError as error:  # two fields of one name, or nanoseconds
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: a column cannot be read ({reason}). Drop the column.") from error
