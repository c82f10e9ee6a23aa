"""Parser of metric values as verl prints them.

Up to 0.4 every value has three decimals; later ones are `pprint.pformat` of a Python or NumPy
scalar (`verl/utils/logger/aggregate_logger.py`), which under NumPy 2 reads `np.float64(0.5)`.
"""

from __future__ import annotations

import re

_PLAIN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|nan)"

#: A value: a plain number, the repr of a NumPy scalar, or a truth value.
VALUE = rf"(?:{_PLAIN}|(?:np|numpy)\.\w+\((?:{_PLAIN}|True|False)\)|(?:np\.)?(?:True|False)_?)"

_BARE = re.compile(_PLAIN)
_WRAPPED = re.compile(r"(?:np|numpy)\.\w+\((.*)\)")
_TRUTH = {"True": 1, "False": 0, "np.True_": 1, "np.False_": 0}


def parse_value(text: str) -> float | None:
    """Parse a value; None if the text is not one.

    Integers stay integers, so that large counts keep all their digits. True is 1.
    """
    if _BARE.fullmatch(text):
        return _plain(text)
    if text in _TRUTH:
        return _TRUTH[text]
    wrapped = _WRAPPED.fullmatch(text)
    return parse_value(wrapped[1]) if wrapped and not _WRAPPED.fullmatch(wrapped[1]) else None


def _plain(text: str) -> float | None:
    digits = text.lstrip("+-")
    if not digits.isdigit():
        return float(text)
    # Python refuses to parse integers of thousands of digits; no metric has that many.
    return int(text) if len(digits) <= 300 else None
