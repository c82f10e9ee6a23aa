"""Record the calls of the scorer: a line of `calls.jsonl` when one begins, and one when it ends.

verl loads the function itself; what its loader returns is wrapped, and the wrapper passes verl's
arguments on and returns or raises what the function returns or raises. A call may hang in C code that
holds the interpreter's lock, so that no Python of its process could report it. The rehearsal's own
process reads the lines, and sends SIGUSR1: faulthandler writes the stacks without the lock.
"""

import asyncio
import faulthandler
import itertools
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutinefunction, unwrap
from pathlib import Path
from typing import Any

#: `folder`; `pixels`, the most of a picture; `call_seconds`, the limit of a call; `varied_metric`, the
#: metric that every second result has as 1 and the others as 0, if there is one.
SETTINGS: Mapping[str, Any] = json.loads(os.environ["REWARDKIT_REHEARSAL"])

#: Characters of a text in a record.
MAX_TEXT_CHARACTERS = 200

#: The arguments of verl's managers; some managers of users pass them by position.
PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")

#: Names by which dynamic sampling means the score itself.
SCORE_METRICS = frozenset({"score", "reward", "seq_reward", "seq_final_reward"})

_numbers, _results = itertools.count(), itertools.count()


def write(name: str, line: Mapping[str, Any]) -> None:
    """Append a line to a file of the rehearsal."""
    try:
        with Path(SETTINGS["folder"], name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=_plain) + "\n")
    except (OSError, TypeError, ValueError) as error:  # the scorer has no part in it
        sys.stderr.write(f"rehearsal: a line of {name} could not be written: {error}\n")


def _plain(value: Any) -> Any:
    """Return numbers of numpy and torch as numbers, and other values as their type."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return type(value).__name__


def record_pictures(vision: Any, part: str) -> None:
    """Record how many pictures the vision layers of the actor or the rollout get."""
    forward = vision.forward

    def recorded(self: Any, pixels: Any, grid_thw: Any, *args: Any, **kwargs: Any) -> Any:
        write("pictures.jsonl", {"part": part, "pictures": len(grid_thw)})
        return forward(self, pixels, grid_thw, *args, **kwargs)

    vision.forward = recorded


def record_scorer(reward: Any) -> None:
    """Wrap what `verl.trainer.ppo.reward` loads: the user's function, or verl's own."""
    load, load_default = reward.get_custom_reward_fn, reward.get_default_compute_score

    def load_custom(config: Any) -> Any:
        function = load(config)  # a partial, with the user's function first
        return function and record_calls(function, function.args[0])

    def load_own(*args: Any) -> Any:
        function = load_default(*args)
        return record_calls(function, function)

    reward.get_custom_reward_fn, reward.get_default_compute_score = load_custom, load_own
    stacks = Path(SETTINGS["folder"], f"stacks-{os.getpid()}.txt")
    faulthandler.register(signal.SIGUSR1, file=stacks.open("w"), all_threads=True)


def record_calls(function: Any, user_function: Any) -> Any:
    """Return a function with every call recorded; a coroutine function stays one."""
    inner = unwrap(user_function)
    while isinstance(inner, partial):  # as verl's own scorer is
        inner = inner.func
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    call = _call_async if iscoroutinefunction(function) else _call
    return partial(call, function, code.co_filename if code else "")


def _call(function: Any, path: str, *args: Any, **kwargs: Any) -> Any:
    with _recorded(path, args, kwargs) as end:
        end["result"] = function(*args, **kwargs)
    return _vary(end["result"])


async def _call_async(function: Any, path: str, *args: Any, **kwargs: Any) -> Any:
    with _recorded(path, args, kwargs) as end:
        coroutine = function(*args, **kwargs)
        loop, seconds = asyncio.get_running_loop(), SETTINGS["call_seconds"]
        timer = loop.call_later(seconds, _write_line, end["call"], path, coroutine)
        try:
            end["result"] = await coroutine
        finally:
            timer.cancel()
    return _vary(end["result"])


@contextmanager
def _recorded(path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    arguments = {**dict(zip(PARAMETERS, args, strict=False)), **kwargs}
    info: Any = arguments.get("extra_info")
    started = time.monotonic()
    is_mapping = isinstance(info, Mapping)
    end: dict[str, Any] = {"call": f"{os.getpid()}-{next(_numbers)}"}
    begin = {
        "data_source": _clip(arguments.get("data_source")) or "",
        "ground_truth": _clip(arguments.get("ground_truth")),
        "extra_info": sorted(map(str, info)) if is_mapping else type(info).__name__,
        "response": _clip(arguments.get("solution_str")) or "",
        "thread": threading.current_thread().name,
        "path": path,
        "index": info.get("index") if is_mapping else None,
        "stack": threading.get_ident(),
        "started": started,
    }
    write("calls.jsonl", end | begin)
    try:
        yield end
    except BaseException:
        end["traceback"] = traceback.format_exc()
        raise
    finally:
        end["returned"] = type(end["result"]).__name__ if "result" in end else ""
        write("calls.jsonl", {**end, "seconds": round(time.monotonic() - started, 6)})


def _write_line(call: str, path: str, coroutine: Any) -> None:
    """Write the line of the scorer at which its coroutine waits: one that waits is on no stack."""
    line = 0
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        line = frame.f_lineno if frame.f_code.co_filename == path else line
        coroutine = coroutine.cr_await
    write("calls.jsonl", {"call": call, "line": line})


def _vary(result: Any) -> Any:
    """Return a result with the metric of dynamic sampling set to 0 and 1 in turns.

    A random model is never right, and verl drops the groups whose responses are all alike.
    """
    metric = SETTINGS["varied_metric"]
    if not metric:
        return result
    value = float(next(_results) % 2)
    if not isinstance(result, Mapping):
        return result if isinstance(_plain(result), str) else value
    name = "score" if metric in SCORE_METRICS and metric not in result else metric
    return {**result, name: value} if name in result else result


def _clip(value: Any) -> str | None:
    return None if value is None else str(value)[:MAX_TEXT_CHARACTERS]
