from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.number import AMBIGUOUS, MAX_CHARS, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", 18),
        ("1,000.00", 1000),
        ("$18", 18),
        ("18 dollars", 18),
        ("18.", 18),
        ("-5", -5),
        ("−5", -5),
        ("-$5", -5),
        ("$-5", -5),
        ("**42**", 42),
        (r"\$1{,}234", 1234),
        ("1,234,567", 1234567),
        ("１８", 18),
        ("¥18元", 18),
        ("40%", 40),
        ("3/4", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"\frac34", Fraction(3, 4)),
        (r"\dfrac{3}{4}", Fraction(3, 4)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("1e3", 1000),
        ("22099999999998951424", 22099999999998951424),
        ("x = 7", 7),
        ("26 inches in 13 years.", 26),
        ("30. Jeff walks 30 miles in a week.", 30),
        (r"18\text{ dollars}", 18),
        ("10 + 8 = 18", 18),
        ("18 = 18", 18),
        ("18!", 18),
        ("18<|im_end|>", 18),
        ("18-year-old", 18),
        (r"\frac{-1}{2}", Fraction(-1, 2)),
    ],
)
def test_an_answer_that_states_one_number_is_that_number(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text",
    ["18 or 20", "3,4", "5 + 3", "10-12", "10 to 12", "18, 20", "2^3", "5*3", "1,00", "1/2/3",
     "5 apples and 3 pears", "3:30", "x+5", "2x", r"5\pi", r"5\sqrt{2}", r"\pm 5", "-(5)", r"\ln(5)",
     "f(5)", "√5", "5²", "5½", "x>5", "5 choose 2", "5 million", "negative 5", "minus 5", "负5", "not 5",
     "10 divided by 2", "5k", "[5, 6]", r"\frac{x}{5}", "1.2亿"],
)  # fmt: skip
def test_several_numbers_or_a_number_inside_something_else_are_ambiguous(text):
    assert read_number(text) is AMBIGUOUS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "none",
        "x18",
        "1/0",
        "9" * (MAX_CHARS + 1),
        "1e99999",
        "1e-9999999999",
        "٣",
        "NaN",
        "inf",
    ],
)
def test_text_without_a_number_we_read_is_none(text):
    assert read_number(text) is None


@given(st.integers())
def test_every_integer_reads_back(value):
    assert read_number(str(value)) == value or len(str(value)) > MAX_CHARS
    assert read_number(f"{value:,}") == value or len(f"{value:,}") > MAX_CHARS


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4))
def test_every_decimal_reads_back_exactly(value):
    assert read_number(f"{value:f}") == Fraction(value)


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "${}", "{}.", " {} ", "**{}**", "{} km"])
)
def test_dress_does_not_change_a_number(value, dress):
    assert read_number(dress.format(value)) == value


@given(st.text())
def test_any_text_is_read_without_raising(text):
    value = read_number(text)
    assert value is None or value is AMBIGUOUS or isinstance(value, Fraction)


@given(st.text(alphabet="0123456789.,-+/$e^*% \\{}frac"))
def test_any_text_of_number_pieces_is_read_without_raising(text):
    value = read_number(text)
    assert value is None or value is AMBIGUOUS or isinstance(value, Fraction)


@pytest.mark.parametrize(
    "text",
    [
        "Either the result = 4 or the result = 7",
        "I do not know, maybe 5, maybe $1 - 1 = 0$",
        "The answer is not 5; it is = 0",
        "the sum $a + d + e = 4 = 0$.",
        "可能是 5，也可能 1 + 1 = 2",
    ],
)
def test_a_hedge_before_an_equation_leaves_the_number_open(text):
    assert read_number(text) is AMBIGUOUS


@pytest.mark.parametrize(
    ("text", "value"),
    [("the sum is $a + b = -2 + 5 = 3$", 3), ("128 - 24 + 2 = 106", 106), ("10.0 = 10", 10)],
)
def test_an_equation_without_one_states_what_it_ends_in(text, value):
    assert read_number(text) == value
