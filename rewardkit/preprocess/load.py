"""Load a dataset by name or path, together with its card."""

from __future__ import annotations

from rewardkit import registry
from rewardkit.errors import UsageError
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card import Card, read_card


def load_dataset(dataset: str | Dataset) -> Dataset:
    """Return a dataset by name or by the path of a plug-in; return a `Dataset` unchanged.

    Args:
        dataset: a registered name, `my_dataset.py` (its variable `DATASET`), `my_dataset.py:NAME`,
            or a `Dataset`.

    Raises:
        UnknownNameError: no dataset has this name.
        UsageError: the file cannot be imported or has no dataset of this name.
    """
    if isinstance(dataset, Dataset):
        return dataset
    if registry.is_path(dataset) and ":" not in dataset:
        dataset = f"{dataset}:DATASET"
    loaded = registry.load("datasets", dataset)
    if not isinstance(loaded, Dataset):
        raise UsageError(f"{dataset} is {type(loaded).__name__}, not a rewardkit Dataset.")
    return loaded


def card_of(dataset: Dataset) -> Card:
    """Return the card in the `Dataset`, or else the file of its name in `data_cards/`."""
    return dataset.card or read_card(dataset.name)
