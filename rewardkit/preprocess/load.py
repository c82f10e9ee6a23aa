"""Load a dataset by name or path, together with its card."""

import os
from pathlib import Path

from rewardkit import registry
from rewardkit.errors import SourceError, UsageError
from rewardkit.isolate.function import start_function
from rewardkit.isolate.serve import Limits, Loaded
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card import Card, read_card, read_card_file
from rewardkit.preprocess.card_dataset import dataset_of_card

#: The suffix of a card that is given by its path.
CARD_SUFFIX = ".md"


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
        return _dataset_of_card_file(Path(dataset))
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


def _dataset_of_card_file(path: Path) -> Dataset:
    if not path.is_file():
        raise SourceError(f"{path}: no such file.")
    card = read_card_file(path)
    if not card.maps:
        raise UsageError(
            f"{path}: columns does not say what each column holds. Write columns: {{question: "
            "problem, gold: answer}, or give the .py file of the dataset."
        )
    return dataset_of_card(card)


def require_dataset_loads(dataset: str, load_seconds: float) -> None:
    """Import the dataset of a plug-in in a child process first, to see that it loads.

    A dataset runs in this process, where an import that hangs could not be ended.
    """
    target = "" if registry.is_path(dataset) else registry.target("datasets", dataset)
    limits = Limits(load_seconds=load_seconds)
    process, _, _ = start_function(_load, (dataset, target), dataset, limits)
    process.close()


def _load(name: str, target: str) -> Loaded:
    """Load a dataset in that child process, in which nothing is called."""
    if target:
        registry.import_target(target, name)
    else:
        load_dataset(name)
    return Loaded(load_dataset)


def is_plugin(dataset: str) -> bool:
    """Return whether a dataset is in a user's file or another package; False for an unknown name."""
    names = registry.known("datasets").keys() - registry.DATASETS.keys()
    return registry.is_path(dataset) or dataset in names


def card_of(dataset: Dataset) -> Card:
    """Return the card in the `Dataset`, or else the file of its name in `data_cards/`."""
    return dataset.card or read_card(dataset.name)
