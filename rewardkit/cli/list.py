"""`rewardkit list`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from rewardkit.cli.shared.console import (
    print_json,
    print_table,
    prints_to_stderr,
    show_import,
    warn,
)
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import JsonFlag, LoadSeconds
from rewardkit.cli.shared.user_code import require_datasets
from rewardkit.errors import RewardkitError

if TYPE_CHECKING:
    from rewardkit.preprocess.card import Card

EXAMPLES = examples("rewardkit list", "rewardkit list --json")


def command(load_seconds: LoadSeconds = 60.0, as_json: JsonFlag = False) -> None:
    """List datasets, scorers, prompt templates and data sources."""
    from rewardkit import registry
    from rewardkit.preprocess.load import card_of, load_dataset
    from rewardkit.preprocess.template import BUILT_IN

    datasets, broken = [], {}
    with prints_to_stderr():
        for name in registry.known("datasets"):
            try:
                require_datasets([name], load_seconds)
                datasets.append(card_of(load_dataset(name)))
            except RewardkitError as error:  # a broken plug-in does not hide the others
                broken[name] = str(error)
    scorers = {name: _scorer_summary(name, load_seconds) for name in registry.known("scorers")}
    sources = registry.known("data_sources")
    if as_json:
        print_json(
            {
                "datasets": {card.name: card for card in datasets},
                "broken": broken,
                "scorers": scorers,
                "templates": {name: template.text for name, template in BUILT_IN.items()},
                "data_sources": sources,
            }
        )
        return
    print_table(
        ("dataset", "rows", "template", "scorer", "licence", "Hugging Face", "ModelScope"),
        ((c.name, c.sizes, c.template, c.scorer, c.licence, *_hubs(c)) for c in datasets),
    )
    print_table(("scorer", "reads"), scorers.items())
    print_table(
        ("template", "scorer", "text"),
        ((t.name, t.scorer or "the dataset's", t.text) for t in BUILT_IN.values()),
    )
    print_table(("data_source", "scorer"), sources.items())
    for name, why in broken.items():
        warn(f"{name}: {why}")


def _scorer_summary(name: str, load_seconds: float) -> str:
    from rewardkit.scorers.isolated import is_built_in, scorer_summary

    with nullcontext() if is_built_in(name) else show_import(name):
        return scorer_summary(name, load_seconds)


def _hubs(card: Card) -> tuple[str, str]:
    """The repositories of all splits, for Hugging Face and ModelScope."""
    copies = [card.hub_copy(split) for split in card.splits]
    return (
        ", ".join(dict.fromkeys(h.huggingface for h in copies if h.huggingface)),
        ", ".join(dict.fromkeys(h.modelscope for h in copies if h.modelscope)),
    )
