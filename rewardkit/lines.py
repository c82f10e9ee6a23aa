"""Lines of files that anyone may have written: none longer than a limit is ever held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rewardkit.errors import DataError

#: Longest line that is read, in bytes, without its end. A response of a million tokens, or a chat
#: with ten pictures, has a few MiB. Parsing takes several times a line's size, so that more would
#: not fit beside the other processes of a machine.
MAX_LINE_BYTES = 64 << 20

#: Bytes of a line that is too long that are read, and dropped, at a time.
_PIECE = 1 << 20


@dataclass(frozen=True)
class LongLine:
    """A line that was passed over because it exceeds the limit.

    Attributes:
        size: bytes of the line, without its end.
        limit: bytes that a line may have.
    """

    size: int
    limit: int

    @property
    def reason(self) -> str:
        """Why the line was not read, for a message that begins with its place."""
        return f"the line has {self.size:,} bytes, more than the limit of {self.limit:,}"


def bounded_lines(stream: IO[bytes], limit: int = MAX_LINE_BYTES) -> Iterator[bytes | LongLine]:
    """The lines of a buffered binary stream, each with its end; a `LongLine` for one beyond `limit`.

    A line that is too long is read to its end in pieces that are dropped, so that memory stays
    below about twice the limit whatever the stream holds.
    """
    while line := stream.readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
        else:
            yield LongLine(len(line) + _drop_rest(stream), limit)


def checked_lines(
    stream: IO[bytes], name: object, limit: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream with their numbers, from 1.

    Raises:
        DataError: a line is longer than `limit`; the message begins with `name` and its number.
    """
    for number, line in enumerate(bounded_lines(stream, limit), 1):
        if isinstance(line, LongLine):
            raise DataError(f"{name}:{number}: {line.reason}; split it or leave it out.")
        yield number, line


def _drop_rest(stream: IO[bytes]) -> int:
    """Read to the end of the line and return the bytes before the line end."""
    dropped = 0
    while piece := stream.readline(_PIECE):
        if piece.endswith(b"\n"):
            return dropped + len(piece) - 1
        dropped += len(piece)
    return dropped
