"""Values of trees, the policy of a comparison, and whether two single values are equal by it.

Exact arithmetic covers sums, products, quotients and integer powers of rationals. Everything else
is evaluated numerically: in double precision, and in `DIGITS` digits if two values are too close to
distinguish. Exponents, factorials and sizes are checked before anything is computed, and a
comparison has a budget of steps, so that no evaluation takes long on any machine.

The policy, row by row, is in docs/reference/answers.md; each row is a test.
"""

import cmath
import math
import operator
import threading
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import islice, product
from typing import Any, NamedTuple

from mpmath import MPContext  # imported here, so that the first answer does not pay for the import

from rewardkit.answers.parsing.tokens import UnreadableError
from rewardkit.answers.parsing.tree import (
    MINUS_ONE,
    Node,
    map_children,
    mul,
    num,
    subtrees,
    symbols,
)
from rewardkit.answers.parsing.vocabulary import UNEVALUATED_OPERATORS

#: Largest exponent and factorial, and most bits of an exact result.
MAX_EXPONENT = 1000
MAX_BITS = 8192
#: Number of points at which expressions are compared.
SAMPLE_POINTS = 12
#: Digits of the second evaluation, and of the third one, for huge and tiny values.
DIGITS = 50
MORE_DIGITS = 400
#: Most nodes that one comparison evaluates, which takes about eight milliseconds.
MAX_STEPS = 10_000
#: Steps of a function's value, and of a node that is evaluated in 50 digits.
FUNCTION_STEPS = 6
PRECISE_STEPS = 8


class UndefinedError(ArithmeticError):
    """A tree has no value: it is not a number, undefined at this point, or over a limit."""


class TooMuchWorkError(UnreadableError):
    """Comparing two answers would take more than `MAX_STEPS`."""


# --- the budget of a comparison

_budget = threading.local()


def run_with_budget(compare: Callable[[Node, Node], bool], pred: Node, gold: Node) -> bool:
    """Return `compare(pred, gold)`, which may take `MAX_STEPS` steps.

    Raises:
        TooMuchWorkError: the comparison needs more steps.
    """
    _budget.steps_left = MAX_STEPS
    try:
        return compare(pred, gold)
    finally:
        _budget.steps_left = math.inf


def charge_steps(*nodes: Node, times: int = 1) -> None:
    """Charge the size of trees, `times` times, to the budget; do nothing outside `run_with_budget`."""
    parts = [part[0] for node in nodes for part in subtrees(node)]
    size = len(parts) + (FUNCTION_STEPS - 1) * parts.count("fn")
    _budget.steps_left = getattr(_budget, "steps_left", math.inf) - times * size
    if _budget.steps_left < 0:
        raise TooMuchWorkError("the comparison takes too many steps")


# --- exact values


def exact_value(node: Node) -> Fraction | None:
    """Return the rational value of a tree; None if arithmetic alone does not give one."""
    if node[0] == "num":
        return Fraction(node[1])
    if (function := _RATIONAL_FUNCTIONS.get(node[0])) is None:
        return None
    values = list(map(exact_value, node[1:]))
    return None if None in values else function(*values)


def _within_limit(operation: Callable[..., Fraction], *values: Fraction) -> Fraction | None:
    """Return the sum or product of values; None if a result on the way is too large."""
    total, *others = values
    for value in others:
        total = operation(total, value)
        if total.numerator.bit_length() + total.denominator.bit_length() > MAX_BITS:
            return None
    return total


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    is_computed = exponent.denominator == 1 and bits * abs(exponent) <= MAX_BITS
    return Fraction(base ** int(exponent)) if is_computed and (base or exponent > 0) else None


_RATIONAL_FUNCTIONS: Mapping[str, Callable[..., Fraction | None]] = {
    "add": partial(_within_limit, operator.add),
    "mul": partial(_within_limit, operator.mul),
    "pow": _exact_power,
}


# --- kinds of numbers


class _Numbers(NamedTuple):
    """Constants, functions and conversions of one kind of numbers."""

    from_rational: Callable[[Fraction], Any]
    from_float: Callable[[float], Any]
    constants: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]


def _functions(library: Any, power: Callable[[Any, Any], Any]) -> dict[str, Callable[..., Any]]:
    plain = "sin cos tan sinh cosh tanh".split()
    functions: dict[str, Callable[..., Any]] = {
        **{name: getattr(library, name) for name in (*plain, "exp", "sqrt")},
        **{f"arc{name}": getattr(library, f"a{name}") for name in plain},
    }

    def root(value: Any, degree: Any) -> Any:  # of odd degree, so real for negative numbers
        is_negative = value.real < 0 and abs(value.imag) == 0
        return -power(-value, 1 / degree) if is_negative else power(value, 1 / degree)

    return functions | {
        "ln": library.log,
        "lg": library.log10,
        "cot": lambda x: 1 / library.tan(x),
        "sec": lambda x: 1 / library.cos(x),
        "csc": lambda x: 1 / library.sin(x),
        "arccot": lambda x: library.pi / 2 - library.atan(x),
        "arcsec": lambda x: library.acos(1 / x),
        "arccsc": lambda x: library.asin(1 / x),
        "pow": power,
        "root": root,
        "abs": abs,
        "re": lambda x: x.real,
        "im": lambda x: x.imag,
        "floor": _floor,
        "ceil": lambda x: -_floor(-x),
        "fact": _factorial,
        "binom": _binomial,
    }


def _floor(value: complex) -> int:
    """Return the floor; a value within rounding error of an integer counts as that integer."""
    real = _real_number(value)
    return round(real) if abs(real - round(real)) < 1e-9 else math.floor(real)


def _factorial(value: complex) -> float:
    real = _real_number(value)
    if not -0.5 < real <= 170:
        raise UndefinedError("too large a factorial")
    return math.gamma(real + 1)


def _binomial(top: complex, bottom: complex) -> float:
    n, k = top.real, bottom.real
    if top.imag or bottom.imag or not 0 <= k <= n <= 170:
        raise UndefinedError("the arguments have no binomial coefficient")
    return math.gamma(n + 1) / math.gamma(k + 1) / math.gamma(n - k + 1)


def _real_number(value: complex) -> float:
    if abs(value.imag) > 1e-9:
        raise UndefinedError("not a real number")
    return value.real


@cache
def _complex_doubles() -> _Numbers:
    constants = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}
    functions = _functions(cmath, operator.pow)
    return _Numbers(lambda value: complex(float(value)), complex, constants, functions)


@cache
def _real_doubles() -> _Numbers:
    """Return real numbers: `math` raises `ValueError` for a complex result."""
    return _Numbers(float, float, {"pi": math.pi, "e": math.e}, _functions(math, math.pow))


@cache
def _precise_numbers(digits: int) -> _Numbers:
    mp = MPContext()
    mp.dps = digits
    names = {"floor": mp.floor, "ceil": mp.ceil, "fact": mp.factorial, "binom": mp.binomial}
    constants = {"pi": mp.mpf(mp.pi), "e": mp.mpf(mp.e), "i": mp.mpc(0, 1)}
    functions = _functions(mp, mp.power) | names
    return _Numbers(lambda v: mp.mpf(v.numerator) / v.denominator, mp.mpf, constants, functions)


# --- evaluation


def evaluate_double(node: Node, point: Mapping[str, float], *, real: bool = False) -> complex:
    """Return the value of a tree in double precision, at a point that has a value for every symbol.

    Raises:
        UndefinedError: the tree has no value there, or not every result on the way is `real`.
    """
    numbers = _real_doubles() if real else _complex_doubles()
    value = complex(_evaluate_or_raise(node, point, numbers))
    if cmath.isnan(value) or cmath.isinf(value):
        raise UndefinedError("not finite")
    return value


def evaluate_digits(node: Node, point: Mapping[str, float], digits: int = DIGITS) -> Any:
    """Return the value of a tree at a point in `digits` digits, as an mpmath number."""
    return _evaluate_or_raise(node, point, _precise_numbers(digits))


def _evaluate_or_raise(node: Node, point: Mapping[str, float], numbers: _Numbers) -> Any:
    try:
        return _evaluate(node, point, numbers)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise UndefinedError(str(error)) from error


def _evaluate(node: Node, point: Mapping[str, float], numbers: _Numbers) -> Any:
    kind = node[0]
    if kind == "num":
        return numbers.from_rational(node[1])
    if kind == "sym" and node[1] in point:
        return numbers.from_float(point[node[1]])
    if kind == "const" and node[1] in numbers.constants:
        return numbers.constants[node[1]]
    if kind not in ("add", "mul", "pow", "fn", "degree"):
        raise UndefinedError(f"a {kind} has no value")
    values = [_evaluate(part, point, numbers) for part in node[1 + (kind == "fn") :]]
    if kind == "add":
        return sum(values, numbers.from_float(0.0))
    if kind == "mul":
        return math.prod(values, start=numbers.from_float(1.0))
    if kind == "pow":
        return _power(values[0], values[1], numbers)
    if kind == "degree":
        return values[0] * numbers.constants["pi"] / 180
    return _apply_function(node[1], values, numbers)


def _power(base: Any, exponent: Any, numbers: _Numbers) -> Any:
    if abs(exponent) > MAX_EXPONENT or (base and abs(math.log(abs(base))) * abs(exponent) > 600):
        raise UndefinedError("too large a power")
    if not base and exponent.real <= 0:
        raise UndefinedError("a power of zero")
    if not exponent.imag and exponent.real == int(exponent.real):
        return base ** int(exponent.real)
    return numbers.functions["pow"](base, exponent)


#: Functions that are never evaluated.
_UNEVALUATED = UNEVALUATED_OPERATORS | set("det norm deg gcd lcm max min".split())


def _apply_function(name: str, arguments: list[Any], numbers: _Numbers) -> Any:
    if any(abs(argument) > 1e100 for argument in arguments):
        raise UndefinedError("too large an argument")
    if function := numbers.functions.get(name):
        return function(*arguments)
    if name in _UNEVALUATED:
        raise UndefinedError(f"{name} is not evaluated")
    return _unknown_function_value(name, arguments, numbers)


def is_known_function(name: str) -> bool:
    """Whether a function is defined by mathematics, unlike the `f` of a question."""
    return name in _complex_doubles().functions or name in _UNEVALUATED


def is_unknown(node: Node) -> bool:
    """Whether a node is the value of a function that only the question defines."""
    return node[0] == "fn" and not is_known_function(node[1])


def _unknown_function_value(name: str, arguments: list[Any], numbers: _Numbers) -> Any:
    """Return the value of an unknown function: a smooth one, different for every name."""
    seed = zlib.crc32(name.encode())
    a, b, c = (numbers.from_float(1 + (seed >> shift) % 1000 / 700) for shift in (0, 10, 20))
    total = b
    for index, argument in enumerate(arguments):
        total += numbers.functions["sin"](a * argument + index) * c + argument / (3 + index)
    return total


# --- points


def sample_points(*trees: Node) -> tuple[dict[str, float], ...]:
    """Return the points at which trees are compared; they depend on names and largest number only.

    The values are below 1, up to 3 and up to 60; all negative; of mixed signs, and with these signs
    flipped; two points of whole numbers, of either parity; and two beyond the largest number, so
    that a change there (`|x - 500|`) shows. Names of integers (`n`, `k`) have integer values only if
    the trees hold a floor, a factorial, a binomial coefficient or a power of -1.
    """
    names = frozenset(name for tree in trees for name in symbols(tree))
    parts = [part for tree in trees for part in subtrees(tree) if part[0] in ("num", "pow", "fn")]
    numbers = [abs(value) for value in map(exact_value, parts) if value is not None]
    largest = float(min(max(numbers, default=10**12), 10**12))
    is_whole = any(
        part[:2] == ("pow", MINUS_ONE) or part[1] in ("floor", "ceil", "fact", "binom")
        for part in parts
    )
    return _sample_points(names, largest, frozenset("ijkmnpq" if is_whole else ""))


@lru_cache(maxsize=512)
def _sample_points(
    names: frozenset[str], largest: float, whole: frozenset[str]
) -> tuple[dict[str, float], ...]:
    def coordinate(name: str, k: int) -> float:
        if name not in whole:
            return _coordinate(name, k, largest)
        index = "nmkijpq".index(name)  # the values of n, m and k follow a different order each
        return float((k * (1 + index) + index) % 13)

    return tuple({name: coordinate(name, k) for name in names} for k in range(SAMPLE_POINTS))


def _coordinate(name: str, k: int, largest: float) -> float:
    seed = zlib.crc32(f"{name}|{k - (k in (7, 9, 11))}".encode("utf-8", "surrogatepass"))
    if k >= 10:
        return (1 if k == 10 else -1) * (2 * largest + 811 + seed % 9973)
    if k < 2:
        return 0.05 + seed % 9973 / 10501
    if k >= 8:
        return float(2 + seed % 7 + (k - 8))
    size = 11 + seed % 9973 / 203 if k == 4 else 0.31 + seed % 9973 / 4001
    return -size if k == 5 or (k >= 6 and seed // 9973 % 2 == k - 6) else size


def probe_value(node: Node) -> complex | None:
    """Return the value at one point; None without a value, or if a label or unit may be omitted."""
    if node[0] == "tuple":
        marks = [probe_value(part) for part in node[1:]]
        return None if None in marks else sum((mark or 0) * (k + 1) for k, mark in enumerate(marks))
    if node[0] not in ("num", "sym", "const", "add", "mul", "pow", "fn"):
        return None
    if any(map(is_unknown, subtrees(node))):
        return None
    try:
        return evaluate_double(node, {name: _coordinate(name, 2, 1) for name in symbols(node)})
    except UndefinedError:
        return None


def may_be_equal(p: complex | None, g: complex | None) -> bool:
    """Whether two items may be equal, from their values at one point."""
    return p is None or g is None or abs(p - g) <= 0.02 * max(abs(p), abs(g), 1e-3)


# --- equal values


class Policy(NamedTuple):
    """What counts as equal beyond the same value."""

    #: Accept the gold correctly rounded to at least this number of digits; 0: only exact values'.
    significant_digits: int = 0
    #: Accept equal quantities in different units of one dimension.
    convert_units: bool = False


STRICT = Policy()


def scalar_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two values are the same by the policy."""
    if "base" in (pred[0], gold[0]):  # an answer may omit the base of the gold
        return pred == gold or (pred[0] == "num" and gold[:2] == ("base", str(pred[1])))
    if {pred[0], gold[0]} <= {"degree", "percent"}:
        return bool(pred[0] == gold[0]) and value_equal(pred[1], gold[1], policy)
    if any(value_equal(p, g, policy) for p, g in product(*map(_plain_values, (pred, gold)))):
        return True
    is_rounded = pred[0] == "percent" and is_decimal(pred[1]) and is_decimal(gold)
    return is_rounded and rounds_to(pred[1][1] / 100, gold, 3)  # 57.14% is 0.571


def _plain_values(node: Node) -> list[Node]:
    """Return a percentage as its share and its number, an angle as its radians and its number.

    The number of a percentage below one is left out, because it is more likely meant as a share.
    """
    if node[0] == "percent":
        value = node[1]
        if value[0] != "num":
            return [value, mul(value, num(Fraction(1, 100)))]
        share = num(value[1] / 100, None if value[2] is None else value[2] + 2)
        return [share, value] if abs(value[1]) >= 1 else [share]
    if node[0] == "degree":
        return [node] if exact_value(node[1]) is None else [node[1], node]
    return [node]


def value_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two plain values are equal, exactly or as correct roundings of each other."""
    if pred == gold:
        return True
    p, g = exact_value(pred), exact_value(gold)
    if p is not None and g is not None:
        return p == g or _is_rounding(pred, p, gold, g, policy)
    if any(part[0] == "sym" or is_unknown(part) for n in (pred, gold) for part in subtrees(n)):
        return equal_everywhere(pred, gold)
    return _constants_equal(pred, gold, policy)


def _constants_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    charge_steps(pred, gold)
    try:
        p, g = evaluate_double(pred, {}), evaluate_double(gold, {})
    except UndefinedError:
        return canonical_text(pred) == canonical_text(gold)
    if abs(p - g) <= NEAR_RELATIVE * max(1, abs(p), abs(g)):
        verdict = _equal_at_point(pred, gold, {})
        if verdict is None:
            return abs(p - g) <= 1e-12 * max(abs(p), abs(g))
        if verdict:
            return True
    if abs(p.imag) > 1e-12 or abs(g.imag) > 1e-12:
        return False
    return _is_rounding(pred, Fraction(p.real), gold, Fraction(g.real), policy)


def _equal_at_point(pred: Node, gold: Node, point: Mapping[str, float]) -> bool | None:
    """Whether two close values are equal in all digits; None if one has no value.

    Fifty digits decide for values of ordinary size, `MORE_DIGITS` for huge and tiny ones, because
    fifty are too few if terms cancel or if one term absorbs another.
    """
    charge_steps(pred, gold, times=PRECISE_STEPS)
    try:
        p, g = evaluate_digits(pred, point), evaluate_digits(gold, point)
        if 1e-12 < max(abs(p), abs(g)) < 1e12:
            return bool(abs(p - g) <= 1e-30 * max(abs(p), abs(g)))
        charge_steps(pred, gold, times=PRECISE_STEPS)
        p, g = evaluate_digits(pred, point, MORE_DIGITS), evaluate_digits(gold, point, MORE_DIGITS)
    except UndefinedError:
        return None
    return bool(abs(p - g) <= max(abs(p), abs(g), 1) * _CANCELLATION_ERROR)


#: Rounding error of `MORE_DIGITS` digits if terms cancel.
_CANCELLATION_ERROR = MPContext().mpf(10) ** -330


def canonical_text(node: Node) -> str:
    """Return a tree as text, with sorted terms and factors, without zero terms and unit factors."""
    if node[0] in ("add", "mul"):
        neutral_elements = (num(0),) if node[0] == "add" else (num(1), ("pow", num(1), MINUS_ONE))
        remaining = [part for part in node[1:] if part not in neutral_elements]
        while node[0] == "mul" and remaining.count(MINUS_ONE) > 1:
            remaining.remove(MINUS_ONE)
            remaining.remove(MINUS_ONE)
        parts = sorted(map(canonical_text, remaining)) or [canonical_text(neutral_elements[0])]
        return parts[0] if len(parts) == 1 else f"{node[0]}({', '.join(parts)})"
    if node[0] == "num":
        return str(node[1])
    if node[:2] == ("fn", "sqrt"):
        return canonical_text(("pow", node[2], num(Fraction(1, 2))))
    return f"{node[0]}({', '.join(map(str, map_children(canonical_text, node)[1:]))})"


#: Relative difference of doubles below which fifty digits decide, because terms that cancel lose
#: half of the sixteen digits of a double.
NEAR_RELATIVE = 1e-6


def equal_everywhere(pred: Node, gold: Node) -> bool:
    """Whether two expressions agree at the points at which both are real.

    Complex values decide only if both are real at no point. So the branches of roots and logarithms
    outside an expression's domain do not count. Three points are compared in all digits: one below
    1, one above 10, one negative, because no term is tiny or zero at all three.
    """
    if canonical_text(pred) == canonical_text(gold):
        return True
    charge_steps(pred, gold, times=SAMPLE_POINTS)
    points = sample_points(pred, gold)
    real_points, agreements = [], []
    for point in points:
        is_near = _are_near(pred, gold, point, real=True)
        if is_near is None:
            agreements.append(_are_near(pred, gold, point, real=False))
        elif not (is_near or _equal_at_point(pred, gold, point)):
            return False
        else:
            real_points.append(point)
    if len(real_points) < 2 and (False in agreements or agreements.count(True) < 2):
        return False
    decisive = [point for point in (points[0], points[4], points[5]) if point in real_points]
    verdicts = (_equal_at_point(pred, gold, point) for point in decisive or real_points or points)
    known = list(islice((verdict for verdict in verdicts if verdict is not None), 3))
    return bool(known) and all(known)


def _are_near(pred: Node, gold: Node, point: Mapping[str, float], *, real: bool) -> bool | None:
    try:
        p, g = (evaluate_double(node, point, real=real) for node in (pred, gold))
    except UndefinedError:
        return None
    return abs(p - g) <= NEAR_RELATIVE * max(abs(p), abs(g), 1e-3)


# --- rounding


def is_decimal(node: Node) -> bool:
    """Whether a node is a number written with a point."""
    return bool(node[0] == "num" and node[2] is not None)


#: Fewest significant digits of a decimal that stands for a fraction, and for an irrational number.
FRACTION_DIGITS, IRRATIONAL_DIGITS = 2, 5


def _is_rounding(pred: Node, p: Fraction, gold: Node, g: Fraction, policy: Policy) -> bool:
    """Whether one of two values, `p` and `g`, is the other rounded.

    A decimal gold may also be cut off. An integer, and a fraction with a short decimal of its own, are
    exact.
    """
    if policy.significant_digits and pred[0] == "num" and (g.denominator != 1 or is_decimal(gold)):
        is_written_out = is_decimal(pred) or pred[1].denominator == 1
        if is_written_out and rounds_to(g, pred, policy.significant_digits):
            return True
    if is_decimal(pred) and is_decimal(gold):
        return _is_float_noise(pred, gold)
    if is_decimal(gold):
        excess = abs(p) - abs(gold[1]) if p * gold[1] > 0 else Fraction(-1)
        is_cut_off = _significant_digits(gold) >= 3 and 0 <= excess < _last_place(gold)
        return p.denominator != 1 and (is_cut_off or rounds_to(p, gold, FRACTION_DIGITS))
    if not is_decimal(pred) or 10**4 % g.denominator == 0:
        return False
    return rounds_to(g, pred, IRRATIONAL_DIGITS if exact_value(gold) is None else FRACTION_DIGITS)


def rounds_to(value: Fraction, decimal: Node, digits: int = 1) -> bool:
    """Whether a decimal is a value rounded to the digits shown, which are `digits` or more.

    Two digits are enough only behind the point, as in `0.33`.
    """
    shown = _significant_digits(decimal)
    has_enough = shown >= digits and (digits != 2 or shown > 2 or (decimal[2] or 0) >= 2)
    return has_enough and bool(2 * abs(value - decimal[1]) <= _last_place(decimal))


def _last_place(node: Node) -> Fraction:
    return Fraction(Fraction(10) ** -(node[2] or 0))


def _significant_digits(node: Node) -> int:
    return len(str(int(abs(node[1]) / _last_place(node))).lstrip("0"))


def _is_float_noise(pred: Node, gold: Node) -> bool:
    """Whether two decimals are equal up to noise (`0.30000000000000004`), or round from six digits."""
    difference = abs(pred[1] - gold[1])
    p, g = _significant_digits(pred), _significant_digits(gold)
    if min(p, g) >= 6 and max(p, g) < 15:
        return bool(2 * difference <= max(_last_place(pred), _last_place(gold)))
    return max(p, g) >= 15 and bool(difference <= abs(gold[1]) / 10**14)
