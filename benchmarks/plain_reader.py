"""Read plain mathematics, independently of the package, for `metamorphic.py`.

A transformation of an answer is used as a test only where its effect is certain. This reader makes sure
of it: it reads an answer into values at three fixed points, or returns None in case of doubt, and
`surely_differ` is true only if two readings cannot be the same answer.
"""

from __future__ import annotations

import cmath
import hashlib
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Number: TypeAlias = "Fraction | complex"
#: A number for each point.
Value: TypeAlias = tuple[Number, ...]

POINTS = 3
MAX_EXPONENT = 64
MAX_BITS = 512
TIMES = {"\\cdot", "\\times", "*", "·", "×"}
OVER = {"/", "\\div", "÷"}
FRACTIONS = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}
CLOSING = {"(": ")", "[": "]", "{": "}"}
FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "\\sin": cmath.sin,
    "\\cos": cmath.cos,
    "\\tan": cmath.tan,
    "\\cot": lambda z: 1 / cmath.tan(z),
    "\\sec": lambda z: 1 / cmath.cos(z),
    "\\csc": lambda z: 1 / cmath.sin(z),
    "\\arcsin": cmath.asin,
    "\\arccos": cmath.acos,
    "\\arctan": cmath.atan,
    "\\sinh": cmath.sinh,
    "\\cosh": cmath.cosh,
    "\\tanh": cmath.tanh,
    "\\exp": cmath.exp,
    "\\ln": cmath.log,
    "\\log": cmath.log,
}
GREEK = {
    r"\alpha",
    r"\beta",
    r"\gamma",
    r"\delta",
    r"\epsilon",
    r"\varepsilon",
    r"\zeta",
    r"\eta",
    r"\theta",
    r"\kappa",
    r"\lambda",
    r"\mu",
    r"\nu",
    r"\xi",
    r"\rho",
    r"\sigma",
    r"\tau",
    r"\phi",
    r"\varphi",
    r"\chi",
    r"\psi",
    r"\omega",
}
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|\S", re.DOTALL)
_SPACE = {"\\,", "\\;", "\\:", "\\!", "\\ ", "~", "\\left", "\\right", "\\displaystyle", "\\quad"}
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_WORDS = {"ln", "if", "or", "is", "of", "in", "to", "at"}


class DoubtError(ValueError):
    """The text can be read in two ways, or cannot be read."""


@lru_cache(maxsize=1 << 14)
def value(text: str, letter: str = "", at: int = 0) -> Value | None:
    """Evaluate an expression at the fixed points, with `letter` set to `at`; None in case of doubt."""
    if len(text) > 400 or has_words(text) or re.search(r"\d[eE][-+]?\d", text):
        return None
    try:
        return _Parser(text, letter, at).whole()
    except (DoubtError, ArithmeticError, ValueError, IndexError):
        return None


def has_words(text: str) -> bool:
    """Return whether a run of letters is a word and not a product of names."""
    runs = _WORD.findall(re.sub(r"\\[A-Za-z]+", " ", text))
    return any(run in _WORDS or (len(run) > 2 and not set(run) <= set("abcxyz")) for run in runs)


def differ(a: Value, b: Value) -> bool:
    """Return whether two values certainly differ at a point."""

    def numbers_differ(x: Number, y: Number) -> bool:
        if isinstance(x, Fraction) and isinstance(y, Fraction):
            return x != y
        return abs(complex(x) - complex(y)) > 1e-6 * max(1e-3, abs(complex(x)), abs(complex(y)))

    return any(numbers_differ(x, y) for x, y in zip(a, b, strict=True))


def is_constant(a: Value) -> bool:
    """Return whether a value is the same at all points."""
    return not any(differ((a[0],), (x,)) for x in a[1:])


def _point(name: str, index: int) -> Fraction:
    digest = hashlib.sha256(f"{name} {index}".encode()).digest()
    return Fraction(101 + int.from_bytes(digest[:4], "big") % 797, 307)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if exponent.denominator == 1 and abs(exponent) <= MAX_EXPONENT and bits <= MAX_BITS:
            return Fraction(base ** int(exponent))
    if not base:
        raise DoubtError
    return complex(complex(base) ** complex(exponent))


def _root(base: Number, order: Number) -> Number:
    value = complex(base)
    if order != 2 and value.real < 0:  # the real root, or the principal one
        raise DoubtError
    return value ** (1 / complex(order)) if value else base


def _each(function: Callable[..., Number], *values: Value) -> Value:
    return tuple(function(*numbers) for numbers in zip(*values, strict=True))


def _call(function: Callable[[complex], complex], argument: Value) -> Value:
    return _each(lambda number: function(complex(number)), argument)


class _Parser:
    """A recursive descent parser; every doubt is an error."""

    def __init__(self, text: str, letter: str, at: int) -> None:
        text = text.replace("−", "-").replace("π", "\\pi ")
        self.tokens = [t for t in _TOKEN.findall(text) if t not in _SPACE][::-1]
        self.letter, self.at = letter, at

    def whole(self) -> Value:
        result = self.sum()
        if self.tokens:
            raise DoubtError
        if not all(math.isfinite(abs(complex(number))) for number in result):
            raise DoubtError
        return result

    @property
    def next(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def expect(self, token: str) -> None:
        if self.tokens.pop() != token:
            raise DoubtError

    def sum(self) -> Value:
        total: Value = (Fraction(0),) * POINTS
        first = True
        while first or self.next in ("+", "-"):
            sign = -1 if self.next == "-" else 1
            if self.next in ("+", "-"):
                self.tokens.pop()
            term, first = self.product(), False
            total = _each(lambda x, y, sign=sign: x + sign * y, total, term)
        return total

    def product(self) -> Value:
        result = self.factor()
        while True:
            if self.next in TIMES:
                self.tokens.pop()
                result = _each(lambda x, y: x * y, result, self.factor())
            elif self.next in OVER:
                self.tokens.pop()
                result = _each(lambda x, y: x / y, result, self.factor())
                if self.starts_factor():  # 1/2x
                    raise DoubtError
            elif self.starts_factor() and not self.next[0].isdigit() and self.next[0] != ".":
                result = _each(lambda x, y: x * y, result, self.factor())
            else:
                return result

    def starts_factor(self) -> bool:
        token = self.next
        return bool(token) and (
            token in FRACTIONS
            or token in FUNCTIONS
            or token in GREEK
            or token in ("\\sqrt", "\\pi", "(", "[", "{")
            or (token[0] != "\\" and token[0].isascii() and token[0].isalnum())
        )

    def factor(self) -> Value:
        whole = self.next.isdigit()
        base = self.atom()
        if self.next == "^":
            self.tokens.pop()
            base = _each(_power, base, self.exponent())
            if self.next == "^":
                raise DoubtError
        elif whole and self.next in FRACTIONS:  # a mixed number
            part = self.factor()
            exact = isinstance(part[0], Fraction) and is_constant(part)
            if isinstance(part[0], Fraction) and exact and not 0 < part[0] < 1:
                raise DoubtError
            return _each(lambda x, y: x + y if exact else x * y, base, part)
        return base

    def exponent(self) -> Value:
        if self.next.isdigit() and len(self.next) > 1:  # 2^10 is 2^{1}0 in TeX
            raise DoubtError
        return self.atom()

    def argument(self) -> Value:
        if self.next.isdigit() and len(self.next) > 1:  # \frac12
            digits = self.tokens.pop()
            self.tokens += [digits[1:], digits[0]]
        return self.atom()

    def atom(self) -> Value:
        token = self.tokens.pop()
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return (Fraction(token),) * POINTS
        if token in CLOSING:
            inside = self.sum()
            self.expect(CLOSING[token])
            return inside
        if token in FRACTIONS:
            above = self.argument()
            return _each(lambda x, y: x / y, above, self.argument())
        if token == "\\sqrt":
            return self.root()
        if token in FUNCTIONS:
            return self.function(token)
        if token == "\\pi":
            return (complex(math.pi),) * POINTS
        if token in GREEK or (token.isascii() and token.isalpha()):
            return self.name(token)
        raise DoubtError

    def root(self) -> Value:
        order: Value = (Fraction(2),) * POINTS
        if self.next == "[":
            self.tokens.pop()
            order = self.sum()
            self.expect("]")
        elif self.next.isdigit() and len(self.next) > 1:
            raise DoubtError
        return _each(_root, self.atom(), order)

    def name(self, token: str) -> Value:
        if token in "fghFGHPT" and self.next == "(":
            raise DoubtError
        if self.next == "_":
            self.tokens.pop()
            parts = [self.tokens.pop()]
            while parts[0] == "{" and parts[-1] != "}":
                parts.append(self.tokens.pop())
            token += "_" + "".join(parts).strip("{}")
        if token == self.letter:
            return (Fraction(self.at),) * POINTS
        if token in ("e", "i"):
            return ({"e": complex(math.e), "i": 1j}[token],) * POINTS
        return tuple(_point(token, index) for index in range(POINTS))

    def function(self, token: str) -> Value:
        power = base = None
        if token == "\\log" and self.next == "_":
            self.tokens.pop()
            base = self.exponent()
        if self.next == "^":
            self.tokens.pop()
            power = self.exponent()
            if power[0] == -1:
                raise DoubtError
        if self.next in CLOSING:
            argument = self.atom()
            if self.next == "^":
                raise DoubtError
        else:
            argument = self.factor()
            while self.starts_factor() and self.next not in FUNCTIONS:
                if self.next in CLOSING or self.next[0].isdigit():
                    raise DoubtError
                argument = _each(lambda x, y: x * y, argument, self.factor())
        result = _call(FUNCTIONS[token], argument)
        if base:
            result = _each(lambda x, y: x / y, result, _call(cmath.log, base))
        return _each(_power, result, power) if power else result
