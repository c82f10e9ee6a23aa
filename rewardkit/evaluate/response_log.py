"""Responses as they come: lines appended to a file, from which a killed run goes on.

A line is keyed by `row`, `sample`, `model`, `sampling` and `prompt_sha256`, and says which request
it came with. The choices of one request are written at once, so that only the last request can be
torn; that is cut off, and asked again.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any

from rewardkit.errors import DataError, OutputError, RewardkitError
from rewardkit.evaluate.questions import Question
from rewardkit.lines import MAX_LINE_BYTES, checked_lines
from rewardkit.output import lock_file, open_no_follow
from rewardkit.responses.json_lines import json_line

#: Longest line: in ASCII, a response has up to three times the bytes that it had where it came from.
PART_LINE_BYTES = 4 * MAX_LINE_BYTES

#: Seconds between two times that what was written is made safe from a power cut.
SYNC_SECONDS = 1.0


@dataclass
class Kept:
    """Where the responses of a file are; three numbers for each, never the text.

    Attributes:
        size: bytes of the whole lines.
        rows, samples, offsets: of each response.
        prompts: the start of the prompt's digest, by row.
    """

    size: int = 0
    rows: array[int] = field(default_factory=lambda: array("q"))
    samples: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    prompts: dict[int, bytes] = field(default_factory=dict)

    def add(self, row: int, sample: int, offset: int, prompt: str) -> None:
        """Note a response."""
        self.rows.append(row)
        self.samples.append(sample)
        self.offsets.append(offset)
        self.prompts[row] = _short(prompt)

    def by_row(self) -> dict[int, array[int]]:
        """The places in the arrays of each row's responses, in the order of the samples."""
        places: dict[int, array[int]] = {}
        for place in sorted(range(len(self.rows)), key=lambda i: (self.rows[i], self.samples[i])):
            row = places.setdefault(self.rows[place], array("q"))
            if not row or self.samples[row[-1]] != self.samples[place]:
                row.append(place)
        return places

    def of_prompt(self, question: Question) -> bool:
        """Whether the responses of its row, if there are any, answer this very prompt."""
        return self.prompts.get(question.row, _short(question.digest)) == _short(question.digest)


class Part:
    """A file of responses that is written. Use `open_part`."""

    def __init__(self, file: IO[bytes], key: Mapping[str, Any]) -> None:
        self._file, self._key, self._synced = file, dict(key), monotonic()
        self._size = file.seek(0, os.SEEK_END)

    def append(
        self, question: Question, first: int, responses: Sequence[Mapping[str, Any]]
    ) -> None:
        """Append the choices of one request, as samples from `first` on."""
        request = [first, len(responses)]
        lines = [
            json_line(
                {
                    "row": question.row,
                    "sample": first + place,
                    **self._key,
                    "prompt_sha256": question.digest,
                    "request": request,
                    **response,
                }
            )
            for place, response in enumerate(responses)
        ]
        self._write("".join(lines).encode())
        if monotonic() - self._synced >= SYNC_SECONDS:
            self.sync()

    def _write(self, text: bytes) -> None:
        """All or nothing: on a full disk what was written of it is cut off again."""
        left = memoryview(text)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(text)

    @property
    def empty(self) -> bool:
        """Whether the file has no response."""
        return not self._size

    def sync(self) -> None:
        """Make what was written safe from a power cut."""
        os.fsync(self._file.fileno())
        self._synced = monotonic()


def part_of(out: Path) -> Path:
    """The file that grows while `out` is being made."""
    return out.with_name(f".{out.name}.part")


@contextmanager
def open_part(path: Path, key: Mapping[str, Any], *, fresh: bool) -> Iterator[tuple[Part, Kept]]:
    """A file of responses to write to, and what it has already.

    Args:
        path: new, or of a run that was interrupted.
        key: `model` and `sampling`; responses of another are not mixed in.
        fresh: start again if it is of another.

    Raises:
        DataError: it is of another model or sampling, or no such file.
        OutputError: it cannot be written, or another run is writing it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_no_follow(path) as file:
            lock_file(file, path)
            kept = _kept_of(path, key, fresh=fresh)
            file.truncate(kept.size)
            part = Part(file, key)
            ended = False
            try:
                yield part, kept
                ended = True
            finally:
                part.sync()
                if part.empty and not ended:  # nothing to go on from
                    path.unlink()
    except OSError as error:
        if isinstance(error, RewardkitError):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}.") from error


def _kept_of(path: Path, key: Mapping[str, Any], *, fresh: bool) -> Kept:
    try:
        return load(path, key)
    except DataError:
        if fresh:
            return Kept()
        raise


def load(path: Path, key: Mapping[str, Any] | None = None) -> Kept:
    """What a file of responses has, up to its last whole request.

    Raises:
        DataError: a line before the last is none of ours, or it is of another `key`.
    """
    wanted = None if key is None else json.loads(json.dumps(key))
    kept, waiting, offset = Kept(), [], 0
    with path.open("rb") as file:
        for number, text in checked_lines(file, path, PART_LINE_BYTES):
            line = _line(text)
            if line is None:
                if file.read(1):
                    raise DataError(f"{path}:{number}: no response; --overwrite starts again.")
                break
            if wanted is not None and any(line.get(name) != wanted[name] for name in wanted):
                raise DataError(
                    f"{path}: an interrupted run of another model or sampling; name another "
                    "--out, or --overwrite to throw its responses away."
                )
            waiting.append((line["row"], line["sample"], offset, line["prompt_sha256"]))
            offset += len(text)
            if len(waiting) == line["request"][1]:
                for response in waiting:
                    kept.add(*response)
                waiting, kept.size = [], offset
    return kept


def _line(text: bytes) -> dict[str, Any] | None:
    """A whole line of ours; None for any other."""
    try:
        line = json.loads(text) if text.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and _is_ours(line) else None


def _is_ours(line: Mapping[str, Any]) -> bool:
    request, prompt = line.get("request"), str(line.get("prompt_sha256"))
    numbers = [line.get("row"), line.get("sample"), *(request if type(request) is list else ())]
    return (
        len(numbers) == 4
        and all(type(each) is int and 0 <= each < 1 << 62 for each in numbers)
        and re.fullmatch("[0-9a-f]{64}", prompt) is not None
        and isinstance(line.get("response"), str)
    )


def _short(prompt: str) -> bytes:
    return bytes.fromhex(prompt[:16])
