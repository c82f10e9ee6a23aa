"""The choices that are the caller's: which answers that differ in precision or unit are equal."""

from __future__ import annotations

from typing import Final, NamedTuple


class Policy(NamedTuple):
    """What counts as equal beyond being the same value.

    `significant_digits`: a gold correctly rounded to at least that many digits is right; 0 for no
    rounding but that of exact values. `convert_units`: equal quantities in different units of one
    dimension are equal.
    """

    significant_digits: int = 0
    convert_units: bool = False


STRICT: Final = Policy()
