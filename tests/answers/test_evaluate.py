"""The values of trees: exact if arithmetic suffices, else in double precision or 50 digits."""

import math
from fractions import Fraction

import pytest

from rewardkit.answers.scalar import UndefinedError, evaluate_digits, evaluate_double, exact_value
from tests.answers.latex_printer import close, read
from tests.tables import every

#: Text with the name x, which is 0.7: its value.
WORTH = {
    r"\sin x": math.sin(0.7), r"\cos x": math.cos(0.7), r"\tan x": math.tan(0.7),
    r"\tg x": math.tan(0.7), r"\cot x": 1 / math.tan(0.7), r"\sec x": 1 / math.cos(0.7),
    r"\csc x": 1 / math.sin(0.7), r"\sinh x": math.sinh(0.7), r"\cosh x": math.cosh(0.7),
    r"\tanh x": math.tanh(0.7), r"\arcsin x": math.asin(0.7), r"\arccos x": math.acos(0.7),
    r"\arctan x": math.atan(0.7), r"\arctg x": math.atan(0.7), r"\arccot x": math.atan(1 / 0.7),
    r"\arcctg x": math.atan(1 / 0.7), r"\sin^{-1} x": math.asin(0.7), r"\cos^{-1} x": math.acos(0.7),
    r"\tan^{-1} x": math.atan(0.7), r"\cot^{-1} x": math.atan(1 / 0.7), r"\ln x": math.log(0.7),
    r"\log x": math.log(0.7), r"\lg x": math.log10(0.7), r"\log_3 x": math.log(0.7, 3),
    r"\exp x": math.exp(0.7), r"\sqrt{x}": math.sqrt(0.7), r"\sqrt[3]{-x}": -(0.7 ** (1 / 3)),
    r"\sqrt[4]{x}": 0.7**0.25, r"|-x|": 0.7, r"\Re(x+2i)": 0.7, r"\Im(x+2i)": 2.0,
    r"\lfloor 9x\rfloor": 6.0, r"\lfloor -9x\rfloor": -7.0, r"\lceil 9x\rceil": 7.0,
    r"\binom{7}{2}": 21.0, "5!": 120.0, r"x^{\pi}": 0.7**math.pi, "e^x": math.exp(0.7),
    r"i^2": -1.0, r"180x^\circ": 0.7 * math.pi,
    "asin x": math.asin(0.7), "acos x": math.acos(0.7), "atan x": math.atan(0.7), "sqrt(x)": math.sqrt(0.7),
    "sin x": math.sin(0.7), "ln x": math.log(0.7), "pi": math.pi, "binom{7}{2}": 21.0, "frac{x}{2}": 0.35,
    r"\cos 0": 1.0, r"\ln 4": math.log(4), r"\sqrt[5]{32}": 2.0, r"\sqrt[5]{27}": 27**0.2,
}  # fmt: skip


@every(("text", "expected"), WORTH.items())
def test_every_function_has_its_value_in_both_precisions(text, expected):
    node = read(text)
    assert close(evaluate_double(node, {"x": 0.7}), expected)
    assert close(complex(evaluate_digits(node, {"x": 0.7})), expected)


@pytest.mark.parametrize(
    "name",
    [r"\gcd", r"\max", r"\sum", r"\prod", r"\int", r"\iint", r"\oint", r"\lim", r"\deg", r"\det"],
)
def test_an_operator_that_is_not_evaluated_has_no_value(name):
    with pytest.raises(UndefinedError):
        evaluate_double(read(rf"{name} x"), {"x": 0.7})


@every(
    ("text", "expected"),
    [("2^{-3}", Fraction(1, 8)), (r"\sqrt{16}", None),
     ("0^2", 0), ("2^{4096}", 2**4096), (r"2^{4000} \cdot 2^{4000} \cdot 2^{190}", 2**8190),
     ("2^{4097}", None), ("2^{1/2}", None),
     ("0^0", None), ("0^{-1}", None), (r"2^{4000} \cdot 2^{4000} \cdot 2^{191}", None), (r"\sin 4", None)],
)  # fmt: skip
def test_arithmetic_is_exact_up_to_its_limits(text, expected):
    assert exact_value(read(text)) == expected


@every(
    ("at", "beyond"),
    [("170!", "171!"), (r"\binom{170}{3}", r"\binom{171}{3}"),
     (r"(1+10^{-9})^{1000}", r"(1+10^{-9})^{1000.5}"), ("e^{600}", "e^{601}"), (r"(-0.4)!", "(-0.5)!"),
     (r"\binom{3}{0}", r"\binom{3}{-1}"), (r"\binom{3}{3}", r"\binom{3}{4}"), ("0^{1/2}", "0^0"),
     (r"\lfloor x\rfloor", r"\lfloor ix\rfloor"), (r"\binom{3}{2}", r"\binom{3}{2i}"),
     (r"\binom{3}{2}", r"\binom{3+i}{2}")],
)  # fmt: skip
def test_a_function_has_a_value_up_to_its_limit_only(at, beyond):
    evaluate_double(read(at), {"x": 0.7})
    with pytest.raises(UndefinedError):
        evaluate_double(read(beyond), {"x": 0.7})


def test_an_integer_up_to_rounding_is_its_own_floor_and_ceiling():
    for text, value in (("2.9999999999", 3), ("2.99999999", 2)):
        assert evaluate_double(read(rf"\lfloor {text}\rfloor"), {}) == value
    for text, value in (("2.0000000001", 2), ("2.00000001", 3)):
        assert evaluate_double(read(rf"\lceil {text}\rceil"), {}) == value
