"""What verl gets from a guarded reward: the same keys for every sample, and finite numbers."""

from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import call_catching
from rewardkit.guard.guard import default_fields, verl_fields
from rewardkit.scorers.score import InvalidResultError, RewardResult
from tests.tables import every

OTHERS = (np.float32(0.5), np.array([1.0, 2.0]), 10**400, object(), None)
NUMBERS = st.floats() | st.integers() | st.booleans()
VALUES = NUMBERS | st.text() | st.lists(st.integers()) | st.sampled_from(OTHERS)


@given(
    known=st.dictionaries(st.text(), st.one_of(st.floats(), st.text())),
    result=st.one_of(VALUES, st.dictionaries(st.text() | st.just("score"), VALUES)),
)
def test_any_result_has_the_known_keys_and_finite_numbers_or_is_refused(known, result):
    keys = default_fields(known)
    read = call_catching(RewardResult.of, result)
    if isinstance(read, Exception):
        assert isinstance(read, InvalidResultError)
        return
    fields = read.fields
    outcome = call_catching(verl_fields, fields, keys)
    if isinstance(outcome, Exception):
        assert isinstance(outcome, InvalidResultError)
        assert not isfinite(fields["score"])
        return
    fixed, _ = outcome
    assert list(fixed) == list(keys)
    assert all(isfinite(value) for value in fixed.values() if not isinstance(value, str))


@every("result", [0.5, np.float64(0.5), np.array(0.5), {"score": 0.5}])
def test_a_number_is_the_score_and_its_accuracy(result):
    fixed, problem = verl_fields(RewardResult.of(result).fields, default_fields({}))
    assert fixed == {"score": 0.5, "acc": 0.5, "timeout": 0.0, "error": 0.0}
    assert not problem


@every(
    "fields, expected, problem",
    [
        ({"score": 1.0, "form": nan}, {"form": 0.0, "error": 1.0}, "'form' is nan"),
        ({"score": 1.0, "form": "yes"}, {"form": 0.0, "error": 0.0}, "now str"),
        ({"score": 1.0, "other": 1.0}, {"form": 0.0, "error": 0.0}, "--keys"),
        ({"score": 1.0}, {"form": 0.0, "error": 0.0}, ""),
        ({"score": 1.0, "acc": 0.0}, {"acc": 0.0, "form": 0.0}, ""),
    ],
)
def test_a_part_that_cannot_be_kept_is_named_and_filled(fields, expected, problem):
    fixed, message = verl_fields(fields, default_fields({"score": 0.0, "form": 0.0}))
    assert expected.items() <= fixed.items()
    assert problem in message
    assert bool(problem) == bool(message)


@every(
    "fields, right_score, acc",
    [
        ({"score": 0.1}, 0.9, 0.0),
        ({"score": 0.9}, 0.9, 1.0),
        ({"score": -1.0}, 1.0, 0.0),
        ({"score": 0.1, "correct": 1.0}, None, 1.0),
        ({"score": 0.1, "acc": 0.5}, 0.9, 0.5),
        ({"score": 1.0, "acc": "yes"}, None, 1.0),  # no text in verl's column of numbers
    ],
)
def test_accuracy_says_what_is_right_if_that_is_known(fields, right_score, acc):
    keys = default_fields(fields)
    assert verl_fields(fields, keys, right_score)[0]["acc"] == acc


@every("score", [nan, inf, -inf])
def test_a_score_that_is_not_finite_is_refused(score):
    """A NaN in one score would reach every weight of the policy."""
    with pytest.raises(InvalidResultError):
        verl_fields({"score": score}, default_fields({}))
