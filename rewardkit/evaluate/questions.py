"""The questions of a verl parquet, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import DataError, RewardkitError, call_catching
from rewardkit.row import open_parquet, read_rows
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold
from rewardkit.scorers.row_scorer import scorer_for


class Question(NamedTuple):
    """A row of the parquet: the prompt for the model and the values for the scorer.

    Attributes:
        row: number of the row in the file, from 0.
        prompt: chat messages with `role` and `content`.
        digest: SHA-256 of the prompt, in hex.
        data_source: the row's `data_source`.
        ground_truth: the gold answer.
        extra_info: the row's `extra_info`, which the scorer gets.
    """

    row: int
    prompt: list[dict[str, str]]
    digest: str
    data_source: str
    ground_truth: str
    extra_info: dict[str, Any]


def read_questions(parquet: Path) -> Iterator[Question]:
    """Yield the rows of a verl parquet in order, in bounded memory.

    Raises:
        DataError: the file is not a parquet, or a row has no prompt, no gold, or images or videos,
            which are not sent.
    """
    for number, row in enumerate(read_rows(parquet)):
        prompt = _messages(row.get("prompt"))
        gold = (row.get("reward_model") or {}).get("ground_truth")
        if not prompt:
            raise DataError(
                f"{parquet} row {number}: the prompt is missing. Name a verl parquet, such as "
                "'rewardkit prep' writes."
            )
        if gold is None:
            raise DataError(
                f"{parquet} row {number}: reward_model.ground_truth is missing; the scorer needs it."
            )
        if row.get("images") or row.get("videos"):
            raise DataError(
                f"{parquet} row {number}: it has images or videos; eval sends only text."
            )
        source, info = as_text(row.get("data_source")), dict(row.get("extra_info") or {})
        yield Question(number, prompt, prompt_digest(prompt), source, unwrap_gold(gold), info)


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


def prompt_digest(prompt: list[dict[str, str]]) -> str:
    """Return the SHA-256 of chat messages, in hex."""
    return sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()


def require_scorers(parquet: Path) -> None:
    """Check that every row has a scorer, before hours of generation and not after them.

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
