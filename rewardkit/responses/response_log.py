"""Generated responses as lines of a file that grows, from which a killed run goes on.

Each line has `row`, `sample`, `model`, `sampling` and `prompt_sha256` as its key, and `request`: the
first sample of its request and the number of its choices. The choices of one request are written at
once, so that only the last request of a file can be incomplete. It is cut off and requested again.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from rewardkit.errors import DataError
from rewardkit.jsonl import MAX_LINE_BYTES, checked_lines, json_line
from rewardkit.responses.resumable_output import AppendOnlyFile, lock_part, open_append_only

#: Longest line: in ASCII a response may take three times the bytes that it took at the server.
MAX_LOG_LINE_BYTES = 4 * MAX_LINE_BYTES

#: How often the written lines are made safe from a power cut.
SYNC_SECONDS = 1.0


@dataclass
class ResponseIndex:
    """Where each response of a log is: three numbers for each, never the text.

    Attributes:
        size: bytes of the log up to its last complete request.
        rows, samples, offsets: row, sample and first byte of each response.
        prompts: the first 8 bytes of the prompt's SHA-256, by row.
    """

    size: int = 0
    rows: array[int] = field(default_factory=lambda: array("q"))
    samples: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    prompts: dict[int, bytes] = field(default_factory=dict)

    def add(self, row: int, sample: int, offset: int, prompt_sha256: str) -> None:
        """Add a response."""
        self.rows.append(row)
        self.samples.append(sample)
        self.offsets.append(offset)
        self.prompts[row] = _digest_head(prompt_sha256)

    def by_row(self) -> dict[int, array[int]]:
        """Return the places in the arrays of each row's responses, in the order of the samples.

        Of two responses with the same row and sample, the first counts.
        """
        places: dict[int, array[int]] = {}
        for place in sorted(range(len(self.rows)), key=lambda i: (self.rows[i], self.samples[i])):
            row = places.setdefault(self.rows[place], array("q"))
            if not row or self.samples[row[-1]] != self.samples[place]:
                row.append(place)
        return places

    def answers_prompt(self, row: int, prompt_sha256: str) -> bool:
        """Whether the responses to a row, if it has any, answer the prompt with this digest."""
        head = _digest_head(prompt_sha256)
        return self.prompts.get(row, head) == head


class ResponseLog:
    """A file to which the responses of a run are appended. Use `open_response_log`."""

    def __init__(self, file: AppendOnlyFile, key: Mapping[str, Any]) -> None:
        self._file, self._key, self._sync_time = file, dict(key), monotonic()

    def append(
        self, row: int, prompt_sha256: str, first: int, responses: Sequence[Mapping[str, Any]]
    ) -> None:
        """Append the choices of one request, as the samples from `first` on."""
        request = [first, len(responses)]
        lines = [
            json_line(
                {
                    "row": row,
                    "sample": sample,
                    **self._key,
                    "prompt_sha256": prompt_sha256,
                    "request": request,
                    **response,
                }
            )
            for sample, response in enumerate(responses, first)
        ]
        self._file.append("".join(lines).encode())
        if monotonic() - self._sync_time >= SYNC_SECONDS:
            self._file.sync()
            self._sync_time = monotonic()

    @property
    def is_empty(self) -> bool:
        """Whether the log has no response."""
        return not self._file.size


@contextmanager
def open_response_log(
    path: Path, key: Mapping[str, Any], *, overwrite: bool
) -> Iterator[tuple[ResponseLog, ResponseIndex]]:
    """A log to append to, and the index of the responses that it has already.

    A log without a response is removed if the block raises.

    Args:
        path: a new file, or the log of an interrupted run.
        key: `model` and `sampling` of the run; a log has responses of one key only.
        overwrite: empty a log that has another key, or that cannot be read.

    Raises:
        DataError: the log has another key, or cannot be read.
        OutputError: it cannot be written, or another run is writing it.
    """
    with lock_part(path, path), open_append_only(path, path) as file:
        index = _index_or_none(path, key, overwrite=overwrite) or ResponseIndex()
        file.truncate(index.size)
        log = ResponseLog(file, key)
        has_ended = False
        try:
            yield log, index
            has_ended = True
        finally:
            file.sync()
            if log.is_empty and not has_ended:
                path.unlink()


def _index_or_none(path: Path, key: Mapping[str, Any], *, overwrite: bool) -> ResponseIndex | None:
    try:
        return read_response_index(path, key)
    except DataError:
        if overwrite:
            return None
        raise


def read_response_index(path: Path, key: Mapping[str, Any] | None = None) -> ResponseIndex:
    """Return the index of a log, up to its last complete request.

    Raises:
        DataError: a line before the last is not a response, or has another `key`.
    """
    expected = {} if key is None else json.loads(json.dumps(key))
    index, request, offset = ResponseIndex(), [], 0
    with path.open("rb") as file:
        for number, text in checked_lines(file, path, MAX_LOG_LINE_BYTES):
            line = _parse_response(text)
            if line is None:
                if file.read(1):
                    raise DataError(f"{path}:{number}: not a response; --overwrite starts again.")
                break
            if any(line.get(name) != value for name, value in expected.items()):
                raise DataError(
                    f"{path}: an interrupted run of another model or sampling; name another "
                    "--out, or --overwrite to throw its responses away."
                )
            request.append((line["row"], line["sample"], offset, line["prompt_sha256"]))
            offset += len(text)
            if len(request) == line["request"][1]:
                for response in request:
                    index.add(*response)
                request, index.size = [], offset
    return index


def _parse_response(text: bytes) -> dict[str, Any] | None:
    """Return a complete line of a log; None for any other text."""
    try:
        line = json.loads(text) if text.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and _is_response(line) else None


def _is_response(line: Mapping[str, Any]) -> bool:
    request, prompt = line.get("request"), str(line.get("prompt_sha256"))
    numbers = [line.get("row"), line.get("sample"), *(request if type(request) is list else ())]
    return (
        len(numbers) == 4
        and all(type(number) is int and 0 <= number < 1 << 62 for number in numbers)
        and re.fullmatch("[0-9a-f]{64}", prompt) is not None
        and isinstance(line.get("response"), str)
    )


def _digest_head(prompt_sha256: str) -> bytes:
    return bytes.fromhex(prompt_sha256[:16])
