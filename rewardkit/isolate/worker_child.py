"""The helper of `worker`: a supervisor that keeps one killable child at work.

It imports its module once and forks a child from this warm image. The child answers requests from
the caller. Before each it arms its own CPU and wall timers, whose signals keep their default action:
the kernel ends the child at the deadline, whatever C code it is in. The supervisor then sends the
one reply that is missing and forks again.

A user's scorer has no supervisor: it may start threads while it is imported, which no fork copies.
"""

from __future__ import annotations

import gc
import json
import os
import resource
from collections.abc import Callable
from importlib import import_module
from signal import ITIMER_PROF, ITIMER_REAL, SIGALRM, SIGPROF, setitimer
from types import ModuleType
from typing import NoReturn

from rewardkit.isolate.child import Channel, exit_text, limit_memory

#: The longest payload or result, in characters of JSON, which is ASCII.
MAX_BYTES = 64 << 20

#: Memory that a child may allocate after it is forked, in bytes.
MEMORY_BYTES = 512 << 20

#: Encodes a value as strict JSON; raises TypeError, ValueError or RecursionError if it cannot.
to_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

# The marks of a child, from which the supervisor knows whether a dead child owes a reply.
_IDLE, _RUNNING = range(2)

# A child answers this many requests, so that SymPy's caches stay small.
_REQUESTS_PER_CHILD = 1000
_RECYCLED, _NO_MEMORY = 3, 4


def serve(channel: Channel) -> None:
    """Import a module, and call its functions for as long as there is a caller."""
    name = channel.receive()
    _result_text(_warm_up, name)  # if this fails, the child imports again and reports it
    channel.send(None)
    while True:
        channel.set_mark(_IDLE)
        child = os.fork()
        if child == 0:
            _run_child(channel, name)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if channel.number == _RUNNING:
            channel.send(_missing_reply(code))
        elif code != _RECYCLED:
            return  # it may have died while it sent a message


def _warm_up(name: str) -> None:
    import_module(name)
    gc.collect()
    gc.freeze()


def _missing_reply(code: int) -> list[str | None]:
    if code == -SIGPROF:
        return ["timeout", None, "CPU time limit reached"]
    if code == -SIGALRM:
        return ["timeout", None, "wall time limit reached"]
    if code == _NO_MEMORY:
        return ["crash", None, f"needed more than {MEMORY_BYTES >> 20} MiB"]
    return ["crash", None, exit_text(code)]


def _run_child(channel: Channel, name: str) -> NoReturn:
    """Answer requests; end the process in every case, so that nothing unwinds into its parent."""
    code, channel.pid = 1, os.getpid()
    try:
        limit_memory(resource.RLIMIT_AS, MEMORY_BYTES)
        code = _answer_requests(channel, name)
    except MemoryError:
        code = _NO_MEMORY
    finally:
        os._exit(code)


def _answer_requests(channel: Channel, name: str) -> int:
    for _ in range(_REQUESTS_PER_CHILD):
        function, payload, cpu_seconds, wall_seconds = channel.receive()
        channel.set_mark(_RUNNING)
        setitimer(ITIMER_PROF, cpu_seconds)
        setitimer(ITIMER_REAL, wall_seconds)
        text = _result_text(_call, name, function, payload)
        setitimer(ITIMER_REAL, 0)
        setitimer(ITIMER_PROF, 0)
        channel.set_mark(_IDLE)
        channel.send_text(text)
    return _RECYCLED


def _result_text(function: Callable[..., object], *arguments: str) -> str:
    """Return the reply as JSON text: the function's value, or its exception in one line."""
    try:
        value = to_json(function(*arguments))
        if len(value) > MAX_BYTES:
            raise ValueError(f"The result is longer than {MAX_BYTES >> 20} MiB.")  # noqa: TRY301
    except MemoryError:
        raise  # the process ends: its heap is full
    except Exception as error:  # noqa: BLE001 - the call boundary: a target may raise anything
        status = "import_error" if isinstance(error, ImportError) else "error"
        return to_json([status, None, f"{type(error).__name__}: {error}"[:1000]])
    return f'["ok",{value},""]'


def _call(name: str, function: str, payload: str) -> object:
    module: ModuleType = import_module(name)
    return getattr(module, function)(json.loads(payload))
