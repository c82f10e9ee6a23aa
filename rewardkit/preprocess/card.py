"""Data cards: one Markdown file per dataset, whose YAML front matter the code reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from rewardkit.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class Hosted:
    """A copy of a split on the hubs.

    Attributes:
        huggingface: its repository on Hugging Face, "" if it has none there.
        modelscope: its repository on ModelScope, "" if it has none there.
        files: the glob of the split's files in them.
    """

    huggingface: str
    modelscope: str
    files: str


@dataclass(frozen=True)
class Split:
    """A split: how many rows it has once repeats are gone, and where it is.

    Attributes:
        rows: distinct raw rows.
        files: the glob of its files in the dataset's repository, then those of other copies of it
            that a folder on disk may be.
        huggingface: its own repository where it is not the dataset's.
        modelscope: the same on the other hub.
        data_source: its own reward key where it is not the dataset's.
    """

    rows: int
    files: tuple[str, ...]
    huggingface: str | None = None
    modelscope: str | None = None
    data_source: str | None = None

    def __post_init__(self) -> None:
        files = (self.files,) if isinstance(self.files, str) else tuple(self.files)
        object.__setattr__(self, "files", files)  # one glob may stand alone; YAML has lists


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
        columns: the columns that are read of a raw row, one tuple for each encoding of the
            dataset that is in use; a file must have all columns of one of them.
        splits: by name.
        huggingface: its repository on Hugging Face, "" if it has none there.
        modelscope: its repository on ModelScope, "" if it has none there.
    """

    name: str
    title: str
    data_source: str
    ability: str
    template: str
    scorer: str
    licence: str
    columns: tuple[tuple[str, ...], ...]
    splits: Mapping[str, Split]
    huggingface: str = ""
    modelscope: str = ""

    def __post_init__(self) -> None:
        if self.columns and isinstance(self.columns[0], str):  # one encoding may stand alone
            object.__setattr__(self, "columns", (tuple(self.columns),))

    @property
    def sizes(self) -> str:
        """`train 7,473, test 1,319`."""
        return ", ".join(f"{name} {split.rows:,}" for name, split in self.splits.items())

    def hosted(self, split: str) -> Hosted:
        """Where a split is."""
        own = self.splits[split]
        return Hosted(
            self.huggingface if own.huggingface is None else own.huggingface,
            self.modelscope if own.modelscope is None else own.modelscope,
            own.files[0],
        )

    def reward_key(self, split: str) -> str:
        """The `data_source` of a split's rows."""
        return self.splits[split].data_source or self.data_source

    def default_split(self) -> str | None:
        """`train` if there is one, else the only split; None where the user must choose."""
        if "train" in self.splits:
            return "train"
        return next(iter(self.splits)) if len(self.splits) == 1 else None


def read_card(name: str) -> Card:
    """The front matter of a dataset's card."""
    _, front, _ = card_text(name).split("---\n", 2)
    values = yaml.safe_load(front)
    needed = {field.name for field in fields(Card) if field.default is MISSING}
    if missing := needed - values.keys():
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
    raise UnknownNameError(
        f"no data card for {name!r}. A plug-in gives its own: Dataset(..., card=Card(...))."
    )


def _card(values: dict[str, Any]) -> Card:
    splits = {str(name): Split(**split) for name, split in values.pop("splits").items()}
    columns = tuple(tuple(encoding) for encoding in values.pop("columns"))
    return Card(**values, columns=columns, splits=splits)
