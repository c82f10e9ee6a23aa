"""`rewardkit mix`: verl parquets in given shares, as one parquet in our schema."""

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
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.preprocess.prep_report import MixPartReport, MixReport
from rewardkit.row import BATCH_ROWS, IMAGES, Row, open_parquet, question_of, write_rows
from rewardkit.versions import VERSION


@dataclass(frozen=True)
class MixPart:
    """A verl parquet, ours or not, and its weight against the other parts."""

    path: Path
    weight: float = 1.0


def parse_part(text: str) -> MixPart:
    """`a.parquet:0.7` -> a part; the weight is 1 where none is given.

    Only a number after the last colon is a weight: write `run:2:1` for a file named `run:2`.

    Raises:
        UsageError: the weight is not above 0, or there is no path.
    """
    path, colon, number = text.rpartition(":")
    try:
        weight = float(number) if colon else None
    except ValueError:
        weight = None
    if weight is None:
        return MixPart(Path(text))
    if not path:
        raise UsageError(f"{text}: write a part as FILE:WEIGHT.")
    if not isfinite(weight) or weight <= 0:
        raise UsageError(f"{text}: a weight is a number above 0.")
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
    """Write verl parquets, ours or not, as one parquet with given shares of each.

    The rows of a part are a random sample without replacement, and the parts are interleaved at
    random; both depend on the arguments only, on any machine and Python. Within a part rows keep
    their file's order, so that every file is streamed in bounded memory: verl shuffles in training
    anyway (`data.shuffle`). What grows with the rows written is a digest of each question, to find
    those that several parts ask.

    Args:
        parts: the files and their weights, which need not add up to anything.
        out: the parquet to write.
        rows: how many to write; None for as many as there are without repeating any.
        seed: of the sample and the order.
        oversample: repeat the rows of a part that has too few, each as often as the others or once
            more. Needs `rows`.
        overwrite: replace `out`.
        progress: called with the number of rows done since the last call.

    Raises:
        UsageError: a weight, `rows` or the parts make no sense, or a part has too few rows.
        DataError: a file cannot be read, or a row cannot be written in our schema; the message
            says which and why.
        OutputError: `out` exists or cannot be written.
    """
    out = Path(out)
    _refuse(parts, out, rows=rows, oversample=oversample)
    require_absent(out, overwrite=overwrite)
    available = [_count(part.path) for part in parts]
    weights = [part.weight for part in parts]
    total = largest_total(weights, available) if rows is None else rows
    counts = share_out(weights, total)
    if not total or (not oversample and _too_many(counts, available)):
        raise UsageError(_too_few(parts, counts, available))
    taken = zip(parts, shares(weights), available, counts, strict=True)
    reports = (
        MixPartReport(part.path, part.weight, float(share), has, count, ceil(count / has))
        for part, share, has, count in taken
    )
    report = MixReport(out, seed, tuple(reports))
    made = _rows(report, progress)
    report.written = write_rows(made, out, _metadata(report, oversample), overwrite=overwrite)
    return report


def shares(weights: Sequence[float]) -> list[Fraction]:
    """The weights, divided by their sum. 0.7 is seven tenths here, not the double next to it."""
    exact = [Fraction(repr(float(weight))) for weight in weights]
    return [weight / sum(exact) for weight in exact]


def share_out(weights: Sequence[float], rows: int) -> list[int]:
    """How many of `rows` each weight gets, by largest remainder: each within 1 of its share."""
    quotas = [share * rows for share in shares(weights)]
    counts = list(map(floor, quotas))
    by_remainder = sorted(range(len(quotas)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def largest_total(weights: Sequence[float], available: Sequence[int]) -> int:
    """The largest total for which no part needs more rows than it has."""
    pairs = list(zip(shares(weights), available, strict=True))
    surely = min(floor(has / share) for share, has in pairs)
    at_most = min(ceil((has + 1) / share) for share, has in pairs)
    fits = (
        n for n in range(at_most, surely, -1) if not _too_many(share_out(weights, n), available)
    )
    return next(fits, surely)


def _too_many(counts: Sequence[int], available: Sequence[int]) -> bool:
    return any(count > has for count, has in zip(counts, available, strict=True))


def _too_few(parts: Sequence[MixPart], counts: Sequence[int], available: Sequence[int]) -> str:
    """The first part that lacks rows, and what can be done."""
    most = largest_total([part.weight for part in parts], available)
    lacking = zip(parts, counts, available, strict=True)
    part, count, has = next((p for p in lacking if p[1] > p[2]), (parts[0], 1, available[0]))
    way_out = f"--rows {most}, or " if most else ""
    return (
        f"{part.path} has {has:,} rows, and the mix needs {count:,} of them. There can be {most:,} "
        f"rows in these shares: {way_out}--rows N with --oversample to repeat rows."
    )


def _refuse(parts: Sequence[MixPart], out: Path, *, rows: int | None, oversample: bool) -> None:
    if not parts:
        raise UsageError("name at least one file to mix.")
    require_suffix("--out", out, ".parquet")
    if rows is not None and rows < 1:
        raise UsageError(f"{rows} rows: a mix has at least one.")
    if oversample and rows is None:
        raise UsageError("--oversample needs --rows: how many rows there shall be.")
    for part in parts:
        if not isfinite(part.weight) or part.weight <= 0:
            raise UsageError(f"{part.path}: weight {part.weight}: a weight is a number above 0.")
        require_not_input(out, part.path)
    for one, other in combinations(parts, 2):
        if one.path.resolve() == other.path.resolve():
            raise UsageError(f"{one.path} is named twice; name it once, with one weight.")


def _count(path: Path) -> int:
    with open_parquet(path) as file:
        rows = int(file.metadata.num_rows)
    if not rows:
        raise DataError(f"{path}: no rows; leave it out of the mix.")
    return rows


def _metadata(report: MixReport, oversample: bool) -> dict[str, Any]:
    """What the parquet's own metadata says of how it was made."""
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
class _Questions:
    """The questions seen, to count those of several parts."""

    first: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    shared: set[bytes] = field(default_factory=set)
    several_golds: set[bytes] = field(default_factory=set)

    def add(self, row: Row, part: int) -> None:
        images = (image["bytes"] for image in row.get(IMAGES.name) or ())
        key = question_key(question_of(row), images)
        gold = gold_key(row["reward_model"]["ground_truth"])
        first_part, first_gold = self.first.setdefault(key, (part, gold))
        if part != first_part:
            self.shared.add(key)
        if gold != first_gold:
            self.several_golds.add(key)


def _rows(report: MixReport, progress: Callable[[int], object]) -> Iterator[Row]:
    """The rows of the mix, counted into the report on the way."""
    rng, questions = random.Random(report.seed), _Questions()  # noqa: S311 - an order, no secret
    streams = [
        _taken(part, random.Random(int(rng.random() * 2**53)))  # noqa: S311
        for part in report.parts
    ]
    with_images = any(_has_images(part.path) for part in report.parts)
    for which in _order([part.rows for part in report.parts], rng):
        row = next(streams[which])
        if with_images:  # write_rows looks for the column in the first rows only
            row.setdefault(IMAGES.name, None)
        questions.add(row, which)
        report.stats.add(row)
        if report.stats.rows % BATCH_ROWS == 0:
            progress(BATCH_ROWS)
        yield row
    progress(report.stats.rows % BATCH_ROWS)
    report.shared = len(questions.shared)
    report.conflicting = len(questions.shared & questions.several_golds)


def _order(counts: Sequence[int], rng: random.Random) -> Iterator[int]:
    """Which part each row is from: every order of `counts` is as likely as any other."""
    left = list(counts)
    for total in range(sum(left), 0, -1):
        at, which = _draw(rng, total), 0
        while at >= left[which]:
            at -= left[which]
            which += 1
        left[which] -= 1
        yield which


def _taken(part: MixPartReport, rng: random.Random) -> Iterator[Row]:
    """The rows of a part: the whole file as often as it takes, then a sample of it."""
    passes, rest = divmod(part.rows, part.available)
    for _ in range(passes):
        yield from _conformed(part, iter(range(part.available)))
    if rest:
        yield from _conformed(part, _sample(part.available, rest, rng))


def _sample(available: int, wanted: int, rng: random.Random) -> Iterator[int]:
    """`wanted` places of `available`, in order and in no memory (Knuth's selection sampling)."""
    for place in range(available):
        if _draw(rng, available - place) < wanted:
            wanted -= 1
            yield place


def _draw(rng: random.Random, below: int) -> int:
    """A number from 0. `random()` is all that Python promises to keep from version to version."""
    return min(int(rng.random() * below), below - 1)


def _conformed(part: MixPartReport, places: Iterator[int]) -> Iterator[Row]:
    for place, raw in _rows_at(part.path, places):
        try:
            row, left_out = to_schema_row(raw, place)
        except DataError as error:
            raise DataError(f"{part.path}: row {place}: {error}") from error
        part.left_out.update(left_out)
        part.changes.update(describe_changes(raw, row))
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
        raise DataError(f"{path}: cannot be read as rows ({reason}); drop the column.") from error


def _has_images(path: Path) -> bool:
    with open_parquet(path) as file:
        return IMAGES.name in file.schema_arrow.names
