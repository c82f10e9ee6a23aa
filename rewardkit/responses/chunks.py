"""Files of responses, cut into chunks: the rows that one process scores at a time."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import DataError, SourceError, UsageError, unreadable_file
from rewardkit.jsonl import MAX_LINE_BYTES

#: Size of a chunk: bytes of jsonl, rows of parquet.
CHUNK_BYTES = 1 << 20
CHUNK_ROWS = 512

#: Bytes that are decompressed at a time.
PIECE_BYTES = 1 << 16

#: Why the rest of a compressed file cannot be read.
DAMAGE = "the file is cut off or damaged from here on"

#: Files that are read from a folder.
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some consecutive lines or rows of a file.

    Attributes:
        path: the file, `-` for standard input.
        first: number of the first line (from 1) or row (from 0).
        lines: the lines of a stream or a compressed file, each with its end.
        span: first byte and size of the lines of a plain file, which are read where they are
            scored.
        rows: the rows of a parquet.
        damage: why the line after those cannot be read, because the file is damaged there or the
            line is too long; "" otherwise.
    """

    path: str
    first: int
    lines: bytes = b""
    span: tuple[int, int] = (0, 0)
    rows: tuple[dict[str, Any], ...] = ()
    damage: str = ""

    @property
    def text(self) -> bytes:
        """The lines of a jsonl.

        Raises:
            DataError: the file has become shorter since.
        """
        start, size = self.span
        if not size:
            return self.lines
        with Path(self.path).open("rb") as file:
            file.seek(start)
            text = file.read(size)
        if len(text) < size:
            raise DataError(f"{self.path}: became shorter while it was read.")
        return text


def expand_paths(names: Sequence[str]) -> list[str]:
    """Return the files of names, folders and patterns, in order; `-` stays.

    Files of a folder are sorted by the numbers in their names, as verl names its dumps
    (`9.jsonl` before `10.jsonl`). A file that is named twice is there once.

    Raises:
        SourceError: a name matches no file.
        UsageError: standard input is named with other files, or a name is a pipe or a device.
    """
    files: list[str] = []
    for name in names:
        files += [name] if name == "-" else _expand(name)
    files = list({name if name == "-" else Path(name).resolve(): name for name in files}.values())
    if "-" in files and len(files) > 1:
        raise UsageError("'-' (standard input) is read alone.")
    return files


def require_outside(out: Path | None, names: Iterable[str]) -> None:
    """Raise `UsageError` if an output would be among the inputs of the next run of the same command."""
    for folder in (Path(name) for name in names if out and name != "-"):
        if out and folder.is_dir() and Path(out).resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"{out} is in the folder {folder}, which is read: the next run would count its rows as "
                "responses. Name a file outside."
            )


def _expand(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        paths = [p for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file()]
        if not paths:
            raise SourceError(
                f"{name}: the folder has no file of responses ({', '.join(SUFFIXES)})."
            )
    elif path.exists():
        if not path.is_file():
            raise UsageError(
                f"{name} is not a regular file. Save the responses to one, or name - alone to read "
                "standard input."
            )
        return [name]
    else:
        paths = [Path(p) for p in glob(name, recursive=True) if Path(p).is_file()]  # noqa: PTH207 - a pattern may be absolute
    if not paths:
        raise SourceError(f"{name}: no such file, and no files of that pattern.")
    return [str(p) for p in sorted(paths, key=_number_key)]


def _number_key(path: Path) -> tuple[str, int, str]:
    digits = "".join(c for c in path.name.partition(".")[0] if c.isdecimal())
    return str(path.parent), int(digits[:18] or 0), path.name


def read_chunks(files: Iterable[str], divisor: int = 1) -> Iterator[Chunk]:
    """Yield the chunks of all files in order; a file is read as its chunks are needed.

    Args:
        files: the result of `expand_paths`.
        divisor: divides the size of a chunk, for work that takes long.

    Raises:
        SourceError: a file cannot be opened or read.
        DataError: a parquet file is damaged.
    """
    for file in files:
        read = _read_parquet if file.endswith(".parquet") else _read_lines
        yield from read(file, divisor)


def _read_parquet(file: str, divisor: int) -> Iterator[Chunk]:
    from rewardkit.row import open_parquet

    first = 0
    with open_parquet(Path(file)) as parquet:
        for batch in parquet.iter_batches(CHUNK_ROWS // divisor):
            yield Chunk(path=file, first=first, rows=tuple(batch.to_pylist()))
            first += batch.num_rows


def _read_lines(file: str, divisor: int) -> Iterator[Chunk]:
    first, size = 1, CHUNK_BYTES // divisor
    try:
        with _open(file) as stream:
            raw = stream.raw if isinstance(stream, io.BufferedReader) else None
            is_plain = isinstance(raw, io.FileIO) and file != "-"
            damage, start = "", 0
            while not damage and (text := stream.read(size)):
                text, problem = _whole_lines(stream, text)
                damage = raw.damage if isinstance(raw, _Decompressed) else ""
                if damage:  # the last line is not whole
                    text = text[: text.rfind(b"\n") + 1]
                if is_plain:
                    yield Chunk(path=file, first=first, span=(start, len(text)), damage=problem)
                    start = stream.tell()
                else:
                    yield Chunk(path=file, first=first, lines=text, damage=damage or problem)
                first += text.count(b"\n") + bool(problem)
            if not damage and isinstance(raw, _Decompressed) and raw.damage:
                yield Chunk(path=file, first=first, damage=raw.damage)
    except OSError as error:
        if first == 1:
            raise unreadable_file(file, error) from error
        reason = error.strerror or str(error)
        raise SourceError(f"{file}: cannot be read near line {first:,}: {reason}.") from error


def _whole_lines(stream: IO[bytes], text: bytes) -> tuple[bytes, str]:
    """`text` with the rest of its last line; if that is too long, without that line, and why."""
    rest = stream.readline(MAX_LINE_BYTES)
    if len(rest) < MAX_LINE_BYTES or rest.endswith(b"\n"):
        return text + rest, ""
    while (piece := stream.readline(PIECE_BYTES)) and not piece.endswith(b"\n"):
        pass
    return text[: text.rfind(b"\n") + 1], f"the line is longer than {MAX_LINE_BYTES:,} bytes"


class _Decompressed(io.RawIOBase):
    """The content of a compressed file, up to where it is cut off or damaged."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.decompress = read
        self.damage = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self.decompress(min(len(buffer), PIECE_BYTES))
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk failed, not the file
            self.damage = f"{DAMAGE} ({error})"
            return 0
        buffer[: len(piece)] = piece
        return len(piece)


def _open(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    if file.endswith(".gz"):
        # read1 returns what was decompressed before the damage
        return io.BufferedReader(_Decompressed(gzip.GzipFile(file).read1), PIECE_BYTES)
    if file.endswith(".zst"):
        import pyarrow as pa

        stream = pa.CompressedInputStream(pa.OSFile(file), "zstd")
        return io.BufferedReader(_Decompressed(stream.read), PIECE_BYTES)
    return Path(file).open("rb")
