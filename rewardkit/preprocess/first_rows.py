"""The first rows of a parquet as a section of a page, with their pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardkit.pages.model import RowExample, Rows
from rewardkit.pages.pictures import MAX_PAGE_PICTURE_BYTES, MAX_PICTURE_BYTES, page_address
from rewardkit.row import open_parquet, picture_contents

#: Rows of a file that its page shows.
MAX_ROWS = 5

#: Most pictures of a row that a page shows.
MAX_PICTURES = 4


def first_rows_sections(path: Path, suffix: str = "") -> Iterator[Rows]:
    """Yield a section with the first rows of a parquet, if there are any.

    Raises:
        DataError: the file cannot be read.
    """
    if not path.is_file():
        return
    with open_parquet(path) as file:
        batch = next(file.iter_batches(MAX_ROWS), None)
    if batch is not None and batch.num_rows:
        yield rows_section(batch.to_pylist(), f"First rows{suffix}")


def rows_section(rows: Iterable[Mapping[str, Any]], title: str, start: int = 0) -> Rows:
    """Return rows with their prompts, golds and pictures, within the limits of a page.

    Args:
        rows: rows of a parquet, one after the other.
        title: the heading.
        start: number of the first of them.
    """
    budget, missing = MAX_PAGE_PICTURE_BYTES, 0
    examples = []
    for number, row in enumerate(rows, start):
        pictures = picture_contents(row)
        addresses = []
        for data in pictures[:MAX_PICTURES]:
            address = page_address(data) if len(data) <= budget else None
            if address:
                budget -= len(data)
                addresses.append(address)
        missing += len(pictures) - len(addresses)
        gold = _text_at(row, "reward_model", "ground_truth")
        examples.append(RowExample(f"row {number}", _prompt_text(row), gold, tuple(addresses)))
    note = (
        f"Pictures left out: {missing:,}. A page holds PNG, JPEG, GIF and WebP files of up to "
        f"{MAX_PICTURE_BYTES >> 10:,} KB each, {MAX_PICTURES} per row and "
        f"{MAX_PAGE_PICTURE_BYTES >> 20} MB in all."
    )
    return Rows(title, tuple(examples), note if missing else "")


def _prompt_text(row: Mapping[str, Any]) -> str:
    """Return the prompt as text, with roles if it has several messages."""
    prompt = row.get("prompt", row.get("messages"))
    if not isinstance(prompt, list):
        return "" if prompt is None else str(prompt)
    messages = [message for message in prompt if isinstance(message, dict)]
    if len(messages) == 1:
        return str(messages[0].get("content"))
    return "\n\n".join(f"[{m.get('role')}]\n{m.get('content')}" for m in messages)


def _text_at(row: Mapping[str, Any], *keys: str) -> str:
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)
