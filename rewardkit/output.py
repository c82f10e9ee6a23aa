"""Writing files so that nothing the user had is lost and nothing is left half-written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewardkit.errors import OutputError, RewardkitError


@contextmanager
def atomic(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path beside `out` that becomes `out` when the block ends without an error.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    refuse_existing(out, overwrite=overwrite)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
    except RewardkitError:
        raise
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}.") from error


def refuse_existing(out: Path, *, overwrite: bool) -> None:
    """Raise `OutputError` if `out` exists and may not be overwritten, or is a directory."""
    if out.is_dir():
        raise OutputError(f"{out} is a directory; name a file.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; add --overwrite to replace it.")
