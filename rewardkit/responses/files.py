"""Files of responses cut into units: what one process scores at a time."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import DataError, UsageError
from rewardkit.lines import MAX_LINE_BYTES

#: Bytes of jsonl, and rows of parquet, in a unit.
UNIT_BYTES = 1 << 20
UNIT_ROWS = 512

#: Bytes that are unpacked at a time.
PIECE = 1 << 16

#: What a folder is searched for.
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


@dataclass(frozen=True)
class Unit:
    """Some lines or rows of a file, in order.

    Attributes:
        path: the file, `-` for standard input.
        first: number of the first line (from 1) or row (from 0).
        read: the lines of a jsonl that only one process can read, each with its end.
        span: first byte and size of the lines of a plain file: whoever works on them reads them.
        rows: the rows of a parquet.
        cut: why the line after those cannot be read, "" if it can: the file is damaged there, or
            the line is too long.
    """

    path: str
    first: int
    read: bytes = b""
    span: tuple[int, int] = (0, 0)
    rows: tuple[dict[str, Any], ...] = ()
    cut: str = ""

    @property
    def text(self) -> bytes:
        """The lines of a jsonl.

        Raises:
            DataError: the file has become shorter since.
        """
        start, size = self.span
        if not size:
            return self.read
        with Path(self.path).open("rb") as file:
            file.seek(start)
            text = file.read(size)
        if len(text) < size:
            raise DataError(f"{self.path}: became shorter while it was read.")
        return text


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


def units(files: Sequence[str], share: int = 1) -> Iterator[Unit]:
    """The units of all files, in order; files are read as they are needed.

    Args:
        files: as `expand` gives them.
        share: units are so many times smaller, for work that takes long.

    Raises:
        DataError: a file cannot be read.
    """
    for file in files:
        of_kind = _of_parquet if file.endswith(".parquet") else _of_lines
        yield from of_kind(file, share)


def _of_parquet(file: str, share: int) -> Iterator[Unit]:
    from rewardkit.row import open_parquet

    first = 0
    with open_parquet(Path(file)) as parquet:
        for batch in parquet.iter_batches(UNIT_ROWS // share):
            yield Unit(file, first, rows=tuple(batch.to_pylist()))
            first += batch.num_rows


def _of_lines(file: str, share: int) -> Iterator[Unit]:
    first, size = 1, UNIT_BYTES // share
    try:
        with _open(file) as stream:
            unpacked = stream.raw if isinstance(stream, io.BufferedReader) else None
            plain = isinstance(unpacked, io.FileIO) and file != "-"
            damage, start = "", 0
            while not damage and (text := stream.read(size)):
                text, problem = _whole_lines(stream, text)
                damage = unpacked.cut if isinstance(unpacked, _Unpacked) else ""
                if damage:  # the last line is not whole
                    text = text[: text.rfind(b"\n") + 1]
                if plain:
                    yield Unit(file, first, span=(start, len(text)), cut=problem)
                    start = stream.tell()
                else:
                    yield Unit(file, first, text, cut=damage or problem)
                first += text.count(b"\n") + bool(problem)
            if not damage and isinstance(unpacked, _Unpacked) and unpacked.cut:
                yield Unit(file, first, cut=unpacked.cut)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{file}: cannot be read near line {first:,}: {reason}.") from error


def _whole_lines(stream: IO[bytes], text: bytes) -> tuple[bytes, str]:
    """`text` with the rest of its last line; without that line, and why, if it is too long."""
    rest = stream.readline(MAX_LINE_BYTES)
    if len(rest) < MAX_LINE_BYTES or rest.endswith(b"\n"):
        return text + rest, ""
    while (piece := stream.readline(PIECE)) and not piece.endswith(b"\n"):
        pass
    return text[: text.rfind(b"\n") + 1], f"the line is longer than {MAX_LINE_BYTES:,} bytes"


class _Unpacked(io.RawIOBase):
    """What a compressed file holds, up to where it is cut off or damaged."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read_some = read
        self.cut = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            got = self.read_some(min(len(buffer), PIECE))
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk is at fault, not the file
            self.cut = f"the file is cut off or damaged from here on ({error})"
            return 0
        buffer[: len(got)] = got
        return len(got)


def _open(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    if file.endswith(".gz"):
        # read1: what was unpacked before the damage is not thrown away
        return io.BufferedReader(_Unpacked(gzip.GzipFile(file).read1), PIECE)
    if file.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(
            _Unpacked(pa.CompressedInputStream(pa.OSFile(file), "zstd").read), PIECE
        )
    return Path(file).open("rb")
