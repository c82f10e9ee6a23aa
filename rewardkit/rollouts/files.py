"""Files of responses cut into units: what one process scores at a time."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import DataError, UsageError

#: Bytes of jsonl, and rows of parquet, in a unit.
UNIT_BYTES = 1 << 20
UNIT_ROWS = 512

#: What a folder is searched for.
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


@dataclass(frozen=True)
class Unit:
    """Some lines or rows of a file, in order.

    Attributes:
        path: the file, `-` for standard input.
        first: number of the first line (from 1) or row (from 0).
        lines: the lines of a jsonl, each with its end, or
        rows: the rows of a parquet.
    """

    path: str
    first: int
    lines: tuple[bytes, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()

    def __len__(self) -> int:
        return len(self.lines) + len(self.rows)

    def halves(self) -> tuple[Unit, Unit]:
        """The unit as two."""
        at = len(self) // 2
        return (
            Unit(self.path, self.first, self.lines[:at], self.rows[:at]),
            Unit(self.path, self.first + at, self.lines[at:], self.rows[at:]),
        )


def expand(names: Sequence[str]) -> list[str]:
    """The files that names, folders and patterns stand for, in order; `-` stays.

    Files of a folder are in the order of the numbers in their names, as verl's dumps are
    (`9.jsonl` before `10.jsonl`).

    Raises:
        DataError: a name stands for nothing.
        UsageError: standard input beside files.
    """
    files: list[str] = []
    for name in names:
        files += [name] if name == "-" else _files(name)
    if "-" in files and len(files) > 1:
        raise UsageError("'-' (standard input) is read alone.")
    return files


def _files(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file()]
    elif path.exists():
        return [name]
    else:
        found = [Path(p) for p in glob(name, recursive=True) if Path(p).is_file()]  # noqa: PTH207 - a pattern may be absolute
    if not found:
        raise DataError(f"{name}: no such file, and no files of that pattern.")
    return [str(p) for p in sorted(found, key=_by_number)]


def _by_number(path: Path) -> tuple[str, int, str]:
    digits = "".join(c for c in path.name.partition(".")[0] if c.isdecimal())
    return str(path.parent), int(digits[:18] or 0), path.name


def units(files: Sequence[str]) -> Iterator[Unit]:
    """The units of all files, in order; files are read as they are needed.

    Raises:
        DataError: a file cannot be read.
    """
    for file in files:
        yield from _of_parquet(file) if file.endswith(".parquet") else _of_lines(file)


def _of_parquet(file: str) -> Iterator[Unit]:
    from rewardkit.row import open_parquet

    first = 0
    with open_parquet(Path(file)) as parquet:
        for batch in parquet.iter_batches(UNIT_ROWS):
            yield Unit(file, first, rows=tuple(batch.to_pylist()))
            first += batch.num_rows


def _of_lines(file: str) -> Iterator[Unit]:
    first = 1
    try:
        with _open(file) as stream:
            while lines := stream.readlines(UNIT_BYTES):
                yield Unit(file, first, tuple(lines))
                first += len(lines)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{file}: cannot be read near line {first:,}: {reason}.") from error


def _open(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    if file.endswith(".gz"):
        return io.BufferedReader(gzip.GzipFile(file))
    if file.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(file), "zstd"))
    return Path(file).open("rb")
