"""Whether what a program printed or returned is what a test expects.

Printed text is right if it has the same bytes, or the same words between white space: letter by
letter, but a number with a point or an exponent in the expected text is also right within 1e-6,
absolute or relative. A result is right if it is equal as data: whole numbers exactly, decimals within
1e-6, a tuple for a list (JSON has no tuples), and a key 1 for the key "1" (nor other keys than text).
"""

import re
from math import isclose
from typing import Any

#: The tolerance of decimals, absolute and relative.
TOLERANCE = 1e-6
#: A printed text that is longer than this many times the expected one is wrong without being read.
MAX_RATIO = 4

_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d{1,3})?")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")


def same_text(output: bytes, expected: str) -> bool:
    """Whether a program printed the expected text."""
    data = expected.encode("utf-8", "surrogatepass")
    if output == data:
        return True
    if len(output) > MAX_RATIO * len(data) + 1000:
        return False
    words, expected_words = output.decode("utf-8", "replace").split(), expected.split()
    return len(words) == len(expected_words) and all(map(_same_word, words, expected_words))


def _same_word(word: str, expected: str) -> bool:
    if word == expected:
        return True
    if len(expected) > 400 or not _DECIMAL.fullmatch(expected) or not _NUMBER.fullmatch(word):
        return False
    return _close(float(word), float(expected))


def _close(value: float, expected: float) -> bool:
    return isclose(value, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def same_value(value: Any, expected: Any) -> bool:
    """Whether a result is the expected value; both are data without classes."""
    pairs = [(value, expected)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(other, float):  # whole numbers are exact, also where a decimal is near
            if not (isinstance(one, (int, float)) and _close_numbers(one, other)):
                return False
        elif isinstance(other, dict):
            if not isinstance(one, dict) or len(one) != len(other):
                return False
            names = {_key(key, other): each for key, each in one.items()}
            if names.keys() != other.keys():
                return False
            pairs += [(each, other[key]) for key, each in names.items()]
        elif isinstance(other, (list, tuple)):
            if not isinstance(one, (list, tuple)) or len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, (list, tuple, dict)) or one != other:
            return False
    return True


def _key(key: Any, expected: dict[Any, Any]) -> Any:
    try:
        return key if key in expected else str(key)
    except (RecursionError, ValueError):
        return None  # a deep key, a long number


def _close_numbers(one: float, other: float) -> bool:
    try:
        return one == other or _close(one, other)
    except OverflowError:
        return False  # a whole number that no float can be near
