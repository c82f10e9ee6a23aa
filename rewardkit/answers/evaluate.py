"""Trees -> values: exact rationals if arithmetic suffices, else floating-point numbers.

Exact arithmetic covers sums, products, quotients and integer powers of rationals. Everything else
is evaluated numerically: in double precision, and in `DIGITS` digits if two values are too close to
distinguish. Exponents, factorials and sizes are checked before anything is computed, so that no
evaluation takes long; a value over a limit raises `UndefinedError`.
"""

from __future__ import annotations

import cmath
import math
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from rewardkit.answers.numeric_backends import (
    NumericBackend,
    UndefinedError,
    complex_doubles,
    mpmath_digits,
    real_doubles,
)
from rewardkit.answers.parsing.tree import MINUS_ONE, Node, subtrees, symbols

#: Largest exponent and factorial, and most bits of an exact result.
MAX_EXPONENT: Final = 1000
MAX_BITS: Final = 8192
#: Number of points at which expressions are compared.
SAMPLE_POINTS: Final = 12
#: Digits of the second evaluation, and of the third one, for huge and tiny values.
DIGITS: Final = 50
MORE_DIGITS: Final = 400


def exact_value(node: Node) -> Fraction | None:
    """Return the rational value of a tree; None if arithmetic alone does not give one."""
    kind = node[0]
    if kind == "num":
        value: Fraction = node[1]
        return value
    if kind in ("add", "mul"):
        return _exact_sum_or_product(kind, node)
    if kind == "pow":
        return _exact_power(exact_value(node[1]), exact_value(node[2]))
    if kind == "fn" and node[1] == "sqrt":
        return _exact_root(exact_value(node[2]))
    if kind == "fn" and node[1] == "root" and node[3][1] == 3:
        return _exact_cube_root(exact_value(node[2]))
    if kind == "fn" and node[1] in _RATIONAL_FUNCTIONS:
        arguments = [exact_value(part) for part in node[2:]]
        return None if None in arguments else _RATIONAL_FUNCTIONS[node[1]](*arguments)
    return None


def _are_small_whole_numbers(*values: Fraction) -> bool:
    return all(value.denominator == 1 and 0 <= value <= MAX_EXPONENT for value in values)


_RATIONAL_FUNCTIONS: Mapping[str, Callable[..., Fraction | None]] = {
    "abs": abs,
    "floor": lambda x: Fraction(math.floor(x)),
    "ceil": lambda x: Fraction(math.ceil(x)),
    "fact": lambda n: Fraction(math.factorial(int(n))) if _are_small_whole_numbers(n) else None,
    "binom": lambda n, k: (
        Fraction(math.comb(int(n), int(k))) if _are_small_whole_numbers(n, k) else None
    ),
}


def _exact_sum_or_product(kind: str, node: Node) -> Fraction | None:
    total = Fraction(kind == "mul")
    for part in node[1:]:
        value = exact_value(part)
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


def evaluate_double(node: Node, point: Mapping[str, float], *, real: bool = False) -> complex:
    """Return the value of a tree at a point, in double precision.

    Args:
        node: the tree.
        point: the value of every symbol.
        real: whether every intermediate result must be real, unlike the root of a negative number.

    Raises:
        UndefinedError: the tree has no value there.
    """
    try:
        value = complex(_evaluate(node, point, real_doubles() if real else complex_doubles()))
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise UndefinedError(str(error)) from error
    if cmath.isnan(value) or cmath.isinf(value):
        raise UndefinedError("not finite")
    return value


def evaluate_digits(node: Node, point: Mapping[str, float], digits: int = DIGITS) -> Any:
    """Return the value of a tree at a point in `digits` digits, as an mpmath number.

    Raises:
        UndefinedError: the tree has no value there.
    """
    try:
        return _evaluate(node, point, mpmath_digits(digits))
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise UndefinedError(str(error)) from error


def _evaluate(node: Node, point: Mapping[str, float], field: NumericBackend) -> Any:
    kind = node[0]
    if kind == "num":
        return field.from_rational(node[1])
    if kind in ("sym", "const"):
        return _lookup_name(node, point, field)
    if kind == "degree":
        return _evaluate(node[1], point, field) * field.constants["pi"] / 180
    if kind not in ("add", "mul", "pow", "fn"):
        raise UndefinedError(f"a {kind} has no value")
    values = [_evaluate(part, point, field) for part in node[1 + (kind == "fn") :]]
    if kind == "fn":
        return _apply_function(node[1], values, field)
    return _OPERATIONS[kind](values, field)


def _lookup_name(node: Node, point: Mapping[str, float], field: NumericBackend) -> Any:
    name = node[1]
    if node[0] == "const" and name in field.constants:
        return field.constants[name]
    if node[0] == "sym" and name in point:
        return field.from_float(point[name])
    raise UndefinedError(f"{name} has no value")


def _power(base: Any, exponent: Any, field: NumericBackend) -> Any:
    if abs(exponent) > MAX_EXPONENT or (base and abs(math.log(abs(base))) * abs(exponent) > 600):
        raise UndefinedError("too large a power")
    if not base and exponent.real <= 0:
        raise UndefinedError("a power of zero")
    if not exponent.imag and exponent.real == int(exponent.real):
        return base ** int(exponent.real)
    return field.functions["pow"](base, exponent)


_OPERATIONS: Mapping[str, Callable[[list[Any], NumericBackend], Any]] = {
    "add": lambda values, field: sum(values, field.from_rational(Fraction(0))),
    "mul": lambda values, field: math.prod(values, start=field.from_rational(Fraction(1))),
    "pow": lambda values, field: _power(values[0], values[1], field),
}


def _apply_function(name: str, arguments: list[Any], field: NumericBackend) -> Any:
    if any(abs(argument) > 1e100 for argument in arguments):
        raise UndefinedError("too large an argument")
    function = field.functions.get(name)
    if function is not None:
        return function(*arguments)
    if name in _UNEVALUATED:
        raise UndefinedError(f"{name} is not evaluated")
    return _unknown_function_value(name, arguments, field)


#: Functions that are never evaluated; see `parsing.vocabulary`.
_UNEVALUATED = frozenset(
    {"det", "norm", "deg", r"\sum", r"\prod", r"\int", r"\iint", r"\oint", r"\lim"}
)


def is_known_function(name: str) -> bool:
    """Whether a function is defined by mathematics, unlike the `f` of a question."""
    return name in complex_doubles().functions or name in _UNEVALUATED


def _unknown_function_value(name: str, arguments: list[Any], field: NumericBackend) -> Any:
    """Return the value of an unknown function: a smooth one, different for every name."""
    seed = zlib.crc32(name.encode())
    a, b, c = (1 + (seed >> shift) % 1000 / 700 for shift in (0, 10, 20))
    total = field.from_float(b)
    for place, argument in enumerate(arguments):
        total = total + field.functions["sin"](
            field.from_float(a) * argument + place
        ) * field.from_float(c)
        total = total + argument / (3 + place)
    return total


def sample_points(*trees: Node) -> tuple[dict[str, float], ...]:
    """Return the points at which trees are compared; they depend on names and largest number only.

    The values are below 1, up to 3 and up to 60; all negative; of mixed signs, and with these signs
    flipped; two points of whole numbers, of either parity; and two beyond the largest number, so that a change there (`|x - 500|`) shows. Names of integers (`n`, `k`) have integer values only
    if the trees hold a floor, a factorial, a binomial coefficient or a power of -1.
    """
    names = frozenset(name for tree in trees for name in symbols(tree))
    parts = [part for tree in trees for part in subtrees(tree) if part[0] in ("num", "pow", "fn")]
    numbers = [
        abs(value) for part in parts if part[0] != "fn" and (value := exact_value(part)) is not None
    ]
    whole = any(_needs_whole_numbers(part) for part in parts)
    largest = float(min([*sorted(numbers)[-1:], Fraction(10**12)]))
    return _sample_points(names, largest, _INTEGER_NAMES if whole else frozenset())


_INTEGER_NAMES = frozenset("ijkmnpq")


def _needs_whole_numbers(part: Node) -> bool:
    of_minus_one = part[0] == "pow" and part[1] == MINUS_ONE
    return of_minus_one or (part[0] == "fn" and part[1] in ("floor", "ceil", "fact", "binom"))


def probe_value(node: Node) -> complex | None:
    """Return the value at one point; None without a value, or if a label or unit may be omitted."""
    if node[0] == "tuple":
        marks = [probe_value(part) for part in node[1:]]
        return None if None in marks else sum((mark or 0) * (k + 1) for k, mark in enumerate(marks))
    if node[0] not in ("num", "sym", "const", "add", "mul", "pow", "fn"):
        return None
    if any(part[0] == "fn" and not is_known_function(part[1]) for part in subtrees(node)):
        return None
    names = symbols(node)
    try:
        return evaluate_double(node, {name: _coordinate(name, 2, 1) for name in names})
    except UndefinedError:
        return None


def may_be_equal(p: complex | None, g: complex | None) -> bool:
    """Whether two items may be equal, from their values at one point."""
    return p is None or g is None or abs(p - g) <= 0.02 * max(abs(p), abs(g), 1e-3)


@lru_cache(maxsize=512)
def _sample_points(
    names: frozenset[str], largest: float, whole: frozenset[str]
) -> tuple[dict[str, float], ...]:
    def coordinate(name: str, turn: int) -> float:
        if name in whole:  # the values of n, m and k follow a different order each
            return float(
                (turn * (1 + "nmkijpq".find(name)) + "nmkijpq".find(name)) % 13 + (name == "n") * 2
            )
        return _coordinate(name, turn, largest)

    return tuple({name: coordinate(name, k) for name in names} for k in range(SAMPLE_POINTS))


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
