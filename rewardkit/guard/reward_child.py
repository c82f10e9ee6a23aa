"""The process of a guarded reward: it loads the user's function and answers calls.

A function runs on the main thread, one call at a time, so that a function that uses `signal.alarm`
works here although it fails in verl's threads. A coroutine function runs on an event loop, many
calls at a time.
"""

from __future__ import annotations

import os
import pickle
import resource
import traceback
from collections.abc import Mapping
from functools import partial
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

from rewardkit import registry
from rewardkit.errors import RewardkitError, ScorerExitedError, UsageError, call_catching
from rewardkit.isolate.batch_child import serve_batches
from rewardkit.isolate.child import Channel
from rewardkit.scorers.call import error_line
from rewardkit.scorers.reward_result import RewardResult

#: Characters of an exception's message that are sent.
MAX_MESSAGE_LENGTH = 500

#: Exit code of a process that has used up its memory.
MEMORY_EXIT_CODE = 86

#: The field of /proc/self/statm with the pages of private, writable memory.
_STATM_DATA = 5


def serve(channel: Channel) -> None:
    """Load the reward, report an error or whether it is a coroutine function, and answer calls."""
    reward, options, limits, seconds = channel.receive()
    with channel.load_deadline(seconds):
        function = call_catching(_load, reward)
    if isinstance(function, RewardkitError):
        channel.send([str(function), False])
        return
    if isinstance(function, Exception):
        raise function
    is_async = iscoroutinefunction(function)
    channel.send(["", is_async])
    _limit_memory(limits["memory_mb"] << 20)
    path = str(Path(reward.partition(":")[0]).resolve())
    if is_async:
        from rewardkit.guard.async_child import serve_coroutines

        call = partial(_call_async, function, options)
        serve_coroutines(channel, call, limits["seconds"], partial(reply_of, path))
    else:
        reply = partial(_reply, function, options, path)
        serve_batches(channel, reply, limits["cpu_seconds"] or 0.0)


def _load(reward: str) -> Any:
    """Return the reward.

    Raises:
        UsageError: the file does not load, or verl cannot call the function.
    """
    function = registry.load("scorers", reward)
    parameters = signature(function).parameters.values()
    if not any(p.name == "solution_str" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise UsageError(
            f"{reward} has no parameter solution_str: verl calls a reward with data_source, "
            "solution_str, ground_truth and extra_info."
        )
    return function


def _reply(function: Any, options: Mapping[str, Any], path: str, request: bytes) -> Any:
    """Return the fields of a call's result, or its exception."""
    try:
        result = call_catching(_call, function, options, request)
    except BaseException as error:  # noqa: BLE001 - it would end the process
        result = ScorerExitedError(f"it raises {type(error).__name__}")
    return reply_of(path, result)


def _call(function: Any, options: Mapping[str, Any], request: bytes) -> Any:
    """Call the reward with the arguments that the guard has pickled."""
    return function(**{**options, **pickle.loads(request)})  # noqa: S301


async def _call_async(function: Any, options: Mapping[str, Any], request: bytes) -> Any:
    return await _call(function, options, request)


def reply_of(path: str, result: Any) -> list[Any]:
    """Return the fields of a result; or an exception's type, message and place in the user's file.

    A process without memory ends. The call is tried once more in a new one, because earlier calls may
    have left too little.
    """
    fields = result if isinstance(result, Exception) else call_catching(RewardResult.of, result)
    if isinstance(fields, RewardResult):
        return [fields.fields]
    if isinstance(fields, MemoryError):
        os._exit(MEMORY_EXIT_CODE)
    message = error_line(fields)[:MAX_MESSAGE_LENGTH]
    return [type(fields).__name__, message, _place(fields, path)]


def _place(error: Exception, path: str) -> str:
    """Return `my_reward.py:17`, the innermost line of the user's file; "" if none was involved."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if os.path.realpath(frame.filename) == path]
    return f"{path}:{lines[-1]}" if lines else ""


def _limit_memory(limit: int) -> None:
    """Limit the memory that calls may allocate beyond what the import took; 0 for no limit.

    RLIMIT_DATA and not RLIMIT_AS, because CUDA reserves address space that it never uses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    statm = Path("/proc/self/statm")
    if not limit or not statm.exists():  # only Linux counts anonymous memory in RLIMIT_DATA
        return
    used = int(statm.read_text(encoding="ascii").split()[_STATM_DATA]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = used + limit
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))
