"""The responses that a report lists: all, or an even sample with some of every status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from random import Random
from typing import IO, TypeAlias

from rewardkit.responses.report.scored_responses import ScoredResponse
from rewardkit.scorers.base import Status

#: The size of the sample divided by this is reserved for each status, however rare it is.
STATUS_DIVISOR = 40

#: A negative random number, and the first byte and the size of a response in the spool.
_Ticket: TypeAlias = tuple[float, int, int]


@dataclass
class ShownResponses:
    """A sample of responses, in a file: memory does not grow with their length.

    Each response draws a random number. The sample has the lowest numbers of all responses and of
    those with each status.

    Attributes:
        max_responses: size of the sample.
        spool: a binary file to write to and read from.
        n: number of responses that were added.
    """

    max_responses: int
    spool: IO[bytes]
    n: int = 0
    _random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - a reproducible sample
    _all: list[_Ticket] = field(default_factory=list)
    _by_status: dict[Status, list[_Ticket]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        """The number of responses of each status in the sample, if there are as many."""
        return max(1, self.max_responses // STATUS_DIVISOR)

    def add(self, response: ScoredResponse) -> None:
        """Add a response, which may replace another in the sample."""
        self.n += 1
        number = -self._random.random()
        same_status = self._by_status.setdefault(response.status, [])
        heaps = [(self._all, self.max_responses), (same_status, self.reserved)]
        if not any(len(heap) < size or number > heap[0][0] for heap, size in heaps):
            return
        ticket = (number, *self._write(response))
        for heap, size in heaps:
            heappush(heap, ticket) if len(heap) < size else heappushpop(heap, ticket)

    def __iter__(self) -> Iterator[ScoredResponse]:
        """Yield the responses of the sample, in the order in which they were added."""
        sample = {ticket for heap in self._by_status.values() for ticket in heap}
        for ticket in sorted(self._all, reverse=True):
            if len(sample) >= self.max_responses:
                break
            sample.add(ticket)
        for _, start, size in sorted(sample, key=lambda ticket: ticket[1]):
            self.spool.seek(start)
            yield _parse(self.spool.read(size))

    def _write(self, response: ScoredResponse) -> tuple[int, int]:
        line = json.dumps(vars(response)).encode()
        start = self.spool.tell()
        self.spool.write(line)
        return start, len(line)


def _parse(line: bytes) -> ScoredResponse:
    fields = json.loads(line)
    return ScoredResponse(**{**fields, "status": Status(fields["status"])})
