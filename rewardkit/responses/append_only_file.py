"""Files of ours that only grow: one run writes them, and a killed run leaves what it wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rewardkit.output import lock_file, open_no_follow, raise_output_errors


class AppendOnlyFile:
    """A locked file that is written at its end. Use `open_append_only`.

    Attributes:
        file: the unbuffered file, open for reading and appending.
        size: bytes of the whole appends.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.size = file.seek(0, os.SEEK_END)

    def append(self, text: bytes) -> None:
        """Append all of a text or nothing: a full disk leaves no half of it.

        Raises:
            OSError: it cannot be written.
        """
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
    """A file of ours that grows, new or as an earlier run left it, locked until the block ends.

    Args:
        path: the file.
        out: the file that a message names if `path` cannot be written.

    Raises:
        OutputError: it cannot be written, is not a regular file, or another run is writing it.
    """
    with raise_output_errors(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_no_follow(path) as file:
            lock_file(file, path)
            yield AppendOnlyFile(file)


def part_path(out: Path) -> Path:
    """Return the file that grows while `out` is being made."""
    return out.with_name(f".{out.name}.part")
