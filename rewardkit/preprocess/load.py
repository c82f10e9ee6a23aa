"""Load a dataset and its card by name or path, and read the names of sets.

A set is a split of a dataset, and its name is that of the dataset and of the split: `aime2024`,
`hmmt-feb-2025`, `gsm8k-train`. There is no hyphen before a number. The dataset's name alone is its
test split, or its only one: `gsm8k`, `minerva`; but a year is always written (`brumo2025`), because
other years may follow. Other separators are read, too: `aime_2024`, `aime-2024`, `aime:2024`.
"""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card import Card, read_card, read_card_file
from rewardkit.preprocess.card_dataset import dataset_of_card

if TYPE_CHECKING:
    from rewardkit.isolate.serve import Loaded

#: The suffix of a card that is given by its path.
CARD_SUFFIX = ".md"

#: The name of all evaluation sets, for `check --against`.
ALL = "all-eval"


def load_dataset(dataset: str | Dataset) -> Dataset:
    """Return a dataset by name or by the path of a plug-in; return a `Dataset` unchanged.

    Args:
        dataset: a registered name, the path of a card (`my_dataset.md`) that says what each column
            holds, `my_dataset.py` (its variable `DATASET`), `my_dataset.py:NAME`, or a `Dataset`.

    Raises:
        UnknownNameError: no dataset has this name.
        UsageError: the file cannot be imported or has no dataset of this name.
        DataError: the card cannot be read.
    """
    if isinstance(dataset, Dataset):
        return dataset
    if dataset.endswith(CARD_SUFFIX):
        card = read_card_file(Path(dataset))
        if card.maps:
            return dataset_of_card(card)
        raise UsageError(
            f"{dataset}: columns does not say what each column holds. Write columns: {{question: "
            "problem, gold: answer}, or give the .py file of the dataset."
        )
    if registry.DATASETS.get(dataset) == registry.FROM_CARD:
        return dataset_of_card(read_card(dataset))
    if registry.is_path(dataset) and ":" not in dataset:
        dataset = f"{dataset}:DATASET"
    pid = os.getpid()
    loaded = registry.load("datasets", dataset)
    if os.getpid() != pid:
        os._exit(0)  # a copy of this process, which the file forked
    if not isinstance(loaded, Dataset):
        raise UsageError(f"{dataset} is {type(loaded).__name__}, not a rewardkit Dataset.")
    return loaded


def require_dataset_loads(dataset: str, load_seconds: float) -> None:
    """Import the dataset of a plug-in in a child process first, to see that it loads.

    A dataset runs in this process, where an import that hangs could not be ended.
    """
    from rewardkit.isolate.function import IsolatedFunction
    from rewardkit.isolate.serve import Limits

    target = "" if registry.is_path(dataset) else registry.target("datasets", dataset)
    limits = Limits(load_seconds=load_seconds)
    IsolatedFunction(_load_in_child, (dataset, target), dataset, limits).start_process().close()


def _load_in_child(name: str, target: str) -> Loaded:
    from rewardkit.isolate.serve import Loaded

    if target:
        registry.import_target(target, name)
    else:
        load_dataset(name)
    return Loaded(load_dataset)  # nothing is called there


def is_plugin(dataset: str) -> bool:
    """Return whether a dataset is in a user's file or another package; False for an unknown name."""
    names = registry.known("datasets").keys() - registry.DATASETS.keys()
    return registry.is_path(dataset) or dataset in names


def card_of(dataset: Dataset) -> Card:
    """Return the card in the `Dataset`, or else the file of its name in `data_cards/`."""
    return dataset.card or read_card(dataset.name)


class SetName(NamedTuple):
    """What the name of a set means."""

    dataset: str
    split: str = ""


def read_set_name(text: str) -> SetName:
    """Return the dataset and the split of a name; the longest name of a dataset wins."""
    if not isinstance(text, str):  # a notebook passes its rows, or the path of a file
        raise UsageError("the first argument is the name of a dataset: pass its rows as source=.")
    dataset, _, split = text.partition(":")
    if registry.is_path(text):
        return SetName(text)
    if dataset.endswith(CARD_SUFFIX):
        return SetName(dataset, split)
    names = {_folded(name): name for name in registry.known("datasets")}
    if _folded(text) in names:
        return SetName(names[_folded(text)])
    if "/" in text and (named := _dataset_of_repository(dataset)):
        return read_set_name(f"{named}:{split}" if split else named)
    prefixes = sorted(filter(_folded(text).startswith, names), key=len, reverse=True)
    datasets = [names[prefix] for prefix in prefixes]
    for dataset in datasets:
        rest = _folded(text)[len(dataset) :]
        rest = rest[1:] if rest[:1] in ("-", ":") else rest
        for split in card_of(load_dataset(dataset)).splits:
            if rest == _folded(split):
                return SetName(dataset, split)
    raise UnknownNameError(_unknown_name(text, datasets))


def is_set(text: str) -> bool:
    """Return whether a text is the name of a dataset or of one of its splits."""
    try:
        return bool(read_set_name(text))
    except UnknownNameError:
        return False


def is_split_of_dataset(text: str) -> bool:
    """Return whether a name with a colon is that of a split (`aime:2024`) of a registered dataset."""
    name = read_set_name(text) if is_set(text) else SetName("")
    return bool(name.split) and name.dataset in registry.known("datasets")


def set_name(card: Card, split: str) -> str:
    """Return the one spelling of a split's name."""
    if split == _unnamed_split(card) and not re.search("[0-9]", split):
        return card.name
    hyphen = "" if split.isdecimal() and not card.name[-1].isdecimal() else "-"
    return f"{card.name}{hyphen}{split}"


def set_names(card: Card) -> list[str]:
    """Return the names of all splits of a dataset."""
    return [set_name(card, split) for split in card.splits]


def known_names(start: str = "") -> list[str]:
    """Return the names of all datasets and their splits; of plug-ins, which are not imported, the former.

    With a `start`, only those of the datasets whose names may begin so are read.
    """
    datasets = [d for d in registry.known("datasets") if d.startswith(start) or start.startswith(d)]
    names = [(d, *(() if is_plugin(d) else set_names(card_of(load_dataset(d))))) for d in datasets]
    return list(dict.fromkeys(chain.from_iterable(names)))


def evaluation_split(card: Card) -> str:
    """Return the split that a dataset's name alone stands for: `test`, or the only one."""
    if split := _unnamed_split(card):
        return split
    raise UsageError(f"{card.name} has no test split. Choose {' or '.join(set_names(card))}.")


def held_out_splits(card: Card) -> list[str]:
    """Return the splits that nobody should train on: all but `train`, or `train` if it is the only one."""
    return [split for split in card.splits if split != "train"] or list(card.splits)


def plugins_in(text: str) -> list[str]:
    """Return the plug-ins that `read_set_name` may import to read a name."""
    if registry.is_path(text):
        return [text]
    plugins = filter(is_plugin, registry.known("datasets"))
    return [name for name in plugins if _folded(text).startswith(_folded(name))]


def default_suite_folder() -> Path:
    """Return the folder of prepared sets: `rewardkit/suite` in the user's XDG_CACHE_HOME."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "rewardkit" / "suite"


def prepared_path(folder: Path, card: Card, split: str) -> Path:
    """Return the path of a set's parquet in a folder of prepared sets."""
    return folder / f"{set_name(card, split)}.parquet"


def _dataset_of_repository(repository: str) -> str:
    """Return the one built-in dataset that a hub has in a repository; "" if none, or several."""
    names = [
        card.name
        for card in map(read_card, registry.DATASETS)
        if repository.lower() in (card.huggingface.lower(), card.modelscope.lower())
    ]
    return names[0] if len(names) == 1 else ""


def _unnamed_split(card: Card) -> str | None:
    if "test" in card.splits:
        return "test"
    return next(iter(card.splits)) if len(card.splits) == 1 else None


def _folded(text: str) -> str:
    return text.replace("_", "-").lower()


def _unknown_name(text: str, datasets: list[str]) -> str:
    near = registry.did_you_mean(text, known_names())
    if datasets:
        sets = ", ".join(set_names(card_of(load_dataset(datasets[0]))))
        return f"unknown set {text!r}.{near} The sets of {datasets[0]}: {sets}."
    file = ""
    if os.path.isdir(text):  # noqa: PTH112 - unlike a Path, it takes strings that are not paths
        file = f" {text} is a folder: name a file in it, or give it as --source of a dataset."
    elif os.path.isfile(f"{text}.parquet"):  # noqa: PTH113
        file = f" Did you mean the file {text}.parquet?"
    return f"unknown dataset {text!r}.{file}{near} rewardkit list prints all names."
