"""Unfinished outputs: records in a file beside the output, from which a killed run goes on.

A record is a line of JSON, its head, followed by the lines of its body, whose size and checksum the
head has. A record is whole or it does not count: a run that goes on verifies all records and cuts the
file behind the last whole one, however the earlier run ended. The first head says what the run is of;
only a run of the same can go on.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, Any, NamedTuple
from zlib import crc32

from rewardkit.errors import DataError, OutputError
from rewardkit.jsonl import MAX_LINE_BYTES
from rewardkit.output import open_no_follow, raise_output_errors, require_absent
from rewardkit.output_lock import OutputLock, lock_output

#: The key that only heads have: other readers of the lines pass over them.
HEAD_KEY = "rewardkit_part"

#: How often written records are made safe from a power cut, in seconds.
SYNC_SECONDS = 1.0

#: Longest head, in bytes: it may repeat texts of the rows.
_MAX_HEAD_BYTES = 4 * MAX_LINE_BYTES


class Record(NamedTuple):
    """A record, and the first byte of its body in the file."""

    head: dict[str, Any]
    start: int
    body: bytes


class Store:
    """The unfinished output of one run, as records in a file. Use `open_store`.

    `size` counts the bytes of the whole records.
    """

    def __init__(self, path: Path, file: IO[bytes], lock: OutputLock) -> None:
        self.path, self.file, self._lock = path, file, lock
        self.size, self.count, self._sync_time = 0, 0, 0.0

    def append(self, head: Mapping[str, Any], body: bytes) -> None:
        """Append a record, or nothing of it: a full disk leaves no half of it."""
        self._append({HEAD_KEY: [len(body), crc32(body)], **head}, body)
        self.count += 1
        if monotonic() - self._sync_time >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Make the records safe from a power cut."""
        self._lock.require()
        os.fsync(self.file.fileno())
        self._sync_time = monotonic()

    def records(self) -> Iterator[Record]:
        """Yield the records in the order in which they were appended."""
        yield from _read_records(self.path)
        self._require_size(DataError)

    def remove(self) -> None:
        """Remove the file: the output is finished, or nothing is worth to go on from."""
        self.path.unlink(missing_ok=True)

    def start(self, run: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Cut the file behind its last whole record, or begin it anew; see `open_store`."""
        run = json.loads(json.dumps(run))
        if self.file.seek(0, os.SEEK_END) and (resume or not overwrite):
            fault = self._fault(run)
            if not fault and not resume:
                raise OutputError(
                    f"{self.path}: an earlier run was interrupted; --resume continues it, "
                    "--overwrite starts again."
                )
            if fault and not overwrite:
                raise DataError(f"{self.path}: {fault}; --overwrite starts again.")
            if not fault:
                for record in _read_records(self.path):
                    self.size, self.count = record.start + len(record.body), self.count + 1
        if not self.count:
            self.file.truncate(0)
            self._append({HEAD_KEY: [0, 0], "run": run}, b"")
        self.file.truncate(self.size)

    def _fault(self, run: Mapping[str, Any]) -> str:
        with self.path.open("rb") as file:
            head = _parse_head(file.readline(_MAX_HEAD_BYTES))
        if head is None or "run" not in head:
            return "is not an unfinished output of this version of rewardkit"
        other = [name for name, value in run.items() if head["run"].get(name) != value]
        return f"the interrupted run had other {' and '.join(other)}" if other else ""

    def _append(self, head: Mapping[str, Any], body: bytes) -> None:
        self._require_size(OutputError)
        text = json.dumps(head).encode() + b"\n" + body
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError:
            self.file.truncate(self.size)
            raise
        self.size += len(text)

    def _require_size(self, error: type[DataError | OutputError]) -> None:
        if (size := os.fstat(self.file.fileno()).st_size) != self.size:
            raise error(
                f"{self.path}: another run has written {size - self.size:,} bytes to it, too. Wait "
                "until that run ends; then --overwrite starts again."
            )


def part_path(out: Path) -> Path:
    """Return the file that grows while `out` is being made."""
    return out.with_name(f".{out.name}.part")


@contextmanager
def open_store(
    out: Path, run: Mapping[str, Any], *, resume: bool, overwrite: bool, replace: bool = False
) -> Iterator[Store]:
    """Hold the lock of an output, and open its records: new, or as an interrupted run left them.

    `run` says what the run is of, as JSON values. `resume` goes on with an interrupted run of the
    same, `overwrite` discards one that cannot be continued, or any without `resume`; `replace` says
    that `out` may exist.

    Raises:
        OutputError: the output exists; there is an interrupted run, and neither `resume` nor
            `overwrite` is set; another run writes the output; or it cannot be written.
        DataError: the interrupted run was of something else, or of another version of rewardkit.
    """
    path = part_path(out)
    with raise_output_errors(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        with lock_output(out, path.with_name(f"{path.name}.lock")) as lock:
            require_absent(out, overwrite=overwrite or replace)  # a run may have just ended
            with open_no_follow(path) as file:
                store = Store(path, file, lock)
                store.start(run, resume=resume, overwrite=overwrite)
                try:
                    yield store
                finally:
                    if store.count:
                        store.sync()
                    else:
                        store.remove()


def _read_records(path: Path) -> Iterator[Record]:
    """Yield the records up to the first that is not whole."""
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        while head := _parse_head(file.readline(_MAX_HEAD_BYTES)):
            start = file.tell()
            size, checksum = head.pop(HEAD_KEY)
            if start + size > end or crc32(body := file.read(size)) != checksum:
                return
            if "run" not in head:
                yield Record(head, start, body)


def _parse_head(line: bytes) -> dict[str, Any] | None:
    try:
        head = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    numbers = head.get(HEAD_KEY) if isinstance(head, dict) else None
    numbers = numbers if isinstance(numbers, list) else []
    return head if list(map(type, numbers)) == [int, int] and numbers[0] >= 0 else None
