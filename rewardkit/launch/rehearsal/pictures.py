"""The pictures of a sample of rows, and the tokens that they become."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rewardkit.errors import DataError, UsageError
from rewardkit.launch.rehearsal.tiny_vision_model import MIN_PIXELS, SIDE

#: Tokens of a picture in a rehearsal, and of all pictures of a prompt.
MAX_PICTURE_TOKENS = 1024
MAX_ROW_TOKENS = 3072

#: Marks around the tokens of a picture.
MARKS_OF_PICTURE = 2

#: The largest picture of Qwen2.5-VL's processor and of qwen_vl_utils, in tokens.
MAX_MODEL_TOKENS = 16384

#: Timeout of reading the pictures of a sample.
READ_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class PictureSample:
    """The pictures of a sample.

    Attributes:
        rows: the width and the height of each picture, by row.
        picture_tokens: the most tokens that a picture has in the rehearsal.
        max_prompt: the most tokens of a prompt in the plan; 0 if the plan's model makes other tokens
            of pictures than Qwen2.5-VL.
    """

    rows: tuple[tuple[tuple[int, int], ...], ...]
    picture_tokens: int
    max_prompt: int

    @property
    def pixels(self) -> int:
        """The most pixels that a picture has in the rehearsal."""
        return self.picture_tokens * SIDE * SIDE

    @property
    def planned(self) -> tuple[int, ...]:
        """Tokens that the pictures of each row have in Qwen2.5-VL."""
        return self._per_row(MAX_MODEL_TOKENS)

    @property
    def rehearsed(self) -> tuple[int, ...]:
        """Tokens that the pictures of each row have in the rehearsal."""
        return self._per_row(self.picture_tokens)

    @property
    def longest(self) -> int:
        """The most tokens that a row's pictures add to its prompt, with their marks."""
        marks = MARKS_OF_PICTURE * max(map(len, self.rows))
        return max(self.rehearsed) + marks

    @property
    def is_scaled(self) -> bool:
        """Whether a picture is larger than a rehearsal allows."""
        return self.planned != self.rehearsed

    def _per_row(self, limit: int) -> tuple[int, ...]:
        return tuple(sum(tokens_of(*size, limit) for size in row) for row in self.rows)


def read_pictures(
    python: str, files: Sequence[Path], column: str, max_prompt: int
) -> PictureSample:
    """Return the pictures in the files of a sample, opened by verl's Python.

    Args:
        python: the interpreter of verl's environment, which has Pillow.
        files: files of rows.
        column: the column of pictures.
        max_prompt: the most tokens of a prompt in the plan, or 0.

    Raises:
        DataError: a picture cannot be opened.
        UsageError: the pictures of one row are too many for a rehearsal.
    """
    rows = tuple(
        tuple((width, height) for width, height in row)
        for row in _measure(python, [column, *map(str, files)])
    )
    most = max(map(len, rows))
    limit = min(MAX_PICTURE_TOKENS, MAX_ROW_TOKENS // max(1, most))
    if limit < MIN_PIXELS // (SIDE * SIDE):
        raise UsageError(f"a row has {most:,} pictures; a rehearsal takes at most 768.")
    return PictureSample(rows, limit, max_prompt)


def _measure(python: str, arguments: Sequence[str]) -> list[list[list[int]]]:
    script = str(Path(__file__).with_name("measure_pictures.py"))
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter the user chose
            [python, script, *arguments],
            capture_output=True,
            text=True,
            timeout=READ_TIMEOUT_SECONDS,
            check=False,
        )
        answer = json.loads(done.stdout or "null")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise DataError(f"{arguments[0]}: the pictures cannot be read: {error}.") from error
    if not isinstance(answer, list):
        lines = [answer["error"]] if answer else done.stderr.splitlines()[-1:]
        raise DataError(f"{arguments[0]}: a picture cannot be opened: {' '.join(lines)}.")
    return answer


def tokens_of(width: int, height: int, limit: int) -> int:
    """Return the tokens of a picture in a rehearsal whose processor allows `limit`.

    verl scales a picture by qwen_vl_utils before the processor does.
    """
    rows, columns = _squares(height, width, MAX_MODEL_TOKENS)
    rows, columns = _squares(rows * SIDE, columns * SIDE, limit)
    return rows * columns


def _squares(height: int, width: int, limit: int) -> tuple[int, int]:
    """Return how many squares of 28 pixels a picture has on each side: at least 4, at most `limit`."""
    rows, columns = max(1, round(height / SIDE)), max(1, round(width / SIDE))
    if rows * columns > limit:
        scale = math.sqrt(height * width / (limit * SIDE * SIDE))
        return max(1, math.floor(height / scale / SIDE)), max(1, math.floor(width / scale / SIDE))
    if rows * columns * SIDE * SIDE < MIN_PIXELS:
        scale = math.sqrt(MIN_PIXELS / (height * width))
        return math.ceil(height * scale / SIDE), math.ceil(width * scale / SIDE)
    return rows, columns
