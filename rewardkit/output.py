"""Write files without losing a file of the user's and without leaving a partial file; JSON values.

A temporary file names its process, so that the next run with the same output removes what a killed
run left: at once on the same machine, after a week on another, where nobody sees whether it runs.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import OutputError, RewardkitError, UsageError
from rewardkit.output_lock import PROCESS_ID, is_running, process_id

#: Bytes of an output's name in the name of its temporary file; a name may have 255 bytes.
_MAX_NAME_BYTES = 200

#: Bytes of a file that are read to see whether we wrote it.
_MAX_START_BYTES = 1 << 16

#: The temporary file of another machine's process is a leftover if nobody has written it for so long.
LEFTOVER_SECONDS = 7 * 86400.0


def resolve_output(out: Path) -> Path:
    """Return the file to write for `out`: a symbolic link is followed, unless it leads to itself, and kept."""
    target = Path(os.path.realpath(out))
    if target.is_symlink():
        raise OutputError(f"{out} is a symbolic link that leads to itself; name a file.")
    return target


@contextmanager
def atomic(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary file beside `out`, which replaces `out` if the block raises no error.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    out = resolve_output(out)
    with _replacing(out, partial(require_absent, out, overwrite=overwrite)) as temporary:
        yield temporary


def atomic_side_file(
    path: Path, start: re.Pattern[bytes], *, overwrite: bool
) -> AbstractContextManager[Path]:
    """Yield a temporary file that becomes a file beside an output; see `require_side_file`."""
    return _replacing(path, partial(require_side_file, path, start, overwrite=overwrite))


@contextmanager
def _replacing(path: Path, require: Callable[[], None]) -> Iterator[Path]:
    with raise_output_errors(path):
        require()
        with _temporary(path) as temporary:
            yield temporary
            require()  # another run may have written it meanwhile
            temporary.replace(path)  # a link that comes now is replaced, not followed


@contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """Yield a new folder beside `out`, which becomes `out` if the block raises no error; `out` must not exist."""
    if out.is_symlink() or out.exists():
        raise OutputError(f"{out} exists; name another folder with --out.")
    with raise_output_errors(out), _temporary(out, is_folder=True) as temporary:
        yield temporary
        temporary.rename(out)


@contextmanager
def raise_output_errors(out: Path) -> Iterator[None]:
    """Raise an `OSError` of the block as an `OutputError` that names the output."""
    try:
        yield
    except RewardkitError:
        raise
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}.") from error


def open_no_follow(path: Path) -> IO[bytes]:
    """Open a file whose name others can predict, to read and append, without a buffer.

    A link, another hard link or what is not a regular file is an `OutputError`.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OutputError(
                f"{path} is a symbolic link that rewardkit did not create; remove it."
            ) from error
        raise
    file = os.fdopen(descriptor, "a+b", buffering=0)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return file
    file.close()
    if status.st_nlink > 1:
        raise OutputError(
            f"{path} is a hard link: writing it would change another file, too. Replace it by a copy, "
            "or remove it."
        )
    raise OutputError(f"{path} is not a regular file; remove it.")


def require_absent(out: Path, *, overwrite: bool) -> None:
    """Raise `OutputError` if `out` exists and may not be overwritten, or is not a regular file."""
    if out.is_dir():
        raise OutputError(f"{out} is a directory; name a file.")
    if out.exists() and not out.is_file():
        raise OutputError(f"{out} is not a regular file; name another.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists; add --overwrite to replace it.")


def require_side_file(path: Path, start: re.Pattern[bytes], *, overwrite: bool) -> None:
    """Raise `OutputError` if a file beside an output, which the user has not named, may not be written.

    A link is refused. A file that begins with `start` is ours, as a killed run leaves it, and is
    replaced; any other one only with `overwrite`.
    """
    if path.is_symlink():
        raise OutputError(f"{path} is a symbolic link that rewardkit did not create; remove it.")
    require_absent(path, overwrite=True)
    if not overwrite and path.exists():
        with raise_output_errors(path), path.open("rb") as file:
            head = file.read(_MAX_START_BYTES)
        require_absent(path, overwrite=not head or start.match(head) is not None)


def require_suffix(option: str, out: Path | None, suffix: str) -> None:
    """Raise `UsageError` if the file in an option lacks the suffix of the format to be written.

    A folder passes, because `require_absent` has a better message for it.
    """
    if out is not None and out.suffix != suffix and not out.is_dir():
        kind = suffix.removeprefix(".")
        raise UsageError(
            f"{option} {out}: the output is {kind}; name a file that ends in {suffix}."
        )


def require_different(**named: Path | None) -> None:
    """Raise `UsageError` if two of the output files, each under its option, are the same file."""
    seen: dict[Path, str] = {}
    for name, path in named.items():
        if path is not None and (other := seen.setdefault(resolve_output(path), name)) != name:
            raise UsageError(f"--{other} and --{name} name the same file, {path}.")


def require_not_input(out: Path | None, *sources: Path) -> None:
    """Raise `UsageError` if the output is one of the inputs."""
    is_input = out and out.exists() and any(one.exists() and out.samefile(one) for one in sources)
    if is_input:
        raise UsageError(f"{out} is the input file; name another output.")


def json_value(value: Any) -> Any:
    """Return a value in types of JSON: dataclasses as objects, NaN as null, bytes as their number."""
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


@contextmanager
def _temporary(out: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Yield a new file `.OUT.PROCESS.tmp`, or a folder; remove leftovers of ended processes."""
    parent = out.parent
    parent.mkdir(parents=True, exist_ok=True)
    stem = f".{os.fsdecode(os.fsencode(out.name)[:_MAX_NAME_BYTES])}"
    path = parent / f"{stem}.{process_id()}.tmp"
    try:
        if is_folder:
            path.mkdir()
        else:
            path.touch(0o666, exist_ok=False)
        _remove_leftovers(parent, stem, path.stat().st_mtime)
        yield path
    finally:  # a signal may have ended the creation, too
        _remove(path)


def _remove_leftovers(parent: Path, stem: str, now: float) -> None:
    """Remove what ended processes left; `now` is a time of the file system."""
    name = re.compile(rf"{re.escape(stem)}\.{PROCESS_ID}\.tmp")
    for path in list(parent.iterdir()):
        if match := name.fullmatch(path.name):
            running = is_running(match)
            with suppress(OSError):
                if running is None:
                    running = now - path.lstat().st_mtime < LEFTOVER_SECONDS
                if not running:
                    _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
