"""The child's end of `child_process`: two processes, one of which guards the other.

The guard is the parent. It waits until the code or the caller ends, in whatever way. Then it kills
the whole process group: the code and everything that the code started.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from mmap import mmap
from multiprocessing.connection import Connection
from select import POLLIN, poll
from signal import (
    SIG_DFL,
    SIG_SETMASK,
    SIGALRM,
    SIGCHLD,
    SIGKILL,
    SIGPROF,
    Signals,
    pthread_sigmask,
    set_wakeup_fd,
    signal,
)
from struct import Struct
from time import monotonic
from typing import Any, NoReturn

#: In shared memory: when the item in progress began (`time.monotonic`), and its number.
MARK = Struct("=dq")

#: Behind the mark: the wait status of the process that runs the code; -1 while it lives.
WAIT_STATUS = Struct("=i")

#: Behind the status: where each thread stood when a user's file or a call of it took too long.
STACKS_OFFSET = MARK.size + WAIT_STATUS.size

#: Bytes of shared memory.
SHARED_BYTES = 1 << 20

#: The number of the mark while a user's file is loaded.
LOAD_MARK = -1


class Channel:
    """The connection to the caller, which is separate from stdin, stdout and stderr.

    It belongs to the process `pid`. A copy of that process, which a user's code forked and in which
    it returned, ends here: it would answer in the name of the process, and end nowhere else.
    """

    def __init__(self, replies: socket.socket, memory: mmap, shared: int) -> None:
        self._replies, self._memory, self._shared = replies, memory, shared
        self.pid = os.getpid()
        self._requests = Connection(os.dup(replies.fileno()))

    def receive(self) -> Any:
        """Return the next request; end the process if the caller has ended."""
        try:
            return self._requests.recv()
        except (EOFError, ConnectionResetError):
            os._exit(0)

    def send(self, value: Any) -> None:
        """Send a JSON value."""
        self.send_text(json.dumps(value))

    def send_text(self, text: str) -> None:
        """Send JSON text, which is one line of ASCII."""
        self._end_copy()
        self._replies.sendall(text.encode("ascii") + b"\n")

    def set_mark(self, number: int) -> None:
        """Tell the caller that item `number` of the request begins now."""
        self._end_copy()
        MARK.pack_into(self._memory, 0, monotonic(), number)

    @contextmanager
    def load_deadline(self, seconds: float) -> Iterator[None]:
        """End this process if the block, which loads a user's file, takes longer.

        The stacks of all threads are left for the caller (`ChildProcess.stacks`). The watchdog is
        a thread of C code: it needs neither a signal nor the interpreter's lock, which the file may
        hold or block.
        """
        self.set_mark(LOAD_MARK)
        with self.watching(seconds, is_end=True):
            yield

    @contextmanager
    def watching(self, seconds: float, *, is_end: bool = False) -> Iterator[None]:
        """Leave the stacks of all threads for the caller if the block takes longer.

        The caller ends this process, unless the watchdog does (`is_end`).
        """
        os.lseek(self._shared, STACKS_OFFSET, os.SEEK_SET)
        faulthandler.dump_traceback_later(seconds, exit=is_end, file=self._shared)
        try:
            yield
        finally:
            self._end_copy()  # it would wait for a watchdog that it does not have
            faulthandler.cancel_dump_traceback_later()

    def _end_copy(self) -> None:
        if os.getpid() != self.pid:
            os._exit(0)

    @property
    def number(self) -> int:
        """The number of the last mark."""
        return int(MARK.unpack_from(self._memory)[1])


def main() -> None:
    """Start the guard, and run `serve` of the module that the command line names."""
    connection, life, shared = (int(number) for number in sys.argv[1:4])
    for descriptor in (connection, life, shared):
        os.set_inheritable(descriptor, False)  # what the code starts must not hold them open
    memory = mmap(shared, SHARED_BYTES)
    _reset_signals()
    wakeups, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal(SIGCHLD, lambda *_: None)
    set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    if child := os.fork():
        os.close(connection)
        _guard(child, life, wakeups, memory)
    set_wakeup_fd(-1)
    signal(SIGCHLD, SIG_DFL)
    for descriptor in (life, wakeups, wakeup):
        os.close(descriptor)
    if isinstance(sys.stdout, TextIOWrapper):  # the process may be killed before it would flush
        sys.stdout.reconfigure(line_buffering=True)
    import_module(sys.argv[4]).serve(Channel(socket.socket(fileno=connection), memory, shared))
    os._exit(0)  # threads of the code may still run


def exit_text(code: int) -> str:
    """Return how a process ended, from its exit code, which is negative for a signal."""
    if code >= 0:
        return f"exit code {code}"
    return Signals(-code).name if -code in list(Signals) else f"signal {-code}"


def limit_memory(kind: int, limit: int) -> None:
    """Limit the memory that this process may allocate from now on, and write no core file.

    Only Linux says how much it has, and counts anonymous memory in RLIMIT_DATA.

    Args:
        kind: RLIMIT_AS for all address space, RLIMIT_DATA for private, writable memory.
        limit: bytes; 0 for no limit.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if not limit:
        return
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - this process stays slim
            pages = file.read().split()
    except FileNotFoundError:
        return
    used = int(pages[0 if kind == resource.RLIMIT_AS else 5]) * resource.getpagesize()
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (used + limit if hard < 0 else min(used + limit, hard), hard))


def _reset_signals() -> None:
    """Restore the default action of the signals that deadlines and the guard need."""
    pthread_sigmask(SIG_SETMASK, ())
    for number in (SIGALRM, SIGPROF, SIGCHLD):
        signal(number, SIG_DFL)


def _guard(child: int, life: int, wakeups: int, memory: mmap) -> NoReturn:
    """Wait until the child ends or the caller closes `life`. Then kill the process group."""
    events = poll()  # select would refuse a descriptor above 1023
    for descriptor in (life, wakeups):
        events.register(descriptor, POLLIN)
    pid, status = 0, -1
    while not pid:
        is_orphaned = life in dict(events.poll())
        if is_orphaned:
            os.kill(child, SIGKILL)
        else:
            os.read(wakeups, 1 << 12)
        pid, status = os.waitpid(child, 0 if is_orphaned else os.WNOHANG)
    WAIT_STATUS.pack_into(memory, MARK.size, status)
    os.killpg(0, SIGKILL)
    os._exit(0)
