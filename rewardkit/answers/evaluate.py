"""Trees -> values: exact rationals where arithmetic suffices, else numbers, with static limits.

Exact arithmetic covers sums, products, quotients and integer powers of rationals. Everything else
is evaluated numerically: in double precision, and in `DIGITS` digits where two values are too
close to tell apart. Nothing here can run long: exponents, factorials and sizes are bounded before
anything is computed, and what is over a limit is `UndefinedError`.
"""

from __future__ import annotations

import cmath
import math
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final

from mpmath import MPContext  # here, so that no first answer pays for it

from rewardkit.answers.reading.tree import Node, symbols, walk

#: Largest exponent and factorial, and most bits of an exact result.
MAX_EXPONENT: Final = 1000
MAX_BITS: Final = 8192
#: Points at which expressions are compared.
POINTS: Final = 12
#: Digits of the second, precise evaluation, and of the third, where values are huge or tiny.
DIGITS: Final = 50
MORE_DIGITS: Final = 400


class UndefinedError(ArithmeticError):
    """A tree has no value: not a number, undefined at this point, or over a limit."""


def exact(node: Node) -> Fraction | None:
    """The rational value of a tree, None where arithmetic alone does not give one."""
    kind = node[0]
    if kind == "num":
        value: Fraction = node[1]
        return value
    if kind in ("add", "mul"):
        return _fold(kind, node)
    if kind == "pow":
        return _exact_power(exact(node[1]), exact(node[2]))
    if kind == "fn" and node[1] == "sqrt":
        return _exact_root(exact(node[2]))
    if kind == "fn" and node[1] == "root" and node[3][1] == 3:
        return _exact_cube_root(exact(node[2]))
    if kind == "fn" and node[1] in _OF_RATIONALS:
        arguments = [exact(part) for part in node[2:]]
        return None if None in arguments else _OF_RATIONALS[node[1]](*arguments)
    return None


def _whole(*values: Fraction) -> bool:
    return all(value.denominator == 1 and 0 <= value <= MAX_EXPONENT for value in values)


_OF_RATIONALS: Mapping[str, Callable[..., Fraction | None]] = {
    "abs": abs,
    "floor": lambda x: Fraction(math.floor(x)),
    "ceil": lambda x: Fraction(math.ceil(x)),
    "fact": lambda n: Fraction(math.factorial(int(n))) if _whole(n) else None,
    "binom": lambda n, k: Fraction(math.comb(int(n), int(k))) if _whole(n, k) else None,
}


def _fold(kind: str, node: Node) -> Fraction | None:
    total = Fraction(kind == "mul")
    for part in node[1:]:
        value = exact(part)
        if value is None:
            return None
        total = total + value if kind == "add" else total * value
        if total.numerator.bit_length() + total.denominator.bit_length() > MAX_BITS:
            return None
    return total


def _exact_power(base: Fraction | None, exponent: Fraction | None) -> Fraction | None:
    if base is None or exponent is None or exponent.denominator != 1:
        return None
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > MAX_BITS or (base == 0 and exponent < 0):
        return None
    return Fraction(base ** int(exponent)) if base or exponent else None


def _exact_root(value: Fraction | None) -> Fraction | None:
    if value is None or value < 0:
        return None
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    return root if root * root == value else None


def _exact_cube_root(value: Fraction | None) -> Fraction | None:
    if value is None or max(abs(value.numerator), value.denominator) > 10**15:
        return None
    root = Fraction(round(abs(value.numerator) ** (1 / 3)), round(value.denominator ** (1 / 3)))
    return (root if value >= 0 else -root) if root**3 == abs(value) else None


def numeric(node: Node, point: Mapping[str, float]) -> complex:
    """The value of a tree in double precision, with symbols at a point.

    Raises:
        UndefinedError: there is none.
    """
    try:
        value = complex(_value(node, point, _double()))
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise UndefinedError(str(error)) from error
    if cmath.isnan(value) or cmath.isinf(value):
        raise UndefinedError("not finite")
    return value


def precise(node: Node, point: Mapping[str, float], digits: int = DIGITS) -> Any:
    """The value of a tree in `digits` digits, an mpmath number.

    Raises:
        UndefinedError: there is none.
    """
    try:
        return _value(node, point, _precise(digits))
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise UndefinedError(str(error)) from error


class Field:
    """The numbers a tree is evaluated in: constants, functions, how rationals and floats enter."""

    def __init__(
        self,
        enter: Callable[[Fraction], Any],
        real: Callable[[float], Any],
        constants: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.enter = enter
        self.real = real
        self.constants = constants
        self.functions = functions


def _value(node: Node, point: Mapping[str, float], field: Field) -> Any:
    kind = node[0]
    if kind == "num":
        return field.enter(node[1])
    if kind in ("sym", "const"):
        return _named(node, point, field)
    if kind == "degree":
        return _value(node[1], point, field) * field.constants["pi"] / 180
    if kind not in ("add", "mul", "pow", "fn"):
        raise UndefinedError(f"a {kind} has no value")
    values = [_value(part, point, field) for part in node[1 + (kind == "fn") :]]
    if kind == "fn":
        return _apply(node[1], values, field)
    return _ARITHMETIC[kind](values, field)


def _named(node: Node, point: Mapping[str, float], field: Field) -> Any:
    name = node[1]
    if node[0] == "const" and name in field.constants:
        return field.constants[name]
    if node[0] == "sym" and name in point:
        return field.real(point[name])
    raise UndefinedError(f"{name} has no value")


def _power(base: Any, exponent: Any, field: Field) -> Any:
    if abs(exponent) > MAX_EXPONENT or (base and abs(math.log(abs(base))) * abs(exponent) > 600):
        raise UndefinedError("too large a power")
    if not base and exponent.real <= 0:
        raise UndefinedError("a power of zero")
    if not exponent.imag and exponent.real == int(exponent.real):
        return base ** int(exponent.real)
    return field.functions["pow"](base, exponent)


_ARITHMETIC: Mapping[str, Callable[[list[Any], Field], Any]] = {
    "add": lambda values, field: sum(values, field.enter(Fraction(0))),
    "mul": lambda values, field: math.prod(values, start=field.enter(Fraction(1))),
    "pow": lambda values, field: _power(values[0], values[1], field),
}


def _apply(name: str, arguments: list[Any], field: Field) -> Any:
    if any(abs(argument) > 1e15 for argument in arguments):
        raise UndefinedError("too large an argument")
    function = field.functions.get(name)
    if function is not None:
        return function(*arguments)
    if name in _NEVER:
        raise UndefinedError(f"{name} is not evaluated")
    return _unknown(name, arguments, field)


#: Functions that stand for a value nobody has worked out; see `reading.names`.
_NEVER = frozenset({"det", "norm", "deg", r"\sum", r"\prod", r"\int", r"\iint", r"\oint", r"\lim"})


def is_known(name: str) -> bool:
    """Whether a function has a value of its own."""
    return name in _double().functions or name in _NEVER


def _unknown(name: str, arguments: list[Any], field: Field) -> Any:
    """An unknown function: smooth, and different for every name."""
    seed = zlib.crc32(name.encode())
    a, b, c = (1 + (seed >> shift) % 1000 / 700 for shift in (0, 10, 20))
    total = field.real(b)
    for place, argument in enumerate(arguments):
        total = total + field.functions["sin"](field.real(a) * argument + place) * field.real(c)
        total = total + argument / (3 + place)
    return total


def _real(function: Callable[[float], float]) -> Callable[[complex], complex]:
    def on_reals(value: complex) -> complex:
        if abs(value.imag) > 1e-9:
            raise UndefinedError("not a real number")
        return complex(function(value.real))

    return on_reals


def _odd_root(power: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An odd root is real for negative numbers too."""

    def root(value: Any, degree: Any) -> Any:
        negative = value.real < 0 and abs(value.imag) == 0
        return -power(-value, 1 / degree) if negative else power(value, 1 / degree)

    return root


def _near_floor(value: float) -> int:
    """The floor, but for what is a whole number up to rounding."""
    return round(value) if abs(value - round(value)) < 1e-9 else math.floor(value)


def _factorial(value: float) -> float:
    if not -0.5 < value <= 170:
        raise UndefinedError("too large a factorial")
    return math.gamma(value + 1)


def _binomial(top: complex, bottom: complex) -> complex:
    if top.imag or bottom.imag or not 0 <= bottom.real <= top.real <= 170:
        raise UndefinedError("no binomial coefficient")
    n, k = top.real, bottom.real
    return complex(math.gamma(n + 1) / math.gamma(k + 1) / math.gamma(n - k + 1))


def _of_integers(function: Callable[..., int]) -> Callable[..., complex]:
    def on_integers(*values: complex) -> complex:
        if any(value.imag or value.real != int(value.real) for value in values):
            raise UndefinedError("not whole numbers")
        return complex(function(*(int(value.real) for value in values)))

    return on_integers


@cache
def _double() -> Field:
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
        "floor": _real(_near_floor),
        "ceil": _real(lambda x: -_near_floor(-x)),
        "fact": _real(_factorial),
        "binom": _binomial,
        "gcd": _of_integers(math.gcd),
        "lcm": _of_integers(math.lcm),
        "max": lambda *xs: max(xs, key=lambda x: x.real),
        "min": lambda *xs: min(xs, key=lambda x: x.real),
    }
    constants = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}
    return Field(lambda value: complex(float(value)), complex, constants, functions)


@cache
def _precise(digits: int) -> Field:
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
        "gcd": lambda *xs: mp.mpf(_of_integers(math.gcd)(*xs).real),
        "lcm": lambda *xs: mp.mpf(_of_integers(math.lcm)(*xs).real),
    }
    constants = {"pi": mp.mpf(mp.pi), "e": mp.mpf(mp.e), "i": mp.mpc(0, 1)}
    return Field(
        lambda value: mp.mpf(value.numerator) / value.denominator, mp.mpf, constants, functions
    )


def points(*trees: Node) -> tuple[dict[str, float], ...]:
    """Where expressions are compared: the same for every run, from their names and largest number.

    Values below 1, up to 3 and up to 60; all negative; with mixed signs, and those turned round;
    two points of whole numbers, of either parity; and two beyond the largest number, so that what
    changes there (`|x - 500|`) shows.
    """
    names = frozenset(name for tree in trees for name in symbols(tree))
    parts = [part for tree in trees for part in walk(tree) if part[0] in ("num", "pow")]
    numbers = [abs(value) for part in parts if (value := exact(part)) is not None]
    return _points(names, float(min([*sorted(numbers)[-1:], Fraction(10**12)])))


def fingerprint(node: Node) -> complex | None:
    """The value at one point; None for what has none, or whose label or unit may be left out."""
    if node[0] == "tuple":
        marks = [fingerprint(part) for part in node[1:]]
        return None if None in marks else sum((mark or 0) * (k + 1) for k, mark in enumerate(marks))
    if node[0] not in ("num", "sym", "const", "add", "mul", "pow", "fn"):
        return None
    if any(part[0] == "fn" and not is_known(part[1]) for part in walk(node)):
        return None
    names = symbols(node)
    try:
        return numeric(node, {name: _coordinate(name, 2, 1) for name in names})
    except UndefinedError:
        return None


def may_match(p: complex | None, g: complex | None) -> bool:
    """Whether two items' values at one point leave it open that they are equal."""
    return p is None or g is None or abs(p - g) <= 0.02 * max(abs(p), abs(g), 1e-3)


@lru_cache(maxsize=512)
def _points(names: frozenset[str], largest: float) -> tuple[dict[str, float], ...]:
    return tuple({name: _coordinate(name, k, largest) for name in names} for k in range(POINTS))


def _coordinate(name: str, k: int, largest: float) -> float:
    turn = min(k, 6) if k < 8 else min(k, 10) if k > 9 else 8
    seed = zlib.crc32(f"{name}|{turn}".encode("utf-8", "surrogatepass"))
    if k >= 10:
        return (1 if k == 10 else -1) * (2 * largest + 811 + seed % 9973)
    if k < 2:
        return 0.05 + seed % 9973 / 10501
    if k >= 8:
        return float(2 + seed % 7 + (k - 8))
    size = 11 + seed % 9973 / 203 if k == 4 else 0.31 + seed % 9973 / 4001
    negative = k == 5 or (k >= 6 and seed // 9973 % 2 == k - 6)
    return -size if negative else size
