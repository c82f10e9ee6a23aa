"""`rewardkit card`."""

from __future__ import annotations

from typing import Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.completion import complete_set
from rewardkit.cli.shared.console import print_json, prints_to_stderr
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import argument
from rewardkit.cli.shared.user_code import require_sets

EXAMPLES = examples("rewardkit card gsm8k", "rewardkit card gsm8k --json")


def command(
    name: Annotated[
        str, argument("Dataset name; see rewardkit list.", autocompletion=complete_set)
    ],
    load_seconds: opt.LoadSeconds = 60.0,
    as_json: opt.JsonFlag = False,
) -> None:
    """Print a dataset's card: licence, schema and known defects."""
    from rewardkit import registry
    from rewardkit.preprocess.card import card_text
    from rewardkit.preprocess.load import card_of, load_dataset
    from rewardkit.preprocess.set_names import read_set_name

    require_sets([name], load_seconds)
    with prints_to_stderr():
        dataset = load_dataset(read_set_name(name).dataset)
    is_text = dataset.card is None or dataset.name in registry.DATASETS
    if as_json or not is_text:  # the card of a plug-in may have no file
        print_json(card_of(dataset))
    else:
        typer.echo(card_text(dataset.name))
