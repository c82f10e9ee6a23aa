"""What a user's reward returns, and the dictionary that verl gets: the same keys for every sample.

verl reads the keys of the first sample of a batch from all others (agent_loop.py of 0.9.1), so that
a key that is missing once ends the step, and a NaN reaches every weight of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

#: Characters of a text in a result.
MAX_TEXT_LENGTH = 10_000

#: Flags that the guard adds to every result.
FLAGS = ("timeout", "error")


class InvalidResultError(ValueError):
    """A reward returned something that is not a number or a dictionary with a score."""


def plain_fields(result: Any) -> dict[str, float | str]:
    """Return the result of a reward with plain types: numbers and texts by name.

    A number alone is the score, as in verl. Other values, such as lists, are left out.

    Raises:
        InvalidResultError: there is no score.
    """
    if not isinstance(result, Mapping):
        score = _number(result)
        if score is None:
            raise InvalidResultError(
                f"the reward returned {type(result).__name__}, not a number or a dictionary"
            )
        return {"score": score}
    fields: dict[str, float | str] = {}
    for key, value in result.items():
        if isinstance(value, str):
            fields[str(key)] = str(value[:MAX_TEXT_LENGTH])
        elif (number := _number(value)) is not None:
            fields[str(key)] = number
    if not isinstance(fields.get("score"), float):
        raise InvalidResultError("the dictionary that the reward returned has no number `score`")
    return fields


def _number(value: Any) -> float | None:
    """Return a Python, NumPy or torch number as a float; None for anything else."""
    if isinstance(value, str | bytes | bytearray) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def default_fields(fields: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return the keys of a result, each with the value that stands for a missing one."""
    names = {"score": 0.0, "acc": 0.0, **fields, **dict.fromkeys(("acc", *FLAGS), 0.0)}
    return {name: "" if isinstance(value, str) else 0.0 for name, value in names.items()}


def verl_fields(
    fields: Mapping[str, float | str], keys: Mapping[str, float | str]
) -> tuple[dict[str, float | str], str]:
    """Return a reward's fields with exactly these keys, and what was wrong with them.

    Args:
        fields: the result, as `plain_fields` returns it.
        keys: the keys with their defaults. Without `acc` in the fields it is the score, as in verl.

    Returns:
        The fields with all keys, and a sentence about the first value that could not be kept; ""
        if all could. A part that is not finite becomes its default and sets `error`.

    Raises:
        InvalidResultError: the score is not finite.
    """
    score = fields["score"]
    if not isfinite(score):  # type: ignore[arg-type] # `plain_fields` has made it a float
        raise InvalidResultError(f"its score is {score}")
    result, problem = {**keys, "score": score, "acc": score}, ""
    for name, value in fields.items():
        default = keys.get(name)
        if default is None:
            problem = problem or f"its key {name!r} is new; name it with --keys when you guard"
        elif type(default) is not type(value):
            problem = problem or f"its key {name!r} is now {type(value).__name__}"
        elif type(value) is float and not isfinite(value):
            problem, result["error"] = f"its {name!r} is {value}", 1.0
            result[name] = default
        else:
            result[name] = value
    return result, problem
