"""Data cards: one Markdown file per dataset, whose YAML front matter the code reads.

Those of our datasets lie in `data_cards/`. A plug-in's is `NAME.md` beside the module that its
entry point names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from rewardkit import registry
from rewardkit.errors import DataError, UnknownNameError

_FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)


@dataclass(frozen=True)
class HubCopy:
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

    def hub_copy(self, split: str) -> HubCopy:
        """Where a split is."""
        own = self.splits[split]
        return HubCopy(
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
    """The front matter of a dataset's card.

    Raises:
        UnknownNameError: there is no such card.
        DataError: it cannot be read, or says too little, too much or the wrong thing.
    """
    path = card_path(name)
    found = _FRONT_MATTER.match(_text(path))
    if found is None:
        raise DataError(f"{path}: no front matter: begin with a line ---, YAML, and a line ---.")
    try:
        values = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        message = " ".join(str(error).split())
        raise DataError(f"{path}: the front matter is not valid YAML: {message[:200]}.") from error
    return _card(values, str(path))


def card_text(name: str) -> str:
    """A dataset's whole card, as Markdown."""
    return _text(card_path(name))


def card_path(name: str) -> Path:
    """Where a card is: in the installed package, the repository of an editable one, or a plug-in.

    Raises:
        UnknownNameError: in none of them.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "data_cards", package.parent / "data_cards"):
        if (path := folder / f"{name}.md").is_file():
            return path
    home = registry.home("datasets", name)  # imports the plug-in
    if home and (path := home / f"{name}.md").is_file():
        return path
    raise UnknownNameError(
        f"no data card for {name!r}. A plug-in brings one as {name}.md beside its module, or as "
        "Dataset(..., card=Card(...))."
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8.") from error


def _card(values: Any, where: str) -> Card:
    _check_keys(values, Card, f"{where}: the front matter")
    splits, columns = values.pop("splits"), values.pop("columns")
    if not isinstance(splits, dict) or not splits:
        raise DataError(f"{where}: splits: write {{train: {{rows: 100, files: train.jsonl}}}}.")
    for name, split in splits.items():
        _check_keys(split, Split, f"{where}: splits.{name}")
    layouts = [columns] if _are_texts(columns) else columns
    if not isinstance(layouts, list) or not all(
        isinstance(c, list) and _are_texts(c) for c in layouts
    ):
        raise DataError(f"{where}: columns: write [[question, answer]], a list for each layout.")
    return Card(
        **values,
        columns=tuple(map(tuple, layouts)),
        splits={str(name): Split(**split) for name, split in splits.items()},
    )


def _check_keys(values: Any, kind: type[Card | Split], where: str) -> None:
    """Raise `DataError` if values are not a mapping with the fields of a kind and their types."""
    if not isinstance(values, dict):
        raise DataError(f"{where} is not a mapping of names to values.")
    known = {field.name: field for field in fields(kind)}
    for name, value in values.items():
        if name not in known:
            near = registry.did_you_mean(str(name), list(known))
            raise DataError(f"{where} has {name!r}, which no card has.{near}")
        if str(known[name].type).startswith("str") and not isinstance(value, str):
            raise DataError(f"{where}: {name} is {value!r}, not text; put it in quotes.")
    needed = {name for name, field in known.items() if field.default is MISSING}
    if missing := needed - values.keys():
        raise DataError(f"{where} lacks {', '.join(sorted(missing))}.")
    if kind is Split and (type(values["rows"]) is not int or not _are_texts(values["files"])):
        raise DataError(f"{where}: rows is a number, files a pattern or a list of them.")


def _are_texts(value: Any) -> bool:
    """Whether a value is a text, or a list of some."""
    texts = [value] if isinstance(value, str) else value
    return isinstance(texts, list) and bool(texts) and all(isinstance(t, str) for t in texts)
