"""`rewardkit card`."""

from __future__ import annotations

from typing import Annotated

import typer

from rewardkit.cli._common import JsonFlag, examples, print_json

EXAMPLES = examples("rewardkit card gsm8k", "rewardkit card gsm8k --json")


def command(
    name: Annotated[str, typer.Argument(help="A dataset's name; see rewardkit list.")],
    as_json: JsonFlag = False,
) -> None:
    """Print a dataset's card: licence, hubs, schema, gold rule, known defects, citation."""
    from rewardkit import registry
    from rewardkit.preprocess.card import card_text, read_card

    registry.target("datasets", name)
    if as_json:
        print_json(read_card(name))
    else:
        typer.echo(card_text(name))
