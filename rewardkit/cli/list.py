"""`rewardkit list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, show_import, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import argument
from rewardkit.cli.shared.user_code import load_cards

if TYPE_CHECKING:
    from rewardkit.preprocess.card import Card

EXAMPLES = examples("rewardkit list", "rewardkit list scorers", "rewardkit list --json")

#: Purposes and areas of datasets, in the order in which they are printed; others follow.
USES = ("training", "evaluation")
AREAS = ("maths", "science", "choice", "open questions", "pictures", "finance")

NOTE = (
    "A set has one name for prep, show, eval --suite and check --against: dataset and split, as in "
    "aime2024, olymmath-en-easy or gsm8k-train. --against all-eval is all evaluation sets. The hubs' "
    "ids: rewardkit card NAME."
)


def command(
    kind: Annotated[
        Literal["datasets", "scorers", "rubrics", "templates", "data_sources"] | None,
        argument("What to list; everything by default."),
    ] = None,
    load_seconds: opt.LoadSeconds = 60.0,
    as_json: opt.JsonFlag = False,
) -> None:
    """List datasets, scorers, rubrics, templates and data sources."""
    from rewardkit import registry
    from rewardkit.judging.rubric import BUILT_IN as RUBRICS
    from rewardkit.judging.rubric import read_rubric
    from rewardkit.preprocess.template import BUILT_IN
    from rewardkit.scorers.isolated import is_built_in, scorer_summary

    cards, broken = load_cards(load_seconds)
    scorers = {}
    for name in registry.known("scorers"):
        with nullcontext() if is_built_in(name) else show_import(name):
            scorers[name] = scorer_summary(name, load_seconds)
    rubrics = {name: read_rubric(name).summary() for name in RUBRICS}
    sources = registry.known("data_sources")
    if as_json:
        lists: dict[str, Any] = {
            "datasets": {card.name: card for card in cards},
            "broken": broken,
            "scorers": scorers,
            "rubrics": rubrics,
            "templates": {name: template.text for name, template in BUILT_IN.items()},
            "data_sources": sources,
        }
        print_json(lists[kind] if kind else lists)
        return
    if kind in {None, "datasets"}:
        _print_datasets(cards)
    if kind in {None, "scorers"}:
        print_table(("scorer", "reads"), scorers.items(), wrap={"reads"})
    if kind in {None, "rubrics"}:
        print_table(("rubric of judge", "asks"), rubrics.items(), wrap={"asks"})
    if kind in {None, "templates"}:
        texts = ((t.name, t.scorer or "the dataset's", t.text) for t in BUILT_IN.values())
        print_table(("template", "scorer", "text"), texts, wrap={"text"})
    if kind in {None, "data_sources"}:
        names = {target: name for name, target in registry.known("scorers").items()}
        print_table(("data_source", "scorer"), ((s, names.get(t, t)) for s, t in sources.items()))
    for name, why in broken.items():
        warn(f"{name}: {why}")


def _print_datasets(cards: Sequence[Card]) -> None:
    """Print a table of the datasets for each purpose, then how to get the gated ones."""
    for use in dict.fromkeys([*USES, *(card.use for card in cards)]):
        if members := [card for card in cards if card.use == use]:
            print_table(
                ("dataset", "rows", "gold", "licence"),
                _rows(members),
                f"datasets for {use}" if use else "other datasets",
                wrap={"rows", "licence"},
                spare=("licence", "gold"),
            )
    print_wrapped(NOTE)
    for card in cards:
        if card.gated:
            print_wrapped(f"{card.name}: {card.how_to_get_access(next(iter(card.splits)))}")
    typer.echo()


def _rows(cards: Sequence[Card]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table: each area, and its datasets."""
    for area in dict.fromkeys([*AREAS, *(card.area for card in cards)]):
        members = [card for card in cards if card.area == area]
        if members:
            yield f"{area or 'other'}:", "", "", ""
        for card in members:
            access = f"{card.licence}, gated" if card.gated else card.licence
            yield f"  {card.name}", _sizes(card), card.gold_kind, access


def _sizes(card: Card) -> str:
    """Return the rows of each split; a no-break space is between a name and its number."""
    from rewardkit.preprocess.set_names import set_name

    split = next(iter(card.splits))
    if len(card.splits) == 1 and set_name(card, split) == card.name:
        return f"{card.splits[split].rows:,}"
    return ", ".join(f"{name}\xa0{split.rows:,}" for name, split in card.splits.items())
