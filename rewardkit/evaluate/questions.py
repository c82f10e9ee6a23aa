"""The questions of a verl parquet, read one at a time, with their pictures as data URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import DataError, RewardkitError, call_catching
from rewardkit.pages.pictures import data_address, media_type
from rewardkit.row import (
    BATCH_ROWS,
    IMAGES,
    PICTURE_ROWS,
    open_parquet,
    picture_contents,
    read_rows,
)
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold
from rewardkit.scorers.row_scorer import scorer_for

#: The mark of a picture's place in a prompt, as verl's datasets split it.
MARK = "<image>"

#: The most bytes of a row's pictures together; base64 adds a third.
MAX_ROW_BYTES = 32 << 20


class Question(NamedTuple):
    """A row of the parquet: the prompt for the model and the values for the scorer.

    Attributes:
        row: number of the row in the file, from 0.
        prompt: chat messages with `role` and `content`.
        digest: SHA-256 of the prompt and its pictures, in hex.
        data_source: the row's `data_source`.
        ground_truth: the gold answer.
        extra_info: the row's `extra_info`, which the scorer gets.
        images: contents of its picture files, in the order of the marks in the prompt.
    """

    row: int
    prompt: list[dict[str, str]]
    digest: str
    data_source: str
    ground_truth: str
    extra_info: dict[str, Any]
    images: tuple[bytes, ...] = ()


def read_questions(parquet: Path) -> Iterator[Question]:
    """Yield the rows of a verl parquet in order, in bounded memory.

    Raises:
        DataError: the file is not a parquet, or a row has no prompt, no gold, or videos, which are
            not sent.
    """
    with open_parquet(parquet) as file:
        has_pictures = IMAGES.name in file.schema_arrow.names
    for number, row in enumerate(read_rows(parquet, PICTURE_ROWS if has_pictures else BATCH_ROWS)):
        prompt, where = _messages(row.get("prompt")), f"{parquet} row {number}"
        gold = (row.get("reward_model") or {}).get("ground_truth")
        if not prompt:
            raise DataError(
                f"{where}: the prompt is missing. Name a verl parquet, such as "
                "'rewardkit prep' writes."
            )
        if gold is None:
            raise DataError(f"{where}: reward_model.ground_truth is missing; the scorer needs it.")
        if row.get("videos"):
            raise DataError(f"{where}: it has videos; eval sends text and pictures.")
        images = picture_contents(row)
        source, info = as_text(row.get("data_source")), dict(row.get("extra_info") or {})
        digest = prompt_digest(prompt, images)
        yield Question(number, prompt, digest, source, unwrap_gold(gold), info, images)


def count_questions(parquet: Path) -> int:
    """Return the number of rows of a parquet.

    Raises:
        DataError: the file is not a parquet, or it has no rows.
    """
    with open_parquet(parquet) as file:
        rows = int(file.metadata.num_rows)
    if not rows:
        raise DataError(f"{parquet}: the file has no rows.")
    return rows


def prompt_digest(prompt: list[dict[str, str]], images: Sequence[bytes] = ()) -> str:
    """Return the SHA-256 of chat messages and their pictures, in hex."""
    text = json.dumps(prompt, sort_keys=True)
    return sha256("".join([text, *(sha256(i).hexdigest() for i in images)]).encode()).hexdigest()


def require_questions(parquet: Path, *, api: str, scorers: bool) -> None:
    """Check every row, before hours of generation and not after them.

    Args:
        parquet: verl rows.
        api: `chat`, or `completions`, which has no pictures.
        scorers: whether each row needs a scorer of its own.

    Raises:
        DataError: a row cannot be used (`read_questions`), its pictures cannot be sent, or it has no
            scorer (`require_scorers`).
    """
    for question in read_questions(parquet):
        where = f"{parquet} row {question.row}"
        require_pictures(question.prompt, question.images, where)
        if question.images and api != "chat":
            raise DataError(f"{where}: it has pictures, which need --api chat.")
    if scorers:
        require_scorers(parquet)


def require_scorers(parquet: Path) -> None:
    """Check that every row has a scorer.

    Raises:
        DataError: no scorer is registered for a row's `extra_info.scorer` and `data_source`.
    """
    checked: set[tuple[str, str]] = set()
    for question in read_questions(parquet):
        key = question.data_source, as_text(question.extra_info.get("scorer"))
        if key in checked:
            continue
        scorer = call_catching(scorer_for, question.data_source, question.extra_info)
        if isinstance(scorer, RewardkitError):
            raise DataError(f"{parquet} row {question.row}: {scorer} Or choose one with --scorer.")
        checked.add(key)


def _messages(prompt: Any) -> list[dict[str, str]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}] if prompt else []
    return [
        {"role": as_text(message.get("role")), "content": as_text(message.get("content"))}
        for message in prompt or ()
        if isinstance(message, Mapping)
    ]


def require_pictures(
    prompt: Sequence[Mapping[str, str]], pictures: Sequence[bytes], where: str
) -> None:
    """Check that the pictures of a row can be sent, each at its mark in the prompt.

    Raises:
        DataError: a picture is not in the row or has an unknown format, all together are too large,
            or the prompt does not have a mark for each. The message begins with `where`.
    """
    for number, content in enumerate(pictures):
        if not content:
            raise DataError(
                f"{where}: picture {number} is not in the file. Write its bytes into 'images'; eval "
                "opens no path that a file names."
            )
        if not media_type(content):
            raise DataError(
                f"{where}: picture {number} is not PNG, JPEG, GIF, WebP or BMP. Convert it."
            )
    if (size := sum(map(len, pictures))) > MAX_ROW_BYTES:
        raise DataError(
            f"{where}: its pictures have {size:,} bytes together, and a request may have "
            f"{MAX_ROW_BYTES:,}. Make them smaller."
        )
    n_marks = sum(message["content"].count(MARK) for message in prompt)
    if n_marks != len(pictures):
        raise DataError(
            f"{where}: its prompt has {MARK} {n_marks} times, and the column 'images' has "
            f"{len(pictures)} pictures. Each picture needs its mark in the prompt."
        )


def messages_with_pictures(
    prompt: Sequence[Mapping[str, str]], pictures: Sequence[bytes]
) -> list[dict[str, Any]]:
    """Return chat messages in which each mark is replaced by its picture, in order."""
    if not pictures:
        return [dict(message) for message in prompt]
    rest = iter(pictures)
    return [
        {**message, "content": _parts(message["content"].split(MARK), rest)}
        if MARK in message["content"]
        else dict(message)
        for message in prompt
    ]


def _parts(texts: Sequence[str], pictures: Iterator[bytes]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for place, text in enumerate(texts):
        if place:
            content = next(pictures)
            parts.append({"type": "image_url", "image_url": {"url": data_address(content)}})
        if text:
            parts.append({"type": "text", "text": text})
    return parts
