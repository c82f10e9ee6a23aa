"""Data cards: one Markdown file per dataset, with YAML front matter that the code reads.

The cards of the built-in datasets are in `data_cards/`. The card of a plug-in is `NAME.md`, beside
the module that its entry point names. A card whose `columns` say what each column holds
(`rewardkit.preprocess.column_map`) is a whole dataset: its rows need no code.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rewardkit import registry
from rewardkit.errors import DataError, UnknownNameError, UsageError, unreadable_file
from rewardkit.preprocess.column_map import (
    ColumnMap,
    Condition,
    as_list,
    conditions_of_card,
    parse_columns,
)

_FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)


@dataclass(frozen=True)
class Split:
    """A split. What is None is that of the dataset.

    Attributes:
        rows: number of distinct raw rows.
        files: glob of the files in the dataset's repository, followed by the globs of other copies
            of the dataset that a folder on disk may contain.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    rows: int
    files: tuple[str, ...]
    huggingface: str | None = None
    modelscope: str | None = None
    data_source: str | None = None
    verified: str | None = None

    def __post_init__(self) -> None:
        files = (self.files,) if isinstance(self.files, str) else tuple(self.files)
        object.__setattr__(self, "files", files)  # a single glob may be written without a list


@dataclass(frozen=True)
class Card:
    """The front matter of a card.

    Attributes:
        name, title: the dataset's name in rewardkit, and its own.
        data_source: verl's reward key; it does not depend on where the rows are from.
        template, scorer: the default prompt template, and the scorer that reads the dataset's solutions.
        columns: the columns to read from a raw row, one tuple for each layout in which the dataset
            is published; a file must have all columns of one layout.
        huggingface, modelscope: the repository on a hub; "" if there is none.
        maps: what the columns of each layout hold; empty if the rows need code.
        where: conditions that a raw row must meet; the others are dropped. `maps` have them, too.
        repeats: columns (dotted paths) that are equal in a raw row and its copies, which are skipped.
        dedup: whether `prep` drops rows that repeat an earlier row's question by default.
        shuffle_options: whether the options of a question are put in a random order.
        use: `training` or `evaluation`.
        area: `maths`, `science`, `choice`, `code`, `function calls`, `SQL`, `instructions`, `open questions`, `pictures` or `finance`.
        gold_kind: what a gold is, in a few words.
        gated: whether the hub asks for the acceptance of terms before a download.
        verified: `rows` if the dataset's own rows were prepared here; `documentation` if the columns
            are taken from the two public pages that the card names.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

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
    maps: tuple[ColumnMap, ...] = field(default=(), repr=False)
    where: tuple[Condition, ...] = ()
    repeats: tuple[str, ...] = ()
    dedup: bool = False
    shuffle_options: bool = False
    use: str = ""
    area: str = ""
    gold_kind: str = ""
    gated: bool = False
    verified: str = ""

    def __post_init__(self) -> None:
        is_one = self.columns and isinstance(self.columns[0], str)  # layout, without a list around
        object.__setattr__(
            self, "columns", tuple(map(tuple, [self.columns] if is_one else self.columns))
        )
        object.__setattr__(self, "repeats", tuple(self.repeats))

    def repository(self, split: str, hub: str = "huggingface") -> str:
        """Return the repository of a split on a hub; "" if there is none."""
        own: str | None = getattr(self.splits[split], hub)
        return str(getattr(self, hub)) if own is None else own

    def reward_key(self, split: str) -> str:
        """Return the `data_source` of a split's rows."""
        return self.splits[split].data_source or self.data_source

    def how_to_get_access(self, split: str) -> str:
        """Return what to do before a gated split can be downloaded."""
        page = f"https://huggingface.co/datasets/{self.repository(split)}"
        return f"accept the terms at {page} and set HF_TOKEN"

    def default_split(self) -> str | None:
        """Return `train`, or else the only split; None if the user must choose."""
        if "train" in self.splits:
            return "train"
        return next(iter(self.splits)) if len(self.splits) == 1 else None


def read_card(name: str) -> Card:
    """Read the front matter of a dataset's card."""
    return read_card_file(card_path(name))


def read_card_file(path: Path) -> Card:
    """Read the front matter of a card."""
    front_matter = _FRONT_MATTER.match(_read_text(path))
    if front_matter is None:
        raise DataError(
            f"{path}: the front matter is missing. Begin with a line ---, YAML and a line ---."
        )
    from rewardkit.strict_yaml import read_yaml, validate

    values = read_yaml(f"\n{front_matter[1]}", str(path))  # a line for the --- before it
    fields = _fields(values, path)
    if path.parent == registry.card_folder():  # ours, of which a completion of a name reads all
        fields["splits"] = {name: Split(**split) for name, split in fields["splits"].items()}
        return Card(**fields)
    try:
        card = validate(Card, fields, str(path))
    except UsageError as error:
        raise DataError(str(error)) from error
    if (card.where or card.shuffle_options) and not card.maps:
        raise DataError(f"{path}: where and shuffle_options need columns that name their parts.")
    return card


def _fields(values: Any, path: Path) -> dict[str, Any]:
    """Return the fields of a `Card` in the front matter; a list of one value may be that value."""
    if not isinstance(values, dict):
        raise DataError(f"{path}: the front matter is not a mapping of names to values.")
    columns = values.get("columns")
    if "maps" in values:
        raise DataError(f"{path}: unknown key 'maps'. Name the parts in columns.")
    where = conditions_of_card(values.get("where", []), str(path))
    maps = parse_columns(columns, str(path), where)
    if not isinstance(columns, (list, dict)):
        raise DataError(
            f"{path}: columns: write {{question: problem, gold: answer}}, or a list of column "
            "names for each layout of a dataset with its own code."
        )
    if all(isinstance(column, str) for column in columns):
        columns = [columns]
    fields = {**values, "columns": [each.columns for each in maps] or columns, "maps": maps}
    fields |= {"repeats": as_list(values.get("repeats", [])), "where": where}
    if isinstance(splits := values.get("splits"), dict):
        fields["splits"] = {str(name): split for name, split in splits.items()}
        for split in splits.values():
            if isinstance(split, dict) and isinstance(split.get("files"), str):
                split["files"] = [split["files"]]
    return fields


def card_text(name: str) -> str:
    """Return a dataset's complete card as Markdown."""
    return _read_text(card_path(name))


def card_path(name: str) -> Path:
    """Return the path of a card: in the package, in the repository, or beside a plug-in's module."""
    if (path := registry.card_folder() / f"{name}.md").is_file():
        return path
    home = registry.home("datasets", name)  # imports the plug-in
    if home and (path := home / f"{name}.md").is_file():
        return path
    raise UnknownNameError(
        f"no data card for {name!r}. Write {name}.md beside the plug-in's module, or "
        "Dataset(..., card=Card(...))."
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable_file(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason}). Save it as UTF-8.") from error
