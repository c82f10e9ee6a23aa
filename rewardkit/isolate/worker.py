"""Calls that can be killed: a function of rewardkit, run in a helper process under a deadline.

`call` blocks until the helper replies. It works from any thread, daemonic process, Ray actor and
fork; it installs no signal handler and starts no thread. A helper is started by the first call
that needs one and is kept warm. It ends with the caller, even one that is killed.
"""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from signal import SIGKILL
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast

from rewardkit.errors import UsageError
from rewardkit.isolate import worker_child as wire
from rewardkit.isolate.worker_child import REPLY, REQUEST, from_json, to_json

_ALLOWED = ("rewardkit.",)  # what a target may begin with
_HELPERS = min(4, os.cpu_count() or 1)  # per target module: calls that run at once in a process
_START_SECONDS = 60.0  # for a helper to start and to import its module
_GRACE_SECONDS = 1.0  # after the wall deadline, before the caller gives up on a helper

_Status: TypeAlias = Literal["ok", "timeout", "crash", "error"]
_FAILURES: dict[int, _Status] = {wire.TIMEOUT: "timeout", wire.CRASH: "crash", wire.ERROR: "error"}


class Reply(NamedTuple):
    """How a call ended.

    Attributes:
        status: "ok"; "timeout"; "crash": the process died or ran out of memory; "error": the
            function raised, could not be imported, or returned no JSON value.
        value: what the function returned; None unless "ok".
        detail: what happened, in one line; "" if "ok".
    """

    status: _Status
    value: Any
    detail: str


def call(
    target: str, payload: Any, *, cpu_seconds: float = 1.0, wall_seconds: float = 5.0
) -> Reply:
    """Call a function of rewardkit in a helper process, and kill it at its deadline.

    Args:
        target: "module:function"; the module begins with "rewardkit.".
        payload: its one argument, a JSON value of at most 64 MiB. Tuples arrive as lists.
        cpu_seconds: CPU time the call may use: the verdict, independent of the machine's load.
        wall_seconds: time the call may take: a backstop for functions that wait.

    Returns:
        The reply: nothing that happens in the helper raises here.

    Raises:
        UsageError: a target elsewhere, a payload that is not a JSON value or too long, or a deadline
            not above 0 and at most a day.
    """
    module, _, function = target.partition(":")
    if not function or not module.startswith(_ALLOWED):
        raise UsageError(f"Worker target {target!r} is no 'rewardkit.module:function'.")
    message = _request(target, payload, cpu_seconds, wall_seconds)
    pool = _pools.get(module) or _pools.setdefault(module, _Pool(module))
    pool.places.get()
    try:
        return pool.ask(message, wall_seconds + _GRACE_SECONDS)
    finally:
        pool.places.put(None)


def _request(target: str, payload: Any, cpu_seconds: float, wall_seconds: float) -> bytes:
    if not (0 < cpu_seconds <= 86_400 and 0 < wall_seconds <= 86_400):
        given = f"cpu_seconds={cpu_seconds}, wall_seconds={wall_seconds}"
        raise UsageError(f"Deadlines must be above 0 and at most a day: {given}.")
    try:
        name, text = target.encode(), to_json(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"The payload for {target} is not a JSON value: {error}") from error
    if len(text) > wire.MAX_BYTES:
        raise UsageError(f"The payload for {target} is longer than {wire.MAX_BYTES >> 20} MiB.")
    return REQUEST.pack(len(name), len(text), cpu_seconds, wall_seconds) + name + text.encode()


class _Pool:
    """The helpers of one module, each used by one caller at a time; the last used comes first."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.idle: list[_Helper] = []
        self.places: SimpleQueue[None] = SimpleQueue()  # a semaphore at a fifth of its cost
        for _ in range(_HELPERS):
            self.places.put(None)

    def ask(self, message: bytes, seconds: float) -> Reply:
        """The reply to a request; one that met a dead helper is sent to a new one, once."""
        trouble = ""
        sources: tuple[Callable[[str], _Helper], ...] = (self._idle_helper, _Helper)
        for helper_of in sources:
            try:
                return _decoded(self._exchange(helper_of(self.module), message, seconds))
            except TimeoutError:
                return Reply("timeout", None, f"no reply within {seconds:g} s")
            except (EOFError, OSError) as error:
                trouble = str(error)
        return Reply("crash", None, f"no helper process: {trouble}")

    def _idle_helper(self, module: str) -> _Helper:
        try:
            return self.idle.pop()
        except IndexError:
            return _Helper(module)

    def _exchange(self, helper: _Helper, message: bytes, seconds: float) -> bytes:
        reply = None
        try:
            reply = helper.exchange(message, seconds)
        finally:
            if reply is None:  # or the next request would take a late reply for its own
                helper.stop()
            else:
                self.idle.append(helper)
        return reply


def _decoded(reply: bytes) -> Reply:
    try:
        value = from_json(reply[REPLY.size :].decode("ascii"))
    except (ValueError, RecursionError) as error:
        return Reply("error", None, f"The reply cannot be read: {error}")
    failure = _FAILURES.get(reply[0])
    return Reply(failure, None, value) if failure else Reply("ok", value, "")


class _Helper:
    """A supervisor process and its pipes. Methods raise EOFError or OSError once it has ended."""

    def __init__(self, module: str) -> None:
        with _starting:  # no fork until the pipes are known: a copy would keep the helper alive
            self.process = _start(module)
            _live.add(self)
        self.requests = cast("IO[bytes]", self.process.stdin).fileno()
        self.replies = cast("IO[bytes]", self.process.stdout).fileno()
        os.set_blocking(self.requests, False)
        self.readable, self.writable = select.poll(), select.poll()
        self.readable.register(self.replies, select.POLLIN)
        self.writable.register(self.requests, select.POLLOUT)
        try:
            self._receive(time.monotonic() + _START_SECONDS)
        except (EOFError, OSError) as error:
            self.stop()
            raise EOFError(f"it did not start: {error}") from error

    def exchange(self, message: bytes, seconds: float) -> bytes:
        """Send a request and return its reply; TimeoutError if that takes more seconds."""
        deadline = time.monotonic() + seconds
        sent = os.write(self.requests, message)
        while sent < len(message):
            _wait(self.writable, deadline)
            sent += os.write(self.requests, memoryview(message)[sent:])
        return self._receive(deadline)

    def _receive(self, deadline: float) -> bytes:
        parts = [self._read(deadline)]
        missing = REPLY.size + REPLY.unpack_from(parts[0])[1] - len(parts[0])
        while missing:
            parts.append(self._read(deadline))
            missing -= len(parts[-1])
        return b"".join(parts)

    def _read(self, deadline: float) -> bytes:
        _wait(self.readable, deadline)
        data = os.read(self.replies, wire.CHUNK)
        if not data:
            raise EOFError("it ended")
        return data

    def stop(self) -> None:
        """Kill the supervisor and its child, and free what the caller holds of them."""
        _live.discard(self)
        # Not if it ended already: its number, and so its group's, may be another's by now.
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, SIGKILL)
            self.process.wait()
        self.close()

    def close(self) -> None:
        """Close the pipes: a helper that no process holds any more ends by itself."""
        for pipe in (self.process.stdin, self.process.stdout):
            cast("IO[bytes]", pipe).close()
        self.requests = -1  # the number may soon be another file's


def _wait(polled: select.poll, deadline: float) -> None:
    if not polled.poll(max(0.0, (deadline - time.monotonic()) * 1000)):
        raise TimeoutError("it does not reply")


def _start(module: str) -> subprocess.Popen[bytes]:
    """Start a supervisor that finds modules where this process does, in a session of its own."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    # A fixed hash seed, because SymPy's answers depend on the order of sets. A folder without
    # Python files, because `-m` puts it on the path. A session, because Ctrl-C is the caller's.
    return subprocess.Popen(  # noqa: S603 - our own module, by a list of arguments
        [sys.executable, "-m", wire.__name__, module],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("REWARDKIT_DEBUG") == "1" else subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )


_pools: dict[str, _Pool] = {}
_live: set[_Helper] = set()
_starting = threading.RLock()


def _stop_all() -> None:
    for helper in tuple(_live):
        helper.stop()


def _after_fork() -> None:
    """A forked process has its caller's pipes and locks: it drops them and starts anew."""
    _starting.release()
    for helper in _live:
        helper.close()
        helper.process.returncode = 0  # no child of this process, to wait for or to warn about
    _live.clear()
    _pools.clear()


atexit.register(_stop_all)
os.register_at_fork(
    before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_after_fork
)
