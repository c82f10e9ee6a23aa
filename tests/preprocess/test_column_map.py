"""What the columns of a card say, and the transforms of their values."""

import re
import time
from contextlib import suppress
from operator import eq, ge, gt, le, lt, ne

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, UsageError
from rewardkit.preprocess.column_map import (
    MAX_JSON,
    letter_of_option,
    parse_columns,
    parse_condition,
)
from rewardkit.preprocess.column_map import UnreadableValueError as Unreadable
from tests.preprocess.rows import JSON
from tests.tables import every

NAMES = [
    "boxed", "if boxed", "after ####", "until Answer", "question mark", "without commas",
    "json list", "only item", "float as integer", "integer", "integer 0 to 999", "index as letter",
    "without letters", "json text",
]  # fmt: skip


def gold(text, value):
    """What a card's `gold: x | ...` makes of a value in the column `x`."""
    [layout] = parse_columns({"question": "q", "gold": f"x | {text}"}, "card")
    return layout["gold"][0].value({"x": value})


@every(
    ("transforms", "value", "expected"),
    [
        ("boxed", r"first \boxed{1}, then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("if boxed", "so 1", ""),
        ("after ####", "2 #### of\n#### 18", "18"),
        ("after #### | without commas", "#### 1,800", "1800"),
        ("after <answer> | until </answer>", "<think>x</think><answer> 7 </answer>", "7"),
        ("until Present", "What is 2+2?\n\nPresent the answer in a box.", "What is 2+2?"),
        ("json list | only item", '["18"]', "18"),
        ("float as integer", 27.0, "27"),
        ("float as integer", 27.5, "27.5"),
        ("integer", "025", "25"),
        ("integer", r"336^{\circ}", "336"),
        ("index as letter", 0, "A"),
        ("json text", [{"f": {"é": [1]}}], '[{"f": {"é": [1]}}]'),
        ("json text", [], ""),
        ("index as letter", "3", "D"),
        ("index as letter", [], ""),
        ("without letters", ["A. x", "B、y", "（C）z"], ["x", "y", "z"]),
    ],
)
def test_a_transform_gives_the_value_that_its_table_describes(transforms, value, expected):
    assert gold(transforms, value) == expected


@every(
    ("transform", "value", "reason"),
    [
        ("after ####", "18", "no '####' in the text"),
        ("json list", "18", "not a JSON list"),
        ("json list", "[" * 5_000, "not a JSON list"),
        ("json list", "[" + "1," * MAX_JSON + "1]", "a list of too many characters"),
        ("only item", ["3", "4"], "several answers"),
        ("integer 0 to 999", 1000, "the answer is not an integer from 0 to 999"),
        ("index as letter", "-1", "the answer is not the index of an option"),
    ],
)
def test_a_value_that_a_transform_cannot_read_drops_the_row_with_a_reason(transform, value, reason):
    with pytest.raises(Unreadable, match=re.escape(reason)):
        gold(transform, value)


@given(st.sampled_from(NAMES), JSON)
def test_a_value_of_any_type_gives_a_result_a_reason_or_a_type_error(transform, value):
    try:
        result = gold(transform, value)
    except (TypeError, Unreadable):
        return
    assert isinstance(result, (str, list)) or result is value


@pytest.mark.parametrize("transform", NAMES)
def test_a_long_hostile_value_takes_no_time(transform):
    for value in ("9" * 100_000, " " * 100_000, "\\boxed{" * 20_000, "#### " * 20_000):
        start = time.process_time()
        with suppress(Unreadable, TypeError):
            gold(transform, value)
        assert time.process_time() - start < 2  # quadratic time would be minutes


@given(
    st.lists(st.text(min_size=1).map(str.strip).filter(bool), min_size=1, max_size=10, unique=True)
)
def test_the_letter_of_an_option_is_its_place(options):
    for index, option in enumerate(options):
        assert letter_of_option(option, options) == "ABCDEFGHIJ"[index]


def test_an_option_that_occurs_twice_or_never_has_no_letter():
    with pytest.raises(Unreadable, match="several options have the gold's text"):
        letter_of_option("1", ["1", "1 "])
    with pytest.raises(Unreadable, match="the gold is not among the options"):
        letter_of_option("3", ["1", "2"])
    assert letter_of_option("3", []) == "3"


@every(
    ("columns", "message"),
    [
        ({"question": "q"}, "gold or tests is missing. Name its column"),
        ({"question": "q", "gold": "a", "answer": "a"}, "unknown part 'answer'"),
        ({"question": "q", "gold": "g", "id": ["a", "b"]}, "id: name one column, not 2"),
        ({"question": "q", "gold": ""}, "gold: name a column, as in gold: problem"),
        ({"question": "q", "gold": "a | bxed"}, "no transform 'bxed'.*'boxed'"),
        ({"question": "q", "gold": "a | integer 0-9"}, "integer 0-9: write integer 0 to 999"),
        ({"question": "q", "gold": "a | letter of option | boxed"}, "must be the last transform"),
    ],
)
def test_a_fault_in_columns_has_its_own_message(columns, message):
    with pytest.raises(DataError, match=message):
        parse_columns(columns, "card.md")


# Conditions on the columns of raw rows


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


@every(
    ("condition", "holds"),
    [
        ("rate == 1/2", True),
        ("topic = Mathematics -> Algebra", True),
        ("topic = Geometry|Mathematics -> Algebra", True),
        ("domains = Geometry", True),
        ("unit = null", True),
        ("error >= 0", False),
        ("info.level = 3", True),
        ("no_such_column = 3", False),
    ],
)
def test_a_condition_compares_numbers_as_numbers_and_the_rest_as_text(condition, holds):
    assert parse_condition(condition).holds(ROW) == holds


@every("text", ["", "difficulty", "= 3", "topic >= hard", "d =< 3", "d=>3", "d <> 3"])
def test_a_text_that_is_not_a_condition_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="Write COLUMN SIGN VALUE|use = or != with it"):
        parse_condition(text)


@given(st.fractions(-1000, 1000, max_denominator=50), st.fractions(-1000, 1000, max_denominator=50))
def test_the_six_signs_agree_with_the_order_of_the_numbers(value, limit):
    signs = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
    for sign, compare in signs.items():
        held = parse_condition(f"x {sign} {limit}").holds({"x": str(value)})
        assert held == compare(value, limit)


@given(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans()))
def test_any_text_is_a_condition_that_any_value_can_meet_or_is_refused(text, value):
    try:
        condition = parse_condition(text)
    except UsageError:
        return
    assert condition.holds({condition.column: value}) in (True, False)
    assert parse_condition(str(condition)) == condition
