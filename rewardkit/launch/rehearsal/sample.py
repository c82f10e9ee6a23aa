"""A sample of the rows of the user's files, written to files of the same schema, and its pictures."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError, SourceError, UsageError, call_catching
from rewardkit.row import BATCH_ROWS, open_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: The settings of the columns that are read, and their defaults.
COLUMNS = {
    "data.prompt_key": "prompt",
    "data.reward_fn_key": "data_source",
    "data.image_key": "images",
    "data.video_key": "videos",
}

#: Data sources of a file that each get a row.
MAX_SOURCES = 64

#: Tokens that the template and its marks add to a prompt, and to each of its messages.
PROMPT_TOKENS, MESSAGE_TOKENS = 24, 8

#: Pixels on each side of what becomes a token of a picture, and the least tokens of a picture.
SIDE, MIN_TOKENS = 28, 4

#: The largest picture of Qwen2.5-VL's processor and of qwen_vl_utils, in tokens.
MAX_MODEL_TOKENS = 16384

#: Tokens of a picture in a rehearsal, and of all pictures of a prompt.
MAX_PICTURE_TOKENS, MAX_ROW_TOKENS = 1024, 3072


@dataclass(frozen=True)
class RowSample:
    """A sample of rows in files.

    Attributes:
        files: one for each of the user's files, so that verl joins as many.
        rows: rows of all files.
        longest: the longest prompt, in tokens of one byte, without its pictures.
        pictures: the pictures of each row, as the file has them.
    """

    files: tuple[Path, ...]
    rows: int
    longest: int
    pictures: tuple[tuple[Any, ...], ...] = ()


def take_sample(
    config: Mapping[str, Any], kind: str, folder: Path, rows: int, steps: int = 1
) -> RowSample:
    """Write rows of each file of a configuration to `folder/<kind>-<i>.parquet`.

    The rows have the longest prompt, the longest gold and each data source of the file; the others
    are evenly spread.

    Args:
        config: dotted key -> value, as verl composes the user's settings.
        kind: `train` or `val`.
        folder: an existing folder.
        rows: rows of all files together; more if those rows are more.
        steps: each file gives a multiple of this number, or all of its rows.

    Raises:
        SourceError: a file does not exist or cannot be read.
        DataError: a file is not parquet, or has no rows.
        UsageError: a file is not named, is on another machine, has another format, or has videos.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = config.get(f"data.{kind}_files")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not names:
        raise UsageError(f"data.{kind}_files={names}: name at least one file.")
    prompt, source, images, videos = (str(config.get(k) or v) for k, v in COLUMNS.items())
    each = -(-rows // (len(names) * steps)) * steps
    files, longest, pictures = [], 0, list[tuple[Any, ...]]()
    for i, name in enumerate(map(str, names)):
        files.append(folder / f"{kind}-{i}.parquet")
        with open_parquet(_local(name)) as file:
            numbers = _choose_rows(file, name, each, prompt, source, steps)
            table = pa.concat_tables(_read_rows(file, numbers))
        pq.write_table(table, files[-1])
        if any(_values(table, videos)):
            raise UsageError(f"{name}: rows with videos (column {videos}) cannot be rehearsed.")
        longest = max([longest, *map(prompt_tokens, _values(table, prompt))])
        pictures.extend(tuple(row or ()) for row in _values(table, images))
    return RowSample(tuple(files), len(pictures), longest, tuple(pictures))


def prompt_tokens(prompt: Any) -> int:
    """Return an upper bound of the tokens of a prompt with the byte tokenizer."""
    messages = [prompt] if isinstance(prompt, str) else prompt or []
    return PROMPT_TOKENS + sum(
        MESSAGE_TOKENS + sum(len(text.encode("utf-8", "surrogatepass")) for text in _texts(message))
        for message in messages
    )


def _texts(message: Any) -> Iterator[str]:
    """Yield all text in a message: its role, its content, the texts of its parts."""
    if isinstance(message, str):
        yield message
    elif isinstance(message, Iterable) and not isinstance(message, bytes):
        for part in message.values() if isinstance(message, Mapping) else message:
            yield from _texts(part)


def _local(name: str) -> Path:
    if "://" in name:
        raise UsageError(f"{name}: a rehearsal reads files of this machine; name a local copy.")
    path = Path(name).expanduser()
    if path.suffix != ".parquet":
        raise UsageError(f"{name}: a rehearsal reads rows from .parquet files only.")
    if not path.is_file():
        raise SourceError(f"{name}: no such file.")
    return path


def _values(table: pa.Table, column: str) -> list[Any]:
    has_column = column in table.column_names
    return list(table.column(column).to_pylist()) if has_column else [None] * table.num_rows


def _choose_rows(
    file: pq.ParquetFile, name: str, rows: int, prompt: str, source: str, steps: int
) -> list[int]:
    """Return the numbers of the rows of a sample, in ascending order."""
    total = file.metadata.num_rows
    if not total:
        raise DataError(f"{name}: no rows to train on.")
    columns = sorted({prompt, source, "reward_model"} & {*file.schema_arrow.names})
    prompts, golds, sources = array("q"), array("q"), dict[str, int]()
    batches = file.iter_batches(BATCH_ROWS, columns=columns)
    for number, row in enumerate(row for batch in batches for row in batch.to_pylist()):
        reward = row.get("reward_model")
        gold = reward.get("ground_truth") if isinstance(reward, Mapping) else None
        prompts.append(prompt_tokens(row.get(prompt)))
        golds.append(len(str(gold)))
        if len(sources) < MAX_SOURCES:
            sources.setdefault(str(row.get(source)), number)
    taken = {prompts.index(max(prompts)), golds.index(max(golds)), *sources.values()}
    count = min(total, max(rows, -(-len(taken) // steps) * steps)) - len(taken)
    others = [number for number in range(total) if number not in taken]
    return sorted(taken.union(others[i * len(others) // count] for i in range(count)))


def _read_rows(file: pq.ParquetFile, numbers: Sequence[int]) -> Iterator[pa.Table]:
    """Yield the rows with these numbers; row groups without any are not read."""
    import pyarrow as pa

    end = 0
    for group in range(file.metadata.num_row_groups):
        start, end = end, end + file.metadata.row_group(group).num_rows
        if any(start <= number < end for number in numbers):
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
                here = [n - start for n in numbers if start <= n < start + batch.num_rows]
                yield pa.Table.from_batches([batch]).take(here)
                start += batch.num_rows


@dataclass(frozen=True)
class PictureTokens:
    """The tokens of the pictures of a sample.

    Attributes:
        planned: tokens that the pictures of each row have in Qwen2.5-VL.
        is_scaled: whether a picture has more tokens than in the rehearsal.
        limit: the most tokens that a picture has in the rehearsal.
        longest: the most tokens that a row's pictures may add to its prompt, with their marks.
    """

    planned: tuple[int, ...]
    is_scaled: bool
    limit: int
    longest: int


def count_picture_tokens(pictures: Sequence[Sequence[Any]]) -> PictureTokens:
    """Open the pictures of rows, and return their tokens.

    Raises:
        DataError: a picture cannot be opened.
        UsageError: the pictures of one row are too many for a rehearsal.
    """
    rows = []
    for number, row in enumerate(pictures):
        tokens = call_catching(lambda row=row: [*map(_picture_tokens, row)])
        if isinstance(tokens, Exception):
            raise DataError(f"a picture of row {number} of the sample cannot be opened: {tokens}.")
        rows.append(tokens)
    most = max(map(len, rows))
    limit = min(MAX_PICTURE_TOKENS, MAX_ROW_TOKENS // max(1, most))
    if limit < MIN_TOKENS:
        raise UsageError(f"a row has {most:,} pictures; a rehearsal takes at most 768.")
    longest = max(sum(min(tokens, limit) for tokens in row) for row in rows) + 2 * most
    is_scaled = any(tokens > limit for row in rows for tokens in row)
    return PictureTokens(tuple(map(sum, rows)), is_scaled, limit, longest)


def _picture_tokens(picture: Any) -> int:
    data = picture.get("bytes") if isinstance(picture, Mapping) else None
    if isinstance(picture, Mapping):
        picture = BytesIO(data) if data else picture.get("image") or picture["path"]
    with import_module("PIL.Image").open(picture) as image:
        return tokens_of(image.width, image.height)


def tokens_of(width: int, height: int) -> int:
    """Return the tokens of a picture in Qwen2.5-VL."""
    tokens = max(1, round(width / SIDE)) * max(1, round(height / SIDE))
    if MIN_TOKENS <= tokens <= MAX_MODEL_TOKENS:
        return tokens
    cut, bound = (math.ceil, MIN_TOKENS) if tokens < MIN_TOKENS else (math.floor, MAX_MODEL_TOKENS)
    scale = math.sqrt(bound / (width * height))
    return max(1, cut(width * scale)) * max(1, cut(height * scale))
