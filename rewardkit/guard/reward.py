"""A user's reward: how it is loaded in its process, and the dictionary that verl gets from it.

verl reads the keys of the first sample of a batch from all others (agent_loop.py of 0.9.1), so that
a key that is missing once ends the step, and a NaN reaches every weight of the policy.
"""

import pickle
from collections.abc import Mapping
from functools import cache
from inspect import iscoroutinefunction, signature
from math import isfinite
from typing import Any

from rewardkit import registry
from rewardkit.errors import UsageError
from rewardkit.isolate.serve import Loaded
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import to_verl
from rewardkit.scorers.score import InvalidResultError, RewardResult, RightRule

#: Flags that the guard adds to every result.
FLAGS = ("timeout", "error")


def load_reward(reward: str, options: Mapping[str, Any]) -> Loaded:
    """Load a reward in its process; its requests are pickled keyword arguments of verl.

    They are unpickled inside the call, so that a value for which that fails costs its own sample.

    Raises:
        UsageError: the file does not load, or verl cannot call the function.
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

    Args:
        fields: the reward's own.
        has_acc: whether it is known what is right, so that the guard adds `acc`.
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
    """Return a reward's fields with exactly these keys, and what was wrong with them.

    Args:
        fields: those of a `RewardResult`.
        keys: the keys with their defaults.
        right_score: the lowest right score. Without `acc` in the fields it is 1.0 from this score on,
            else 0.0.

    Returns:
        The fields with all keys, and a sentence about the first value that could not be kept; ""
        if all could. A part that is not finite becomes its default and sets `error`.

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
