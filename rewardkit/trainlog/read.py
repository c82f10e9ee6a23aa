"""Any trace of a training run, read into a `Run`."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from rewardkit.errors import DataError, SourceError
from rewardkit.trainlog.console_reader import ConsoleReader
from rewardkit.trainlog.jsonl_reader import JsonlReader, parse_record
from rewardkit.trainlog.rollout_dumps import list_dumps, read_dumps
from rewardkit.trainlog.tensorboard import is_event_file, read_events
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes that are read at a time.
CHUNK = 4 << 20

#: Bytes that are looked at to see what a file is.
HEAD = 1 << 20

#: Lines of it that may show that it is a jsonl.
FIRST = 5

_NOT_LOGS = {
    b"PAR1": "a parquet file; `rewardkit report` shows responses",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it",
    b"BZh": "compressed with bzip2; unpack it",
    b"\xfd7zXZ": "compressed with xz; unpack it",
    b"\x89PNG": "a picture",
    b"%PDF": "a PDF",
}


def read_run(
    path: Path | str, name: str = "", progress: Callable[[int], object] = lambda _: None
) -> TrainingRun:
    """Read a run from what it left behind.

    Args:
        path: a console log or a file of verl's `file` logger (both also `.gz`), a TensorBoard
            event file or a folder of them, or a folder of rollout dumps.
        name: what to call the run; the file's name if not said.
        progress: called with the number of bytes read since the last call.

    Raises:
        SourceError: there is no such file, or it cannot be opened.
        DataError: it is none of these, or has not one step.
    """
    path = Path(path)
    name = name or path.stem or str(path)
    try:
        if path.is_dir():
            return _read_folder(path, name)
        head = _head(path)
        if is_event_file(head):
            return read_events([path], name, str(path))
        reader = choose_reader(head, path)
        for data in _chunks(path):
            reader.feed(data)
            progress(len(data))
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {_why(error)}.") from error
    return _finished(reader, name, path)


def read_runs(
    paths: Iterable[Path | str], progress: Callable[[int], object] = lambda _: None
) -> list[TrainingRun]:
    """Read several runs and give each a name of its own."""
    runs = [read_run(path, progress=progress) for path in paths]
    same = Counter(run.name for run in runs)
    runs = [replace(run, name=run.path) if same[run.name] > 1 else run for run in runs]
    seen: Counter[str] = Counter()
    for i, run in enumerate(runs):
        seen[run.name] += 1
        if seen[run.name] > 1:
            runs[i] = replace(run, name=f"{run.name} ({seen[run.name]})")
    return runs


def choose_reader(head: bytes, path: Path) -> ConsoleReader | JsonlReader:
    """What reads a file that begins like this.

    Raises:
        DataError: it is no log.
    """
    if not head.strip():
        raise DataError(f"{path}: the file is empty.")
    for magic, what in _NOT_LOGS.items():
        if head.startswith(magic):
            raise DataError(f"{path}: no training log but {what}.")
    lines = (line for line in head.split(b"\n") if line.strip())
    return JsonlReader() if any(map(parse_record, islice(lines, FIRST))) else ConsoleReader()


def _read_folder(path: Path, name: str) -> TrainingRun:
    if list_dumps(path):
        return read_dumps(path, name)
    if events := sorted(path.rglob("*tfevents*")):
        folders = sorted({str(file.parent) for file in events})
        if len(folders) > 1:
            more = f" and {len(folders) - 4:,} more" if len(folders) > 4 else ""
            raise DataError(
                f"{path}: event files of {len(folders):,} runs are in this folder; name one or "
                f"several of {', '.join(folders[:4])}{more}."
            )
        return read_events(events, name, str(path))
    logs = sorted(file.name for file in path.iterdir() if file.suffix in {".log", ".jsonl", ".txt"})
    hint = f" Name one of its files: {', '.join(logs[:3])}." if logs else ""
    raise DataError(
        f"{path}: neither rollout dumps (<step>.jsonl) nor TensorBoard event files are in this "
        f"folder.{hint}"
    )


def _finished(reader: ConsoleReader | JsonlReader, name: str, path: Path) -> TrainingRun:
    try:
        return reader.finish(name, str(path))
    except DataError as error:
        if isinstance(reader, ConsoleReader) and reader.binary:
            raise DataError(f"{path}: no training log but a binary file.") from error
        raise


def _head(path: Path) -> bytes:
    with _open(path) as file:
        return file.read(HEAD)


def _chunks(path: Path) -> Iterator[bytes]:
    with _open(path) as file:
        while data := file.read(CHUNK):
            yield data


def _open(path: Path) -> BinaryIO | gzip.GzipFile:
    """The file, unpacked if it is gzip's."""
    file = path.open("rb")
    if file.read(2) != b"\x1f\x8b":
        file.seek(0)
        return file
    file.close()
    return gzip.open(path, "rb")


def _why(error: OSError | EOFError | zlib.error) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".")
