"""Start a run: write its files, and run its command with a log of the output."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from select import select
from typing import IO

from rewardkit.errors import OutputError, RewardkitError, SourceError, UsageError
from rewardkit.launch.targets import File
from rewardkit.output import atomic
from rewardkit.redact import Redactor, redactor_of

#: An incomplete line is shown after this many seconds without output.
IDLE_SECONDS = 0.5

#: Longest incomplete line that is held back, in bytes.
MAX_LINE_BYTES = 1 << 20


def run_folder(name: str, out: Path | None) -> Path:
    """Return the folder of a new run: `out`, or `runs/NAME-DATE-TIME`. It does not create it."""
    folder = out or Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    others = (folder.with_name(f"{folder.name}-{i}") for i in count(2))
    while out is None and folder.exists():
        folder = next(others)
    return folder


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Create a run's folder; remove it again if the run is refused before it starts."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise OutputError(f"cannot create {folder}: {error.strerror or error}.") from error
    if not is_empty:
        raise OutputError(f"{folder} is not empty. Pass another --out, or remove it.")
    try:
        yield
    except RewardkitError:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        with suppress(OSError):  # another run uses a parent folder
            for path in new:
                path.rmdir()
        raise


def write_files(files: Iterable[File], folder: Path) -> list[Path]:
    """Write a target's files below a run's folder, and return their paths."""
    paths = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as part:
            part.write_text(file.text, encoding="utf-8")
            if file.executable:
                part.chmod(0o755)
        paths.append(path)
    return paths


def execute(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    cwd: str = ".",
    out: IO[bytes] | None = None,
) -> int:
    """Run a command, copy its output to `out` (stdout) and to a file, and wait for its end.

    The secrets of the environment and of the command are hidden in both copies. Ctrl-C reaches the
    command too. The exit code is 130 after Ctrl-C, 128 + N after signal N.
    """
    if not Path(cwd).is_dir():
        raise SourceError(
            f"cluster.workdir: {cwd}: no such folder on this machine. Fix it in the recipe."
        )
    variables = {**os.environ, **env}
    redactor = redactor_of(variables, command)
    try:
        process = subprocess.Popen(  # noqa: S603 - the plan's own command, a list
            list(command), env=variables, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        raise SourceError(
            f"{command[0]}: no such program on this machine. Install it, or fix cluster: in the recipe."
        ) from None
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror or error}.") from None
    with process, log.open("wb") as file:
        assert process.stdout is not None  # noqa: S101 - for the type: stdout=PIPE
        try:
            _copy_output(process.stdout.fileno(), (file, out or sys.stdout.buffer), redactor)
            code = process.wait()
        finally:  # after Ctrl-C, or a scheduler's signal: verl ends with this process
            if process.poll() is None:
                process.terminate()
                process.wait()
    return code if code >= 0 else 128 - code


def _copy_output(source: int, streams: Sequence[IO[bytes]], redactor: Redactor) -> None:
    """Copy output as it arrives, in whole lines, so that no secret is split between two writes."""
    rest, is_open = b"", True
    while is_open:
        ready, _, _ = select([source], [], [], IDLE_SECONDS if rest else None)
        block = os.read(source, 1 << 16) if ready else b""
        is_open, rest = not ready or bool(block), rest + block
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1  # progress bars end lines with CR
        # After a pause (a prompt), at the end and for a very long line, the rest is copied too.
        if not block or len(rest) - end > MAX_LINE_BYTES:
            end = len(rest)
        text, rest = rest[:end].decode("utf-8", "surrogateescape"), rest[end:]
        hidden = redactor.text(text).encode("utf-8", "surrogateescape")
        for stream in streams:
            stream.write(hidden)
            stream.flush()
