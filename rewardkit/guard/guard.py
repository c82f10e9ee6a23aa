"""`Guard`: a user's reward as verl calls it, with deadlines, fixed keys and a circuit breaker."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from rewardkit import background_loop
from rewardkit.errors import RewardkitError, UsageError, call_catching
from rewardkit.guard.coroutine_calls import CoroutineCalls
from rewardkit.guard.results import default_fields, verl_fields
from rewardkit.guard.reward_child import MEMORY_EXIT_CODE
from rewardkit.guard.stop import raise_if_stopped, stop_training
from rewardkit.guard.sync_calls import Outcome, SyncCalls
from rewardkit.isolate.batch_process import BatchProcess, start_user_process
from rewardkit.isolate.child import exit_text
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.scorers.base import log_once, record_result
from rewardkit.scorers.call import error_line
from rewardkit.versions import verl_awaits_rewards

#: A reward that fails on all of its first calls is broken, or its configuration is.
FIRST_CALLS = 32

#: Calls over which the share of failures is computed.
WINDOW_CALLS = 500


class Breaker:
    """Counts the failures of a reward in one process. Threads may count at once."""

    def __init__(self, share: float) -> None:
        """Start counting.

        Args:
            share: share of failures, in `WINDOW_CALLS` calls in a row, above which it trips.
        """
        self._share = share
        self._lock = threading.Lock()
        self._calls = self._failures = 0
        self._window_calls = self._window_failures = 0

    def count(self, *, is_failure: bool) -> str:
        """Count a call; return why the run should stop, or ""."""
        with self._lock:
            return self._count(is_failure=is_failure)

    def _count(self, *, is_failure: bool) -> str:
        self._calls += 1
        self._window_calls += 1
        if is_failure:
            self._failures += 1
            self._window_failures += 1
            if self._calls == self._failures == FIRST_CALLS:
                return f"it failed on all of its first {FIRST_CALLS} calls in this process"
        if self._window_calls < WINDOW_CALLS:
            return ""
        failures, calls = self._window_failures, self._window_calls
        self._window_calls = self._window_failures = 0
        if failures > self._share * calls:
            return f"it failed on {failures} of its last {calls} calls in this process"
        return ""


#: Types of keyword arguments that are sent with every call. Others, such as verl's tokenizer of the
#: reward model, are sent once to each process.
_VERL_ARGUMENTS = frozenset({"data_source", "solution_str", "ground_truth", "extra_info"})
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)


#: What a reply has where the reward raised: nanoseconds, type, message and place.
_ERROR_REPLY = ("nanoseconds", "type", "message", "place")


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """How a reward is guarded.

    Attributes:
        options: keyword arguments for the reward; those that verl passes come first.
        keys: the keys of every result, each with its value for a sample that lacks it.
        seconds: timeout per call, in seconds of elapsed time.
        cpu_seconds: limit of CPU time per call, in seconds; 0.0 for none.
        memory_mb: memory that a process may allocate after the import, in MiB; 0 for no limit.
        workers: maximum number of processes, of which a fast function needs one.
        wrong_score: score of a sample on which the reward fails.
        right_score: the lowest right score, from which `acc` follows; None if the reward itself
            states it, or if it is not known.
        on_failure: what to do when the reward fails too often: `stop` the training or `score` on.
        stop_share: share of failures above which it fails too often.
        record: folder of the recorder; "" for none.
        load_seconds: timeout for importing the file.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, float | str] = field(default_factory=lambda: default_fields({}))
    seconds: float = 5.0
    cpu_seconds: float = 0.0
    memory_mb: int = 8192
    workers: int = 4
    wrong_score: float = 0.0
    right_score: float | None = None
    on_failure: Literal["stop", "score"] = "stop"
    stop_share: float = 0.5
    record: str = ""
    load_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Check the numbers, which the guard's file has as Python's literals.

        Raises:
            UsageError: one is NaN or infinite.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, float) and not isfinite(value):
                raise UsageError(f"{each.name} is {value}: give a finite number.")
        for name, value in self.options.items():
            text = call_catching(json.dumps, value, allow_nan=False, default=str, skipkeys=True)
            if isinstance(text, ValueError):
                raise UsageError(f"option {name} has NaN or infinity: give finite numbers.")


class Guard:
    """A user's reward in processes of its own.

    It can be pickled, as verl's manager `remote` does; the processes stay behind.
    """

    def __init__(
        self, reward: str, settings: GuardSettings, *, is_async: bool = False, beside: str = ""
    ) -> None:
        """Name the reward, which `start` or the first call loads.

        Args:
            reward: `/path/my_reward.py:compute_score`.
            settings: how it is guarded.
            is_async: whether the reward is a coroutine function.
            beside: a file; the reward's file is looked for in its folder if it is not at its path.
        """
        self.reward = _location(reward, beside)
        self.settings, self.is_async = settings, is_async
        self._reduced = (reward, settings, is_async, beside)
        self._constants: dict[str, Any] = {}
        self._changed_at = 0.0
        self._begin()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the guard was made of."""
        reward, settings, is_async, beside = self._reduced
        return partial(Guard, is_async=is_async, beside=beside), (reward, settings)

    def start(self) -> None:
        """Start a process now, so that a file that does not load is reported before training.

        Raises:
            UsageError: the reward does not load.
        """
        if self.is_async:
            background_loop.submit(self._coroutine_calls.start()).result()
        else:
            self._calls.start()

    def close(self) -> None:
        """End all processes. Later calls start them again."""
        self._calls.close()
        self._coroutine_calls.close()

    def outcome(self, call: Mapping[str, Any]) -> Outcome:
        """Call the reward, and return its reply or how it failed. Never raises.

        Args:
            call: verl's keyword arguments.
        """
        request = call_catching(self._request, call)
        if isinstance(request, Exception):
            return request
        if self.is_async:
            return background_loop.submit(self._coroutine_calls.call(request)).result()
        return self._calls.call(request)

    def compute_score(self, call: Mapping[str, Any]) -> dict[str, float | str]:
        """Score a sample in any thread.

        Args:
            call: verl's keyword arguments.

        Returns:
            The same keys for every sample: those of the reward, `score`, `acc`, and `timeout` and
            `error` (1.0 or 0.0).

        Raises:
            TrainingStoppedError: the reward fails too often, and the settings say to stop then.
        """
        start = perf_counter()
        return self._result(self.outcome(call), call, start)

    async def compute_score_async(self, call: Mapping[str, Any]) -> dict[str, float | str]:
        """Score a sample on any event loop; see `compute_score`."""
        start = perf_counter()
        outcome: Outcome | bytes = call_catching(self._request, call)
        if isinstance(outcome, bytes):
            future = background_loop.submit(self._coroutine_calls.call(outcome))
            outcome = await asyncio.wrap_future(future)
        return self._result(outcome, call, start)

    def _request(self, call: Mapping[str, Any]) -> bytes:
        """Return the pickled arguments to send with this call; the others are kept for all calls.

        They are pickled here, and unpickled inside the call, so that a value for which one of the
        two fails costs its own sample.
        """
        if self._pid != os.getpid():  # a forked process does not have its parent's processes
            self._begin()
        if len(call) == len(_VERL_ARGUMENTS):
            return pickle.dumps(call)
        request = {
            name: value
            for name, value in call.items()
            if name in _VERL_ARGUMENTS or isinstance(value, _PLAIN)
        }
        constants = {name: call[name] for name in call.keys() - request.keys()}
        if any(self._constants.get(name) is not value for name, value in constants.items()):
            self._constants = constants
            self.close()
        return pickle.dumps(request)

    def _begin(self) -> None:
        self._breaker = Breaker(self.settings.stop_share)
        self._calls = SyncCalls(self._new_process, self.settings.workers)
        self._coroutine_calls = CoroutineCalls(self.start_process, self.settings.seconds)
        self._pid = os.getpid()

    def _new_process(self) -> BatchProcess:
        return BatchProcess(self.start_process, self.settings.seconds)

    def start_process(self) -> tuple[ChildProcess, bool]:
        """Start a process and load the reward there; return it with whether that is async.

        Raises:
            UsageError: the reward does not load.
        """
        settings = self.settings
        limits = {name: getattr(settings, name) for name in ("seconds", "cpu_seconds", "memory_mb")}
        options = {**settings.options, **self._constants}
        process, is_async = start_user_process(
            "rewardkit.guard.reward_child",
            (self.reward, options, limits),
            self.reward,
            settings.load_seconds,
        )
        path = Path(self.reward.partition(":")[0])
        changed_at = path.stat().st_mtime if path.exists() else 0.0
        self._changed_at = self._changed_at or changed_at
        if changed_at != self._changed_at:
            log_once(
                (self.reward, "changed"),
                f"{path} has changed. Processes that start from now on, after a failed call, use the "
                "new reward, and the others the old one: restart the training.",
            )
        return process, is_async

    def _result(
        self, outcome: Outcome, call: Mapping[str, Any], start: float
    ) -> dict[str, float | str]:
        seconds = perf_counter() - start
        raise_if_stopped()
        result, failure, problem = read_outcome(outcome, self.reward, self.settings)
        if failure or problem:
            effect = " Such samples get the wrong score." if failure else ""
            cause: Any = failure or problem
            if isinstance(outcome, list) and len(outcome) == len(_ERROR_REPLY):
                cause = outcome[1], outcome[3]  # its message may differ with every response
            log_once((self.reward, cause), f"{failure or problem}{effect}")
        if reason := self._breaker.count(is_failure=bool(failure)):
            message = f"{self.reward}: {reason}. The last failure: {failure or 'an earlier call.'}"
            if self.settings.on_failure == "stop":
                stop_training(
                    f"{message} The training was stopped. Fix the reward, or write the "
                    "file with --on-failure score."
                )
            log_once((self.reward, "breaker"), f"{message} Its samples get the wrong score.")
        if self.settings.record:
            source, text = call.get("data_source"), call.get("solution_str")
            sample = (source, text, call.get("ground_truth"), call.get("extra_info"))
            record_result(self.settings.record, result, sample, seconds)
        return result


def read_outcome(
    outcome: Outcome, reward: str, settings: GuardSettings
) -> tuple[dict[str, float | str], str, str]:
    """Return what verl gets for an outcome, how the reward failed, and what was left out.

    The two messages are "" if there is nothing to say.
    """
    wrong = {**settings.keys, "score": settings.wrong_score}
    if isinstance(outcome, ChildTimeoutError):
        limit = f"{settings.seconds:g} s"
        if settings.cpu_seconds:
            limit += f" or {settings.cpu_seconds:g} s of CPU time"
        return {**wrong, "timeout": 1.0}, f"{reward}: a call took more than {limit}.", ""
    if isinstance(outcome, ChildCrashError):
        is_memory = str(outcome) == exit_text(MEMORY_EXIT_CODE)
        reason = f"it needs more than {settings.memory_mb} MiB" if is_memory else outcome
        failure = f"{reward}: a call ended its process ({reason})."
    elif isinstance(outcome, RewardkitError):  # the file does not load any more
        failure = str(outcome)
    elif isinstance(outcome, Exception):
        failure = _sentence(f"{reward}: {type(outcome).__name__}: {error_line(outcome)}")
    elif len(outcome) == len(_ERROR_REPLY):
        _, name, text, place = outcome
        failure = _sentence(f"{place or reward}: {name}: {text}")
    else:
        fixed = call_catching(verl_fields, outcome[1], settings.keys, settings.right_score)
        if not isinstance(fixed, Exception):
            result, problem = fixed
            return result, "", f"{reward}: {problem}." if problem else ""
        failure = f"{reward}: {fixed}."
    return {**wrong, "error": 1.0}, failure, ""


def _sentence(text: str) -> str:
    text = text.rstrip(": ")
    return text if text.endswith((".", "!", "?")) else f"{text}."


def read_secret(variable: str) -> str:
    """Return an option that is a secret, from the environment variable that a guarding file names.

    Raises:
        UsageError: the variable is not set.
    """
    if not (secret := os.environ.get(variable)):
        raise UsageError(
            f"{variable} is not set. Export it where verl runs: it is a secret, which rewardkit writes "
            "into no file."
        )
    return secret


def reward_function(guard: Guard) -> Callable[..., Any]:
    """Return the function for verl: a coroutine function where the reward is one and verl awaits it.

    Its process starts now, so that a reward that does not load ends the run before its first step.

    Raises:
        UsageError: the reward does not load.
    """
    guard.start()

    def compute_score(
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **others: Any,
    ) -> dict[str, float | str]:
        return guard.compute_score(
            _call(data_source, solution_str, ground_truth, extra_info, others)
        )

    async def compute_score_async(
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **others: Any,
    ) -> dict[str, float | str]:
        call = _call(data_source, solution_str, ground_truth, extra_info, others)
        return await guard.compute_score_async(call)

    return compute_score_async if guard.is_async and verl_awaits_rewards() else compute_score


def _call(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any, others: dict[str, Any]
) -> dict[str, Any]:
    return {
        "data_source": data_source,
        "solution_str": solution_str,
        "ground_truth": ground_truth,
        "extra_info": extra_info,
        **others,
    }


def _location(reward: str, beside: str) -> str:
    """Return where the reward's file is: at its path, or in the folder of another file."""
    path, _, function = reward.partition(":")
    if beside and not Path(path).is_file():
        near = Path(beside).with_name(Path(path).name)
        if near.is_file():
            return f"{near}:{function}"
    return reward
