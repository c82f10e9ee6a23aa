"""The questions of a verl parquet, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import DataError, RewardkitError, call_catching
from rewardkit.row import open_parquet, read_rows
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold


class Question(NamedTuple):
    """A row to be answered.

    Attributes:
        row: its number in the file, from 0.
        prompt: its chat messages, of `role` and `content`.
        digest: SHA-256 of the prompt, in hex.
        data_source: verl's key of the row.
        ground_truth: the gold answer.
        extra_info: the row's, as the scorer gets it.
    """

    row: int
    prompt: list[dict[str, str]]
    digest: str
    data_source: str
    ground_truth: str
    extra_info: dict[str, Any]


def questions(parquet: Path) -> Iterator[Question]:
    """The rows of a verl parquet in order, in bounded memory.

    Raises:
        DataError: no parquet, or a row has no prompt, no gold, or pictures (which are not sent).
    """
    for number, row in enumerate(read_rows(parquet)):
        prompt = _messages(row.get("prompt"))
        gold = (row.get("reward_model") or {}).get("ground_truth")
        if not prompt:
            raise DataError(f"{parquet} row {number}: no prompt: not a verl parquet.")
        if gold is None:
            raise DataError(f"{parquet} row {number}: no reward_model.ground_truth to judge by.")
        if row.get("images") or row.get("videos"):
            raise DataError(f"{parquet} row {number}: it has pictures; eval sends text only.")
        source, info = as_text(row.get("data_source")), dict(row.get("extra_info") or {})
        yield Question(number, prompt, digest(prompt), source, unwrap_gold(gold), info)


def count(parquet: Path) -> int:
    """How many rows it has.

    Raises:
        DataError: no parquet, or an empty one.
    """
    with open_parquet(parquet) as file:
        rows = int(file.metadata.num_rows)
    if not rows:
        raise DataError(f"{parquet}: no rows.")
    return rows


def digest(prompt: list[dict[str, str]]) -> str:
    """SHA-256 of a chat, in hex."""
    return sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()


def refuse_unjudged(parquet: Path) -> None:
    """Raise unless every row names a scorer: before hours of generation, not after.

    Raises:
        DataError: a row's `extra_info.scorer` and `data_source` are known to no scorer.
    """
    known: set[tuple[str, str]] = set()
    for question in questions(parquet):
        key = question.data_source, as_text(question.extra_info.get("scorer"))
        if key in known:
            continue
        found = call_catching(scorer_for, question.data_source, question.extra_info)
        if isinstance(found, RewardkitError):
            raise DataError(f"{parquet} row {question.row}: {found} Or name one with --scorer.")
        known.add(key)


def _messages(prompt: Any) -> list[dict[str, str]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}] if prompt else []
    return [
        {"role": as_text(message.get("role")), "content": as_text(message.get("content"))}
        for message in prompt or ()
        if isinstance(message, Mapping)
    ]
