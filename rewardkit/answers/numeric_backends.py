"""Numbers in which trees are evaluated: real and complex doubles, and mpmath numbers."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from mpmath import MPContext  # imported here, so that the first answer does not pay for the import


class UndefinedError(ArithmeticError):
    """A tree has no value: it is not a number, undefined at this point, or over a limit."""


class NumericBackend:
    """Constants, functions and conversions of one kind of numbers."""

    def __init__(
        self,
        from_rational: Callable[[Fraction], Any],
        from_float: Callable[[float], Any],
        constants: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.from_rational = from_rational
        self.from_float = from_float
        self.constants = constants
        self.functions = functions


def _on_reals(function: Callable[[float], float]) -> Callable[[complex], complex]:
    def on_reals(value: complex) -> complex:
        if abs(value.imag) > 1e-9:
            raise UndefinedError("not a real number")
        return complex(function(value.real))

    return on_reals


def _odd_root(power: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the root function for odd degrees, which is real for negative numbers."""

    def root(value: Any, degree: Any) -> Any:
        negative = value.real < 0 and abs(value.imag) == 0
        return -power(-value, 1 / degree) if negative else power(value, 1 / degree)

    return root


def _near_floor(value: float) -> int:
    """Return the floor; a value within rounding error of an integer counts as that integer."""
    return round(value) if abs(value - round(value)) < 1e-9 else math.floor(value)


def _factorial(value: float) -> float:
    if not -0.5 < value <= 170:
        raise UndefinedError("too large a factorial")
    return math.gamma(value + 1)


def _binomial(top: complex, bottom: complex) -> complex:
    if top.imag or bottom.imag or not 0 <= bottom.real <= top.real <= 170:
        raise UndefinedError("the arguments have no binomial coefficient")
    n, k = top.real, bottom.real
    return complex(math.gamma(n + 1) / math.gamma(k + 1) / math.gamma(n - k + 1))


def _on_integers(function: Callable[..., int]) -> Callable[..., complex]:
    def on_integers(*values: complex) -> complex:
        if any(value.imag or value.real != int(value.real) for value in values):
            raise UndefinedError("not whole numbers")
        return complex(function(*(int(value.real) for value in values)))

    return on_integers


@cache
def complex_doubles() -> NumericBackend:
    """Return complex numbers in double precision."""
    functions: dict[str, Callable[..., Any]] = {
        name: getattr(cmath, name)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "sqrt")
    }
    functions |= {
        "arcsinh": cmath.asinh,
        "arccosh": cmath.acosh,
        "arctanh": cmath.atanh,
        "arcsin": cmath.asin,
        "arccos": cmath.acos,
        "arctan": cmath.atan,
        "arccot": lambda x: math.pi / 2 - cmath.atan(x),
        "arcsec": lambda x: cmath.acos(1 / x),
        "arccsc": lambda x: cmath.asin(1 / x),
        "ln": cmath.log,
        "lg": cmath.log10,
        "cot": lambda x: 1 / cmath.tan(x),
        "sec": lambda x: 1 / cmath.cos(x),
        "csc": lambda x: 1 / cmath.sin(x),
        "pow": lambda base, exponent: base**exponent,
        "root": _odd_root(lambda base, exponent: base**exponent),
        "abs": lambda x: complex(abs(x)),
        "re": lambda x: complex(x.real),
        "im": lambda x: complex(x.imag),
        "floor": _on_reals(_near_floor),
        "ceil": _on_reals(lambda x: -_near_floor(-x)),
        "fact": _on_reals(_factorial),
        "binom": _binomial,
        "gcd": _on_integers(math.gcd),
        "lcm": _on_integers(math.lcm),
        "max": lambda *xs: max(xs, key=lambda x: x.real),
        "min": lambda *xs: min(xs, key=lambda x: x.real),
    }
    constants = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}
    return NumericBackend(lambda value: complex(float(value)), complex, constants, functions)


@cache
def real_doubles() -> NumericBackend:
    """Return real numbers in double precision: `math` raises `ValueError` for a complex result."""
    names = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "sqrt")
    functions: dict[str, Callable[..., Any]] = dict(complex_doubles().functions)
    functions |= {name: getattr(math, name) for name in names}
    functions |= {
        "arcsinh": math.asinh,
        "arccosh": math.acosh,
        "arctanh": math.atanh,
        "arcsin": math.asin,
        "arccos": math.acos,
        "arctan": math.atan,
        "arccot": lambda x: math.pi / 2 - math.atan(x),
        "arcsec": lambda x: math.acos(1 / x),
        "arccsc": lambda x: math.asin(1 / x),
        "ln": math.log,
        "lg": math.log10,
        "cot": lambda x: 1 / math.tan(x),
        "sec": lambda x: 1 / math.cos(x),
        "csc": lambda x: 1 / math.sin(x),
        "pow": math.pow,
        "root": _odd_root(math.pow),
        "abs": abs,
    }
    return NumericBackend(float, float, {"pi": math.pi, "e": math.e}, functions)


@cache
def mpmath_digits(digits: int) -> NumericBackend:
    """Return mpmath numbers with the given number of digits."""
    mp = MPContext()
    mp.dps = digits
    names = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp", "sqrt", "ln")
    functions: dict[str, Callable[..., Any]] = {name: getattr(mp, name) for name in names}
    functions |= {
        "arcsinh": mp.asinh,
        "arccosh": mp.acosh,
        "arctanh": mp.atanh,
        "arcsin": mp.asin,
        "arccos": mp.acos,
        "arctan": mp.atan,
        "arccot": lambda x: mp.pi / 2 - mp.atan(x),
        "arcsec": lambda x: mp.acos(1 / x),
        "arccsc": lambda x: mp.asin(1 / x),
        "lg": mp.log10,
        "pow": mp.power,
        "root": _odd_root(mp.power),
        "abs": mp.fabs,
        "re": mp.re,
        "im": mp.im,
        "floor": mp.floor,
        "ceil": mp.ceil,
        "fact": mp.factorial,
        "binom": mp.binomial,
        "max": max,
        "min": min,
        "gcd": lambda *xs: mp.mpf(_on_integers(math.gcd)(*xs).real),
        "lcm": lambda *xs: mp.mpf(_on_integers(math.lcm)(*xs).real),
    }
    constants = {"pi": mp.mpf(mp.pi), "e": mp.mpf(mp.e), "i": mp.mpc(0, 1)}
    return NumericBackend(
        lambda value: mp.mpf(value.numerator) / value.denominator, mp.mpf, constants, functions
    )
