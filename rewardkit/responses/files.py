"""Files of responses: found by their names, and read in chunks, which one process scores at a time."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from rewardkit.errors import DataError, SourceError, UsageError, unreadable_file
from rewardkit.file_kinds import COMPRESSIONS, lines_fault, row_suffix
from rewardkit.jsonl import MAX_LINE_BYTES, LongLine, bounded_lines, parse_json
from rewardkit.output import require_not_input, require_suffix
from rewardkit.responses.store import HEAD_KEY
from rewardkit.text import row_count

#: Size of a chunk: bytes of jsonl, rows of parquet.
CHUNK_BYTES = 1 << 20
CHUNK_ROWS = 512

#: Reasons that are printed for rows that cannot be used.
MAX_REASONS = 5

#: Why the rest of a compressed file cannot be read.
DAMAGE = "the file is cut off or damaged from here on"

#: Files that are read from a folder.
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")

#: Files that are read as tables; others have a row in each line.
TABLE_SUFFIXES = (".parquet", ".arrow", ".csv", ".tsv", ".json")

#: The end of the names of files with the rows that could not be scored.
UNSCORED_SUFFIX = ".unscored.jsonl"


class SkippedRow(NamedTuple):
    """A row that cannot be used: its file and line, and the reason."""

    where: str
    reason: str


def skipped_lines(rows: Iterable[SkippedRow], n: int, what: str = "skipped") -> list[str]:
    """Return lines about the first of n rows that cannot be used, one for each reason."""
    first_lines: dict[str, str] = {}
    for where, reason in rows:
        first_lines.setdefault(reason, where)
    lines = [f"{where}: {what}: {reason}" for reason, where in first_lines.items()][:MAX_REASONS]
    more = f"... and {row_count(n - len(lines))} more, for these or other reasons"
    return [*lines, more] if n > len(lines) else lines


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some consecutive lines or rows of a file, `-` for standard input.

    `first` is the number of the first line (from 1) or row (from 0). `lines` are those of a stream or a
    compressed file, `span` first byte and size of those of a plain file, which are read where they are
    scored, `rows` those of a table. `problem` says why the line after those cannot be read.
    """

    path: str
    first: int
    lines: bytes = b""
    span: tuple[int, int] = (0, 0)
    rows: tuple[dict[str, Any], ...] = ()
    problem: str = ""

    @property
    def text(self) -> bytes:
        """The lines of a jsonl; it must not have become shorter since."""
        start, size = self.span
        if not size:
            return self.lines
        with Path(self.path).open("rb") as file:
            file.seek(start)
            text = file.read(size)
        if len(text) < size:
            raise DataError(f"{self.path}: became shorter while it was read.")
        return text


def expand_paths(names: Iterable[str | Path]) -> list[str]:
    """Return the files of names, folders and patterns, each once and in order; `-` stays.

    Files of a folder are sorted by the numbers in their names (`9.jsonl` before `10.jsonl`).
    """
    paths = [path for name in names for path in _expand(str(name))]
    files = list({path if path == "-" else Path(path).resolve(): path for path in paths}.values())
    if "-" in files and len(files) > 1:
        raise UsageError("'-' (standard input) is read alone.")
    return files


def input_files(
    names: Iterable[str | Path], option: str, out: Path | None, suffix: str, *others: Path | None
) -> list[str]:
    """Return the files of names, unless an output cannot be written: the value of an option, if any."""
    names = list(names)
    require_suffix(option, out, suffix)
    for folder in map(Path, names):
        if out and folder.is_dir() and out.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"{out} is in the folder {folder}, which is read: the next run would count its rows as "
                "responses. Name a file outside."
            )
    files = expand_paths(names)
    require_not_input(out, *map(Path, files), *filter(None, others))
    return files


def files_name(files: Sequence[str]) -> str:
    """Return the name of some files in a message."""
    return files[0] if len(files) == 1 else f"{len(files):,} files"


def _expand(name: str) -> list[str]:
    path = Path(name)
    if name == "-" or path.is_file():
        return [name]
    if path.is_dir():
        paths = [p for p in path.rglob("[!.]*") if p.name.endswith(SUFFIXES) and p.is_file()]
        paths = [p for p in paths if not p.name.endswith(UNSCORED_SUFFIX)]
        if not paths:
            suffixes = ", ".join(SUFFIXES)
            raise SourceError(f"{name}: the folder has no file of responses ({suffixes}).")
    elif path.exists():
        raise UsageError(
            f"{name} is not a regular file. Save the responses to one, or name - alone to read "
            "standard input."
        )
    else:
        paths = [Path(p) for p in glob(name, recursive=True) if Path(p).is_file()]  # noqa: PTH207 - a pattern may be absolute
        if not paths:
            raise SourceError(f"{name}: no such file, and no files of that pattern.")

    def order(path: Path) -> tuple[str, int, str]:
        digits = "".join(filter(str.isdecimal, path.name.partition(".")[0]))
        return str(path.parent), int(digits[:18] or 0), path.name

    return [str(p) for p in sorted(paths, key=order)]


def read_chunks(files: Iterable[str], divisor: int = 1) -> Iterator[Chunk]:
    """Yield the chunks of all files in order; a file is read as its chunks are needed.

    `divisor` divides the size of a chunk, for work that takes long.
    """
    for file in files:
        if row_suffix(Path(file)) not in TABLE_SUFFIXES:
            yield from _read_lines(file, CHUNK_BYTES // divisor)
            continue
        from rewardkit.row import batched
        from rewardkit.row_files import rows_in

        first = 0
        for rows in batched((row for _, row in rows_in(Path(file))), CHUNK_ROWS // divisor):
            yield Chunk(path=file, first=first, rows=tuple(rows))
            first += len(rows)


def _read_lines(file: str, size: int) -> Iterator[Chunk]:
    is_plain = file != "-" and not file.endswith(COMPRESSIONS)
    first, start = 1, 0
    try:
        with _open(file) as stream:
            for lines, problem in _group_lines(stream, size):
                if is_plain:
                    span = start, sum(map(len, lines))
                    yield Chunk(path=file, first=first, span=span, problem=problem)
                    start = stream.tell()
                else:
                    yield Chunk(path=file, first=first, lines=b"".join(lines), problem=problem)
                first += len(lines) + bool(problem)
    except OSError as error:
        if first == 1:
            raise unreadable_file(file, error) from error
        reason = error.strerror or str(error)
        raise SourceError(f"{file}: cannot be read near line {first:,}: {reason}.") from error


def _group_lines(stream: IO[bytes], size: int) -> Iterator[tuple[list[bytes], str]]:
    """Yield lines of about `size` bytes together, and why the line after them cannot be read."""
    lines: list[bytes] = []
    length = 0
    try:
        for line in bounded_lines(stream, MAX_LINE_BYTES):
            problem = line.reason if isinstance(line, LongLine) else ""
            if not isinstance(line, LongLine):
                lines.append(line)
                length += len(line)
            if problem or length >= size:
                yield lines, problem
                lines, length = [], 0
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed, not the file
        yield lines, f"{DAMAGE} ({error})"
    else:
        if lines:
            yield lines, ""


def _open(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    if file.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(file))
    if file.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(file), "zstd"), 1 << 16)
    return Path(file).open("rb")


def read_records(chunk: Chunk) -> Iterator[tuple[str, dict[str, Any]] | SkippedRow]:
    """Yield `file:line` and the fields of each row, and the lines that are not an object."""
    for number, row in enumerate(chunk.rows, chunk.first):
        yield f"{chunk.path} row {number}", row
    end = chunk.first
    for number, line in enumerate(io.BytesIO(chunk.text), chunk.first):
        where, end, reason = f"{chunk.path}:{number}", number + 1, ""
        if line.isspace():
            continue
        try:
            fields = parse_json(line)
        except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
            reason = f"not JSON ({error})"
        else:
            if not isinstance(fields, dict):
                reason = f"a {type(fields).__name__}, not an object"
        if reason:
            is_first = number == 1 and chunk.span[1] > 0
            fault = lines_fault(Path(chunk.path)) if is_first else ""
            is_cut = (
                "" if line.endswith(b"\n") else "; it has no line end: is it still being written?"
            )
            yield SkippedRow(where, fault or reason + is_cut)
        elif HEAD_KEY not in fields:
            yield where, fields
    if chunk.problem:
        yield SkippedRow(f"{chunk.path}:{end}", chunk.problem)
