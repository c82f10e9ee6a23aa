"""Calling a scorer: the one place that checks what it returns and catches what it raises."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutine, signature
from math import isfinite
from typing import Any

from rewardkit.errors import DataError, UnknownNameError, call_catching
from rewardkit.redact import process_redactor
from rewardkit.scorers.reward_result import RewardResult, RightRule
from rewardkit.scorers.score import Score, Scorer, Status, as_text

#: Why a score of a reward has no verdict, for those commands that count right answers.
NO_VERDICT = "which of its scores is right is not known; name it with --right-score"


class NoVerdictError(RuntimeError):
    """A scorer produced no score, for another reason than an exception that it raised.

    Attributes:
        description: what the scorer did, in two or three words, for tables.
        status: the status of the response.
    """

    description = "produced no score"
    status = Status.FAILED


class InvalidScoreError(NoVerdictError):
    """A scorer returned something other than a `Score` with a finite number."""

    description = "returned an invalid score"


class NeverAnswersError(DataError):
    """An isolated scorer failed on every response that it was called with."""

    status = Status.TIMEOUT


def call_scorer(
    scorer: Scorer,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,
) -> Score | Exception:
    """Return the score of a response, or the exception that explains why there is none.

    Never raises. `failed_score` makes a `Score` of the exception, `failure_reason` a sentence.
    """
    return call_catching(
        lambda: require_score(scorer(response, ground_truth, extra_info, **options))
    )


def call_scorer_or_stop(
    scorer: Scorer, response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None
) -> Score | Exception:
    """Call a scorer as `call_scorer` does, for a command that scores many responses.

    Raises:
        NeverAnswersError: the scorer failed on all of its first responses, each after its timeout.
    """
    result = require_verdict(call_scorer(scorer, response, ground_truth, extra_info))
    if isinstance(result, NeverAnswersError):
        raise result
    return result


def require_verdict(result: Score | Exception) -> Score | Exception:
    """Return an exception in place of a score with the status `failed`."""
    if isinstance(result, Score) and result.status is Status.FAILED:
        return NoVerdictError("the scorer has no verdict; its first message says why")
    return result


def require_score(result: object) -> Score:
    """Return the result of a scorer with plain types in its fields.

    Raises:
        InvalidScoreError: the result is not a `Score`, its score is not finite, or its status is
            not one of `Status`.
    """
    if not isinstance(result, Score):
        raise InvalidScoreError(f"the scorer returned {type(result).__name__}, not a Score")
    score, correct, pred, status = result
    if not isfinite(score):
        raise InvalidScoreError(f"its score is {score}")
    has_plain_values = type(score) is float and type(correct) is bool and type(pred) is str
    if has_plain_values and type(status) is Status:
        return result
    correct = None if correct is None else bool(correct)
    known = call_catching(Status, status)
    if isinstance(known, Exception):
        raise InvalidScoreError(f"its status is {str(status)[:80]!r}")
    return Score(float(score), correct, as_text(pred), known)


def failed_score(error: Exception, score: float = 0.0) -> Score:
    """Return the score of a response on which the scorer failed."""
    if isinstance(error, NoVerdictError | NeverAnswersError):
        return Score.wrong("", error.status, score)
    return Score.wrong("", Status.FAILED, score)


def failure_reason(error: Exception) -> str:
    """Return one line that says why a response has no score."""
    if isinstance(error, NoVerdictError | UnknownNameError):  # not raised by a scorer
        return error_line(error)
    return f"the scorer raised {type(error).__name__}: {error_line(error)}"


def error_line(error: Exception) -> str:
    """Return the message of an exception without line ends."""
    return " ".join(error_text(error).split())


def error_text(error: Exception) -> str:
    """Return the message of an exception without secrets; "" if that of a user's scorer has none."""
    text = call_catching(str, error)
    return process_redactor().text(text) if isinstance(text, str) else ""


def as_scorer(function: Callable[..., Any]) -> Scorer:
    """Return a function with verl's signature as a scorer; return any other function unchanged."""
    if "solution_str" in signature(function).parameters:
        return partial(call_verl_function, function)
    return function


def call_verl_function(
    function: Callable[..., Any],
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    _rule: RightRule | None = None,
    **options: Any,
) -> Score:
    """Call a reward function with verl's signature and convert its number or dictionary.

    `data_source` is taken from `extra_info["data_source"]`. A coroutine is run to its end, as verl
    0.9 does. `correct` is None if neither the result nor the rule says it; see `reward_result`.
    """
    info = dict(extra_info or {})
    source = info.pop("data_source", "")
    result = function(
        data_source=source,
        solution_str=response,
        ground_truth=ground_truth,
        extra_info=info,
        **options,
    )
    if iscoroutine(result):
        import asyncio

        result = asyncio.run(result)
    score = RewardResult.of(result).as_score()
    return score if _rule is None else _rule.judge(score, str(source))
