"""Read lines of untrusted files, of which none longer than a limit is held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rewardkit.errors import DataError

#: Longest line, in bytes, without its end. A response of a million tokens, or a chat with ten
#: pictures, has a few MiB. Parsing takes several times a line's size, so more would not fit beside
#: the other processes of a machine.
MAX_LINE_BYTES = 64 << 20

#: Bytes of a too long line that are read and dropped at a time.
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class LongLine:
    """Stands for a line that was skipped because it is longer than the limit.

    Attributes:
        size: bytes of the line, without its end.
        limit: the limit, in bytes.
    """

    size: int
    limit: int

    @property
    def reason(self) -> str:
        """The reason for a message that begins with the place of the line."""
        return f"the line has {self.size:,} bytes, more than the limit of {self.limit:,}"


def bounded_lines(stream: IO[bytes], limit: int = MAX_LINE_BYTES) -> Iterator[bytes | LongLine]:
    """Yield the lines of a buffered binary stream with their ends; a `LongLine` for a too long one.

    A too long line is read to its end in pieces that are dropped, so memory stays below about twice
    the limit.
    """
    while line := stream.readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
        else:
            yield LongLine(len(line) + _drop_rest(stream), limit)


def checked_lines(
    stream: IO[bytes], name: object, limit: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream with their numbers, from 1.

    Raises:
        DataError: a line is longer than `limit`; the message begins with `name` and its number.
    """
    for number, line in enumerate(bounded_lines(stream, limit), 1):
        if isinstance(line, LongLine):
            raise DataError(f"{name}:{number}: {line.reason}; split the line or leave it out.")
        yield number, line


def _drop_rest(stream: IO[bytes]) -> int:
    """Read to the end of the line; return the number of bytes before the line end."""
    dropped = 0
    while piece := stream.readline(_PIECE_BYTES):
        if piece.endswith(b"\n"):
            return dropped + len(piece) - 1
        dropped += len(piece)
    return dropped
