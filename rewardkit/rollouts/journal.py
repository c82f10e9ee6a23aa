"""An output that grows over hours: a run that is interrupted can go on where it ended.

Rows are appended to `.OUT.part`, and every second `.OUT.state` says how much of it is whole. A run
that goes on cuts the file there, so that no row is lost and none is there twice, however the
run before it ended. When all is done the part becomes OUT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any

from rewardkit.errors import DataError, OutputError
from rewardkit.output import refuse_existing
from rewardkit.rollouts.tally import Tally

#: How often the state is written: a killed run scores so many seconds' rows again.
SECONDS = 1.0


@dataclass
class State:
    """How far a run has come.

    Attributes:
        run: what is scored and how; another run does not go on with this one's rows.
        units: how many units are done.
        sizes: bytes of the part, and of the rows that could not be scored.
        unscored: how many rows those are.
        tallies: of the rows done.
    """

    run: dict[str, Any]
    units: int = 0
    sizes: tuple[int, int] = (0, 0)
    unscored: int = 0
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)


class Journal:
    """The files of an output in the making. Use `open_journal`."""

    def __init__(self, out: Path, state: State) -> None:
        self.state = state
        self.part, self.unscored, self._state = paths(out)
        self._files: list[IO[bytes]] = [
            _cut(self.part, state.sizes[0]),
            _cut(self.unscored, state.sizes[1]),
        ]
        self._saved = -SECONDS  # never, by the clock
        self._behind = False

    def write(self, lines: bytes, unscored: bytes) -> None:
        """Append a unit's rows, and say that they are whole."""
        for file, text in zip(self._files, (lines, unscored), strict=True):
            file.write(text)
            file.flush()
        self.state.units += 1
        self.state.sizes = (self._files[0].tell(), self._files[1].tell())
        self._behind = True
        if monotonic() - self._saved >= SECONDS:
            self._save()

    def _save(self) -> None:
        self._saved, self._behind = monotonic(), False
        temporary = self._state.with_suffix(".tmp")
        temporary.write_text(json.dumps(_plain(self.state)), encoding="utf-8")
        temporary.replace(self._state)

    def close(self) -> None:
        """Close the files; what they hold stays, and the state says so."""
        if self._behind:
            self._save()
        for file in self._files:
            file.close()

    def remove(self) -> None:
        """Remove what the output does not need any more, once it is closed."""
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
            to do with it; or it cannot be written.
        DataError: the interrupted run scored something else, or in another way.
    """
    refuse_existing(out, overwrite=overwrite)
    state = _left_over(out, run) if resume else None
    if state is None and not overwrite and paths(out)[2].exists():
        raise OutputError(
            f"{out}: an earlier run was interrupted; --resume goes on with it, --overwrite starts "
            "again."
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        journal = Journal(out, state or State(run))
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}.") from error
    try:
        yield journal
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}.") from error
    finally:
        journal.close()


def fingerprint(files: Sequence[str]) -> list[list[Any]]:
    """Of every file its name, size and time of change."""
    stats = ((file, Path(file).stat()) for file in files if file != "-")
    return [[file, stat.st_size, stat.st_mtime_ns] for file, stat in stats]


def _left_over(out: Path, run: dict[str, Any]) -> State | None:
    path = paths(out)[2]
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not a state of ours; --overwrite starts again.") from error
    if values["run"] != json.loads(json.dumps(run)):
        raise DataError(
            f"{out}: the interrupted run read other files or scored in another way; --overwrite "
            "starts again."
        )
    tallies = {
        group: {name: Tally.of(tally) for name, tally in named.items()}
        for group, named in values["tallies"].items()
    }
    return State(**{**values, "sizes": tuple(values["sizes"]), "tallies": tallies})


def _cut(path: Path, size: int) -> IO[bytes]:
    file = path.open("ab")
    file.truncate(size)
    file.seek(size)
    return file


def _plain(state: State) -> dict[str, Any]:
    tallies = {
        group: {name: vars(tally) for name, tally in named.items()}
        for group, named in state.tallies.items()
    }
    return {**vars(state), "tallies": tallies}
