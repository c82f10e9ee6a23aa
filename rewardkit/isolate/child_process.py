"""A child process that can always be ended: start, messages with a deadline, kill, exit text.

`ChildProcess(module)` runs `serve(channel)` of a module. A guard process between it and the caller
(see `child`) ends the code with everything that the code started, also if the caller is killed.

Requests are pickled, because they come from this process. Replies are lines of JSON, because the
code that sends them is not trusted: they are never unpickled, and text that the code itself writes
to the socket is noticed.

It works from any thread, daemonic process, Ray actor and fork. It installs no signal handler and
starts no thread. One caller at a time may use a `ChildProcess`.
"""

import atexit
import json
import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from mmap import mmap
from signal import SIGKILL, SIGUSR1
from socket import socketpair
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import IO, Any

from rewardkit.isolate.child import (
    LENGTH,
    MARK,
    SHARED_BYTES,
    STACKS_OFFSET,
    WAIT_STATUS,
    exit_text,
)

#: Seconds between two checks that the process lives while a reply is awaited. Its end is noticed at
#: once, unless something that it forked holds the socket open.
POLL_SECONDS = 0.5

#: Seconds for the guard to end its process, before the caller kills the process group.
GUARD_TIMEOUT_SECONDS = 10.0

#: Seconds for the code to write the stacks of its threads, before it is ended.
STACKS_SECONDS = 0.2

#: Bytes of one reply.
MAX_REPLY_BYTES = 1 << 28

# The path of this process is set before any import, because a folder may have a `select.py`.
_MAIN = "import sys; sys.path[:] = sys.argv[5:]; from rewardkit.isolate.child import main; main()"


class ChildTimeoutError(Exception):
    """The process did not reply, or did not read, in time. Its argument may be where its threads stood."""


class ChildCrashError(Exception):
    """The process ended. The message says how: an exit code or the name of a signal."""


class ChildProcess:
    """A process that runs `serve(channel)` of a module, in a session of its own.

    A process that cannot be started is one that has crashed.

    Args:
        module: the module to run; its `serve` gets a `child.Channel`.
        environment: environment variables to add to those of this process.
        is_quiet: whether to discard what the code prints, unless REWARDKIT_DEBUG=1.
    """

    def __init__(
        self, module: str, *, environment: Mapping[str, str] | None = None, is_quiet: bool = False
    ) -> None:
        self._buffer, self._exit_text = bytearray(), ""
        self._memory = mmap(-1, SHARED_BYTES)  # until the process has started
        is_discarded = is_quiet and os.environ.get("REWARDKIT_DEBUG") != "1"
        output = subprocess.DEVNULL if is_discarded else None
        try:
            with _starting:
                self._start(module, {**os.environ, **(environment or {})}, output)
                _live.add(self)
        except OSError as error:
            self._exit_text = f"it cannot start: {error}"

    def _start(self, module: str, environment: Mapping[str, str], output: int | None) -> None:
        with ExitStack() as ours, ExitStack() as theirs:
            self._socket, socket = map(ours.enter_context, socketpair())
            theirs.enter_context(socket)
            life, own_end = os.pipe()
            theirs.callback(os.close, life)
            ours.callback(os.close, own_end)
            shared = theirs.enter_context(_memory_file())
            shared.truncate(SHARED_BYTES)
            self._memory = mmap(shared.fileno(), SHARED_BYTES)
            WAIT_STATUS.pack_into(self._memory, MARK.size, -1)
            descriptors = [socket.fileno(), life, shared.fileno()]
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-c", _MAIN, *map(str, descriptors), module, *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=output or 2,  # stdout is for the results of a command
                stderr=output,
                env=environment,
                pass_fds=descriptors,
                start_new_session=True,  # its guard kills the group; Ctrl-C is the caller's
            )
            self._open_descriptors = ours.pop_all()  # the guard kills when they close
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._writable.register(self._socket, select.POLLOUT)

    @property
    def is_alive(self) -> bool:
        """Whether the process can take a request."""
        return self in _live and self._process.poll() is None

    @property
    def session(self) -> int:
        """The session that the process began; -1 if it did not start."""
        return self._process.pid if hasattr(self, "_process") else -1

    @property
    def mark(self) -> tuple[float, int]:
        """The start of the current item, by `time.monotonic`, and its number."""
        start, number = MARK.unpack_from(self._memory)
        return start, number

    @property
    def stacks(self) -> str:
        """Where each thread stood when a user's file or a call took too long; "" if none did."""
        end = max(STACKS_OFFSET, self._memory.find(b"\0", STACKS_OFFSET))
        return self._memory[STACKS_OFFSET:end].decode("ascii", "replace")

    def exchange(
        self, request: Any, seconds: float, deadline: Callable[[], float] | None = None
    ) -> Any:
        """Send a request and return its reply, until the deadline if there is one, else within `seconds`.

        An exchange that is interrupted, or fails, ends the process.
        """
        end, is_complete = monotonic() + seconds, False
        try:
            self.send(request, seconds)
            reply = self.receive(deadline or (lambda: end))
            is_complete = True
        finally:
            if not is_complete:  # otherwise the next request would get the late reply
                self.close()
        return reply

    def send(self, request: Any, seconds: float) -> None:
        """Send a request; see `receive`. The process has these seconds to read it."""
        if self not in _live:
            raise self._crash()
        data = pickle.dumps(request)
        try:
            self._socket.settimeout(seconds)  # receiving waits for nothing: it follows a poll
            self._socket.sendall(LENGTH.pack(len(data)) + data)
        except TimeoutError as error:
            raise self.time_out() from error
        except OSError as error:  # a broken pipe
            raise self._crash() from error

    def receive(self, deadline: Callable[[], float]) -> Any:
        """Return the reply to a request. The deadline, by `time.monotonic`, may change meanwhile.

        Raises:
            ChildTimeoutError: no reply arrived before the deadline.
            ChildCrashError: the process ended, or sent something other than a reply.
        """
        replies = list[Any]()
        while not replies:
            seconds = deadline() - monotonic()
            # Poll even after the deadline, because this process may have been slow.
            if self.has_reply(max(0.0, min(seconds, POLL_SECONDS))):
                replies = self.receive_all()
            elif seconds <= 0:
                raise ChildTimeoutError
            elif self._process.poll() is not None and not self.has_reply(0):
                raise self._crash()  # the second poll: its last reply may have just arrived
        return replies[0]

    def has_reply(self, seconds: float) -> bool:
        """Wait for these seconds; return whether a reply has arrived, or the process has ended."""
        return bool(self._readable.poll(seconds * 1000))

    def is_writable(self) -> bool:
        """Return whether there is room for a request, so that sending it hardly waits."""
        return bool(self._writable.poll(0))

    def receive_all(self) -> list[Any]:
        """Return the replies that have arrived; wait only if there is nothing to read. See `receive`."""
        try:
            piece = self._socket.recv(1 << 16)
        except OSError:  # reset by the process, or closed at the exit of this one
            piece = b""
        if not piece or len(self._buffer) > MAX_REPLY_BYTES:
            raise self._crash()
        self._buffer += piece
        if b"\n" not in piece:
            return []
        *lines, self._buffer = self._buffer.split(b"\n")
        try:
            return [json.loads(line.decode("ascii")) for line in lines]
        except (ValueError, RecursionError):
            raise self.stray_output() from None

    def stray_output(self) -> ChildCrashError:
        """End a process that sent something other than replies. Return the error to raise."""
        self.close()
        return ChildCrashError("it wrote to the socket of its replies")

    def time_out(self) -> ChildTimeoutError:
        """End a process that takes too long. Return the error with the stacks of its threads."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, SIGUSR1)
        end, text = monotonic() + STACKS_SECONDS, ""
        while monotonic() < end and not (text and text == self.stacks):
            text = self.stacks
            sleep(STACKS_SECONDS / 10)
        self.close()
        return ChildTimeoutError(self.stacks)

    def close(self) -> str:
        """End the code, and everything it started. Return how the code ended."""
        if self not in _live:
            return self._exit_text
        _live.discard(self)
        self._open_descriptors.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GUARD_TIMEOUT_SECONDS)
        (status,) = WAIT_STATUS.unpack_from(self._memory, MARK.size)
        if status < 0:  # the guard itself was killed
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, SIGKILL)
        code = self._process.wait()
        self._exit_text = exit_text(code if status < 0 else os.waitstatus_to_exitcode(status))
        return self._exit_text

    def _crash(self) -> ChildCrashError:
        """Return the error for a process that has ended, or has closed its socket and is ending."""
        if self in _live:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        return ChildCrashError(self.close())

    def _drop_in_fork(self) -> None:
        """Close the copies in a forked process, which would keep the child alive."""
        self._open_descriptors.close()
        self._process.returncode = 0  # not a child of this process: nothing to wait for


def _memory_file() -> IO[bytes]:
    """Return a file to share memory with; if it were on a full disk, SIGBUS would end this process."""
    if hasattr(os, "memfd_create"):  # Linux
        return open(os.memfd_create("rewardkit"), "r+b")  # noqa: PTH123 - a descriptor
    return TemporaryFile()


_live: set[ChildProcess] = set()
_starting = threading.RLock()  # no fork until the descriptors of a start are known


def close_all() -> None:
    """End every child process of this process."""
    for process in tuple(_live):
        process.close()


def _after_fork() -> None:
    _starting.release()
    for process in _live:
        process._drop_in_fork()  # noqa: SLF001 - the hook of this class
    _live.clear()


atexit.register(close_all)
os.register_at_fork(
    before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_after_fork
)
