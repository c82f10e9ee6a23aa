"""The reward function of a rehearsal: the user's own, with a line written down for every call.

verl loads this file as it would load the user's. The user's function is loaded by verl's own
loader, is given what verl gives, and what it returns or raises goes back to verl unchanged.
REWARDKIT_REHEARSAL_REWARD holds, as JSON, its `path` and `name`, and `calls`, the file of notes.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

VARIABLE = "REWARDKIT_REHEARSAL_REWARD"

#: Characters of a text that are written down.
SHOWN = 200

#: What verl's managers pass; some pass it by position.
PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")

_NOTHING = object()


def load() -> Callable[..., Any]:
    """The user's function, by verl's own loader; what keeps it from loading is written down."""
    wanted = json.loads(os.environ[VARIABLE])
    chosen = {"path": wanted["path"], "name": wanted["name"]}
    config = {"custom_reward_function": chosen, "reward": {"custom_reward_function": chosen}}
    loader = import_module("verl.trainer.ppo.reward").get_custom_reward_fn
    ours = sys.modules.get("custom_module")
    function: Any = _NOTHING
    try:
        # A partial that adds `reward_kwargs`, of which there are none: those reach our function.
        function = loader(import_module("omegaconf").OmegaConf.create(config)).args[0]
    finally:
        if function is _NOTHING:
            _write({"load_error": _cause(sys.exc_info()[1])})
    if ours is not None:
        _take_names(sys.modules["custom_module"], ours)
    return watched(function, wanted["name"])


def _take_names(user: Any, ours: Any) -> None:
    """Names of the user's are found in `custom_module`, where verl 0.5 registers a reward."""
    own = vars(ours)
    own.update({name: value for name, value in vars(user).items() if name not in own})
    sys.modules["custom_module"] = ours


def watched(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with every call written down; a coroutine function stays one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        started, result = time.monotonic(), _NOTHING
        try:
            result = function(*args, **kwargs)
        finally:
            note(args, kwargs, result, time.monotonic() - started)
        return result

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        started, result = time.monotonic(), _NOTHING
        try:
            result = await function(*args, **kwargs)
        finally:
            note(args, kwargs, result, time.monotonic() - started)
        return result

    chosen: Callable[..., Any] = call_async if iscoroutinefunction(function) else call
    chosen.__name__ = chosen.__qualname__ = name
    return chosen


def note(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, seconds: float) -> None:
    """Write a call down."""
    given = dict(zip(PARAMETERS, args, strict=False)) | dict(kwargs)
    info = given.get("extra_info", given.get("extra_infos"))
    failed = result is _NOTHING
    _write(
        {
            "data_source": _shown(given.get("data_source", given.get("data_sources"))),
            "response": _shown(given.get("solution_str", given.get("solution_strs"))),
            "ground_truth": _shown(given.get("ground_truth", given.get("ground_truths"))),
            "extra_info": sorted(map(str, info)) if isinstance(info, Mapping) else _kind(info),
            "options": sorted(given.keys() - set(PARAMETERS)),
            "error": _cause(sys.exc_info()[1]) if failed else "",
            **({} if failed else _returned(result)),
            "thread": threading.current_thread().name,
            "pid": os.getpid(),
            "seconds": round(seconds, 6),
        }
    )


def _returned(result: Any) -> dict[str, Any]:
    first = result[0] if isinstance(result, (list, tuple)) and result else result
    values = first if isinstance(first, Mapping) else {"": first}
    return {
        "returned": _kind(result),
        "keys": [str(key) for key in values if key != ""],
        "numbers": {str(key): _number(value) for key, value in values.items()},
    }


def _number(value: Any) -> float | None:
    """What verl could average; None for text and all else."""
    try:
        return None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return None


def _kind(value: Any) -> str:
    return type(value).__name__


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)[:SHOWN]


def _cause(error: BaseException | None) -> str:
    """The first error of a chain, and the line of the file it came from."""
    while error is not None and (before := error.__cause__ or error.__context__) is not None:
        error = before
    if error is None:
        return ""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place, trace = f" ({Path(code.co_filename).name}:{trace.tb_lineno})", trace.tb_next
    return f"{type(error).__name__}: {' '.join(str(error).split())[:SHOWN]}{place}"


def _write(line: dict[str, Any]) -> None:
    try:
        with Path(json.loads(os.environ[VARIABLE])["calls"]).open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(line) + "\n")
    except OSError as error:  # a full disk must not become an error of the scorer
        sys.stderr.write(f"rehearsal: a call could not be written down: {error}\n")


if VARIABLE in os.environ:
    globals()[json.loads(os.environ[VARIABLE])["name"]] = load()
