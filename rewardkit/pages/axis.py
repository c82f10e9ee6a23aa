"""Round numbers for the axes of charts: steps of 1, 2 or 5 times a power of ten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import floor, log10

#: Number of labels that fit below a chart on a phone, by the characters of the longest one.
_LABELS_BY_LENGTH = {3: 8, 5: 6, 7: 5, 9: 4, 14: 3}


def round_steps() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, 100, ..."""
    for power in count():
        yield from (step * 10**power for step in (1, 2, 5))


def round_ticks(start: int, stop: int, *, most: int = 8) -> range:
    """Return round whole numbers from `start` up to, but not including, `stop`.

    They are at most `most`, and fewer if their labels are long: none collides with its neighbour on a
    chart of 300 pixels.
    """
    longest = max(len(f"{start:,}"), len(f"{stop - 1:,}"))
    fitting = next((n for length, n in _LABELS_BY_LENGTH.items() if longest <= length), 2)
    most = min(most, fitting)
    step = next(step for step in round_steps() if (stop - 1) // step + -start // step < most)
    return range(-(-start // step) * step, stop, step)


def round_levels(lowest: float, highest: float, *, most: int = 5) -> list[float]:
    """Return about `most` round numbers, two at least, that enclose the lowest and the highest one."""
    rough = max(highest - lowest, 0.001) / most
    power = 10.0 ** floor(log10(rough))
    unit = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    bottom = floor(lowest / unit + 1e-9) * unit
    n = max(1, -floor((bottom - highest) / unit + 1e-9))
    return [bottom + i * unit for i in range(n + 1)]
