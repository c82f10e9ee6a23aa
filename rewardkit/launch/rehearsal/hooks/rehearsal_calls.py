"""Record the calls of the scorer: a line of `calls.jsonl` when one begins, and one when it ends.

verl loads the function itself; what its loader returns is wrapped, and the wrapper passes verl's
arguments on and returns or raises what the function returns or raises. A call may hang in C code that
holds the interpreter's lock. faulthandler needs no lock: it writes the stacks of a process whose oldest
call exceeds its limit, and the rehearsal ends.

A line has `call`, a number; `data_source`, `ground_truth`, `response`, `index` and the keys of `extra_info`
(or its type); `stack` and `started`. The line at the end has `seconds`; `error`, what went wrong; and of the
result its `score`, its `keys`, and those with `numbers`.
"""

import asyncio
import faulthandler
import itertools
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.scorers.score import RewardResult

#: `folder`; `scorer`, its file; `positions`, the longest sequence; `critic`, whether there is one;
#: `pixels`, the most of an image; `call_seconds`, the limit of a call.
SETTINGS: Mapping[str, Any] = json.loads(os.environ["REWARDKIT_REHEARSAL"])

#: Characters of a text, and of an error, in a record.
MAX_TEXT_CHARACTERS, MAX_ERROR_CHARACTERS = 200, 400

#: The arguments of verl's managers; some managers of users pass them by position.
PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")

_numbers, _lock = itertools.count(), threading.Lock()
_starts: dict[str, float] = {}
_stacks = Path(SETTINGS["folder"], f"stacks-{os.getpid()}.txt").open("w")  # noqa: SIM115 - for faulthandler


def write(name: str, line: Mapping[str, Any]) -> None:
    """Append a line to a file of the rehearsal."""
    try:
        with Path(SETTINGS["folder"], name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except (OSError, TypeError, ValueError) as error:  # the scorer has no part in it
        sys.stderr.write(f"rehearsal: a line of {name} could not be written: {error}\n")


def record_images(vision: Any, part: str) -> None:
    """Record how many images the vision layers of the actor or the rollout get."""
    forward = vision.forward

    def recorded(self: Any, pixels: Any, grid_thw: Any, *args: Any, **kwargs: Any) -> Any:
        write("images.jsonl", {"part": part, "images": len(grid_thw)})
        return forward(self, pixels, grid_thw, *args, **kwargs)

    vision.forward = recorded


def record_scorer(reward: Any) -> None:
    """Wrap what `verl.trainer.ppo.reward` loads: the user's function, or verl's own."""
    for name in ("get_custom_reward_fn", "get_default_compute_score"):
        setattr(reward, name, partial(_load, getattr(reward, name)))


def _load(load: Any, *args: Any) -> Any:
    function = load(*args)
    return function and record_calls(function)


def record_calls(function: Any) -> Any:
    """Return a function with every call recorded; a coroutine function stays one."""
    return partial(_call_async if iscoroutinefunction(function) else _call, function)


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    with _recorded(args, kwargs) as end:
        end["result"] = function(*args, **kwargs)
    return end["result"]


async def _call_async(function: Any, *args: Any, **kwargs: Any) -> Any:
    with _recorded(args, kwargs) as end:
        coroutine = function(*args, **kwargs)
        seconds = SETTINGS["call_seconds"] / 2
        timer = asyncio.get_running_loop().call_later(seconds, _write_line, end["call"], coroutine)
        try:
            end["result"] = await coroutine
        finally:
            timer.cancel()
    return end["result"]


@contextmanager
def _recorded(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    arguments = {**dict(zip(PARAMETERS, args, strict=False)), **kwargs}
    info: Any = arguments.get("extra_info")
    started, is_mapping = time.monotonic(), isinstance(info, Mapping)
    call = f"{os.getpid()}-{next(_numbers)}"
    begin = {
        "call": call,
        "data_source": _clip(arguments.get("data_source")) or "",
        "ground_truth": _clip(arguments.get("ground_truth")),
        "extra_info": sorted(map(str, info)) if is_mapping else type(info).__name__,
        "response": _clip(arguments.get("solution_str")) or "",
        "index": _clip(info.get("index")) if is_mapping else None,
        "stack": threading.get_ident(),
        "started": started,
    }
    write("calls.jsonl", begin)
    _watch(call, started)
    end: dict[str, Any] = {"call": call}
    fields: dict[str, Any] = {}
    try:
        yield end
        fields = _result_fields(end["result"])
    except BaseException as error:
        fields["error"] = f"the scorer raised {_error_line(error)}"
        raise
    finally:
        _watch(call)
        seconds = round(time.monotonic() - started, 6)
        write("calls.jsonl", {"call": call, "seconds": seconds, **fields})


def _watch(call: str, started: float | None = None) -> None:
    """Note that a call has begun or ended; watch the oldest one."""
    with _lock:
        _starts.pop(call, None)
        if started is not None:
            _starts[call] = started
        faulthandler.cancel_dump_traceback_later()
        if _starts:
            seconds = min(_starts.values()) + SETTINGS["call_seconds"] - time.monotonic()
            faulthandler.dump_traceback_later(max(0.1, seconds), file=_stacks)


def _error_line(error: BaseException) -> str:
    """Return the cause of an error in one line, with its file and line."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    message = " ".join(traceback.format_exception_only(error)[-1].split())[:MAX_ERROR_CHARACTERS]
    locations = [
        f" ({Path(f.filename).name}:{f.lineno})" for f in traceback.extract_tb(error.__traceback__)
    ]
    return message + "".join(locations[-1:])


def _result_fields(result: Any) -> dict[str, Any]:
    read = call_catching(RewardResult.of, result)
    if isinstance(read, Exception):
        return {"error": str(read)}
    numbers = [name for name, value in read.fields.items() if isinstance(value, float)]
    return {"score": read.score, "keys": [*read.fields], "numbers": numbers}


def _write_line(call: str, coroutine: Any) -> None:
    """Write the line of the scorer at which its coroutine waits: one that waits is on no stack."""
    line = 0
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        line = frame.f_lineno if frame.f_code.co_filename == SETTINGS["scorer"] else line
        coroutine = coroutine.cr_await
    write("calls.jsonl", {"call": call, "line": line})


def _clip(value: Any) -> str | None:
    return None if value is None else str(value)[:MAX_TEXT_CHARACTERS]
