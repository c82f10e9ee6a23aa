"""Start a run: its files written, its command executed with the output kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import IO

from rewardkit.errors import OutputError, UsageError
from rewardkit.output import atomic
from rewardkit.runner.targets import File


def new_folder(name: str, out: Path | None) -> Path:
    """The folder of a run, made now: `out`, or `runs/NAME-DATE-TIME`.

    Raises:
        OutputError: it exists and is not empty, or cannot be made.
    """
    from datetime import datetime, timezone

    stamp = datetime.now(timezone.utc).astimezone().strftime("%Y%m%d-%H%M%S")
    folder = out or Path("runs") / f"{name}-{stamp}"
    others = (folder.with_name(f"{folder.name}-{i}") for i in count(2))
    while out is None and folder.exists():
        folder = next(others)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}.") from None
    if any(folder.iterdir()):
        raise OutputError(f"{folder} is not empty; give another --out.")
    return folder


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


def execute(command: Sequence[str], env: Mapping[str, str], log: Path, cwd: str = ".") -> int:
    """Run a command, its output both on the terminal and in a file, and wait for its end.

    Ctrl-C reaches it as it reaches us; its own exit code is returned (130 after Ctrl-C, 128 + N
    after signal N).

    Raises:
        UsageError: there is no such program, or no such folder.
    """
    if not Path(cwd).is_dir():
        raise UsageError(f"cluster.workdir: {cwd}: no such folder here.")
    variables = {**os.environ, **env}
    try:
        process = subprocess.Popen(  # noqa: S603 - the plan's own command, a list
            list(command), env=variables, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        raise UsageError(
            f"{command[0]}: no such program here; install it, or mend cluster: in the recipe."
        ) from None
    with process, log.open("wb") as file:
        assert process.stdout is not None  # noqa: S101 - for the type: stdout=PIPE
        try:
            _copy(process.stdout, file)
            code = process.wait()
        finally:  # Ctrl-C, or a scheduler's end: verl ends with us
            if process.poll() is None:
                process.terminate()
                process.wait()
    return code if code >= 0 else 128 - code


def _copy(source: IO[bytes], file: IO[bytes]) -> None:
    read = getattr(source, "read1", source.read)
    while block := read(1 << 16):
        file.write(block)
        file.flush()
        sys.stdout.buffer.write(block)
        sys.stdout.flush()
