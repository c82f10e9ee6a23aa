"""The child's end of `child_process`: two processes, one of which guards the other.

The guard is the parent. It waits until the code or the caller ends, in whatever way. Then it kills
the whole process group: the code and everything that the code started.
"""

import faulthandler
import json
import os
import pickle
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from mmap import mmap
from select import POLLIN, poll
from signal import (
    SIG_DFL,
    SIG_IGN,
    SIG_SETMASK,
    SIGALRM,
    SIGCHLD,
    SIGKILL,
    SIGPROF,
    SIGUSR1,
    Signals,
    pthread_sigmask,
    set_wakeup_fd,
    signal,
)
from struct import Struct
from time import monotonic
from typing import Any, NoReturn

#: The length of a request, which precedes it.
LENGTH = Struct("=Q")

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

#: Exit code of a process that has used up its memory.
MEMORY_EXIT_CODE = 86


class Channel:
    """The connection to the caller, which is separate from stdin, stdout and stderr.

    It belongs to the process `pid`. A copy of that process, which a user's code forked and in which
    it returned, ends here: it would answer in the name of the process, and end nowhere else.
    """

    def __init__(self, connection: socket.socket, memory: mmap, shared: int) -> None:
        self._replies, self._memory, self._shared = connection, memory, shared
        self._requests = connection.makefile("rb", 1 << 16)
        self.pid = os.getpid()

    def receive(self) -> Any:
        """Return the next request; end the process if the caller has ended."""
        try:
            length = self._requests.read(LENGTH.size)
            request = self._requests.read(*LENGTH.unpack(length)) if length else b""
        except ConnectionResetError:
            request = b""
        if not request:
            os._exit(0)
        return pickle.loads(request)  # noqa: S301 - the caller is the parent of this process

    def send(self, value: Any) -> None:
        """Send a JSON value, as one line of ASCII."""
        self._end_copy()
        self._replies.sendall(json.dumps(value).encode("ascii") + b"\n")

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
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._shared)
        try:
            yield
        finally:
            self._end_copy()  # it would wait for a watchdog that it does not have
            faulthandler.cancel_dump_traceback_later()

    def _end_copy(self) -> None:
        if os.getpid() != self.pid:
            os._exit(0)


def main() -> None:
    """Start the guard, and run `serve` of the module that the command line names."""
    connection, life, shared = (int(number) for number in sys.argv[1:4])
    for descriptor in (connection, life, shared):
        os.set_inheritable(descriptor, False)  # what the code starts must not hold them open
    memory = mmap(shared, SHARED_BYTES)
    pthread_sigmask(SIG_SETMASK, ())
    for number in (SIGALRM, SIGPROF):  # deadlines need the default action
        signal(number, SIG_DFL)
    signal(SIGUSR1, SIG_IGN)  # it asks the code, and not the guard, for its stacks
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
    os.lseek(shared, STACKS_OFFSET, os.SEEK_SET)
    faulthandler.register(SIGUSR1, file=shared)
    if isinstance(sys.stdout, TextIOWrapper):  # the process may be killed before it would flush
        sys.stdout.reconfigure(line_buffering=True)
    import_module(sys.argv[4]).serve(Channel(socket.socket(fileno=connection), memory, shared))
    os._exit(0)  # threads of the code may still run


def exit_text(code: int) -> str:
    """Return how a process ended, from its exit code, which is negative for a signal."""
    if code == MEMORY_EXIT_CODE:
        return "it needs more memory than its limit"
    if code >= 0:
        return f"exit code {code}"
    return Signals(-code).name if -code in list(Signals) else f"signal {-code}"


def limit_memory(limit: int) -> None:
    """Limit the bytes that this process may allocate from now on (0: no limit), and write no core file.

    Only Linux counts anonymous memory in RLIMIT_DATA. RLIMIT_AS would count address space that CUDA
    reserves and never uses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if limit and sys.platform == "linux":
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - this process stays slim
            limit += int(file.read().split()[5]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))


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
