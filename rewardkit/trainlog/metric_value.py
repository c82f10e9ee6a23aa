"""Parser of metric values as verl prints them.

Up to 0.4 every value has three decimals; later ones are `pprint.pformat` of a Python or NumPy
scalar (`verl/utils/logger/aggregate_logger.py`), which under NumPy 2 reads `np.float64(0.5)`.
"""

from __future__ import annotations

import re

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|nan)"

#: A value: a plain number, the repr of a NumPy scalar, or a truth value.
VALUE = rf"(?:{_NUMBER}|(?:np|numpy)\.\w+\((?:{_NUMBER}|True|False)\)|(?:np\.)?(?:True|False)_?)"

_BARE = re.compile(_NUMBER)
_WRAPPED = re.compile(r"(?:np|numpy)\.\w+\((.*)\)")
_TRUTH = {"True": 1, "False": 0, "np.True_": 1, "np.False_": 0}


def parse_metric(text: str) -> float | None:
    """Parse a value; None if the text is not one.

    Integers stay integers, so that large counts keep all their digits. True is 1.
    """
    if _BARE.fullmatch(text):
        return _parse_number(text)
    if text in _TRUTH:
        return _TRUTH[text]
    wrapped = _WRAPPED.fullmatch(text)
    return parse_metric(wrapped[1]) if wrapped and not _WRAPPED.fullmatch(wrapped[1]) else None


def _parse_number(text: str) -> float | None:
    digits = text.lstrip("+-")
    if not digits.isdigit():
        return float(text)
    # Python refuses to parse integers of thousands of digits; no metric has that many.
    return int(text) if len(digits) <= 300 else None
