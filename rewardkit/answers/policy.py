"""The policy of a comparison: whether answers may differ in precision or unit."""

from __future__ import annotations

from typing import Final, NamedTuple


class Policy(NamedTuple):
    """What counts as equal beyond the same value.

    Attributes:
        significant_digits: accept the gold correctly rounded to at least this number of digits; 0
            accepts only the roundings of exact values.
        convert_units: accept equal quantities in different units of one dimension.
    """

    significant_digits: int = 0
    convert_units: bool = False


STRICT: Final = Policy()
