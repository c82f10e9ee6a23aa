"""`Guard`: a user's reward as verl calls it, with deadlines, fixed keys and a circuit breaker.

verl reads the keys of the first sample of a batch from all others (agent_loop.py of 0.9.1), so that
a key that is missing once ends the step, and a NaN reaches every weight of the policy.
"""

import json
import os
import pickle
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import iscoroutinefunction, signature
from itertools import count
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from rewardkit import registry
from rewardkit.errors import RewardkitError, UsageError, call_catching
from rewardkit.guard.stop import raise_if_stopped, stop_training
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import CallError, IsolatedFunction, Outcome, Reply, place_in_stacks
from rewardkit.isolate.serve import Limits, Loaded
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import error_line, log_once, record_result, to_verl
from rewardkit.scorers.options import VERL_PARAMETERS
from rewardkit.scorers.score import InvalidResultError, RewardResult, RightRule
from rewardkit.versions import verl_awaits_rewards

#: A reward that fails on all of its first calls is broken, or its configuration is.
FIRST_CALLS = 32

#: Calls over which the fraction of failures is computed.
WINDOW_CALLS = 500

#: Flags that the guard adds to every result.
FLAGS = ("timeout", "error")

#: Types of keyword arguments that are sent with every call. Others, such as verl's tokenizer of the
#: reward model, are sent once to each process.
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)


def load_reward(reward: str, options: Mapping[str, Any]) -> Loaded:
    """Load a reward in its process; its requests are pickled keyword arguments of verl.

    They are unpickled inside the call, so that a value for which that fails costs its own sample.
    """
    process_redactor().learn(options)  # an exception of the reward may say them
    function = registry.load("scorers", reward)
    parameters = signature(function).parameters.values()
    if not any(p.name == "solution_str" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise UsageError(
            f"{reward} has no parameter solution_str: verl calls a reward with data_source, "
            "solution_str, ground_truth and extra_info."
        )

    def result(request: bytes) -> Any:
        return function(**{**options, **pickle.loads(request)})  # noqa: S301

    async def call_async(request: bytes) -> Mapping[str, float | str]:
        return RewardResult.of(await result(request)).fields

    def call(request: bytes) -> Mapping[str, float | str]:
        return RewardResult.of(result(request)).fields

    return Loaded(call_async if iscoroutinefunction(function) else call)


def default_fields(
    fields: Mapping[str, float | str], *, has_acc: bool = True
) -> dict[str, float | str]:
    """Return the keys of a result, each with the value that stands for a missing one.

    The guard adds `acc` if it is known what is right.
    """
    own = ("acc",) if has_acc or "acc" in fields else ()
    names = {"score": 0.0, **fields, **dict.fromkeys((*own, *FLAGS), 0.0)}
    return {name: "" if isinstance(value, str) else 0.0 for name, value in names.items()}


@cache
def _rule(right_score: float | None) -> RightRule:
    return RightRule(right_score, takes_copies=right_score is None)


def verl_fields(
    fields: Mapping[str, float | str],
    keys: Mapping[str, float | str],
    right_score: float | None = None,
) -> tuple[dict[str, float | str], str]:
    """Return a reward's fields with exactly these keys, and the first one that could not be kept, or "".

    A part that is not finite becomes its default and sets `error`. Without `acc` in the fields it is 1.0
    from the right score on, else 0.0.

    Raises:
        InvalidResultError: the score is not finite.
    """
    score = float(fields["score"])
    if not isfinite(score):
        raise InvalidResultError(f"its score is {score}")
    result, problem = {**keys, "score": score}, ""
    if "acc" in keys and not isinstance(fields.get("acc"), float):
        # a number alone has nothing to read, which saves a third of the time
        read = RewardResult.of(fields) if "correct" in fields else RewardResult(score, fields)
        result["acc"] = to_verl(_rule(right_score).judge(read.as_score()))["acc"]
    for name, value in fields.items():
        default = keys.get(name)
        if default is None:
            problem = problem or f"its key {name!r} is new; name it with --keys when you guard"
        elif type(default) is not type(value):
            problem = problem or f"its key {name!r} is now {type(value).__name__}"
        elif isinstance(value, float) and not isfinite(value):
            problem, result["error"] = f"its {name!r} is {value}", 1.0
        else:
            result[name] = value
    return result, problem


class Breaker:
    """Counts the failures of a reward in one process. Threads may count at once."""

    def __init__(self, fraction: float) -> None:
        """Trip above this fraction of failures in the last `WINDOW_CALLS` calls."""
        self._fraction, self._has_succeeded = fraction, False
        self._failures: deque[bool] = deque(maxlen=WINDOW_CALLS)
        self._numbers = count(1)  # of failures: no two threads get the same one

    def count(self, *, is_failure: bool) -> str:
        """Count a call; return why the run should stop, or ""."""
        self._failures.append(is_failure)
        if not is_failure:
            self._has_succeeded = True
            return ""
        calls = [*self._failures]
        if next(self._numbers) >= FIRST_CALLS and not self._has_succeeded:
            return f"it failed on all of its first {FIRST_CALLS} calls in this process"
        if len(calls) == WINDOW_CALLS and sum(calls) > self._fraction * WINDOW_CALLS:
            return f"it failed on {sum(calls)} of its last {WINDOW_CALLS} calls in this process"
        return ""


@dataclass(frozen=True, kw_only=True)
class GuardSettings(Limits):
    """How a reward is guarded: `Limits`, and the options of `rewardkit guard`.

    `options` are keyword arguments for the reward; those that verl passes come first. `keys` are those of
    every result, each with its value for a sample that lacks it. From `right_score` on a score is right; None
    if the reward itself states it, or if it is not known. `record` is the recorder's folder; "" for none.
    """

    seconds: float = 5.0
    memory_mb: int = 8192
    workers: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, float | str] = field(default_factory=lambda: default_fields({}))
    wrong_score: float = 0.0
    right_score: float | None = None
    on_failure: Literal["stop", "score"] = "stop"
    stop_share: float = 0.5
    record: str = ""

    def __post_init__(self) -> None:
        """Refuse NaN and infinity: the guard's file has the values as Python's literals."""
        for name, value in [*vars(self).items(), *self.options.items()]:
            text = call_catching(json.dumps, value, allow_nan=False, default=str, skipkeys=True)
            if name != "options" and isinstance(text, ValueError):
                raise UsageError(f"{name} has NaN or infinity: give finite numbers.")


class Guard:
    """A user's reward in processes of its own.

    It can be pickled, as verl's manager `remote` does; the processes stay behind.
    """

    def __init__(
        self, reward: str, settings: GuardSettings, *, is_async: bool = False, beside: str = ""
    ) -> None:
        """Name the reward, as `/path/my_reward.py:compute_score`; `start` or the first call loads it.

        It is looked for beside the file `beside` if it is not at its path.
        """
        self._reduced = partial(Guard, is_async=is_async, beside=beside), (reward, settings)
        path, _, function = reward.partition(":")
        near = Path(beside).parent / Path(path).name
        is_near = bool(beside) and near.is_file() and not Path(path).is_file()
        self.reward = f"{near}:{function}" if is_near else reward
        self.settings, self.is_async = settings, is_async
        arguments = self.reward, dict(settings.options)
        self.function = IsolatedFunction(load_reward, arguments, self.reward, settings)
        self._constants: dict[str, Any] = {}
        self._breaker = Breaker(settings.stop_share)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the guard was made of."""
        return self._reduced

    def close(self) -> None:
        """End all processes. Later calls start them again."""
        self.function.close()

    def outcome(self, call: Mapping[str, Any]) -> Outcome:
        """Call the reward with verl's keyword arguments. Never raises."""
        request = call_catching(self._request, call)
        return request if isinstance(request, Exception) else self.function.call(request)

    def compute_score(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **others: Any,
    ) -> dict[str, float | str]:
        """Score a sample in any thread; the arguments are verl's.

        Every sample gets the same keys: those of the reward, `score`, `acc`, and `timeout` and `error`.

        Raises:
            TrainingStoppedError: the reward fails too often, and the settings say to stop then.
        """
        start, sample = perf_counter(), (data_source, solution_str, ground_truth, extra_info)
        outcome = self.outcome({**dict(zip(VERL_PARAMETERS, sample, strict=True)), **others})
        return self._result(outcome, sample, start)

    async def compute_score_async(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **others: Any,
    ) -> dict[str, float | str]:
        """Score a sample on any event loop; see `compute_score`."""
        start, sample = perf_counter(), (data_source, solution_str, ground_truth, extra_info)
        call = {**dict(zip(VERL_PARAMETERS, sample, strict=True)), **others}
        outcome: Outcome | bytes = call_catching(self._request, call)
        if isinstance(outcome, bytes):
            outcome = await self.function.call_async(outcome)
        return self._result(outcome, sample, start)

    def _request(self, call: Mapping[str, Any]) -> bytes:
        """Return the pickled arguments to send with this call; the others are kept for all calls.

        They are pickled here, and unpickled inside the call, so that a value for which one of the
        two fails costs its own sample.
        """
        if len(call) == len(VERL_PARAMETERS):
            return pickle.dumps(call)
        plain = {
            name: value
            for name, value in call.items()
            if name in VERL_PARAMETERS or isinstance(value, _PLAIN)
        }
        constants = {name: call[name] for name in call.keys() - plain.keys()}
        if any(self._constants.get(name) is not value for name, value in constants.items()):
            self._constants = constants
            self.function.arguments = self.reward, {**self.settings.options, **constants}
            self.close()
        return pickle.dumps(plain)

    def _result(
        self, outcome: Outcome, sample: tuple[Any, Any, Any, Any], start: float
    ) -> dict[str, float | str]:
        seconds = perf_counter() - start
        raise_if_stopped()
        result, failure, problem = read_outcome(outcome, self.reward, self.settings)
        if failure or problem:
            effect = " Such samples get the wrong score." if failure else ""
            # its message may differ with every response
            cause = (outcome.name, outcome.place) if isinstance(outcome, CallError) else failure
            log_once((self.reward, cause or problem), f"{failure or problem}{effect}")
        if reason := self._breaker.count(is_failure=bool(failure)):
            message = f"{self.reward}: {reason}. The last failure: {failure}"
            if self.settings.on_failure == "stop":
                stop_training(
                    f"{message} The training was stopped. Fix the reward, or write the "
                    "file with --on-failure score."
                )
            log_once((self.reward, "breaker"), f"{message} Its samples get the wrong score.")
        if self.settings.record:
            record_result(self.settings.record, result, sample, seconds)
        return result


def read_outcome(
    outcome: Outcome, reward: str, settings: GuardSettings
) -> tuple[dict[str, float | str], str, str]:
    """Return what verl gets for an outcome, and two messages or "": its failure, and what was left out."""
    if isinstance(outcome, Reply):
        fixed = call_catching(verl_fields, outcome.value, settings.keys, settings.right_score)
        if not isinstance(fixed, Exception):
            result, problem = fixed
            return result, "", f"{reward}: {problem}." if problem else ""
        failure = f"{reward}: {fixed}"
    elif isinstance(outcome, ChildTimeoutError):
        cpu = f" or {settings.cpu_seconds:g} s of CPU time" if settings.cpu_seconds else ""
        place = place_in_stacks(outcome, reward)
        failure = f"{reward}: a call took more than {settings.seconds:g} s{cpu}{place}"
    elif isinstance(outcome, ChildCrashError):
        failure = f"{reward}: a call ended its process ({outcome})"
    elif isinstance(outcome, RewardkitError):  # the file does not load any more
        failure = str(outcome)
    elif isinstance(outcome, CallError):
        failure = f"{outcome.place or reward}: {outcome.name}: {outcome}"
    else:
        failure = f"{reward}: {type(outcome).__name__}: {error_line(outcome)}"
    flag = "timeout" if isinstance(outcome, ChildTimeoutError) else "error"
    result = {**settings.keys, "score": settings.wrong_score, flag: 1.0}
    return result, f"{failure.rstrip(':. ')}.", ""


def read_secret(variable: str) -> str:
    """Return an option that is a secret, from the environment variable that a guarding file names."""
    if not (secret := os.environ.get(variable)):
        raise UsageError(
            f"{variable} is not set. Export it where verl runs: it is a secret, which rewardkit writes "
            "into no file."
        )
    return secret


def reward_function(guard: Guard) -> Callable[..., Any]:
    """Return the function for verl: a coroutine function where the reward is one and verl awaits it.

    Its process starts now, so that a reward that does not load ends the run before its first step.
    """
    guard.function.start()
    is_awaited = guard.is_async and verl_awaits_rewards()
    return guard.compute_score_async if is_awaited else guard.compute_score
