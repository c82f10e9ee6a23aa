"""An output that grows over hours: a run that is interrupted can go on where it ended.

Rows are appended to `.OUT.part`, and every few seconds `.OUT.state` says how much of it is whole: its
size, its checksum and the figures of just these rows, written after the rows are safe on the disk. A
run that goes on compares them and cuts the file there, so that no row is lost and none is there
twice, however the run before it ended. When all is done the part becomes OUT.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any
from zlib import crc32

from rewardkit.errors import DataError, OutputError
from rewardkit.fingerprint import fingerprint
from rewardkit.output import atomic, lock_file, open_no_follow, refuse_existing
from rewardkit.responses.read import Unread
from rewardkit.responses.tally import Tally

#: How often the state is written: a killed run scores the rows of this many seconds again.
SECONDS = 5.0

#: Bytes that are read at a time to compare a file with its checksum.
PIECE = 1 << 20

Tallies = dict[str, dict[str, Tally]]


@dataclass
class State:
    """How far a run has come.

    Attributes:
        run: what is scored and how; another run does not go on with this one's rows.
        units: how many units are done.
        sizes: bytes of the part, and of the rows that could not be scored.
        checksums: CRC-32 of those bytes.
        unscored: how many rows could not be scored.
        examples: where the first of these are, and why.
        tallies: of the rows done.
    """

    run: dict[str, Any]
    units: int = 0
    sizes: tuple[int, int] = (0, 0)
    checksums: tuple[int, int] = (0, 0)
    unscored: int = 0
    examples: list[Unread] = field(default_factory=list)
    tallies: Tallies = field(default_factory=dict)


class Journal:
    """The files of an output in the making. Use `open_journal`."""

    def __init__(self, out: Path, files: tuple[IO[bytes], IO[bytes]], state: State) -> None:
        self.state = state
        self.part, self.unscored, self._state = paths(out)
        self._files = files
        self._ends = list(zip(state.sizes, state.checksums, strict=True))
        self._saved = -SECONDS  # never, by the clock
        self._current = False

    def write(self, lines: bytes, unscored: bytes) -> None:
        """Append a unit's rows; they count once `advance` is called."""
        self._current = False
        for place, text in enumerate((lines, unscored)):
            left = memoryview(text)
            while left:
                left = left[self._files[place].write(left) :]
            size, checksum = self._ends[place]
            self._ends[place] = size + len(text), crc32(text, checksum)

    def advance(self, tallies: Tallies, unscored: int, examples: list[Unread]) -> None:
        """Say that the rows of one more unit are written, and what all of them add up to."""
        state = self.state
        (part, rest), sums = zip(*self._ends, strict=True)
        state.sizes, state.checksums = (part, rest), (sums[0], sums[1])
        state.units, state.tallies = state.units + 1, tallies
        state.unscored, state.examples = unscored, examples
        self._current = True
        if monotonic() - self._saved >= SECONDS:
            self.save()

    def save(self) -> None:
        """Make the rows safe from a power cut, then write the state that promises them."""
        for file in self._files:
            os.fsync(file.fileno())
        with atomic(self._state, overwrite=True) as temporary, temporary.open("wb") as file:
            file.write(json.dumps(_plain(self.state)).encode())
            file.flush()
            os.fsync(file.fileno())
        self._saved, self._current = monotonic(), False

    def close(self) -> None:
        """Save what was done since the state was last written, unless a unit is half-counted."""
        if self._current:
            self.save()
        elif not self.state.units:  # nothing to go on from
            self.remove()

    def finish(self, unscored: Path) -> None:
        """Copy the rows that could not be scored to a file that stays, if there are any."""
        if self.state.unscored:
            with atomic(unscored, overwrite=True) as temporary:
                shutil.copyfile(self.unscored, temporary)
        else:
            unscored.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove what the finished output does not need any more."""
        self._current = False
        for path in (self.part, self.unscored, self._state):
            path.unlink(missing_ok=True)


def paths(out: Path) -> tuple[Path, Path, Path]:
    """The part, the rows that could not be scored, and the state."""
    return (
        out.with_name(f".{out.name}.part"),
        out.with_name(f".{out.name}.unscored.part"),
        out.with_name(f".{out.name}.state"),
    )


@contextmanager
def open_journal(
    out: Path, run: dict[str, Any], *, resume: bool, overwrite: bool
) -> Iterator[Journal]:
    """The journal of an output, new or where an earlier run left it.

    Raises:
        OutputError: the output exists, or an interrupted run's part does and it is not said what
            to do with it; or another run writes it, or it cannot be written.
        DataError: the interrupted run scored something else, or in another way, or its part is not
            what its state says.
    """
    refuse_existing(out, overwrite=overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            part, unscored, path = paths(out)
            files = (
                stack.enter_context(open_no_follow(part)),
                stack.enter_context(open_no_follow(unscored)),
            )
            lock_file(files[0], part)
            state = _state_of(out, run, resume=resume, overwrite=overwrite)
            if state is None:
                state = State(run)
                path.unlink(missing_ok=True)
            else:
                for place, name in enumerate((part, unscored)):
                    _verify(files[place], name, state.sizes[place], state.checksums[place])
            for file, size in zip(files, state.sizes, strict=True):
                file.truncate(size)
            journal = Journal(out, files, state)
            stack.callback(journal.close)
            yield journal
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}.") from error


def fingerprints(files: Sequence[str]) -> list[list[Any]]:
    """Of every file its name and what tells it from another version of it."""
    return [[file, *fingerprint(file)] for file in files if file != "-"]


def _state_of(out: Path, run: dict[str, Any], *, resume: bool, overwrite: bool) -> State | None:
    """The state of an interrupted run that is to go on; None to start anew."""
    path = paths(out)[2]
    if path.is_symlink():
        raise OutputError(f"{path} is a symbolic link that rewardkit did not make; remove it.")
    if not path.exists():
        return None
    if not resume:
        if overwrite:
            return None
        raise OutputError(
            f"{out}: an earlier run was interrupted; --resume goes on with it, --overwrite starts "
            "again."
        )
    try:
        values = json.loads(path.read_bytes())
        tallies = {
            group: {name: Tally.of(tally) for name, tally in named.items()}
            for group, named in values["tallies"].items()
        }
        pairs = {name: tuple(values[name]) for name in ("sizes", "checksums")}
        examples = [Unread(*row) for row in values["examples"]]
        state = State(**{**values, **pairs, "examples": examples, "tallies": tallies})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: is not a state that this version wrote; --overwrite starts again."
        ) from error
    if state.run != json.loads(json.dumps(run)):
        raise DataError(
            f"{out}: the interrupted run read other files or scored in another way; --overwrite "
            "starts again."
        )
    return state


def _verify(file: IO[bytes], path: Path, size: int, checksum: int) -> None:
    """Raise `DataError` unless the file begins with `size` bytes of that checksum."""
    file.seek(0)
    left, actual = size, 0
    while left and (piece := file.read(min(left, PIECE))):
        left, actual = left - len(piece), crc32(piece, actual)
    if left or actual != checksum:
        raise DataError(
            f"{path}: is not what the interrupted run wrote ({size - left:,} of {size:,} bytes are "
            "there); --overwrite starts again."
        )


def _plain(state: State) -> dict[str, Any]:
    tallies = {
        group: {name: vars(tally) for name, tally in named.items()}
        for group, named in state.tallies.items()
    }
    return {**vars(state), "tallies": tallies}
