"""A dataset from a user's data file: rows with a question and its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardkit.answers.extract import boxes
from rewardkit.errors import UsageError
from rewardkit.file_kinds import stem_and_suffix
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card import Card, Split
from rewardkit.preprocess.card_dataset import dataset_of_card
from rewardkit.preprocess.chats import answer_in_chat, is_chat
from rewardkit.preprocess.column_map import ColumnMap, Field
from rewardkit.preprocess.file_rows import READERS, is_row_file
from rewardkit.preprocess.source import saved_splits

#: The last line of a solution as GSM8K writes it. Before anything but a number, `####` may be a heading.
_HASH_LINE = re.compile(
    r"(?:\A|\n)[ \t]*####[ \t]*(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)\Z"
)


def dataset_from_file(
    path: Path,
    *,
    question_key: str | Sequence[str] = "question",
    answer_key: str = "answer",
    image_key: str | None = None,
    data_source: str | None = None,
    unread_options: Sequence[str] = (),
    noted_columns: frozenset[str] | None = None,
    split: str = "train",
) -> Dataset:
    r"""Return a dataset for the rows of one file; pass it to `prep` together with `source=path`.

    Args:
        path: a file that `prep` reads, or a folder: one that `datasets` has saved, or one with the
            split in the names of its files.
        question_key: column of the question, which is text or a chat; the texts of several columns
            are joined with blank lines. A dotted path leads into structs and lists (`row.0.value`;
            a row that is itself a list is the column `row`).
        answer_key: column of the gold answer: text, a number, or a list of alternatives. Of a
            solution that ends with a line `#### 18`, as those of GSM8K do, the gold is the 18; of
            one with a box, what is in the last; of a chat, the answer that its last message states.
        image_key: column of the pictures: lists of bytes or of `{bytes, path}`.
        data_source: verl's reward key; None for the file's name without its suffixes.
        unread_options: columns with options that are not read.
        noted_columns: columns of which a note tells already; None to count no text that is not read.
        split: value of `extra_info.split` in the rows; a `DatasetDict` has splits of its own.

    Raises:
        UsageError: the file has another suffix.
    """
    if not is_row_file(path) and not path.is_dir():
        raise UsageError(f"{path}: not a {', '.join(READERS)} file.")
    questions = [question_key] if isinstance(question_key, str) else list(question_key)
    keys = [*questions, answer_key, *filter(None, [image_key])]
    columns = tuple(dict.fromkeys(keys))  # the name of a column may contain a dot
    layout = ColumnMap(
        question=tuple(map(Field, questions)),
        gold=(Field(answer_key, (_final_answer,)),),
        images=(Field(image_key),) if image_key else (),
    )
    stem = path.name if path.is_dir() else stem_and_suffix(path)[0]
    card = Card(
        name=stem,
        title=path.name,
        data_source=data_source or stem,
        ability="math",
        template="boxed",
        scorer="math",
        licence="the user's",
        columns=(columns, layout.columns),
        splits={
            name: Split(0, () if path.is_dir() else (path.name,))
            for name in saved_splits(path) or [split]
        },
        maps=(layout,),
    )
    return replace(
        dataset_of_card(card), unread_options=tuple(unread_options), noted_columns=noted_columns
    )


def _final_answer(value: Any) -> Any:
    """Return the answer of a chat, or of a solution: its last boxes, or the number after `####`.

    Any other value is unchanged.

    Thousands separators are left out, as verl's preparation of GSM8K does
    (`examples/data_preprocess/gsm8k.py`).
    """
    if is_chat(value):
        return answer_in_chat(value)
    if not isinstance(value, str):
        return value
    match = _HASH_LINE.search(value.rstrip())
    return match[1].replace(",", "") if match else ", ".join(boxes(value)) or value
