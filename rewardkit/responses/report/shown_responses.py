"""Which responses a report page holds: all, or an even sample with some of every status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from random import Random
from typing import IO, TypeAlias

from rewardkit.responses.report.totals import ScoredResponse
from rewardkit.scorers.base import Status

#: One place in so many is reserved for each status, however rare it is.
RESERVED = 40

#: A drawn number, less than 0, and where in the spool the response is.
_Drawn: TypeAlias = tuple[float, int, int]


@dataclass
class ShownResponses:
    """Responses kept, their texts in a file: memory does not grow with their length.

    Each response draws a number; the lowest are kept, of all and of each status.

    Attributes:
        most: how many at most.
        spool: a binary file to write and read.
        n: how many were offered.
    """

    most: int
    spool: IO[bytes]
    n: int = 0
    _random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - a fixed draw
    _all: list[_Drawn] = field(default_factory=list)
    _by_status: dict[Status, list[_Drawn]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        """How many of each status are kept, if there are as many."""
        return max(1, self.most // RESERVED)

    def add(self, response: ScoredResponse) -> None:
        """Offer one response."""
        self.n += 1
        number = -self._random.random()
        own = self._by_status.setdefault(response.status, [])
        heaps = [(self._all, self.most), (own, self.reserved)]
        wanted = [heap for heap, most in heaps if len(heap) < most or number > heap[0][0]]
        if not wanted:
            return
        drawn = (number, *self._write(response))
        for heap, most in heaps:
            heappush(heap, drawn) if len(heap) < most else heappushpop(heap, drawn)

    def __iter__(self) -> Iterator[ScoredResponse]:
        """Those kept, in the order in which they were offered."""
        chosen = {drawn for heap in self._by_status.values() for drawn in heap}
        for drawn in sorted(self._all, reverse=True):
            if len(chosen) >= self.most:
                break
            chosen.add(drawn)
        for _, start, length in sorted(chosen, key=lambda drawn: drawn[1]):
            self.spool.seek(start)
            yield _loaded(self.spool.read(length))

    def _write(self, response: ScoredResponse) -> tuple[int, int]:
        line = json.dumps({**vars(response), "group": response.group.hex()}).encode()
        start = self.spool.tell()
        self.spool.write(line)
        return start, len(line)


def _loaded(line: bytes) -> ScoredResponse:
    fields = json.loads(line)
    group, status = bytes.fromhex(fields.pop("group")), Status(fields.pop("status"))
    return ScoredResponse(**fields, group=group, status=status)
