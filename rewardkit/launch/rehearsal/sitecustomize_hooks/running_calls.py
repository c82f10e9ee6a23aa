"""The calls of the scorer that have not returned, each in a file that `hanging_calls.py` reads.

A call may hang in C code that holds the interpreter's lock, so that no thread of this process could
report it. The rehearsal's own process therefore watches the files, and sends SIGUSR1 for a list of
what every thread is doing: faulthandler writes it without the lock.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

_numbers = count()
_open_files: list[Any] = []


def write_stacks_on_signal(folder: Path) -> None:
    """On SIGUSR1 append the stacks of all threads to `stacks-PID.txt`."""
    try:
        folder.mkdir(exist_ok=True)
        file = (folder / f"stacks-{os.getpid()}.txt").open("w", encoding="utf-8")
    except OSError as error:  # a full disk must not become an error of the scorer
        sys.stderr.write(f"rehearsal: a call that hangs will not be located: {error}\n")
        return
    _open_files.append(file)  # faulthandler keeps the number of the file only
    faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)


def begin_call(folder: Path, fields: Mapping[str, Any]) -> Path:
    """Write the file of a call that begins; return it for `end_call`."""
    file = folder / f"call-{os.getpid()}-{next(_numbers)}.json"
    own = {"pid": os.getpid(), "thread": threading.get_ident(), "started": time.monotonic()}
    _write(file, {**own, **fields})
    return file


def add_place(file: Path, coroutine: Any) -> None:
    """Add the line of the scorer at which its coroutine waits: one that waits is on no stack."""
    if not file.exists():
        return
    fields, line = json.loads(file.read_text(encoding="utf-8")), 0
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        if frame.f_code.co_filename == fields["path"]:
            line = frame.f_lineno
        coroutine = coroutine.cr_await
    _write(file, {**fields, "line": line})


def end_call(file: Path) -> None:
    """Remove the file of a call that has returned or raised."""
    with suppress(OSError):
        file.unlink()


def _write(file: Path, fields: Mapping[str, Any]) -> None:
    part = file.with_suffix(".part")
    try:
        part.write_text(json.dumps(fields), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        sys.stderr.write(f"rehearsal: a call could not be recorded: {error}\n")
