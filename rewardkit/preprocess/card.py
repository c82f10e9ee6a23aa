"""Data cards: one Markdown file per dataset, whose YAML front matter the code reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from rewardkit.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class Split:
    """A split: how many rows it has, and the glob of its files in the hub's repository."""

    rows: int
    files: str


@dataclass(frozen=True)
class Card:
    """The machine-read part of a card.

    Attributes:
        name: the dataset's name here.
        title: its own name.
        data_source: verl's reward key; never depends on where the rows came from.
        ability: verl's `ability` column.
        template: the default prompt template.
        scorer: the scorer that reads the dataset's own solutions.
        licence: its licence, in a word.
        huggingface: its id on Hugging Face.
        modelscope: its id on ModelScope.
        columns: the columns of a raw row that are read.
        splits: by name.
    """

    name: str
    title: str
    data_source: str
    ability: str
    template: str
    scorer: str
    licence: str
    huggingface: str
    modelscope: str
    columns: tuple[str, ...]
    splits: Mapping[str, Split]

    @property
    def sizes(self) -> str:
        """`train 7,473, test 1,319`."""
        return ", ".join(f"{name} {split.rows:,}" for name, split in self.splits.items())


def read_card(name: str) -> Card:
    """The front matter of a dataset's card."""
    _, front, _ = card_text(name).split("---\n", 2)
    values = yaml.safe_load(front)
    missing = {field.name for field in fields(Card)} - values.keys()
    if missing:
        raise DataError(f"{card_path(name)}: the front matter lacks {', '.join(sorted(missing))}.")
    return _card(values)


def card_text(name: str) -> str:
    """A dataset's whole card, as Markdown."""
    return card_path(name).read_text(encoding="utf-8")


def card_path(name: str) -> Path:
    """Where a card is: in the installed package, or in the repository of an editable install."""
    package = Path(__file__).parents[1]
    for folder in (package / "data_cards", package.parent / "data_cards"):
        if (path := folder / f"{name}.md").is_file():
            return path
    raise UnknownNameError(f"no data card for {name!r}.")


def _card(values: dict[str, Any]) -> Card:
    splits = {name: Split(**split) for name, split in values.pop("splits").items()}
    return Card(**{**values, "columns": tuple(values["columns"]), "splits": splits})
