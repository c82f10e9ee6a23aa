"""Imports of plug-ins' datasets: with a deadline, and shown on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardkit.cli.shared.console import prints_to_stderr, show_import
from rewardkit.errors import RewardkitError

if TYPE_CHECKING:
    from rewardkit.preprocess.card import Card


def require_datasets(names: list[str], load_seconds: float) -> None:
    """Require that plug-ins' datasets load within the timeout, before this process imports them.

    Other names are ignored.

    Raises:
        UsageError: a plug-in does not load.
    """
    from rewardkit.preprocess.load import is_plugin, require_dataset_loads

    for name in filter(is_plugin, names):
        with show_import(name):
            require_dataset_loads(name, load_seconds)


def require_sets(names: list[str], load_seconds: float) -> None:
    """Require the same of the datasets whose sets are named (`rewardkit.preprocess.load`)."""
    from rewardkit.preprocess.load import plugins_in

    require_datasets([plugin for name in names for plugin in plugins_in(name)], load_seconds)


def load_cards(load_seconds: float) -> tuple[list[Card], dict[str, str]]:
    """Return the cards of all datasets, and the datasets that do not load with the reasons."""
    from rewardkit import registry
    from rewardkit.preprocess.card import read_card
    from rewardkit.preprocess.load import card_of, load_dataset

    cards, broken = [], {}
    with prints_to_stderr():
        for name in registry.known("datasets"):
            try:
                require_datasets([name], load_seconds)
                is_built_in = name in registry.DATASETS
                cards.append(read_card(name) if is_built_in else card_of(load_dataset(name)))
            except RewardkitError as error:  # a broken plug-in does not hide the others
                broken[name] = str(error)
    return cards, broken
