"""Select rows by their places while batches are read in order."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa


class PlaceCursor:
    """Ascending places of wanted rows, and the place up to which rows have been read.

    Attributes:
        start: the place of the next row to read.
    """

    def __init__(self, places: Iterable[int], start: int = 0) -> None:
        self._places = iter(places)
        self._next = next(self._places, None)
        self.start = start

    def is_done(self) -> bool:
        """Return whether no wanted row is left."""
        return self._next is None

    def has_next_within(self, size: int) -> bool:
        """Return whether one of the next `size` rows is wanted."""
        return self._next is not None and self._next < self.start + size

    def advance(self, size: int) -> list[int]:
        """Move on by `size` rows and return the places of the wanted ones among them."""
        end, places = self.start + size, []
        while self._next is not None and self._next < end:
            places.append(self._next)
            self._next = next(self._places, None)
        self.start = end
        return places

    def take(self, batch: pa.RecordBatch) -> tuple[list[int], pa.RecordBatch]:
        """Move on by a batch and return the places and rows of the wanted ones in it."""
        start = self.start
        places = self.advance(batch.num_rows)
        return places, batch.take(pa.array([place - start for place in places], pa.int64()))
