"""`rewardkit path`."""

from __future__ import annotations

from typing import Annotated

import typer

from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import Settings, scorer_options

EXAMPLES = examples(
    "rewardkit path gsm8k",
    "python3 -m verl.trainer.main_ppo ... $(rewardkit path gsm8k --verl)",
    "rewardkit path gsm8k --verl --set method=robust",
    "rewardkit path auto --verl --verl-version 0.8",
)


def command(
    scorer: Annotated[str, typer.Argument(help="A scorer's name; auto for mixed datasets.")],
    pkg: Annotated[bool, typer.Option("--pkg", help="Print pkg://module instead.")] = False,
    verl: Annotated[bool, typer.Option("--verl", help="Print verl's override(s) instead.")] = False,
    verl_version: Annotated[
        str | None, typer.Option(help="For this verl instead of the installed one.")
    ] = None,
    settings: Settings = None,
) -> None:
    """Print the file to give verl as its reward, or the overrides that do it.

    verl 0.9 honours only reward.custom_reward_function.path; the old key
    custom_reward_function.path is silently ignored there. --verl prints the right one.
    """
    from rewardkit.launch.verl.releases import LATEST, installed_verl
    from rewardkit.launch.verl.reward_keys import reward_overrides
    from rewardkit.scorers.load import load_scorer, location

    options = scorer_options(settings)
    load_scorer(scorer, **options)
    where = location(scorer, pkg=pkg)
    if not verl and not verl_version:
        typer.echo(where)
        return
    version = verl_version or installed_verl()
    if version is None:
        warn(f"no verl is installed here: these are the overrides of verl {LATEST}.")
    for override in reward_overrides(where, options, version or LATEST):
        typer.echo(override)
