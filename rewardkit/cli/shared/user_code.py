"""Imports of custom scorers and datasets: with a deadline, and shown on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from rewardkit.cli.shared.console import prints_to_stderr, show_import
from rewardkit.errors import RewardkitError

if TYPE_CHECKING:
    from rewardkit.preprocess.card import Card
    from rewardkit.scorers.base import Scorer


@contextmanager
def open_scorer_with_status(
    name: str, options: Mapping[str, Any], seconds: float, load_seconds: float
) -> Iterator[Scorer]:
    """Open a scorer as `scorers.isolated.open_scorer` does, and show that a custom one is imported."""
    from rewardkit.scorers.isolated import open_scorer

    with ExitStack() as stack:
        with show_import(name):
            scorer = stack.enter_context(open_scorer(name, options, seconds, load_seconds))
        yield scorer


def require_datasets(names: list[str], load_seconds: float) -> None:
    """Require that plug-ins' datasets load within the timeout, before this process imports them.

    Args:
        names: datasets, or paths of plug-ins; other names are ignored.
        load_seconds: timeout of each import.

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
