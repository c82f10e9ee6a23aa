"""How a judge is asked: server, rubric, limits, cache and budget."""

import os
from collections.abc import Mapping
from functools import cache as memoize
from types import SimpleNamespace
from typing import Any, NamedTuple

from rewardkit.errors import UsageError
from rewardkit.judging.rubric import Rubric, read_rubric, reverse_rubric


class JudgeSettings(SimpleNamespace):
    """The options of the scorer `judge` by their names, with its `rubric` and its API `key`."""

    def __repr__(self) -> str:
        """Leave out the key, because tracebacks show this."""
        return f"JudgeSettings({self.base_url!r})"

    @property
    def server(self) -> tuple[Any, ...]:
        """What requests to one server have in common."""
        limits = (self.concurrency, self.request_seconds, self.retries)
        return (self.base_url, self.model, self.key, *limits)

    @property
    def budget(self) -> tuple[Any, ...]:
        """The limits of the `Budget` of this process."""
        return (self.budget_calls, self.budget_tokens, self.budget_seconds, self.budget_window)


class JudgeQuestion(NamedTuple):
    """A sample as its judge sees it.

    Attributes:
        settings: the judge.
        question: the question of the row; "" if it is unknown.
        gold: the reference answer; "" if the rubric does not use it.
        response: the part of the response that is judged.
        pred: the final answer of the response, by which verl counts votes.
    """

    settings: JudgeSettings
    question: str
    gold: str
    response: str
    pred: str = ""


@memoize
def judge_settings(options: tuple[tuple[str, Any], ...]) -> JudgeSettings:
    """Return the judge with these options of the scorer `judge`, which are all of them.

    Raises:
        UsageError: the rubric or the API key cannot be read.
    """
    others = dict(options)
    rubric, key = read_question(others), read_api_key(others["api_key_env"])
    if (failed_score := others["failed_score"]) is not None:
        rubric = rubric.model_copy(update={"failed_score": float(failed_score)})
    return JudgeSettings(**{**others, "rubric": rubric, "key": key})


def read_question(options: Mapping[str, Any]) -> Rubric:
    """Return the rubric that options name, in the direction that they ask for.

    Raises:
        UsageError: it cannot be read, or cannot be reversed.
    """
    rubric = read_rubric(options.get("rubric", "math"))
    return reverse_rubric(rubric) if options.get("reverse") else rubric


def read_api_key(variable: str) -> str:
    """Return the API key in an environment variable; "" for no variable.

    Raises:
        UsageError: the variable is not set, or is not a key.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"api_key_env {variable}: the variable is not set in this process, or is not a key. "
            "Set it in the environment that starts Ray, or in Ray's runtime_env."
        )
    return key
