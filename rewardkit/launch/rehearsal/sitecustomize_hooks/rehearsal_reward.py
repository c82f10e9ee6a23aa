"""The reward function of a rehearsal: the user's own, with every call recorded in a file.

verl loads this file in place of the user's. It loads the user's function by verl's own loader,
passes verl's arguments on, and returns or raises to verl what the function returns or raises.
REWARDKIT_REHEARSAL_REWARD is JSON: `path` and `name` of the function; `calls`, the file of records;
`running`, the folder of the calls that have not returned; `call_seconds`, the limit of a call; and
`varied_metric`, the metric that every second result has as 1 and the others as 0, if there is one.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import iscoroutinefunction, signature, unwrap
from itertools import count
from pathlib import Path
from types import CodeType
from typing import Any

running_calls = import_module("running_calls")

VARIABLE = "REWARDKIT_REHEARSAL_REWARD"

#: Characters of a text in a record.
MAX_TEXT_CHARACTERS = 200

#: The arguments of verl's managers; some pass them by position.
PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")

_NOTHING = object()

#: Names by which dynamic sampling means the score itself.
SCORE_METRICS = frozenset({"score", "reward", "seq_reward", "seq_final_reward"})

_results = count()


def load_function() -> Callable[..., Any]:
    """Return the user's function from verl's own loader; record an error of loading it."""
    settings = _settings()
    running_calls.write_stacks_on_signal(Path(settings["running"]))
    location = {"path": settings["path"], "name": settings["name"]}
    config = {"custom_reward_function": location, "reward": {"custom_reward_function": location}}
    loader = import_module("verl.trainer.ppo.reward").get_custom_reward_fn
    ours = sys.modules.get("custom_module")
    function: Any = _NOTHING
    try:
        # The loader returns a partial that adds `reward_kwargs`. It adds none here: verl passes them
        # to the function of this file.
        function = loader(import_module("omegaconf").OmegaConf.create(config)).args[0]
    finally:
        if function is _NOTHING:
            _write({"load_error": _cause(sys.exc_info()[1])})
    if ours is not None:
        _take_names(sys.modules["custom_module"], ours)
    return record_calls(function, settings["name"])


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(os.environ[VARIABLE])
    return settings


def _take_names(user: Any, ours: Any) -> None:
    """Make the user's names available in `custom_module`, where verl 0.5 registers a reward."""
    own = vars(ours)
    own.update({name: value for name, value in vars(user).items() if name not in own})
    sys.modules["custom_module"] = ours


def record_calls(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the function with every call recorded; a coroutine function stays one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        started, result, file = time.monotonic(), _NOTHING, _begin(function, args, kwargs)
        try:
            result = function(*args, **kwargs)
        finally:
            running_calls.end_call(file)
            record(function, args, kwargs, result, time.monotonic() - started)
        return vary(result, _settings()["varied_metric"])

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        started, result, file = time.monotonic(), _NOTHING, _begin(function, args, kwargs)
        timer = None
        try:
            coroutine = function(*args, **kwargs)
            timer = _add_place_later(file, coroutine)
            result = await coroutine
        finally:
            if timer is not None:
                timer.cancel()
            running_calls.end_call(file)
            record(function, args, kwargs, result, time.monotonic() - started)
        return vary(result, _settings()["varied_metric"])

    wrapper: Callable[..., Any] = call_async if iscoroutinefunction(function) else call
    wrapper.__name__ = wrapper.__qualname__ = name
    return wrapper


def _begin(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Path:
    """Write the file of a call that begins, with the function's file and what identifies the row."""
    arguments = dict(zip(PARAMETERS, args, strict=False)) | dict(kwargs)
    info, names = arguments.get("extra_info"), ("data_source", "ground_truth")
    row = [f"{name} {_clip(arguments[name])!r}" for name in names if name in arguments]
    if isinstance(info, Mapping) and info.get("index") is not None:
        row.insert(0, f"extra_info.index {info['index']}")
    response = _clip(arguments.get("solution_str", arguments.get("solution_strs")))
    settings, code = _settings(), _code(function)
    fields = {
        "path": code.co_filename if code else settings["path"],
        "row": ", ".join(row) or "lists of values",
        "response": response or "",
    }
    file: Path = running_calls.begin_call(Path(settings["running"]), fields)
    return file


def _code(function: Callable[..., Any]) -> CodeType | None:
    """Return the code of a function, or of an object's `__call__`; None for one in C."""
    inner = unwrap(function)
    return getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)


def _add_place_later(file: Path, coroutine: Any) -> asyncio.TimerHandle:
    """Add the line at which a coroutine waits shortly before the limit of a call."""
    settings = _settings()
    seconds = settings["call_seconds"] - min(1.0, settings["call_seconds"] / 4)
    return asyncio.get_running_loop().call_later(seconds, running_calls.add_place, file, coroutine)


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    result: Any,
    seconds: float,
) -> None:
    """Record a call that has ended."""
    arguments = dict(zip(PARAMETERS, args, strict=False)) | dict(kwargs)
    info = arguments.get("extra_info", arguments.get("extra_infos"))
    failed = result is _NOTHING
    error = sys.exc_info()[1] if failed else None
    mismatch = _mismatch(function, args, kwargs) if isinstance(error, TypeError) else ""
    _write(
        {
            "data_source": _clip(arguments.get("data_source", arguments.get("data_sources"))),
            "response": _clip(arguments.get("solution_str", arguments.get("solution_strs"))),
            "ground_truth": _clip(arguments.get("ground_truth", arguments.get("ground_truths"))),
            "extra_info": sorted(map(str, info)) if isinstance(info, Mapping) else _type_name(info),
            "options": sorted(arguments.keys() - set(PARAMETERS)),
            "error": mismatch or _cause(error),
            **({} if failed else _describe_result(result)),
            "thread": threading.current_thread().name,
            "pid": os.getpid(),
            "seconds": round(seconds, 6),
        }
    )


def vary(result: Any, metric: str) -> Any:
    """Return a result with the metric of dynamic sampling set to 0 and 1 in turns.

    A random model is never right, and verl drops the groups whose responses are all alike.
    """
    if not metric:
        return result
    value = float(next(_results) % 2)
    if not isinstance(result, Mapping):
        return value if _number(result) is not None else result
    name = "score" if metric in SCORE_METRICS and metric not in result else metric
    return {**result, name: value} if name in result else result


def _mismatch(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> str:
    """Return why the function does not take verl's arguments, and its line; "" if it takes them."""
    try:
        own = signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        own.bind(*args, **kwargs)
    except TypeError as error:
        code = _code(function)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        name = getattr(function, "__name__", _type_name(function))
        passed = ", ".join([*PARAMETERS[: len(args)], *(f"{key}=" for key in kwargs)])
        return f"TypeError: {name}{own}: {error}; verl calls it with {passed}{place}"
    return ""


def _describe_result(result: Any) -> dict[str, Any]:
    first = result[0] if isinstance(result, (list, tuple)) and result else result
    values = first if isinstance(first, Mapping) else {"": first}
    return {
        "returned": _type_name(result),
        "keys": [str(key) for key in values if key != ""],
        "numbers": {str(key): _number(value) for key, value in values.items()},
    }


def _number(value: Any) -> float | None:
    """Return a value as a number that verl can average; None for text and anything else."""
    try:
        return None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return None


def _type_name(value: Any) -> str:
    return type(value).__name__


def _clip(value: Any) -> str | None:
    return None if value is None else str(value)[:MAX_TEXT_CHARACTERS]


def _cause(error: BaseException | None) -> str:
    """Return the first error of a chain, and the file and line that raised it."""
    while error is not None and (before := error.__cause__ or error.__context__) is not None:
        error = before
    if error is None:
        return ""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place, trace = f" ({Path(code.co_filename).name}:{trace.tb_lineno})", trace.tb_next
    return f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_TEXT_CHARACTERS]}{place}"


def _write(line: dict[str, Any]) -> None:
    try:
        with Path(_settings()["calls"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:  # a full disk must not become an error of the scorer
        sys.stderr.write(f"rehearsal: a call could not be recorded: {error}\n")


if VARIABLE in os.environ:
    globals()[_settings()["name"]] = load_function()
