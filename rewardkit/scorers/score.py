"""`Score`, the verdict on one response, and `Status`, the reason for the score."""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias


class Status(str, Enum):
    """Why a response got its score. A closed set."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"
    UNPARSED_ANSWER = "unparsed_answer"
    AMBIGUOUS_ANSWER = "ambiguous_answer"
    BAD_GROUND_TRUTH = "bad_ground_truth"
    TIMEOUT = "timeout"
    TOO_LONG = "too_long"
    #: The scorer raised, crashed or returned something that is not a score.
    FAILED = "failed"
    #: No scorer is registered for the row.
    UNKNOWN_DATA_SOURCE = "unknown_data_source"
    #: A reward of one's own gave a score, and which of its scores is right is not known.
    SCORED = "scored"


class Score(NamedTuple):
    """The verdict on one response.

    A named tuple, because one is created per sample and a dataclass costs three times as much.

    Attributes:
        score: the reward; its range depends on the scorer.
        correct: whether the answer is correct; None if it is not known (`reward_result.RightRule`).
        pred: the extracted answer, "" if there is none.
        status: why the response got this score.
    """

    score: float
    correct: bool | None
    pred: str
    status: Status

    @classmethod
    def right(cls, pred: str, score: float = 1.0) -> "Score":
        """Return the score of a correct answer."""
        return _new(cls, (score, True, pred, _CORRECT))

    @classmethod
    def wrong(cls, pred: str = "", status: Status = Status.WRONG, score: float = 0.0) -> "Score":
        """Return the score of a response that is not correct, for the reason in `status`."""
        return _new(cls, (score, False, pred, status))


# Fast scorers take less than a microsecond; these two save a tenth of it.
_CORRECT = Status.CORRECT
_new = tuple.__new__

Scorer: TypeAlias = Callable[..., Score]


def as_text(value: Any) -> str:
    """Return a value from verl (text, `np.str_`, a number) as a plain `str`; None becomes ""."""
    return "" if value is None else str(value)
