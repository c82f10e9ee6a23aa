import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import Verdict, compare, equal
from tests.tables import every


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        ("18", "18.0"),
        (r"\$1,000", "1000"),
        (r"\frac{1}{2}", "0.5"),
        (r"\dfrac{a}{b}", r"\frac{a}{b}"),
        (r"\left( 1, 2 \right)", "(1,2)"),
        ("Monday.", "monday"),
    ],
)
def test_the_same_answer_in_another_dress_is_equal(pred, gold):
    assert equal(pred, gold)
    assert equal(gold, pred)


@pytest.mark.parametrize(
    ("pred", "gold"),
    [("18", "19"), ("3,4", "34"), ("18 or 19", "18"), ("", "0"), ("A", "B"), ("(1,2)", "(2,1)")],
)
def test_other_answers_are_different(pred, gold):
    assert not equal(pred, gold)
    assert not equal(gold, pred)


@given(st.text(), st.text())
def test_equality_is_symmetric(a, b):
    assert equal(a, b) == equal(b, a)


@given(st.text())
def test_equality_is_reflexive(a):
    assert equal(a, a)


@given(st.integers(), st.integers())
def test_integers_are_equal_as_answers_only_if_they_are(a, b):
    assert equal(str(a), str(b)) == (a == b)


# --- the edges of rounding, percentages and units: answer, gold, whether it is paid


@every(
    ("pred", "gold", "same"),
    [
        # the answer is a decimal, the gold a fraction without a short decimal: nearest, and long enough
        ("0.3333", r"\frac13", True), ("0.33", r"\frac13", True), ("0.3", r"\frac13", False), ("0.3334", r"\frac13", False),
        ("33.3", r"\frac{100}{3}", True), ("3.3", r"\frac{10}{3}", False), ("0.03", r"\frac{1}{30}", False), ("0.033", r"\frac{1}{30}", True),
        ("-0.33", r"-\frac13", True), ("0.33", r"-\frac13", False), ("1.428571", r"\frac{10}{7}", True),
        # the gold fraction has a decimal of four places: only that one; of five: a rounding too
        ("0.0625", r"\frac{1}{16}", True), ("0.06", r"\frac{1}{16}", False), ("0.063", r"\frac{1}{16}", False),
        ("0.000032", r"\frac{1}{31250}", True), ("0.00003", r"\frac{1}{31250}", False), ("0.0000321", r"\frac{1}{31250}", False),
        # the gold is a decimal: the exact answer rounds to it, or from three digits on is cut off to it
        (r"\frac13", "0.333", True), (r"\frac13", "0.334", False), (r"\frac23", "0.667", True), (r"\frac23", "0.666", True),
        (r"\frac23", "0.67", True), (r"\frac23", "0.66", False), (r"-\frac23", "-0.666", True),
        (r"\frac{1}{16}", "0.062", True), (r"\frac{1}{16}", "0.063", True), (r"\frac{1}{16}", "0.06", False), (r"\frac{1}{16}", "0.061", False),
        (r"\pi", "3.142", True), (r"\pi", "3.141", True), (r"\pi", "3.140", False), (r"\pi", "3.143", False), (r"-\pi", "-3.141", True),
        (r"10\pi", "31.4", True), (r"10\pi", "31.3", False), (r"10\pi", "31", False), (r"\sqrt2", "1.4", False), (r"\sqrt2", "1.42", False),
        (r"i\pi", "3.14", False), ("3", "3.0001", False), ("0", "0.001", False),
        # the gold is irrational: five significant digits, the nearest
        ("1.4142", r"\sqrt2", True), ("1.4143", r"\sqrt2", False), ("1.414", r"\sqrt2", False), ("31.415927", r"10\pi", True), ("31.416", r"10\pi", True),
        ("31.4", r"10\pi", False), ("0.014142", r"\frac{\sqrt2}{100}", True), ("31416", r"10^4\pi", False),
        # two decimals: noise from the fifteenth digit on, or six digits that agree
        ("0.30000000000000004", "0.3", True), ("0.3", "0.30000000000000004", True), ("0.3000000000000004", "0.3", True), ("0.300000000000004", "0.3", False), ("0.300000000000002", "0.3", True),
        ("0.30000000000004", "0.3", False), ("123456.7", "123456.71", True), ("12345.6", "12345.61", True), ("1234.5", "1234.51", False),
        ("3.141593", "3.1415926", True), ("3.14159", "3.1415926", True), ("3.141592", "3.1415926", False), ("3.1416", "3.14159", False), ("3.14159", "3.1416", False),
        # an irrational is itself, to thirty digits
        (r"\sqrt2+10^{-7}", r"\sqrt2", False), (r"\sqrt2+10^{-20}", r"\sqrt2", False), (r"\sqrt2+10^{-29}", r"\sqrt2", False), (r"\sqrt2+10^{-31}", r"\sqrt2", True),
        (r"\pi\cdot 10^{20}", r"\pi\cdot 10^{20}+1", False), ("x+10^{-10}", "x", False), ("x+10^{-20}", "x", False), ("x+10^{-40}", "x", True), ("10^6x+10^{-26}", "10^6x", True), ("10^6x+10^{-20}", "10^6x", False),
        # percentages: the number, or a hundredth of it, with two places more
        (r"57.14\%", "0.571", True), (r"57.15\%", "0.571", True), (r"57.05\%", "0.571", True), (r"57.16\%", "0.571", False), (r"57.04\%", "0.571", False),
        (r"57.14\%", "0.57", False), (r"57\%", "0.571", False), ("0.571", r"57.14\%", False), (r"33.3\%", r"\frac13", True), ("0.333", r"33.3\%", True),
        (r"0.5\%", "0.005", True), (r"0.5\%", "0.5", True), ("0.005", r"0.5\%", True), (r"x\%", "x", True), (r"x\%", r"\frac{x}{100}", True), (r"\frac{x}{100}", r"x\%", True),
        (r"x\%", r"\frac{x}{10}", False), (r"50\%", r"0.5\%", False), (r"\sqrt2\%", "0.014142", True), ("50 pct", r"50\%", True), (r"30^\circ", r"30\%", False),
        # angles and units
        (r"x^\circ", r"\frac{\pi x}{180}", True), (r"x^\circ", r"\frac{\pi x}{90}", False), ("50°", "50 degrees", True), ("50 degrees", "51°", False), ("5 cm", "5 mm", False),
        ("5 cm", "6 cm", False), ("5 cm", "5", True), ("5", "5 cm", True), ("5 cm", "5 centimetres", True), ("x cm", "x", False),
        # bases
        ("1010", "1010_2", True), ("1010", "1011_2", False), ("1010_2", "1010_2", True), ("1010.0", "1010_2", True), ("1010_2", "1010_3", False), ("1010_2", "1010", False),
        # what is left to be worked out, against a number with or without a sign
        ("100!/98!", "9900", False), ("100!/98!", r"9900\%", False), ("100!/98!", "9900 cm", False), ("100!/98!", r"9900^\circ", False), (r"\max(1,2)", "2", False),
        (r"\min(1,2)", "1", False), (r"\text{lcm}(4,6)", "12", False), ("x+5!", "x+120", True), ("2", r"\max(1,2)", True), ("120", "5!", True), ("5!", r"\frac{240}{2}", False),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", False),
        # what has no value is compared as it stands, terms and factors in any order
        (r"y\sum x", r"(\sum x)y", True), (r"\sum(a+b)", r"\sum(b+a)", True), (r"1+\sum x", r"\sum x+1", True), (r"\sum_{n} a/b", r"\sum_{n} b/a", False),
        (r"\sum x", r"\sum y", False), (r"\sum x", r"\prod x", False), (r"\int x", r"\int x+0", False),
        # complex where it is real nowhere, else where both are real
        (r"\sqrt{-x^2-1}", r"i\sqrt{x^2+1}", True), (r"\sqrt{-x^2-1}", r"2i\sqrt{x^2+1}", False), (r"\ln(x^2)", r"2\ln x", True), (r"\ln(-x^2)", r"\ln(-x^2)+1", False),
        (r"\max(x)+x", r"x+\max(x)", True), ("5!", "5i", False), ("1+i", "i+1", True), ("1+i", "1-i", False), ("1.0001i", "i", False),
    ],
)  # fmt: skip
def test_rounding_percentages_and_units_are_paid_up_to_their_edges(pred, gold, same):
    assert equal(pred, gold) is same


@every(
    ("pred", "gold", "verdict"),
    [
        ("18", "18", ("equal", "text")), ("$18$", "18", ("equal", "text")), (r"\left(1\right)", "(1)", ("equal", "text")), ("18.", "18", ("equal", "text")),
        ("018", "18", ("equal", "number")), ("19", "18", ("different", "number")), ("1,000", "1000", ("equal", "number")), ("18.0", "18", ("equal", "number")),
        ("New York.", "new york", ("equal", "words")), ("2:30", "02:30", ("equal", "words")), ("2:30", "3:30", ("different", "words")),
        (r"n \text{ for even } n", r"n \text{ for odd } n", ("different", "words")), (r"n \text{ for even } n", "n", ("equal", "value")), ("n", r"n \text{ for even } n", ("equal", "value")),
        ("May 5", "may 5", ("equal", "words")), ("March 5, 2020", "march 5 2020", ("equal", "words")), ("2020-01-02", "2020-1-2", ("unreadable", "words")),
        ("cat", "dog", ("different", "value")), ("a black cat", "dogs", ("unreadable", "words")), (r"\frac12", "0.5", ("equal", "value")), ("x", "y", ("different", "value")), ("1, 2", "1", ("ambiguous", "value")),
        (r"\pm 2", "2", ("ambiguous", "value")), (r"\{1, 2\}", "1", ("ambiguous", "value")), ("1 or 2", "1", ("ambiguous", "value")),
        # a sentence that says the number
        ("5 red apples", "5", ("equal", "number")), ("5 red apples", "6", ("different", "number")), ("5 apples", "5", ("equal", "value")),
        ("there are 5 cats", "5", ("equal", "number")), ("there are 6 cats", "5", ("different", "number")), ("there are 5 or 6 cats", "5", ("ambiguous", "number")),
        ("there are no cats", "5", ("unreadable", "number")), ("how many cats are 5?", "5", ("unreadable", "words")), ("Find the 5 cats", "5", ("unreadable", "words")),
        ("three are 0.5 of it", "0,5", ("unreadable", "words")), ("3,14", "3.14", ("equal", "number")), ("(3,14)", "3.14", ("different", "value")), ("3,15", "3.14", ("different", "number")),
    ],
)  # fmt: skip
def test_the_first_rung_that_can_tell_decides(pred, gold, verdict):
    assert compare(pred, gold) == Verdict(*verdict)


def test_a_sentence_of_160_characters_is_read_and_a_text_of_4096_compared():
    said = "In the end there are 5 apples".ljust(160, "y")
    assert compare(said, "5").outcome == "equal"
    assert compare(said + "y", "5").outcome == "unreadable"
    words = "word " * 818 + "words."
    assert compare(words, words.upper()).outcome == "equal"
    assert compare(words + " ", words.upper()).outcome == "unreadable"
    assert compare(words.upper(), words + " ").outcome == "unreadable"
    assert compare(words + " ", words + " ").outcome == "equal"


def test_a_comma_is_read_in_a_second_way_in_texts_of_up_to_800_characters():
    for pred, padding, outcome in (("1,234", 788, "equal"), ("1,234", 789, "different")):
        assert compare(pred, f"(1,234{' ' * padding})").outcome == outcome
