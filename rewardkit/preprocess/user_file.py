"""A dataset from a user's data file: rows with a question and its answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card import Card, Split
from rewardkit.preprocess.card_dataset import dataset_of_card
from rewardkit.preprocess.column_map import ColumnMap, Field
from rewardkit.preprocess.raw_rows import READERS

#: The last line of a solution as GSM8K writes it. Before anything but a number, `####` may be a heading.
_HASH_LINE = re.compile(
    r"(?:\A|\n)[ \t]*####[ \t]*(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)\Z"
)


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
        answer_key: column of the gold answer: text, a number, or a list of alternatives. Of a
            solution that ends with a line `#### 18`, as those of GSM8K do, the gold is the 18.
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
    layout = ColumnMap(
        question=(Field(question_key),),
        gold=(Field(answer_key, (_final_answer,)),),
        images=(Field(image_key),) if image_key else (),
    )
    name = data_source or path.stem
    card = Card(
        name=path.stem,
        title=path.name,
        data_source=name,
        ability="math",
        template="boxed",
        scorer="math",
        licence="the user's",
        columns=(columns, layout.columns),
        splits={split: Split(0, (path.name,))},
        maps=(layout,),
    )
    return dataset_of_card(card)


def _final_answer(value: Any) -> Any:
    """Return the number that a solution ends with after `####`; any other value unchanged.

    Thousands separators are left out, as verl's preparation of GSM8K does
    (`examples/data_preprocess/gsm8k.py`).
    """
    match = _HASH_LINE.search(value.rstrip()) if isinstance(value, str) else None
    return match[1].replace(",", "") if match else value
