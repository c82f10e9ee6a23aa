"""Whether two results are equal: multisets of rows, or lists of rows where the gold orders them.

Columns are compared by position. Whole numbers are exact, and a decimal equals a number within 1e-9,
absolute or relative, which is what the order of a sum can change: with the 1e-6 of programs, two sums of
a million would be equal that differ by a euro. A text never equals a number, and NULL equals NULL.
"""

from collections import Counter
from collections.abc import Sequence
from math import isclose
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Sequence[Row]

#: The tolerance of decimals, absolute and relative.
TOLERANCE = 1e-9


def align(results: Sequence[Rows]) -> list[list[Row]]:
    """Return results in which decimals of a column that are near to each other are one number.

    Rows are then equal or not, without a search for pairs: what is near to something near is near.
    """
    width = max((len(row) for rows in results for row in rows), default=0)
    columns = [
        _near_numbers({row[index] for rows in results for row in rows if index < len(row)})
        for index in range(width)
    ]
    if not any(columns):
        return [list(rows) for rows in results]
    return [
        [
            tuple(near.get(v, v) if near else v for v, near in zip(row, columns, strict=False))
            for row in rows
        ]
        for rows in results
    ]


def _near_numbers(values: set[Any]) -> dict[Any, Any]:
    """Return the number that stands for each number of a column; empty if there is no decimal."""
    if not any(isinstance(value, float) for value in values):
        return {}
    near, last, first = {}, None, None
    for value in sorted(value for value in values if isinstance(value, (int, float))):
        is_near = last is not None and (isinstance(value, float) or isinstance(last, float))
        if not is_near or not isclose(value, last, rel_tol=TOLERANCE, abs_tol=TOLERANCE):  # type: ignore[arg-type]
            first = value
        near[value], last = first, value
    return near


def first_difference(rows: Rows, golds: Sequence[Rows]) -> int:
    """Return the index of the first row that is wrong; -1 if there is none.

    Args:
        rows: the result of a query, with as many rows as the gold's.
        golds: the gold's result; where it orders its rows, also with the rows that tie in ascending and in
            descending order. Rows that tie may have any order, and where they tie at a LIMIT, those of
            each of the three are right.
    """
    rows, *variants = align([rows, *golds])
    if len(variants) == 1:
        left = Counter(variants[0])
        for index, row in enumerate(rows):
            if not left[row]:
                return index
            left[row] -= 1
        return -1
    start = 0
    balance: Counter[Row] = Counter()
    for end, (one, other) in enumerate(zip(*variants[1:3], strict=True), 1):
        for row, sign in ((one, 1), (other, -1)):
            balance[row] += sign
            if not balance[row]:
                del balance[row]
        if balance and end < len(rows):
            continue  # the rows tie
        block, choices = rows[start:end], [variant[start:end] for variant in variants]
        if block not in choices and Counter(block) not in map(Counter, choices):
            return next(i for i in range(start, end) if i == end - 1 or rows[i] not in choices[0])
        balance.clear()
        start = end
    return -1
