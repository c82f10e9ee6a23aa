"""A sample of the rows of the user's files, written to files of the same schema, and its images."""

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

#: Pixels on each side of what becomes a token of an image, and the least tokens of an image.
SIDE, MIN_TOKENS = 28, 4

#: The largest image of Qwen2.5-VL's processor and of qwen_vl_utils, in tokens.
MAX_MODEL_TOKENS = 16384

#: Tokens of an image in a rehearsal, and of all images of a prompt.
MAX_IMAGE_TOKENS, MAX_ROW_TOKENS = 1024, 3072


@dataclass(frozen=True)
class RowSample:
    """A sample of rows: files, one for each of the user's, so that verl joins as many, and all their rows.

    `longest` is the longest prompt, in tokens of one byte, without its images; `images` has those of each row.
    """

    files: tuple[Path, ...]
    rows: int
    longest: int
    images: tuple[tuple[Any, ...], ...] = ()


def take_sample(
    config: Mapping[str, Any], kind: str, folder: Path, rows: int, steps: int = 1
) -> RowSample:
    """Write rows of each file of a configuration to `folder/<kind>-<i>.parquet`.

    The rows have the longest prompt, the longest gold and each data source of the file; the others
    are evenly spread. There are more than `rows` if those rows are more; each file gives a multiple of `steps`,
    or all of its rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = config.get(f"data.{kind}_files")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not names:
        raise UsageError(f"data.{kind}_files={names}: name at least one file.")
    prompt, source, image, video = (str(config.get(k) or v) for k, v in COLUMNS.items())
    each = -(-rows // (len(names) * steps)) * steps
    files, longest, images = [], 0, list[tuple[Any, ...]]()
    for i, name in enumerate(map(str, names)):
        files.append(folder / f"{kind}-{i}.parquet")
        with open_parquet(_local(name)) as file:
            numbers = _choose_rows(file, name, each, prompt, source, steps)
            table = pa.concat_tables(_read_rows(file, numbers))
        pq.write_table(table, files[-1])
        if any(_values(table, video)):
            raise UsageError(f"{name}: rows with videos (column {video}) cannot be rehearsed.")
        longest = max([longest, *map(prompt_tokens, _values(table, prompt))])
        images.extend(tuple(row or ()) for row in _values(table, image))
    return RowSample(tuple(files), len(images), longest, tuple(images))


def prompt_tokens(prompt: Any) -> int:
    """Return an upper bound of the tokens of a prompt with the byte tokenizer."""
    messages = [prompt] if isinstance(prompt, str) else prompt or []
    return PROMPT_TOKENS + sum(
        MESSAGE_TOKENS
        + sum(len(text.encode("utf-8", "surrogatepass")) for text in _strings(message))
        for message in messages
    )


def _strings(message: Any) -> Iterator[str]:
    """Yield all strings of a message: its role, its content, and those of its parts."""
    if isinstance(message, str):
        yield message
    elif isinstance(message, Iterable) and not isinstance(message, bytes):
        for part in message.values() if isinstance(message, Mapping) else message:
            yield from _strings(part)


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
class ImageTokens:
    """The tokens of the images of a sample.

    Attributes:
        planned: tokens that the images of each row have in Qwen2.5-VL.
        is_scaled: whether an image has more tokens than in the rehearsal.
        limit: the most tokens that an image has in the rehearsal.
        longest: the most tokens that a row's images may add to its prompt, with their marks.
    """

    planned: tuple[int, ...]
    is_scaled: bool
    limit: int
    longest: int


def count_image_tokens(images: Sequence[Sequence[Any]]) -> ImageTokens:
    """Open the images of rows, and return their tokens."""
    rows = []
    for number, row in enumerate(images):
        tokens = call_catching(lambda row=row: [*map(_image_tokens, row)])
        if isinstance(tokens, Exception):
            raise DataError(f"an image of row {number} of the sample cannot be opened: {tokens}.")
        rows.append(tokens)
    most = max(map(len, rows))
    limit = min(MAX_IMAGE_TOKENS, MAX_ROW_TOKENS // max(1, most))
    if limit < MIN_TOKENS:
        raise UsageError(f"a row has {most:,} images; a rehearsal takes at most 768.")
    longest = max(sum(min(tokens, limit) for tokens in row) for row in rows) + 2 * most
    is_scaled = any(tokens > limit for row in rows for tokens in row)
    return ImageTokens(tuple(map(sum, rows)), is_scaled, limit, longest)


def _image_tokens(image: Any) -> int:
    data = image.get("bytes") if isinstance(image, Mapping) else None
    if isinstance(image, Mapping):
        image = BytesIO(data) if data else image.get("image") or image["path"]
    with import_module("PIL.Image").open(image) as image:
        return tokens_of(image.width, image.height)


def tokens_of(width: int, height: int) -> int:
    """Return the tokens of an image in Qwen2.5-VL."""
    tokens = max(1, round(width / SIDE)) * max(1, round(height / SIDE))
    if MIN_TOKENS <= tokens <= MAX_MODEL_TOKENS:
        return tokens
    cut, bound = (math.ceil, MIN_TOKENS) if tokens < MIN_TOKENS else (math.floor, MAX_MODEL_TOKENS)
    scale = math.sqrt(bound / (width * height))
    return max(1, cut(width * scale)) * max(1, cut(height * scale))
