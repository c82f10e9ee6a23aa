"""Outputs that grow, and from which a killed run goes on.

`rewardkit score` appends rows to `.OUT.part`, and every few seconds `.OUT.state` records how many of its
bytes are complete: their number, their checksum and the figures of exactly these rows. It is written
after the rows are safe on the disk. A run that resumes verifies them and cuts the file there, so that
each row is in it exactly once, however the earlier run ended. When all rows are scored the part becomes
OUT.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any
from zlib import crc32

from rewardkit.errors import DataError, OutputError
from rewardkit.jsonl import fingerprint
from rewardkit.output import (
    atomic,
    atomic_side_file,
    open_no_follow,
    raise_output_errors,
    require_absent,
    require_side_file,
)
from rewardkit.output_lock import OutputLock, lock_output
from rewardkit.responses.tally import ScoreFigures


class AppendOnlyFile:
    """A file that is written at its end. Use `open_append_only`.

    Attributes:
        path: its path, for messages.
        file: the unbuffered file, open for reading and appending.
        size: bytes of the whole appends.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.file = path, file
        self.size = file.seek(0, os.SEEK_END)

    def append(self, text: bytes) -> None:
        """Append all of a text or nothing: a full disk leaves no half of it.

        Raises:
            OSError: it cannot be written, or another run has written to it.
        """
        if os.fstat(self.file.fileno()).st_size != self.size:
            raise OutputError(
                f"{self.path}: another run has written to it, too. Wait until that run ends; then "
                "--overwrite starts again."
            )
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError:
            self.truncate(self.size)
            raise
        self.size += len(text)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes only."""
        self.file.truncate(size)
        self.size = size

    def sync(self) -> None:
        """Make what was written safe from a power cut."""
        os.fsync(self.file.fileno())


@contextmanager
def open_append_only(path: Path, out: Path) -> Iterator[AppendOnlyFile]:
    """A file of ours that grows, new or as an earlier run left it. Hold the lock of its output.

    Args:
        path: the file.
        out: the file that a message names if `path` cannot be written.

    Raises:
        OutputError: it cannot be written, or is not a regular file.
    """
    with raise_output_errors(out), open_no_follow(path) as file:
        yield AppendOnlyFile(path, file)


@contextmanager
def lock_part(part: Path, out: Path) -> Iterator[OutputLock]:
    """Hold the lock of an output that grows in `part`.

    Raises:
        OutputError: another run is writing it, or the lock cannot be written.
    """
    with raise_output_errors(out):
        part.parent.mkdir(parents=True, exist_ok=True)
        with lock_output(out, part.with_name(f"{part.name}.lock")) as lock:
            yield lock


def part_path(out: Path) -> Path:
    """Return the file that grows while `out` is being made."""
    return out.with_name(f".{out.name}.part")


#: How often the state is written: a run that resumes scores the rows of this time again.
SAVE_SECONDS = 5.0

#: Bytes that are read at a time to compute a checksum.
CHECKSUM_PIECE_BYTES = 1 << 20

#: How a file of rows that could not be scored begins.
_UNSCORED_START = re.compile(rb'\{"where": "(?:[^"\\]|\\.)*", "reason": "')


@dataclass
class ScoringState:
    """How far a run has come.

    Attributes:
        run: the inputs and settings; a run with other ones cannot resume this one.
        units: number of chunks that are scored.
        sizes: bytes of the part, and of the rows that could not be scored.
        checksums: CRC-32 of those bytes.
        figures: figures of the rows of these chunks.
    """

    run: dict[str, Any]
    units: int = 0
    sizes: tuple[int, int] = (0, 0)
    checksums: tuple[int, int] = (0, 0)
    figures: ScoreFigures = field(default_factory=ScoreFigures)


class ResumableOutput:
    """The files of an unfinished output. Use `open_resumable_output`."""

    def __init__(
        self,
        out: Path,
        lock: OutputLock,
        files: tuple[AppendOnlyFile, AppendOnlyFile],
        state: ScoringState,
    ) -> None:
        self.state, self._lock = state, lock
        self.part, self.unscored, self._state_path = output_paths(out)
        self._files = files
        self._checksums = list(state.checksums)
        self._save_time = -SAVE_SECONDS  # so that the first chunk is saved
        self._can_save = False

    def write(self, lines: bytes, unscored: bytes) -> None:
        """Append the rows of a chunk; they count once `advance` is called."""
        self._can_save = False
        for place, text in enumerate((lines, unscored)):
            self._files[place].append(text)
            self._checksums[place] = crc32(text, self._checksums[place])

    def advance(self, figures: ScoreFigures) -> None:
        """Count the chunk that was written; `figures` are those of all rows so far."""
        state = self.state
        state.sizes = self._files[0].size, self._files[1].size
        state.checksums = self._checksums[0], self._checksums[1]
        state.units, state.figures = state.units + 1, figures
        self._can_save = True
        if monotonic() - self._save_time >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Make the rows safe from a power cut, then write the state that counts them."""
        self._lock.require()
        for file in self._files:
            file.sync()
        values = {**vars(self.state)}
        values |= values.pop("figures").as_values()
        with (
            atomic(self._state_path, overwrite=True) as temporary,
            temporary.open("wb") as state_file,
        ):
            state_file.write(json.dumps(values).encode())
            state_file.flush()
            os.fsync(state_file.fileno())
        self._save_time, self._can_save = monotonic(), False

    def close(self) -> None:
        """Save the chunks since the last state, unless one is half written."""
        self._lock.require()
        if self._can_save:
            self.save()
        elif not self.state.units:  # there is nothing to resume
            self.remove()

    def finish(self, out: Path, *, overwrite: bool) -> None:
        """Check the files, and copy the rows that could not be scored, if any, to a file that stays.

        Raises:
            OutputError: a file of the user's has the name of that file.
            DataError: the files are not what this run wrote: another one has written to them, too.
        """
        paths, state = (self.part, self.unscored), self.state
        for path, size, checksum in zip(paths, state.sizes, state.checksums, strict=True):
            if (actual := _verify(path, size, checksum)) != size:
                raise DataError(
                    f"{path}: another run has written {actual - size:,} bytes to it, too. Wait until "
                    "that run ends; then --overwrite starts again."
                )
        path = unscored_path(out)
        if self.state.figures.unscored:
            with atomic_side_file(path, _UNSCORED_START, overwrite=overwrite) as temporary:
                shutil.copyfile(self.unscored, temporary)
        else:
            require_side_file(path, _UNSCORED_START, overwrite=overwrite)
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the files that a finished output does not need."""
        self._can_save = False
        for path in (self.part, self.unscored, self._state_path):
            path.unlink(missing_ok=True)


def unscored_path(out: Path) -> Path:
    """Return the path of the rows of a finished output that could not be scored."""
    return out.with_name(f"{out.name}.unscored.jsonl")


def output_paths(out: Path) -> tuple[Path, Path, Path]:
    """Return the part, the rows that could not be scored, and the state."""
    return (
        part_path(out),
        out.with_name(f".{out.name}.unscored.part"),
        out.with_name(f".{out.name}.state"),
    )


@contextmanager
def open_resumable_output(
    out: Path, run: dict[str, Any], *, resume: bool, overwrite: bool
) -> Iterator[ResumableOutput]:
    """The files of an output, new or as an interrupted run left them.

    Args:
        out: the output.
        run: the inputs and settings, as JSON values.
        resume: go on with an interrupted run.
        overwrite: replace the output, and the files of an interrupted run.

    Raises:
        OutputError: the output exists, or a file of the user's has the name of the one for rows that
            cannot be scored; an interrupted run can be resumed and neither `resume` nor
            `overwrite` is set; another run writes the output; or it cannot be written.
        DataError: the interrupted run scored something else, or in another way, or its files are
            not as its state says.
    """
    part, unscored, state_path = output_paths(out)
    with ExitStack() as stack:
        lock = stack.enter_context(lock_part(part, out))
        require_absent(out, overwrite=overwrite)  # a run that has just ended may have written it
        require_side_file(unscored_path(out), _UNSCORED_START, overwrite=overwrite)
        files = (
            stack.enter_context(open_append_only(part, out)),
            stack.enter_context(open_append_only(unscored, out)),
        )
        state = _read_state(out, run, resume=resume, overwrite=overwrite)
        if state is None:
            state = ScoringState(run)
            state_path.unlink(missing_ok=True)
        else:
            for path, size, checksum in zip(
                (part, unscored), state.sizes, state.checksums, strict=True
            ):
                _verify(path, size, checksum)
        for file, size in zip(files, state.sizes, strict=True):
            file.truncate(size)
        output = ResumableOutput(out, lock, files, state)
        stack.callback(output.close)
        yield output


def fingerprints(files: Sequence[str]) -> list[list[Any]]:
    """Return the name and the fingerprint of each file."""
    return [[file, *fingerprint(file)] for file in files if file != "-"]


def _read_state(
    out: Path, run: dict[str, Any], *, resume: bool, overwrite: bool
) -> ScoringState | None:
    """Return the state of an interrupted run that is to be resumed; None to start anew."""
    path = output_paths(out)[2]
    if path.is_symlink():
        raise OutputError(f"{path} is a symbolic link that rewardkit did not create; remove it.")
    if not path.exists():
        return None
    if not resume:
        if overwrite:
            return None
        raise OutputError(
            f"{out}: an earlier run was interrupted; --resume continues it, --overwrite starts "
            "again."
        )
    try:
        values = json.loads(path.read_bytes())
        sizes, checksums = tuple(values["sizes"]), tuple(values["checksums"])
        figures = ScoreFigures.from_values(values)
        state = ScoringState(values["run"], values["units"], sizes, checksums, figures)
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


def _verify(path: Path, size: int, checksum: int) -> int:
    """Return the bytes of a file; raise `DataError` unless the first `size` have that checksum."""
    with path.open("rb") as file:
        remaining, actual = size, 0
        while remaining and (piece := file.read(min(remaining, CHECKSUM_PIECE_BYTES))):
            remaining, actual = remaining - len(piece), crc32(piece, actual)
        if remaining or actual != checksum:
            raise DataError(
                f"{path}: is not what the interrupted run wrote ({size - remaining:,} of {size:,} "
                "bytes exist); --overwrite starts again."
            )
        return os.fstat(file.fileno()).st_size
