"""The parts of a composed reward: each computes a number from the scorer's score and the response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rewardkit.errors import UsageError
from rewardkit.scorers import shaping
from rewardkit.scorers.base import Score


def known_verdict(score: Score) -> bool:
    """Return whether an answer is right.

    Raises:
        UsageError: it is not known.
    """
    if score.correct is None:
        raise UsageError("which score of the scorer is right is not known: add right_score.")
    return score.correct


def _correct(score: Score, response: str) -> float:  # noqa: ARG001 - a part's value takes both
    return float(known_verdict(score))


def _base(score: Score, response: str) -> float:  # noqa: ARG001
    return score.score


def _format(
    score: Score,  # noqa: ARG001
    response: str,
    *,
    tags: Sequence[str] = ("think", "answer"),
    outside: bool = True,
) -> float:
    return shaping.format_tags(response, tags, outside=outside)


def _repetition(
    score: Score,  # noqa: ARG001
    response: str,
    *,
    n: int = 20,
    max_penalty: float = 1.0,
) -> float:
    return shaping.repetition(response, n=n, max_penalty=max_penalty)


def _length(
    score: Score,
    response: str,
    *,
    max_chars: int,
    short_correct: float = 1.0,
    long_correct: float = 0.5,
    short_wrong: float = -1.0,
    long_wrong: float | None = None,
) -> float:
    return shaping.length(
        score,
        len(response),
        max_length=max_chars,
        short_correct=short_correct,
        long_correct=long_correct,
        short_wrong=short_wrong,
        long_wrong=long_wrong,
    )


def require_no_padding(
    weight: float, *, short_wrong: float = -1.0, long_wrong: float | None = None, **_: float
) -> None:
    """Raise `UsageError` if a length part would pay a long wrong answer more than a short one.

    A policy that is mostly wrong would learn to fill `max_chars`.
    """
    if long_wrong is not None and weight * (long_wrong - short_wrong) > 0:
        raise UsageError(
            f"it would pay a long wrong answer more than a short one (weight {weight}, short_wrong "
            f"{short_wrong}, long_wrong {long_wrong}); leave out long_wrong."
        )


#: The function of each part, by its name in the YAML.
PART_VALUES: Mapping[str, Callable[..., float]] = {
    "correct": _correct,
    "base": _base,
    "format": _format,
    "repetition": _repetition,
    "length": _length,
}
