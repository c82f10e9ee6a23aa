"""The steps of a comparison: which one decides, and that only the two texts matter."""

import json
import os
import random
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers import equal as equality
from rewardkit.answers.equal import MAX_CHARS, EqualityVerdict, compare, equal, parse_answer
from tests.answers.samples import texts
from tests.tables import every

# --- the limits of rounding, percentages and units: answer, gold, whether they are equal


@every(
    ("pred", "gold", "is_equal"),
    [
        # the answer is a decimal, the gold a fraction without a short decimal: the nearest with enough digits
        ("0.3333", r"\frac13", True), ("0.33", r"\frac13", True), ("0.3", r"\frac13", False), ("0.3334", r"\frac13", False),
        ("33.3", r"\frac{100}{3}", True), ("3.3", r"\frac{10}{3}", False), ("0.03", r"\frac{1}{30}", False), ("0.033", r"\frac{1}{30}", True),
        ("-0.33", r"-\frac13", True), ("0.33", r"-\frac13", False), ("1.428571", r"\frac{10}{7}", True),
        # a gold fraction with a decimal of four places equals only that; with one of five, also a rounding
        ("0.0625", r"\frac{1}{16}", True), ("0.06", r"\frac{1}{16}", False), ("0.063", r"\frac{1}{16}", False),
        ("0.000032", r"\frac{1}{31250}", True), ("0.00003", r"\frac{1}{31250}", False), ("0.0000321", r"\frac{1}{31250}", False),
        # the gold is a decimal: the exact answer rounds to it, or, from three digits on, is truncated to it
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
        # an irrational number is compared to thirty digits
        (r"\sqrt2+10^{-7}", r"\sqrt2", False), (r"\sqrt2+10^{-20}", r"\sqrt2", False), (r"\sqrt2+10^{-29}", r"\sqrt2", False), (r"\sqrt2+10^{-31}", r"\sqrt2", True),
        (r"\pi\cdot 10^{20}", r"\pi\cdot 10^{20}+1", False), ("x+10^{-10}", "x", False), ("x+10^{-20}", "x", False), ("x+10^{-40}", "x", True), ("10^6x+10^{-26}", "10^6x", True), ("10^6x+10^{-20}", "10^6x", False),
        # percentages: the number, or its hundredth with two more places
        (r"57.14\%", "0.571", True), (r"57.15\%", "0.571", True), (r"57.05\%", "0.571", True), (r"57.16\%", "0.571", False), (r"57.04\%", "0.571", False),
        (r"57.14\%", "0.57", False), (r"57\%", "0.571", False), ("0.571", r"57.14\%", False), (r"33.3\%", r"\frac13", True), ("0.333", r"33.3\%", True),
        (r"0.5\%", "0.005", True), (r"0.5\%", "0.5", False), ("0.005", r"0.5\%", True), (r"x\%", "x", True), (r"x\%", r"\frac{x}{100}", True), (r"\frac{x}{100}", r"x\%", True),
        (r"x\%", r"\frac{x}{10}", False), (r"50\%", r"0.5\%", False), (r"\sqrt2\%", "0.014142", True), ("50 pct", r"50\%", True), (r"30^\circ", r"30\%", False),
        # angles and units
        (r"x^\circ", r"\frac{\pi x}{180}", True), (r"x^\circ", r"\frac{\pi x}{90}", False), ("50°", "50 degrees", True), ("50 degrees", "51°", False), ("5 cm", "5 mm", False),
        ("5 cm", "6 cm", False), ("5 cm", "5", True), ("5", "5 cm", True), ("5 cm", "5 centimetres", True), ("x cm", "x", False),
        # bases
        ("1010", "1010_2", True), ("1010", "1011_2", False), ("1010_2", "1010_2", True), ("1010.0", "1010_2", True), ("1010_2", "1010_3", False), ("1010_2", "1010", False),
        # answers that leave arithmetic, against a number with or without a unit
        ("100!/98!", "9900", False), ("100!/98!", r"9900\%", False), ("100!/98!", "9900 cm", False), ("100!/98!", r"9900^\circ", False),
        ("x+5!", "x+120", True), ("120", "5!", True), ("5!", r"\frac{240}{2}", False), ("5!", "119", False),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", False),
        # trees without a value are compared by form, with terms and factors in any order
        (r"y\sum x", r"(\sum x)y", True), (r"\sum(a+b)", r"\sum(b+a)", True), (r"1+\sum x", r"\sum x+1", True), (r"\sum_{n} a/b", r"\sum_{n} b/a", False),
        (r"\sum x", r"\sum y", False), (r"\sum x", r"\prod x", False), (r"\int x", r"\int x+1", False),
        # at complex values if both are real nowhere, else at points where both are real
        (r"\sqrt{-x^2-1}", r"i\sqrt{x^2+1}", True), (r"\sqrt{-x^2-1}", r"2i\sqrt{x^2+1}", False), (r"\ln(x^2)", r"2\ln x", True), (r"\ln(-x^2)", r"\ln(-x^2)+1", False),
        (r"\max(x)+x", r"x+\max(x)", True), ("5!", "5i", False), ("1+i", "i+1", True), ("1+i", "1-i", False), ("1.0001i", "i", False),
    ],
)  # fmt: skip
def test_the_limits_of_rounding_percentages_and_units_hold(pred, gold, is_equal):
    assert equal(pred, gold) is is_equal


@every(
    ("pred", "gold", "verdict"),
    [
        # the same text, up to typography
        ("18", "18", ("equal", "text")), ("$18$", "18", ("equal", "text")), (r"\left(1\right)", "(1)", ("equal", "text")), ("18.", "18", ("equal", "text")), ("Boston.", "boston", ("equal", "text")), ("New York.", "new york", ("equal", "words")),
        # two plain numbers
        ("018", "18", ("equal", "number")), ("19", "18", ("different", "number")), ("1,000", "1000", ("equal", "number")), ("18.0", "18", ("equal", "number")), ("-18", "18", ("different", "number")), ("0.30000000000000004", "0.3", ("equal", "value")),
        # the same words
        ("a black cat", "black cat", ("equal", "words")), ("the cat, the dog", "cat dog", ("equal", "words")), (r"\text{is prime}", "is prime!", ("equal", "words")),
        # values
        ("2:30", "02:30", ("equal", "value")), ("2:30", "3:30", ("different", "value")), ("cat", "dog", ("different", "value")), (r"\frac12", "0.5", ("equal", "value")), ("x", "y", ("different", "value")), ("5 apples", "5", ("equal", "value")),
        (r"n \text{ for even } n", r"n \text{ for odd } n", ("different", "value")), (r"n \text{ for } n > 5", "n", ("different", "value")), ("n", r"n \text{ for } n > 5", ("different", "value")), (r"2^n \text{ for all } n", "2^n", ("equal", "value")),
        ("2020-01-02", "2020-01-03", ("different", "value")), ("3,14", "3.14", ("equal", "value")), ("(3,14)", "3.14", ("different", "value")), ("3,15", "3.14", ("different", "value")), ("a black cat", "dogs", ("different", "value")),
        # several values instead of one, and unreadable texts
        ("1, 2", "1", ("ambiguous", "value")), (r"\pm 2", "2", ("ambiguous", "value")), (r"\{1, 2\}", "1", ("ambiguous", "value")), ("1 or 2", "1", ("ambiguous", "value")), ("(1, 2)", "1", ("different", "value")),
        ("@", "5", ("unreadable", "words")), ("@", "x", ("unreadable", "value")), ("5", "@", ("unreadable", "text")), ("x@y", "x@y ", ("equal", "text")), ("1" * 300, "5", ("unreadable", "text")), (r"3 \cdot 4", "12", ("unreadable", "value")),
        # a sentence that states the number
        ("there are 5 cats", "5", ("equal", "value")), ("he had 5 black cats", "5", ("equal", "number")), ("he had 6 black cats", "5", ("different", "number")), ("he had 5 or 6 black cats", "5", ("unreadable", "words")), ("how many cats are 5?", "5", ("unreadable", "words")), ("find the 5 cats", "5", ("unreadable", "words")),
        ("he had 5 black cats", "x", ("unreadable", "value")), ("there are 5 cats", "5 cats", ("equal", "value")), ("the meeting is on March 5", "5", ("unreadable", "words")),
    ],
)  # fmt: skip
def test_the_first_step_that_can_decide_decides(pred, gold, verdict):
    assert compare(pred, gold) == EqualityVerdict(*verdict)


def test_a_sentence_of_160_characters_is_read_and_a_text_of_4096_compared():
    sentence = "He had 5 black apples".ljust(160, "y")
    assert compare(sentence, "5").outcome == "equal"
    assert compare(sentence + "y", "5").outcome == "unreadable"
    words = "word " * 818 + "words."
    assert len(words) == MAX_CHARS
    assert compare(words, words.upper()).outcome == "unreadable", "2,000 characters are read"
    assert compare(words, words).outcome == "equal"
    assert compare(words + " ", words + " ").outcome == "equal"
    assert compare(words, words + " ").outcome == "unreadable"
    words = "word " * 398 + "words."
    assert compare(words, words.upper()).outcome == "equal"


@every(
    ("pred", "gold", "right"),
    [
        ("1,234", "1234", True), ("(1,234)", "(1, 234)", True), ("(1,234)", "(234, 1)", False), ("1,234", "1235", False),
        (r"\{1,234\}", r"\{234, 1\}", True), ("1,234,567", "1234567", True), ("1,234", "234", False), ("3,14", "3.14", True), ("3,14", "3, 14", True), ("3,14", "314", False), ("3,141", "3.141", False), ("3,1415", "3.1415", True),
    ],
)  # fmt: skip
def test_the_other_side_decides_whether_a_comma_groups_digits_or_separates_items(pred, gold, right):
    assert equal(pred, gold) is right


# --- numbers in every form

fractions = st.fractions(-999, 999, max_denominator=64)
FORMS = {
    "a fraction": lambda v: rf"\frac{{{v.numerator}}}{{{v.denominator}}}",
    "a stroke": lambda v: f"{v.numerator}/{v.denominator}",
    "not in lowest terms": lambda v: rf"\frac{{{3 * v.numerator}}}{{{3 * v.denominator}}}",
    "a mixed number": lambda v: ("-" if v < 0 else "") + mixed(abs(v)),
    "per cent": lambda v: rf"\frac{{{100 * v.numerator}}}{{{v.denominator}}}\%",
    "a label": lambda v: rf"x = \frac{{{v.numerator}}}{{{v.denominator}}}",
    "full width": lambda v: f"{v.numerator}/{v.denominator}".translate(
        {ord("0") + n: 0xFF10 + n for n in range(10)}
    ),
    "a set": lambda v: rf"\left\{{ {v.numerator}/{v.denominator} \right\}}",
}


def mixed(value):
    whole, part = divmod(value, 1)
    return (
        rf"{whole}\frac{{{part.numerator}}}{{{part.denominator}}}" if whole and part else str(value)
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(value=fractions)
def test_a_number_in_any_form_equals_its_value_and_no_other(form, value):
    assert equal(form(value), FORMS["a fraction"](value))
    assert equal(FORMS["a fraction"](value), form(value))
    assert not equal(form(value + 1), FORMS["a fraction"](value))
    assert value == 0 or not equal(form(-value), FORMS["a fraction"](value))


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_a_decimal_equals_its_fraction(digits, places):
    value = Fraction(digits, 10**places)
    text = (
        f"{'-' * (digits < 0)}{abs(digits) // 10**places}.{abs(digits) % 10**places:0{places}d}"
        if places
        else str(digits)
    )
    assert equal(text, rf"\frac{{{value.numerator}}}{{{value.denominator}}}")
    assert equal(text + "0" * (places > 0), text)


@given(st.integers(-(10**30), 10**30), st.data())
def test_a_number_with_one_changed_digit_is_different(number, data):
    text = str(number)
    place = data.draw(st.integers(text[0] == "-", len(text) - 1))
    digit = data.draw(st.sampled_from("0123456789").filter(lambda one: one != text[place]))
    changed = text[:place] + digit + text[place + 1 :]
    for (
        dress
    ) in r"\frac{{ {} }}{{7}};{}\text{{ cm}};\sqrt{{2}} + {};{};x = {};${}$;({}, 1);{}°".split(";"):
        assert not equal(dress.format(changed), dress.format(text))
        assert equal(f" {dress.format(text)} ", dress.format(text))


# --- symmetry, and independence of everything but the two texts

#: Answers of the kinds whose comparison the policy makes the same from both sides: no rounding, no
#: base, no restatement, no decimal comma, no number in a sentence.
SYMMETRIC = [
    "18", "018", "-18", r"\frac{1}{2}", r"\frac24", "0.5", r"2\frac12", r"\frac52", r"50\%", "50",
    r"\sqrt{8}", r"2\sqrt2", r"\pi", "1+2i", "2i+1", "x", "y", "x^2-1", "(x-1)(x+1)", r"\sin^2x+\cos^2x",
    "x=5", "y=5", "5", "f(x)=x^2", "x^2", "y=2x+1", "2x-y+1=0", r"\pm 2", "2,-2", r"\{2,-2\}", "1,2",
    "(1,2)", "[1,2]", "1<x<2", r"x>5", r"(5,\infty)", r"(0,1)\cup(2,3)", r"\emptyset", r"\{1\}", "1",
    r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}", r"5\text{ cm}", "5 kg", r"30^\circ",
    r"\frac{\pi}{6}", "Monday", "Tuesday", r"\text{Yes}", "无解", "1,234", "1234", "2:30", r"\infty", "",
]  # fmt: skip


def test_the_comparison_is_reflexive_and_symmetric():
    for a in SYMMETRIC:
        assert equal(a, a)
        for b in SYMMETRIC:
            assert equal(a, b) == equal(b, a), (a, b)


def verdicts(pairs):
    return [list(compare(a, b)) for a, b in pairs]


PAIRS_OF_ANSWERS = [(a, b) for a in SYMMETRIC[::3] for b in SYMMETRIC]


def test_a_verdict_does_not_depend_on_the_calls_before_it():
    equality._compare.cache_clear()
    expected = verdicts(PAIRS_OF_ANSWERS)
    assert verdicts(PAIRS_OF_ANSWERS) == expected  # now from the cache
    order = list(range(len(PAIRS_OF_ANSWERS)))
    random.Random(7).shuffle(order)
    equality._compare.cache_clear()
    shuffled = dict(zip(order, verdicts(PAIRS_OF_ANSWERS[n] for n in order), strict=True))
    assert [shuffled[n] for n in range(len(order))] == expected


def test_a_verdict_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "import json, sys\n"
        "from rewardkit.answers.equal import compare\n"
        "print(json.dumps([list(compare(a, b)) for a, b in json.load(sys.stdin)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(PAIRS_OF_ANSWERS), env=os.environ | {"PYTHONHASHSEED": "4242"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == verdicts(PAIRS_OF_ANSWERS)


# --- any text


@given(
    st.text(max_size=120) | st.sampled_from(texts()),
    st.text(max_size=120) | st.sampled_from(texts()),
)
def test_any_two_texts_have_a_verdict_and_are_parsed_or_over_a_limit(one, other):
    assert compare(one, other).outcome in ("equal", "different", "ambiguous", "unreadable")
    reading = parse_answer(one)
    assert reading is None or (
        isinstance(reading.folded, tuple) and hash(reading) == hash(parse_answer(one))
    )
    assert equal(one, one)


@every("gold", ["①③", "(1)(3)", "5", "Yes", "(1,2)"])
def test_an_answer_of_any_length_has_a_verdict_beside_a_short_gold(gold):
    for length in (1, 200, 300, 5000):
        assert compare("film " * length, gold).outcome != "equal"


@every(
    "sentence",
    [
        "5 out of 6", "the square root of 5", "multiples of 5", "divisible by 5", "up to 5", "maybe 5", "anything but 5",
        "unless it is 5", "between 5 and ten", "cannot be 5", "5 or so", "5 or more", "5 or less", "5 at least", "5 at most",
        "Find the 5 cats", "Compute 5", "Problem 5", "Let x = 5", "Suppose it is 5", "5 and more", "5 and up",
    ],
)  # fmt: skip
def test_a_number_that_a_sentence_does_not_state_is_wrong(sentence):
    assert not equal(sentence, "5")


@every(
    ("pred", "gold", "right"),
    [
        (r"\operatorname{arcsinh} x", r"\ln(x+\sqrt{x^2+1})", True), (r"\operatorname{arccosh} 2", r"\ln(2+\sqrt{3})", True),
        (r"\operatorname{arctanh} \frac12", r"\frac{\ln 3}{2}", True), (r"\operatorname{arccot} 2", r"\arctan\frac12", True), (r"\exp(2)", "e^2", True),
        ("exp(x)", "e^x", True), ("infinity", r"\infty", True), ("Infinity", r"\infty", True), ("oo", r"\infty", True), ("inf", r"\infty", True),
        (r"\infin", r"\infty", True), (r"\vec{i}+2\vec{j}", r"\mathbf{i}+2\mathbf{j}", True), (r"\hat{i}+2\hat{j}", r"\mathbf{i}+2\mathbf{j}", True),
        ("1并且2", "1,2", True), ("1且2", "1,2", True),
        (r"0.\dot{1}4285\dot{7}", r"\frac17", True), (r"0.\dot{3}", r"\frac13", True),
        (r"0.\dot{1}\dot{2}", r"\frac{4}{33}", True), (r"\sinx", r"\sin x", True), (r"\cosx", r"\cos x", True), (r"\textbf{(B)}\ -5", "-5", True),
        (r"\textbf{(B)}\ \frac12", "0.5", True), (r"\textbf{(B)}\ \sqrt{3}", r"\sqrt3", True), ("f^{(n)}(0)", "f^{(n)}(0)", True),
        ("f^{(n)}(0)", "f^{(m)}(0)", False), ("(1,2)+(3,4)", "(4,7)", False), ("(1,2)+2(3,4)", "(7,10)", True), ("2(3,4)", "(6,8)", True),
        (r"m\angle ABC = 40^\circ", r"40^\circ", True),
        (r"\begin{pmatrix}1&2\end{pmatrix}+\begin{pmatrix}1\\2\end{pmatrix}", "(2,4)", False), (r"\frac{1}{2^3}", "0.125", True), ("2^{-3}", r"\frac18", True),
        (r"x=\log_2 8 = 3", "3", True), (r"x=\log_2 8 = 4", "4", False), (r"x = \sin 30^\circ = \frac12", r"\frac12", True),
        (r"x = \sin 30^\circ = \frac13", r"\frac13", False), ("y>2", "x>2", False), ("nm", "mn", True),
        ("1st", r"1^{\text{st}}", True), ("5米", "5 m", True), ("(1,2)^T", r"\begin{pmatrix}1\\2\end{pmatrix}", True),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^T", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", True), (r"\{0\}", "0", True), (r"3\frac12", "3.5", True),
        (r"m\angle B=40^\circ", r"\angle A=40^\circ", False), ("50% of her weekend", "50", True), ("50% of 80", "50", False),
        ("March 5, 2020", "march 5 2020", True), ("18", "18.0", True), (r"\$1,000", "1000", True), ("18 or 19", "18", False),
        ("", "0", False), ("A", "B", False),
    ],
)  # fmt: skip
def test_names_of_functions_accents_and_conjunctions_have_their_usual_meaning(pred, gold, right):
    assert equal(pred, gold) is right
