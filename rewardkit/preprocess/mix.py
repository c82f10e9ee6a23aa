"""`rewardkit mix`: write several verl parquets as one in our schema, each with its share.

Some rows of a mix may have tools and others not. verl reads a missing field as an empty one, but
Arrow fills the rows of a file with nulls. In verl 0.9 a row whose `agent_name` is null ends the run,
and a call of a tool whose entry is null is answered with an error (`experimental/agent_loop`). Null
`interaction_kwargs` end a run with interactions up to 0.7; nothing in a row could prevent that.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import repeat
from math import ceil, floor, isfinite
from pathlib import Path

import pyarrow as pa

from rewardkit.checks.duplicates import gold_key, question_key
from rewardkit.checks.row_stats import RowStats
from rewardkit.errors import DataError, UsageError
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.preprocess.foreign_rows import describe_changes, to_schema_row
from rewardkit.row import (
    AGENT_NAME,
    BATCH_ROWS,
    IMAGES,
    SINGLE_TURN_AGENT,
    TOOL_AGENT,
    TURN_FIELDS,
    Row,
    TypeConflictError,
    image_contents,
    open_parquet,
    question_of,
    row_schema,
    union_type,
    value_type,
    write_rows,
)
from rewardkit.row_files import block_of, select_rows
from rewardkit.versions import VERSION

#: Those of `TURN_FIELDS` that are structs.
STRUCTS = ("tools_kwargs", "interaction_kwargs")


@dataclass(frozen=True)
class MixPart:
    """A verl parquet and its weight relative to the other parts; None if the user names none."""

    path: Path
    weight: float | None = None


@dataclass
class MixPartReport:
    """What a mix contains of one file.

    Attributes:
        weight: the weight from the command; the number of the file's rows if no file has a weight.
        share: share of the mix that the weight asks for, 0 to 1.
        times: maximum number of times that the mix has one of its rows.
        left_out, changes: number of rows with a field that our schema does not have, and with a
            value that was changed, by field and change.
    """

    path: Path
    weight: float
    share: float
    available: int
    rows: int
    times: int
    left_out: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)


@dataclass
class MixReport:
    """What `mix` did; `shared` is the number of questions in several files, `conflicting` of those with several golds."""

    out: Path
    seed: int
    parts: tuple[MixPartReport, ...]
    written: int = 0
    shared: int = 0
    conflicting: int = 0
    stats: RowStats = field(default_factory=RowStats)


def parse_part(text: str) -> MixPart:
    """Parse a part, such as `a.parquet:0.7`; without a number it has no weight.

    Only a number after the last colon is a weight: write `run:2:1` for a file named `run:2`.
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
    sample without replacement, interleaved at random, which depends only on the arguments. Within a
    part the rows keep their file's order, so that every file is streamed in bounded memory.

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
    if not parts:
        raise UsageError("Name at least one file to mix.")
    require_suffix("--out", out, ".parquet")
    if rows is not None and rows < 1:
        raise UsageError(f"--rows {rows}: a mix has at least one row.")
    if oversample and rows is None:
        raise UsageError("--oversample needs --rows, the number of rows to write.")
    paths = [part.path for part in parts]
    for part in parts:
        if part.weight is not None and not (isfinite(part.weight) and part.weight > 0):
            raise UsageError(f"{part.path}: the weight is {part.weight}; it must be above 0.")
        require_not_input(out, part.path)
        if [path.resolve() for path in paths].count(part.path.resolve()) > 1:
            raise UsageError(f"{part.path} is named twice. Name it once, with one weight.")
    require_absent(out, overwrite=overwrite)
    schemas, sizes = list[pa.Schema](), list[int]()
    for part in parts:
        with open_parquet(part.path) as file:
            schemas.append(file.schema_arrow)
            sizes.append(int(file.metadata.num_rows))
        if not sizes[-1]:
            raise DataError(f"{part.path}: the file has no rows. Leave it out of the mix.")
    has_weights = any(part.weight is not None for part in parts)
    weights = [
        (1.0 if has_weights else float(size)) if part.weight is None else part.weight
        for part, size in zip(parts, sizes, strict=True)
    ]
    fractions = exact_fractions(weights)
    most = min(floor(size / fraction) for fraction, size in zip(fractions, sizes, strict=True))
    counts = share_out(weights, most if rows is None else rows)
    reports = tuple(
        MixPartReport(path, weight, float(fraction), size, count, ceil(count / size))
        for path, weight, fraction, size, count in zip(
            paths, weights, fractions, sizes, counts, strict=True
        )
    )
    lacking = [part for part in reports if part.times > 1]
    if not any(counts) or (lacking and not oversample):
        short = (lacking or reports)[0]
        remedy = f"--rows {most}, or " if most else ""
        raise UsageError(
            f"{short.path} has {short.available:,} rows, but the mix needs {short.rows or 1:,} of them. "
            f"With these shares a mix has at most {most:,} rows. Use {remedy}--rows N with "
            "--oversample to repeat rows."
        )
    report = MixReport(out, seed, reports)
    schema = mix_schema(dict(zip(paths, schemas, strict=True)))
    metadata = {
        "rewardkit": VERSION,
        "mix": [{"name": str(p.path), "weight": p.weight, "rows": p.rows} for p in reports],
        "seed": seed,
        "oversample": oversample,
    }
    mixed = _rows(report, schema, progress)
    report.written = write_rows(mixed, out, metadata, schema=schema, overwrite=overwrite)
    return report


def exact_fractions(weights: Sequence[float]) -> list[Fraction]:
    """Return the weights divided by their sum; 0.7 is exactly seven tenths, not the nearest double."""
    exact = [Fraction(repr(float(weight))) for weight in weights]
    return [weight / sum(exact) for weight in exact]


def share_out(weights: Sequence[float], rows: int) -> list[int]:
    """Distribute `rows` by largest remainder: each count differs from its fraction by less than 1."""
    quotas = [fraction * rows for fraction in exact_fractions(weights)]
    counts = list(map(floor, quotas))
    by_remainder = sorted(range(len(quotas)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: rows - sum(counts)]:
        counts[i] += 1
    return counts


def mix_schema(schemas: Mapping[Path, pa.Schema]) -> pa.Schema:
    """Return the schema that holds the rows of all files."""
    types: dict[str, pa.DataType] = {}
    turn_types = {path: _turn_types(schema) for path, schema in schemas.items()}
    for path, own in turn_types.items():
        for name, kind in own.items():
            try:
                types[name] = union_type(types.get(name, kind), kind, f"extra_info.{name}")
            except TypeConflictError as error:
                raise DataError(
                    f"{path}: {error.column} is {error.other}, but {error.one} in an earlier file. "
                    "Write one type, or train on the files one after the other."
                ) from error
    columns = {name for schema in schemas.values() for name in schema.names}
    some_are_plain = bool(types) and not all(turn_types.values())
    return row_schema(
        types,
        agent_name=some_are_plain or AGENT_NAME.name in columns,
        images=IMAGES.name in columns,
    )


def complete_row(row: Row, schema: pa.Schema) -> Iterator[str]:
    """Write what verl needs into a row of a mix, and yield a phrase for each change."""
    info, agent = row["extra_info"], AGENT_NAME.name
    types = {item.name: item.type for item in schema.field("extra_info").type.fields}
    if agent in schema.names and not row.get(agent):
        row[agent] = TOOL_AGENT if any(map(info.get, TURN_FIELDS)) else SINGLE_TURN_AGENT
        yield f"{agent} was missing: set to {row[agent]}"
    if "need_tools_kwargs" in types:
        info["need_tools_kwargs"] = bool(info.get("need_tools_kwargs"))
    if "tools_kwargs" in types:
        entries, tools = info.get("tools_kwargs") or {}, types["tools_kwargs"].fields
        info["tools_kwargs"] = {
            tool.name: _tool_entry(entries.get(tool.name), tool.type) for tool in tools
        }
        if added := [tool.name for tool in tools if entries.get(tool.name) is None]:
            yield f"extra_info.tools_kwargs had no {' and no '.join(added)}: empty entries added"
    if "interaction_kwargs" in types and not info.get("interaction_kwargs"):
        yield "extra_info.interaction_kwargs is null: verl 0.5 to 0.7 may end the run at such a row"


def _tool_entry(entry: Row | None, kind: pa.DataType) -> Row | None:
    """Return the entry of a tool without its nulls, but with all its structs."""
    if not pa.types.is_struct(kind):
        return entry
    empty: Row = {item.name: {} for item in kind.fields if pa.types.is_struct(item.type)}
    return empty | {name: value for name, value in (entry or {}).items() if value is not None}


def _turn_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of the fields for tools and interactions, without those that are null.

    Fields of another kind than verl reads are left out; the conversion of the row reports them.
    """
    index = schema.get_field_index("extra_info")
    if index < 0 or not pa.types.is_struct(schema.field(index).type):
        return {}
    types = {item.name: value_type(item.type) for item in schema.field(index).type.fields}
    return {
        name: kind
        for name in TURN_FIELDS
        if (kind := types.get(name)) and (name not in STRUCTS or pa.types.is_struct(kind))
    }


def _rows(report: MixReport, schema: pa.Schema, progress: Callable[[int], object]) -> Iterator[Row]:
    """Yield the rows of the mix, and count them in the report."""
    rng = random.Random(report.seed)  # noqa: S311 - not a secret
    streams = [
        _part_rows(part, schema, random.Random(int(rng.random() * 2**53)))  # noqa: S311
        for part in report.parts
    ]
    first: dict[bytes, tuple[int, str]] = {}  # part and gold of the first row with each question
    shared, several_golds = set[bytes](), set[bytes]()
    for part in _order([part.rows for part in report.parts], rng):
        row = next(streams[part])
        key = question_key(question_of(row), image_contents(row))
        gold = gold_key(row["reward_model"]["ground_truth"])
        first_part, first_gold = first.setdefault(key, (part, gold))
        if part != first_part:
            shared.add(key)
        if gold != first_gold:
            several_golds.add(key)
        report.stats.add(row)
        if report.stats.rows % BATCH_ROWS == 0:
            progress(BATCH_ROWS)
        yield row
    progress(report.stats.rows % BATCH_ROWS)
    report.shared, report.conflicting = len(shared), len(shared & several_golds)


def _order(counts: Sequence[int], rng: random.Random) -> Iterator[int]:
    """Yield the part of each row of the mix; every order of the parts is equally likely.

    Python guarantees only for `random()` that all versions return the same numbers.
    """
    left = list(counts)
    for total in range(sum(left), 0, -1):
        offset, part = min(int(rng.random() * total), total - 1), 0
        while offset >= left[part]:
            offset -= left[part]
            part += 1
        left[part] -= 1
        yield part


def _part_rows(part: MixPartReport, schema: pa.Schema, rng: random.Random) -> Iterator[Row]:
    """Yield the rows of a part: the whole file as often as necessary, then a sample of it."""
    passes, rest = divmod(part.rows, part.available)
    chosen = _order([rest, part.available - rest], rng) if rest else ()
    sample = (index for index, is_left_out in enumerate(chosen) if not is_left_out)
    for indices in (*repeat(range(part.available), passes), sample):
        with open_parquet(part.path) as file:
            blocks = (block_of(part.path, batch) for batch in file.iter_batches(BATCH_ROWS))
            for index, raw in select_rows(blocks, indices):
                try:
                    row, left_out = to_schema_row(raw, index)
                except DataError as error:
                    raise DataError(f"{part.path}: row {index}: {error}") from error
                part.left_out.update(left_out)
                part.changes.update(describe_changes(raw, row))
                part.changes.update(complete_row(row, schema))
                yield row
