"""Reads any kind of log into a `TrainingRun`."""

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from rewardkit.errors import DataError, RewardkitError, unreadable_file
from rewardkit.file_kinds import require_regular_file
from rewardkit.redact import Redactor
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.trainlog.console_reader import ConsoleReader, flatten
from rewardkit.trainlog.files import (
    CHUNK_BYTES,
    JsonlReader,
    LogReader,
    only_log,
    parse_record,
    run_logs,
)
from rewardkit.trainlog.reward_files import has_dumps, has_records, read_rewards
from rewardkit.trainlog.rewards import recorded_run
from rewardkit.trainlog.tensorboard import is_event_file, read_events
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes from which the kind of a file is determined.
HEAD_BYTES = 1 << 20

#: Lines of these that may show that the file is a jsonl.
FIRST_LINES = 5

_NOT_LOGS = {
    b"PAR1": "a parquet file; `rewardkit score --html` shows responses",
    b"PK\x03\x04": "a zip archive; unpack it",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it",
    b"BZh": "compressed with bzip2; unpack it",
    b"\xfd7zXZ": "compressed with xz; unpack it",
    b"\x89PNG": "an image",
    b"%PDF": "a PDF",
}


def read_run(
    path: Path | str, name: str = "", progress: Callable[[int], object] = lambda _: None
) -> TrainingRun:
    """Read the log of a run.

    Args:
        path: a console log or a file of verl's `file` logger (both also `.gz`), a TensorBoard
            event file or a folder of them, a folder of rollout dumps, a folder of a reward's
            records, or the folder of a run of `rewardkit train`.
        name: name of the run; by default the name of the file.
        progress: called with the number of bytes read since the last call.

    Raises:
        SourceError: the file does not exist or cannot be opened.
        DataError: it is none of these, or has no step.
    """
    path = Path(path)
    name = name or (path.name if path.is_dir() else path.stem) or str(path)
    try:
        if path.is_dir():
            return _read_folder(path, name, progress)
        return _read_file(path, name, progress)
    except RewardkitError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file is damaged: {str(error).rstrip('.')}.") from error
    except OSError as error:
        raise unreadable_file(path, error) from error


def read_runs(
    paths: Iterable[Path | str], progress: Callable[[int], object] = lambda _: None
) -> list[TrainingRun]:
    """Read several runs; those of the same name are called by their paths."""
    runs = [read_run(path, progress=progress) for path in paths]
    names = Counter(run.name for run in runs)
    return [replace(run, name=run.path) if names[run.name] > 1 else run for run in runs]


def with_config(run: TrainingRun, path: Path) -> TrainingRun:
    """Return the run with the settings of a YAML or JSON file, such as `.hydra/config.yaml`.

    Raises:
        SourceError: the file cannot be read.
        DataError: it is not YAML or JSON within the limits, or has no settings.
    """
    settings = Redactor().tree(dict(flatten(read_yaml_file(path))))
    if not settings:
        raise DataError(f"{path}: no settings; name the run's own config.yaml.")
    return replace(run, config={**run.config, **settings})


def choose_reader(head: bytes, path: Path) -> LogReader:
    """Choose the reader for a file that starts with `head`.

    Raises:
        DataError: the file is not a log.
    """
    if not head.strip():
        raise DataError(f"{path}: the file is empty.")
    for magic, what in _NOT_LOGS.items():
        if head.startswith(magic):
            raise DataError(f"{path}: not a training log but {what}.")
    lines = (line for line in head.split(b"\n") if line.strip())
    return JsonlReader() if any(map(parse_record, islice(lines, FIRST_LINES))) else ConsoleReader()


def _read_file(path: Path, name: str, progress: Callable[[int], object]) -> TrainingRun:
    with _open(path) as file:
        data = file.read(HEAD_BYTES)
        if is_event_file(data):
            return read_events([path], name, str(path))
        reader = choose_reader(data, path)
        is_binary = isinstance(reader, ConsoleReader) and b"\0" in data
        while data:
            reader.feed(data)
            progress(len(data))
            data = file.read(CHUNK_BYTES)
    try:
        return reader.finish(name, str(path))
    except DataError as error:
        if is_binary:
            raise DataError(f"{path}: not a training log but a binary file.") from error
        raise


def _read_folder(path: Path, name: str, progress: Callable[[int], object]) -> TrainingRun:
    if has_dumps(path):
        return recorded_run(read_rewards(path), name)
    if logs := run_logs(path):
        return _read_file(logs[0], name, progress)
    if has_records(path):
        return recorded_run(read_rewards(path), name)
    if events := sorted(path.rglob("*tfevents*")):
        folders = sorted({str(file.parent) for file in events})
        if len(folders) > 1:
            more = f" and {len(folders) - 4:,} more" if len(folders) > 4 else ""
            raise DataError(
                f"{path}: this folder has event files of {len(folders):,} runs; name one or "
                f"several of {', '.join(folders[:4])}{more}."
            )
        return read_events(events, name, str(path))
    return _read_file(only_log(path), name, progress)


def _open(path: Path) -> BinaryIO | gzip.GzipFile:
    require_regular_file(path)
    file = path.open("rb")
    if file.read(2) != b"\x1f\x8b":
        file.seek(0)
        return file
    file.close()
    return gzip.open(path, "rb")
