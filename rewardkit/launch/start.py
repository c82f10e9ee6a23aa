"""Start a run: its files written, its command executed with the output kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from select import select
from typing import IO

from rewardkit.errors import OutputError, RewardkitError, UsageError
from rewardkit.launch.targets import File
from rewardkit.output import atomic
from rewardkit.redact import Redactor, redactor_of

#: Seconds without output after which the beginning of a line is shown, and its longest beginning.
IDLE_SECONDS, LONGEST_LINE = 0.5, 1 << 20


def run_folder(name: str, out: Path | None) -> Path:
    """The folder that a run will have: `out`, or `runs/NAME-DATE-TIME`. Nothing is made yet.

    Raises:
        OutputError: it exists and is not an empty folder.
    """
    from datetime import datetime, timezone

    stamp = datetime.now(timezone.utc).astimezone().strftime("%Y%m%d-%H%M%S")
    folder = out or Path("runs") / f"{name}-{stamp}"
    others = (folder.with_name(f"{folder.name}-{i}") for i in count(2))
    while out is None and folder.exists():
        folder = next(others)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is not a folder; give another --out.")
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError(f"{folder} is not empty; give another --out.")
    return folder


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a run's folder; where the run is refused before it starts, what was made goes again.

    Raises:
        OutputError: it cannot be made, or has something in it.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}.") from error
    if not empty:
        raise OutputError(f"{folder} is not empty; name another folder, or remove it.")
    try:
        yield
    except RewardkitError:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        with suppress(OSError):  # another run uses a folder above
            for path in new:
                path.rmdir()
        raise


def write_files(files: Iterable[File], folder: Path) -> list[Path]:
    """Write a target's files below a run's folder.

    Raises:
        OutputError: one cannot be written.
    """
    written = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as part:
            part.write_text(file.text, encoding="utf-8")
            if file.executable:
                part.chmod(0o755)
        written.append(path)
    return written


def execute(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    cwd: str = ".",
    out: IO[bytes] | None = None,
) -> int:
    """Run a command, its output both in `out` (stdout) and in a file, and wait for its end.

    Secrets of the environment and of the command are hidden in both.

    Ctrl-C reaches it as it reaches us; its own exit code is returned (130 after Ctrl-C, 128 + N
    after signal N).

    Raises:
        UsageError: there is no such program, or no such folder.
    """
    if not Path(cwd).is_dir():
        raise UsageError(f"cluster.workdir: {cwd}: no such folder here.")
    variables = {**os.environ, **env}
    redactor = redactor_of(variables, command)
    try:
        process = subprocess.Popen(  # noqa: S603 - the plan's own command, a list
            list(command), env=variables, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        raise UsageError(
            f"{command[0]}: no such program here; install it, or mend cluster: in the recipe."
        ) from None
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror or error}.") from None
    with process, log.open("wb") as file:
        assert process.stdout is not None  # noqa: S101 - for the type: stdout=PIPE
        try:
            _copy(process.stdout, file, redactor, out)
            code = process.wait()
        finally:  # Ctrl-C, or a scheduler's end: verl ends with us
            if process.poll() is None:
                process.terminate()
                process.wait()
    return code if code >= 0 else 128 - code


def _copy(source: IO[bytes], file: IO[bytes], redactor: Redactor, out: IO[bytes] | None) -> None:
    """Copy output as it comes, by lines: a secret must not be cut in two."""
    target, rest, fd = out or sys.stdout.buffer, b"", source.fileno()
    while True:
        ready, _, _ = select([fd], [], [], IDLE_SECONDS if rest else None)
        block = os.read(fd, 1 << 16) if ready else b""
        whole, end, rest = _last_line(rest + block)
        if not ready or not block or len(rest) > LONGEST_LINE:  # a prompt, the end, or no lines
            end, rest = end + rest, b""
        text = (whole + end).decode("utf-8", "surrogateescape")
        hidden = redactor.text(text).encode("utf-8", "surrogateescape")
        for stream in (file, target):
            stream.write(hidden)
            stream.flush()
        if ready and not block:
            return


def _last_line(data: bytes) -> tuple[bytes, bytes, bytes]:
    """What ends in a line, its end, and the rest; a carriage return ends a line of progress."""
    place = max(data.rfind(b"\n"), data.rfind(b"\r"))
    return data[: max(place, 0)], data[max(place, 0) : place + 1], data[place + 1 :]
