"""Files of ours that only grow: one run writes them, and a killed run leaves what it wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rewardkit.errors import OutputError
from rewardkit.output import open_no_follow, raise_output_errors
from rewardkit.output_lock import OutputLock, lock_output


class AppendOnlyFile:
    """A file that is written at its end. Use `open_append_only`.

    Attributes:
        path: its path, for messages.
        file: the unbuffered file, open for reading and appending.
        size: bytes of the whole appends.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.file = path, file
        self.size = file.seek(0, os.SEEK_END)

    def append(self, text: bytes) -> None:
        """Append all of a text or nothing: a full disk leaves no half of it.

        Raises:
            OSError: it cannot be written, or another run has written to it.
        """
        if os.fstat(self.file.fileno()).st_size != self.size:
            raise OutputError(
                f"{self.path}: another run has written to it, too. Wait until that run ends; then "
                "--overwrite starts again."
            )
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError:
            self.truncate(self.size)
            raise
        self.size += len(text)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes only."""
        self.file.truncate(size)
        self.size = size

    def sync(self) -> None:
        """Make what was written safe from a power cut."""
        os.fsync(self.file.fileno())


@contextmanager
def open_append_only(path: Path, out: Path) -> Iterator[AppendOnlyFile]:
    """A file of ours that grows, new or as an earlier run left it. Hold the lock of its output.

    Args:
        path: the file.
        out: the file that a message names if `path` cannot be written.

    Raises:
        OutputError: it cannot be written, or is not a regular file.
    """
    with raise_output_errors(out), open_no_follow(path) as file:
        yield AppendOnlyFile(path, file)


@contextmanager
def lock_part(part: Path, out: Path) -> Iterator[OutputLock]:
    """Hold the lock of an output that grows in `part`.

    Raises:
        OutputError: another run is writing it, or the lock cannot be written.
    """
    with raise_output_errors(out):
        part.parent.mkdir(parents=True, exist_ok=True)
        with lock_output(out, part.with_name(f"{part.name}.lock")) as lock:
            yield lock


def part_path(out: Path) -> Path:
    """Return the file that grows while `out` is being made."""
    return out.with_name(f".{out.name}.part")
