"""`rewardkit card`."""

from __future__ import annotations

from typing import Annotated

import typer

from rewardkit.cli.shared.completion import complete_datasets
from rewardkit.cli.shared.console import print_json, prints_to_stderr
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import JsonFlag, LoadSeconds
from rewardkit.cli.shared.user_code import require_datasets

EXAMPLES = examples("rewardkit card gsm8k", "rewardkit card gsm8k --json")


def command(
    name: Annotated[
        str,
        typer.Argument(autocompletion=complete_datasets, help="Dataset name; see rewardkit list."),
    ],
    load_seconds: LoadSeconds = 60.0,
    as_json: JsonFlag = False,
) -> None:
    """Print a dataset's card: licence, schema and known defects."""
    from rewardkit.preprocess.card import card_text
    from rewardkit.preprocess.load import card_of, load_dataset

    require_datasets([name], load_seconds)
    with prints_to_stderr():
        dataset = load_dataset(name)
    if as_json or dataset.card is not None:  # a plug-in's card has no text
        print_json(card_of(dataset))
    else:
        typer.echo(card_text(dataset.name))
