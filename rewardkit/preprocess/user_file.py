"""A dataset from a user's data file: rows with a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card, Split
from rewardkit.preprocess.raw_rows import READERS, value_at_path


def dataset_from_file(
    path: Path,
    *,
    question_key: str = "question",
    answer_key: str = "answer",
    image_key: str | None = None,
    data_source: str | None = None,
    split: str = "train",
) -> Dataset:
    r"""Return a dataset for the rows of one file; pass it to `prep` together with `source=path`.

    Args:
        path: a parquet, jsonl, json, csv or arrow file.
        question_key: column of the question, which is text or a chat. A dotted path leads into
            structs and lists (`row.0.value`; a row that is itself a list is the column `row`).
        answer_key: column of the gold answer: text, a number, or a list of one of them.
        image_key: column of the pictures: lists of bytes or of `{bytes, path}`.
        data_source: verl's reward key; None for the file's name without its suffix.
        split: value of `extra_info.split` in the rows.

    Raises:
        UsageError: the file has another suffix.
    """
    if path.suffix.lower() not in READERS:
        raise UsageError(f"{path}: not a {', '.join(READERS)} file.")
    keys = [key for key in (question_key, answer_key, image_key) if key]
    columns = tuple(dict.fromkeys(keys))  # the name of a column may contain a dot
    outer = tuple(dict.fromkeys(key.partition(".")[0] for key in keys))
    name = data_source or path.stem
    card = Card(
        name=path.stem,
        title=path.name,
        data_source=name,
        ability="math",
        template="boxed",
        scorer="math",
        licence="the user's",
        columns=(columns, outer),
        splits={split: Split(0, (path.name,))},
    )
    to_problem = partial(
        _to_problem, question_key=question_key, answer_key=answer_key, image_key=image_key
    )
    return Dataset(path.stem, to_problem, card=card)


def _to_problem(
    raw: Mapping[str, Any], *, question_key: str, answer_key: str, image_key: str | None
) -> Problem | Dropped:
    question, answer = (
        _question(value_at_path(raw, question_key)),
        _gold(value_at_path(raw, answer_key)),
    )
    if question is None:
        return Dropped("no question", f"{question_key} is neither text nor a chat")
    if answer is None:
        return Dropped("no answer", f"{answer_key} is neither text nor a number")
    images = tuple(map(_image, value_at_path(raw, image_key) or ())) if image_key else None
    return Problem(question, answer, images=images)


def _question(value: Any) -> str | None:
    """Return the text, or the last user message of a chat; None for other values."""
    if isinstance(value, list):
        messages = [
            m.get("content") for m in value if isinstance(m, Mapping) and m.get("role") == "user"
        ]
        value = messages[-1] if messages else None
    return value if isinstance(value, str) else None


def _gold(value: Any) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return str(value).strip()


def _image(value: Any) -> bytes:
    content = value.get("bytes") if isinstance(value, Mapping) else value
    if not isinstance(content, bytes):
        raise TypeError("an image without bytes")
    return content
