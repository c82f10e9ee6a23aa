"""The child's end of `function`: load a function, and answer calls for as long as there is a caller.

A function runs on the main thread, one call at a time, so that one that uses `signal.alarm` works here
although it fails in verl's threads. Its replies wait for others for at most `FLUSH_SECONDS`, so that a
fast function costs few messages, and a slow one that is ended loses none. A coroutine function runs on
an event loop, many calls at a time.
"""

import gc
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from signal import ITIMER_PROF, setitimer
from time import monotonic, perf_counter_ns
from typing import Any, NamedTuple

from rewardkit.errors import RewardkitError, ScorerExitedError, call_catching
from rewardkit.isolate.child import MEMORY_EXIT_CODE, Channel, exit_text, limit_memory
from rewardkit.redact import process_redactor

#: Seconds that a reply may wait for others to be sent with it.
FLUSH_SECONDS = 0.05

#: Characters of an exception's message that are sent.
MAX_MESSAGE_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a function in child processes.

    Attributes:
        seconds: timeout per call, in seconds of elapsed time.
        cpu_seconds: limit of CPU time per call, in seconds; 0.0 for none. Not for coroutines.
        memory_mb: memory that a process may allocate after the import, in MiB; 0 for no limit.
        load_seconds: timeout for importing the file, which may import torch.
        workers: maximum number of processes, of which a fast function needs one.
    """

    seconds: float = 60.0
    cpu_seconds: float = 0.0
    memory_mb: int = 0
    load_seconds: float = 60.0
    workers: int = 1


class Loaded(NamedTuple):
    """What the loader of a function returns.

    `call` answers a request with a JSON value, `greeting` is one for the caller. `is_forked` says whether
    calls run in forks of the process, so that one that is ended costs no import: a user's file may start
    threads, which no fork copies.
    """

    call: Callable[[Any], Any]
    greeting: Any = None
    is_forked: bool = False


def serve(channel: Channel) -> None:
    """Load the function that the first request names, and call it with the others."""
    load, arguments, name, limits = channel.receive()
    with channel.load_deadline(limits.load_seconds):
        loaded = call_catching(load, *arguments)
    if isinstance(loaded, RewardkitError):
        channel.send([type(loaded).__name__, str(loaded), False])
        return
    if isinstance(loaded, Exception):
        raise loaded
    is_async = iscoroutinefunction(loaded.call)
    channel.send(["", loaded.greeting, is_async])
    if loaded.is_forked:
        _stay_and_fork(channel)
    limit_memory(limits.memory_mb << 20)
    path = os.path.realpath(name.partition(":")[0])
    reply = partial(_reply, path, limits.memory_mb > 0)
    if is_async:
        from rewardkit.isolate.coroutines import serve_coroutines

        serve_coroutines(channel, loaded.call, limits.seconds, reply)
    while True:
        _answer(channel, loaded.call, limits.cpu_seconds, reply)


def _stay_and_fork(channel: Channel) -> None:
    """Return in a fork of this process, and in another one whenever a fork has ended."""
    gc.collect()
    gc.freeze()
    while child := os.fork():
        channel.send(exit_text(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    channel.pid = os.getpid()


def _answer(
    channel: Channel,
    call: Callable[[Any], Any],
    cpu_seconds: float,
    reply: Callable[[int, int, Any], list[Any]],
) -> None:
    """Answer the next requests in their order."""
    replies: list[list[Any]] = []
    sent_at = monotonic()
    for number, request in channel.receive():
        if replies and monotonic() - sent_at > FLUSH_SECONDS:
            channel.send(replies)
            replies, sent_at = [], monotonic()
        channel.set_mark(number)
        if cpu_seconds:
            setitimer(ITIMER_PROF, cpu_seconds)
        start = perf_counter_ns()
        try:
            result = call(request)
        except BaseException as error:  # noqa: BLE001 - it would end the process
            result = error
        replies.append(reply(number, perf_counter_ns() - start, result))
    if cpu_seconds:
        setitimer(ITIMER_PROF, 0)
    channel.send(replies)


def _reply(path: str, is_limited: bool, number: int, nanoseconds: int, result: Any) -> list[Any]:
    """Return a call's number, its nanoseconds, and its value or its exception.

    An exception is its type, its message in one line and its place in the user's file. With a limit, a
    process without memory ends, because earlier calls may have left too little.
    """
    if not isinstance(result, BaseException):
        return [number, nanoseconds, result]
    if isinstance(result, MemoryError) and is_limited:
        os._exit(MEMORY_EXIT_CODE)
    frames = traceback.extract_tb(result.__traceback__)
    lines = [frame.lineno for frame in frames if os.path.realpath(frame.filename) == path]
    place = f"{path}:{lines[-1]}" if lines else ""
    if isinstance(result, SystemExit):
        result = ScorerExitedError(f"it calls sys.exit({result.code!r})")
    elif not isinstance(result, Exception):
        result = ScorerExitedError(f"it raises {type(result).__name__}")
    text = call_catching(str, result)  # an exception of the user's
    message = process_redactor().text(text) if isinstance(text, str) else ""
    message = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
    return [number, nanoseconds, type(result).__name__, message, place]
