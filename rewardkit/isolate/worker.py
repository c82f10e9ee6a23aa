"""Call a function of rewardkit in a helper process, under a deadline that the kernel enforces.

`call` blocks until the helper replies. It works wherever `child_process` does. The first call that
needs a helper starts one, which stays alive: later calls cost microseconds, not an import of SymPy.
"""

from __future__ import annotations

import os
from queue import LifoQueue
from typing import Any, Literal, NamedTuple, TypeAlias

from rewardkit.isolate.child_process import (
    ChildCrashError,
    ChildProcess,
    ChildTimeoutError,
    FailureKind,
)
from rewardkit.isolate.worker_child import to_json

_MAX_HELPERS = min(4, os.cpu_count() or 1)  # per target module: calls that run at once
_START_SECONDS = 60.0  # timeout for a helper to start and to import its module
_GRACE_SECONDS = 1.0  # how long after the wall deadline the caller waits for a helper

# The helpers of a module. Each has one caller at a time, and the last used one comes first. None
# is a helper that is not started yet.
_Pool: TypeAlias = "LifoQueue[ChildProcess | None]"

_Status: TypeAlias = Literal["ok", "import_error", "unavailable"] | FailureKind


class Reply(NamedTuple):
    """How a call ended.

    Attributes:
        status: "ok"; "timeout"; "crash": the process died or ran out of memory; "error": the
            function raised, does not exist, or did not return a JSON value; "import_error": an
            import failed; "unavailable": no helper process could be started.
        value: value of the function; None unless "ok".
        detail: the failure in one line; "" if "ok".
    """

    status: _Status
    value: Any
    detail: str


def call(
    target: str, payload: Any, *, cpu_seconds: float = 1.0, wall_seconds: float = 5.0
) -> Reply:
    """Call a function of rewardkit in a helper process, and kill it at its deadline.

    Args:
        target: "module:function".
        payload: its one argument, a JSON value. Tuples arrive as lists.
        cpu_seconds: CPU time the call may use, above 0. It decides, independently of the machine's
            load.
        wall_seconds: elapsed time the call may take, above 0, which limits functions that wait.

    Returns:
        The reply. Nothing that happens in the helper raises here.
    """
    module, _, function = target.partition(":")
    request = (function, to_json(payload), cpu_seconds, wall_seconds)
    pool = _pools.get(module) or _pools.setdefault(module, _new_pool())
    helper = pool.get()
    try:
        if helper is None or not helper.is_alive:
            helper = _start_helper(module)
        try:
            reply = helper.exchange(request, wall_seconds + _GRACE_SECONDS)
        except ChildCrashError:  # it may have died before this call
            helper = _start_helper(module)
            reply = helper.exchange(request, wall_seconds + _GRACE_SECONDS)
    except ChildTimeoutError:
        return Reply("timeout", None, f"no reply within {wall_seconds + _GRACE_SECONDS:g} s")
    except ChildCrashError as error:
        return Reply("unavailable", None, f"no helper process: {error}")
    finally:
        pool.put(helper)
    return Reply(*reply)


def _new_pool() -> _Pool:
    pool: _Pool = LifoQueue()
    for _ in range(_MAX_HELPERS):
        pool.put(None)
    return pool


def _start_helper(module: str) -> ChildProcess:
    # SymPy's results depend on the order of sets, which depends on the seed of the hash.
    helper = ChildProcess(
        "rewardkit.isolate.worker_child", environment={"PYTHONHASHSEED": "0"}, is_quiet=True
    )
    try:
        helper.exchange(module, _START_SECONDS)
    except ChildTimeoutError:
        raise ChildCrashError(f"it did not start in {_START_SECONDS:g} s") from None
    return helper


_pools: dict[str, _Pool] = {}
os.register_at_fork(after_in_child=_pools.clear)  # its locks and helpers are the parent's
