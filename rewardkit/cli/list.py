"""`rewardkit list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import (
    print_json,
    print_table,
    print_wrapped,
    prints_to_stderr,
    show_import,
    warn,
)
from rewardkit.cli.shared.options import argument, complete_set, examples
from rewardkit.cli.shared.user_code import load_cards, require_sets
from rewardkit.table import Table

if TYPE_CHECKING:
    from rewardkit.preprocess.card import Card

EXAMPLES = examples("rewardkit list", "rewardkit list scorers", "rewardkit list gsm8k --json")

KINDS = ("datasets", "scorers", "rubrics", "templates", "data_sources")

#: Purposes and areas of datasets, in the order in which they are printed; others follow.
USES = ("training", "evaluation")
AREAS = (
    "maths",
    "science",
    "choice",
    "code",
    "function calls",
    "SQL",
    "instructions",
    "open questions",
    "pictures",
    "finance",
)

NOTE = (
    "A set has one name for prep, show, eval --suite and check --against: dataset and split, as in "
    "aime2024, olymmath-en-easy or gsm8k-train. --against all-eval is all evaluation sets. The hubs' "
    "ids: rewardkit list NAME."
)


def _complete(incomplete: str) -> list[str]:
    return [*(kind for kind in KINDS if kind.startswith(incomplete)), *complete_set(incomplete)]


def command(
    name: Annotated[
        str | None,
        argument(
            "What to list: datasets, scorers, rubrics, templates or data_sources; everything by "
            "default. Or a dataset, whose card is printed: licence, schema and known defects.",
            metavar="[KIND|DATASET]",
            autocompletion=_complete,
        ),
    ] = None,
    load_seconds: opt.LoadSeconds = 60.0,
    as_json: opt.JsonFlag = False,
) -> None:
    """List datasets, scorers and more, or print a dataset's card."""
    if name and name not in KINDS:
        _print_card(name, load_seconds, as_json=as_json)
        return
    from rewardkit import registry
    from rewardkit.judging.rubric import BUILT_IN as RUBRICS
    from rewardkit.judging.rubric import read_rubric
    from rewardkit.preprocess.template import BUILT_IN
    from rewardkit.scorers.isolated import scorer_summary

    cards, broken = load_cards(load_seconds)
    targets = registry.known("scorers")
    scorers = {}
    for scorer in targets:
        with show_import(scorer):
            scorers[scorer] = scorer_summary(scorer, load_seconds)
    rubrics = {rubric: read_rubric(rubric).summary() for rubric in RUBRICS}
    sources = registry.known("data_sources")
    if as_json:
        lists: dict[str, Any] = {
            "datasets": {card.name: card for card in cards},
            "broken": broken,
            "scorers": scorers,
            "rubrics": rubrics,
            "templates": {each: template.text for each, template in BUILT_IN.items()},
            "data_sources": sources,
        }
        print_json(lists[name] if name else lists)
        return
    if name in {None, "datasets"}:
        _print_datasets(cards)
    names = {target: scorer for scorer, target in targets.items()}
    templates = [(t.name, t.scorer or "the dataset's", t.text) for t in BUILT_IN.values()]
    pairs = [(source, names.get(target, target)) for source, target in sources.items()]
    tables = {
        "scorers": Table(("scorer", "reads"), list(scorers.items()), wrap={"reads"}),
        "rubrics": Table(("rubric of judge", "asks"), list(rubrics.items()), wrap={"asks"}),
        "templates": Table(("template", "scorer", "text"), templates, wrap={"text"}),
        "data_sources": Table(("data_source", "scorer"), pairs),
    }
    for kind, table in tables.items():
        if name in {None, kind}:
            print_table(table)
    for dataset, why in broken.items():
        warn(f"{dataset}: {why}")


def _print_card(name: str, load_seconds: float, *, as_json: bool) -> None:
    from rewardkit import registry
    from rewardkit.preprocess.card import card_text
    from rewardkit.preprocess.load import card_of, load_dataset, read_set_name

    require_sets([name], load_seconds)
    with prints_to_stderr():
        dataset = load_dataset(read_set_name(name).dataset)
    is_text = dataset.card is None or dataset.name in registry.DATASETS
    if as_json or not is_text:  # the card of a plug-in may have no file
        print_json(card_of(dataset))
    else:
        typer.echo(card_text(dataset.name))


def _print_datasets(cards: Sequence[Card]) -> None:
    """Print a table of the datasets for each purpose, then how to get the gated ones."""
    for use in dict.fromkeys([*USES, *(card.use for card in cards)]):
        if members := [card for card in cards if card.use == use]:
            columns = ("dataset", "rows", "gold", "licence")
            title = f"datasets for {use}" if use else "other datasets"
            rows, wrap, spare = list(_rows(members)), {"rows", "licence"}, ("licence", "gold")
            print_table(Table(columns, rows, title, wrap=wrap, spare=spare))
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
    from rewardkit.preprocess.load import set_name

    split = next(iter(card.splits))
    if len(card.splits) == 1 and set_name(card, split) == card.name:
        return f"{card.splits[split].rows:,}"
    return ", ".join(f"{name}\xa0{split.rows:,}" for name, split in card.splits.items())
