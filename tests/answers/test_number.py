from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.number import AMBIGUOUS, MAX_CHARS, read_number
from tests.tables import every


@every(
    ("text", "value"),
    [
        ("18", 18), ("1,000.00", 1000), ("$18", 18), ("18 dollars", 18), ("18.", 18), ("-5", -5),
        ("−5", -5), ("-$5", -5), ("$-5", -5), ("**42**", 42), (r"\$1{,}234", 1234),
        ("1,234,567", 1234567), ("１８", 18), ("¥18元", 18), ("40%", 40), ("3/4", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)), (r"\frac34", Fraction(3, 4)),
        (r"\dfrac{3}{4}", Fraction(3, 4)), ("0.1", Fraction(1, 10)), (".5", Fraction(1, 2)),
        ("1e3", 1000), ("22099999999998951424", 22099999999998951424), ("x = 7", 7),
        ("26 inches in 13 years.", 26), ("30. Jeff walks 30 miles in a week.", 30),
        (r"18\text{ dollars}", 18), ("10 + 8 = 18", 18), ("18 = 18", 18), ("18!", 18),
        ("18<|im_end|>", 18), ("18-year-old", 18), (r"\frac{-1}{2}", Fraction(-1, 2)),
    ],
)  # fmt: skip
def test_an_answer_that_states_one_number_is_that_number(text, value):
    assert read_number(text) == value


@every(
    "text",
    ["18 or 20", "3,4", "5 + 3", "10-12", "10 to 12", "18, 20", "2^3", "5*3", "1,00", "1/2/3",
     "5 apples and 3 pears", "3:30", "x+5", "2x", r"5\pi", r"5\sqrt{2}", r"\pm 5", "-(5)", r"\ln(5)",
     "f(5)", "√5", "5²", "5½", "x>5", "5 choose 2", "5 million", "negative 5", "minus 5", "负5", "not 5",
     "10 divided by 2", "5k", "[5, 6]", r"\frac{x}{5}", "1.2亿", "Either the result = 4 or the result = 7",
     "I do not know, maybe 5, maybe $1 - 1 = 0$", "The answer is not 5; it is = 0",
     "the sum $a + d + e = 4 = 0$.", "可能是 5，也可能 1 + 1 = 2", "4 = 5", "$4$ = 5", "x = 4 = 5", "5, 5, 6", "5-6",
     "5 6", "1,000,00", "1.2.3"],
)  # fmt: skip
def test_several_numbers_or_a_number_inside_something_else_are_ambiguous(text):
    assert read_number(text) is AMBIGUOUS


@pytest.mark.parametrize(
    "text",
    [
        "", "A", "none", "x18", "1/0", "9" * (MAX_CHARS + 1), "1e99999", "1e-9999999999", "٣",
        "NaN", "inf",
    ],
)  # fmt: skip
def test_a_text_without_a_readable_number_is_none(text):
    assert read_number(text) is None


@given(st.text() | st.text(alphabet="0123456789.,-+/$e^*% \\{}frac"))
def test_any_text_is_read_without_raising(text):
    value = read_number(text)
    assert value is None or value is AMBIGUOUS or isinstance(value, Fraction)


def test_texts_of_up_to_256_characters_and_powers_of_ten_up_to_999_are_read():
    assert read_number("9" * 256) == int("9" * 256)
    assert read_number("$" + "9" * 255) == int("9" * 255)
    assert read_number("1e999") == 10**999
    assert read_number("1e-999") == Fraction(1, 10**999)
    for text in ("9" * 257, "$" + "9" * 256, "1e1000", "1e-1000"):
        assert read_number(text) is None


CHANGES = (
    "negative minus wrong incorrect false isn't never cannot except not no hundred thousand million billion"
    " trillion dozen half squared cubed choose divided multiplied times plus mod factorial ln log lg exp"
    " sin cos tan sqrt pi 负 不 百 千 万 亿"
).split()
BOUNDS = "least;most;more than;under;over;above;below;or".split(";")
JOINTS = "or and than if else plus minus times over 或 或者 Or".split()
HEDGES = "or;either;not;maybe;perhaps;possibly;unless;a guess;wrong;或;可能;也许;不是;错误".split(
    ";"
)


@every(
    ("words", "forms"),
    [
        (CHANGES, ("5 {}", "{} 5", "it is {} 5")), ([*map(str.upper, CHANGES)], ("5 {} x",)),
        ([*"不负非或百千万亿于至超错误"], ("{}5", "5{}", "5个{}了")), (BOUNDS, ("at {} 5",)),
        ([*map(str.upper, BOUNDS)], ("AT {} 5",)), (JOINTS, ("5 cats {} 6 dogs",)), (["to", "到", "至"], ("5 {} 6 cats",)),
        ([*HEDGES, "MAYBE"], ("it is {} x = 5",)),
    ],
)  # fmt: skip
def test_a_word_that_changes_bounds_joins_or_retracts_a_number_leaves_it_open(words, forms):
    for text in (form.format(word) for word in words for form in forms):
        assert read_number(text) is AMBIGUOUS, text


@every("letter", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
def test_a_letter_beside_a_number_is_a_unit_or_a_name(letter):
    is_unit = letter in "aCFgGhIJlLmMNsVW"
    for text in (f"5 {letter}", f"5 {letter} each", f"5 apples {letter}"):
        assert read_number(text) == (5 if is_unit else AMBIGUOUS)
    assert read_number(f"5 apples {letter} each") == 5, "it stands beside no number"


@every(
    ("text", "value"),
    [("０１２３４５６７８９", 123456789), ("１．５", Fraction(3, 2)), ("１，０００", 1000), ("＋５", 5), ("－５", -5), ("–5", -5),
     ("﹣5", -5), ("５％", 5), ("＄５", 5), ("￥５", 5), ("３／４", Fraction(3, 4)), ("x＝５", 5), ("€5", 5), ("£5", 5),
     ("1,000/2,000", Fraction(1, 2)), ("1 / 2", Fraction(1, 2)), (r"\tfrac{1}{2}", Fraction(1, 2)),
     (r"\cfrac12", Fraction(1, 2)), (r"-\frac{1}{2}", Fraction(-1, 2)), (r"12\frac{3}{5}", Fraction(63, 5)),
     (r"2 \frac{1}{2}", Fraction(5, 2)), (r"1\!000", 1000), (r"1\,000", 1000), ("<b>5</b>", 5), ("`5`", 5),
     (r"\mathrm{5}", 5), (r"\textbf{5}", 5), (r"\mbox{5}", 5), (r"\mathbf{5}", 5), (r"\boxed{5}", 5),
     ("5-point", 5), ("5 boxes x each", 5), ("twenty-5", 5), ("5 = 5.0", 5), ("$5 = 5$", 5), ("10.0 = 10", 10),
     ("the sum is $a + b = -2 + 5 = 3$", 3), ("128 - 24 + 2 = 106", 106), ("it is x = 5", 5), ("5, that is 5", 5),
     ("5 or 5.0", 5), ("5 cats in 6 homes", 5)],
)  # fmt: skip
def test_a_number_in_any_spelling_and_markup_is_read(text, value):
    assert read_number(text) == value
