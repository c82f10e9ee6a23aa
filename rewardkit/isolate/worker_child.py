"""The worker's side of `worker`: a supervisor that keeps one killable child at work.

`python -m rewardkit.isolate.worker_child MODULE` imports the module once, forks a child and
waits. The child answers requests. Before each it arms its own CPU and wall timers, whose signals
keep their default action: the kernel ends it at the deadline, whatever C code it is in. The
supervisor then sends the one reply that is missing and forks again from its warm image. The end
of the request pipe ends both.

This file alone touches signals and timers, and only when run as a program. Nothing here is meant
for use outside `worker`.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from mmap import mmap
from signal import (
    ITIMER_PROF,
    ITIMER_REAL,
    SIG_DFL,
    SIG_SETMASK,
    SIGALRM,
    SIGCHLD,
    SIGPROF,
    pthread_sigmask,
    setitimer,
    signal,
)
from struct import Struct
from typing import Any, NamedTuple, NoReturn, TypeAlias

#: Head of a request: bytes of the target and of the payload's JSON, CPU seconds, wall seconds.
REQUEST = Struct("<IIdd")

#: Head of a reply: status, bytes of JSON that follow: of the value if ok, else of the detail.
REPLY = Struct("<BI")

OK, TIMEOUT, CRASH, ERROR = range(4)

#: The longest request or reply, in bytes of JSON.
MAX_BYTES = 64 << 20

#: What a child may allocate beyond what it has when forked, in bytes.
MEMORY_BYTES = 512 << 20

#: Bytes asked of a pipe at a time: all it holds on Linux, so a short message is one system call.
CHUNK = 1 << 16

#: Text of a value as JSON proper; raises TypeError, ValueError or RecursionError if it is not.
to_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

#: The value of a JSON text; raises ValueError or RecursionError.
from_json = json.JSONDecoder().decode

# What the child is at, kept in memory it shares with the supervisor: which knows from it whether
# a dead child owes a reply, or died amid a message and left the pipes unusable.
_IDLE, _RUNNING, _MOVING_BYTES = range(3)

# A child lives for this many requests, so that caches (SymPy's) stay small.
_REQUESTS_PER_CHILD = 1000
_RECYCLED, _NO_MEMORY = 3, 4

_Functions: TypeAlias = dict[bytes, Callable[[Any], Any]]


class _Channel(NamedTuple):
    requests: int
    replies: int
    state: mmap


def main() -> None:
    """Serve requests for one module until their pipe ends."""
    _reset_signals()
    channel = _take_channel()
    _guarded(_warm_up, sys.argv[1])  # a failure is the child's to report: it imports again
    try:
        _send(channel.replies, OK, "null")
        _supervise(channel)
    except BrokenPipeError:
        return  # the caller is gone


def _warm_up(module: str) -> str:
    import_module(module)
    gc.collect()
    gc.freeze()
    return ""


def _reset_signals() -> None:
    """Ignored and blocked signals are inherited from the caller; the deadlines depend on these."""
    pthread_sigmask(SIG_SETMASK, ())
    for number in (SIGALRM, SIGPROF, SIGCHLD):
        signal(number, SIG_DFL)


def _take_channel() -> _Channel:
    """Move the pipes off descriptors 0 and 1, so that a stray print is not a reply."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return _Channel(requests, replies, mmap(-1, 1))


def _supervise(channel: _Channel) -> None:
    while True:
        channel.state[0] = _IDLE
        child = os.fork()
        if child == 0:
            _be_child(channel)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if channel.state[0] == _RUNNING:
            _send(channel.replies, *_missing_reply(code))
        elif code != _RECYCLED:
            return


def _missing_reply(code: int) -> tuple[int, str]:
    """The reply of a child that ended with this exit code (a signal's is negative)."""
    status, detail = CRASH, f"exited with code {code}"
    if code == -SIGPROF:
        status, detail = TIMEOUT, "CPU time limit reached"
    elif code == -SIGALRM:
        status, detail = TIMEOUT, "wall time limit reached"
    elif code == _NO_MEMORY:
        detail = f"needed more than {MEMORY_BYTES >> 20} MiB"
    elif code < 0:
        detail = f"killed by signal {-code}"
    return status, to_json(detail)


def _be_child(channel: _Channel) -> NoReturn:
    """Answer requests; end the process in every case, so that nothing unwinds into its parent."""
    code = 1
    try:
        _limit_memory()
        code = _answer_requests(channel)
    except MemoryError:
        code = _NO_MEMORY
    finally:
        os._exit(code)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - this process stays slim
            used = int(file.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return  # not Linux: there the two deadlines must do
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = used + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (soft if hard < 0 else min(soft, hard), hard))


def _answer_requests(channel: _Channel) -> int:
    """Answer until the pipe ends or the child is old; the exit code."""
    requests, replies, state = channel
    functions: _Functions = {}
    for _ in range(_REQUESTS_PER_CHILD):
        first = os.read(requests, CHUNK)
        if not first:
            return 0
        state[0] = _MOVING_BYTES
        target, payload, cpu_seconds, wall_seconds = _rest_of_request(requests, first)
        state[0] = _RUNNING
        setitimer(ITIMER_PROF, cpu_seconds)
        setitimer(ITIMER_REAL, wall_seconds)
        status, reply = _guarded(_answer, functions, target, payload)
        setitimer(ITIMER_REAL, 0)
        setitimer(ITIMER_PROF, 0)
        state[0] = _MOVING_BYTES
        _send(replies, status, reply)
        state[0] = _IDLE
    return _RECYCLED


def _rest_of_request(requests: int, data: bytes) -> tuple[bytes, bytes, float, float]:
    """The request that begins with these bytes: target, JSON, CPU seconds, wall seconds."""
    name_size, size, cpu_seconds, wall_seconds = REQUEST.unpack_from(data)
    text_at = REQUEST.size + name_size
    missing = text_at + size - len(data)
    if missing:
        data += _read_exactly(requests, missing)
    return data[REQUEST.size : text_at], data[text_at:], cpu_seconds, wall_seconds


def _read_exactly(requests: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(requests, min(size, CHUNK))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _guarded(action: Callable[..., str], *arguments: Any) -> tuple[int, str]:
    """Status and JSON of a reply: what the action returns, or a line on what it raised."""
    try:
        return OK, action(*arguments)
    except MemoryError:
        raise  # what is left of the heap is not worth keeping
    except Exception as error:  # noqa: BLE001 - the call boundary: a target may raise anything
        return ERROR, to_json(f"{type(error).__name__}: {error}"[:1000])


def _answer(functions: _Functions, target: bytes, payload: bytes) -> str:
    function = functions.get(target)
    if function is None:
        module, _, name = target.decode().partition(":")
        function = functions[target] = getattr(import_module(module), name)
    reply = to_json(function(from_json(payload.decode("ascii"))))
    if len(reply) > MAX_BYTES:
        raise ValueError(f"The reply is longer than {MAX_BYTES >> 20} MiB.")
    return reply


def _send(replies: int, status: int, text: str) -> None:
    data = REPLY.pack(status, len(text)) + text.encode("ascii")
    sent = os.write(replies, data)
    while sent < len(data):
        sent += os.write(replies, memoryview(data)[sent:])


if __name__ == "__main__":
    main()
