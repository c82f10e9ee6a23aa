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
from functools import partial
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

from rewardkit import registry
from rewardkit.errors import ScorerExitedError, UsageError, call_catching
from rewardkit.isolate.batch_child import load_and_report, serve_batches
from rewardkit.isolate.child import Channel, limit_memory
from rewardkit.redact import process_redactor
from rewardkit.scorers.call import error_line
from rewardkit.scorers.reward_result import RewardResult

#: Characters of an exception's message that are sent.
MAX_MESSAGE_LENGTH = 500

#: Exit code of a process that has used up its memory.
MEMORY_EXIT_CODE = 86


def serve(channel: Channel) -> None:
    """Load the reward, report an error or whether it is a coroutine function, and answer calls."""
    reward, options, limits, seconds = channel.receive()
    process_redactor().learn(options)  # an exception of the reward may say them
    function = load_and_report(channel, seconds, lambda: _load(reward), iscoroutinefunction)
    if function is None:
        return
    # Not RLIMIT_AS, because CUDA reserves address space that it never uses.
    limit_memory(resource.RLIMIT_DATA, limits["memory_mb"] << 20)
    path = str(Path(reward.partition(":")[0]).resolve())

    def call(request: bytes) -> Any:
        return function(**{**options, **pickle.loads(request)})  # noqa: S301

    async def call_async(request: bytes) -> Any:
        return await call(request)

    def reply(request: bytes) -> list[Any]:
        try:
            result = call_catching(call, request)
        except BaseException as error:  # noqa: BLE001 - it would end the process
            result = ScorerExitedError(f"it raises {type(error).__name__}")
        return reply_of(path, result)

    if iscoroutinefunction(function):
        from rewardkit.guard.async_child import serve_coroutines

        serve_coroutines(channel, call_async, limits["seconds"], partial(reply_of, path))
    else:
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
