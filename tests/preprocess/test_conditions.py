"""Conditions on the columns of raw rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.preprocess.column_map import parse_condition

ROW = {
    "difficulty": 6.5,
    "rate": "4/8",
    "topic": "Mathematics -> Algebra",
    "domains": ["Algebra", "Geometry"],
    "synthetic": False,
    "error": None,
    "unit": "",
    "info": {"level": 3},
}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("difficulty >= 6.5", True),
        ("difficulty>6.5", False),
        ("difficulty < 10", True),
        ("rate <= 0.5", True),
        ("rate == 1/2", True),
        ("topic = Mathematics -> Algebra", True),
        ("topic != Mathematics -> Algebra", False),
        ("topic = Geometry|Mathematics -> Algebra", True),
        ("domains = Geometry", True),
        ("domains != Geometry", False),
        ("synthetic = false", True),
        ("synthetic = true", False),
        ("error =", True),
        ("error = null", True),
        ("unit = null", True),
        ("unit != null", False),
        ("error != x", True),
        ("error >= 0", False),
        ("info.level = 3", True),
        ("no_such_column = 3", False),
    ],
)
def test_a_condition_compares_numbers_as_numbers_and_the_rest_as_text(condition, holds):
    assert parse_condition(condition).holds(ROW) == holds


@pytest.mark.parametrize(
    "text", ["", "difficulty", "= 3", ">= 3", "topic >= hard", "d =< 3", "d=>3", "d <> 3"]
)
def test_a_text_that_is_not_a_condition_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="Write COLUMN SIGN VALUE|use = or != with it"):
        parse_condition(text)


@given(st.fractions(-1000, 1000, max_denominator=50), st.fractions(-1000, 1000, max_denominator=50))
def test_the_six_signs_agree_with_the_order_of_the_numbers(value, limit):
    row = {"x": str(value)}
    outcomes = {
        sign: parse_condition(f"x {sign} {limit}").holds(row)
        for sign in ("=", "!=", "<", "<=", ">", ">=")
    }
    expected = {
        "=": value == limit,
        "!=": value != limit,
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
    }
    assert outcomes == expected


@given(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans()))
def test_any_text_is_a_condition_that_any_value_can_meet_or_is_refused(text, value):
    try:
        condition = parse_condition(text)
    except UsageError:
        return
    assert condition.holds({condition.column: value}) in (True, False)
    assert parse_condition(str(condition)) == condition
