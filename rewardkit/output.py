"""Writing files so that nothing the user had is lost and nothing is left half-written; JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rewardkit.errors import OutputError, RewardkitError, UsageError


@contextmanager
def atomic(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path beside `out` that becomes `out` when the block ends without an error.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    out = out.resolve()
    try:
        refuse_existing(out, overwrite=overwrite)
        temporary = out.with_name(f".{out.name[:100]}.{os.getpid()}.tmp")
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
    """Raise `OutputError` if `out` exists and may not be overwritten, or is no plain file."""
    if out.is_dir():
        raise OutputError(f"{out} is a directory; name a file.")
    if out.exists() and not out.is_file():
        raise OutputError(f"{out} is no plain file; name another.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; add --overwrite to replace it.")


def require_suffix(option: str, out: Path | None, suffix: str) -> None:
    """Raise `UsageError` if the file that an option names has not the suffix of what is written.

    A folder passes: `refuse_existing` says more about it.
    """
    if out is not None and out.suffix != suffix and not out.is_dir():
        kind = suffix.removeprefix(".")
        raise UsageError(f"{option} {out}: {kind} is written; name a file that ends in {suffix}.")


def refuse_same(**named: Path | None) -> None:
    """Raise `UsageError` if two of the files to write, named by their options, are one file."""
    seen: dict[Path, str] = {}
    for name, path in named.items():
        if path is not None and (other := seen.setdefault(path.resolve(), name)) != name:
            raise UsageError(f"--{other} and --{name} name one file, {path}.")


def refuse_input(out: Path | None, source: Path) -> None:
    """Raise `UsageError` if an output is the very file that is read."""
    if out is not None and out.exists() and source.exists() and out.samefile(source):
        raise UsageError(f"{out} is the file that is read; name another output.")


def json_value(value: Any) -> Any:
    """The value in what JSON has: dataclasses are objects, NaN is null, bytes are their number."""
    if is_dataclass(value):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_value(cell) for key, cell in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(cell) for cell in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
