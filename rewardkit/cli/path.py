"""`rewardkit path`."""

from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import show_import, warn
from rewardkit.cli.shared.options import argument, complete_scorers, examples, option

EXAMPLES = examples(
    "rewardkit path gsm8k",
    "python3 -m verl.trainer.main_ppo ... $(rewardkit path gsm8k --verl)",
    "rewardkit path gsm8k --verl --set method=robust",
    "rewardkit path auto --verl --verl-version 0.8",
    "rewardkit path guarded.py --verl",
    "rewardkit path gsm8k --verl --record /shared/my_run/rewards",
)


def command(
    scorer: Annotated[
        str,
        argument(
            "Scorer name, auto for mixed datasets, or file.py:function.",
            autocompletion=complete_scorers,
        ),
    ],
    pkg: Annotated[bool, option("Print pkg://module instead of the file.", "--pkg")] = False,
    verl: Annotated[bool, option("Print verl's overrides instead of the file.", "--verl")] = False,
    verl_version: opt.VerlVersion = None,
    settings: opt.Settings = None,
    record: Annotated[
        Path | None,
        option("Folder for the rewards that training records, on storage that every node sees."),
    ] = None,
    load_seconds: opt.LoadSeconds = 60.0,
) -> None:
    """Print the reward file, or the overrides, to pass to verl.

    verl 0.9 reads only reward.custom_reward_function.path and silently ignores the old key
    custom_reward_function.path. --verl prints the key that your verl reads.
    """
    from rewardkit.errors import UsageError
    from rewardkit.launch.verl.releases import LATEST, installed_verl, reward_overrides
    from rewardkit.redact import variable_of
    from rewardkit.registry import is_path, with_function
    from rewardkit.scorers.compose import part_weights
    from rewardkit.scorers.isolated import require_scorer_loads
    from rewardkit.scorers.load import location

    options = opt.scorer_options(settings)
    scorer = with_function(scorer)
    with show_import(scorer):
        require_scorer_loads(scorer, options, load_seconds)
    where = location(scorer, pkg=pkg)
    if not verl and not verl_version:
        if record is not None:
            raise UsageError("--record is for verl; add --verl.")
        typer.echo(where)
        return
    if record is not None and is_path(scorer) and not part_weights(where):
        raise UsageError(
            "--record is for scorers of rewardkit and composed rewards; write the file with "
            "`rewardkit guard --record` instead."
        )
    for name, value in options.items():
        if variable := variable_of(name, value):
            options[name] = f"${{oc.env:{variable}}}"
            warn(
                f"{name} holds a secret: verl reads it from {variable}. Export that where verl runs."
            )
    if record is not None:
        options["record"] = str(record.expanduser().absolute())
    version = verl_version or installed_verl()
    if version is None:
        warn(f"verl is not installed: these are the overrides for verl {LATEST}.")
    function = scorer.partition(":")[2] or "compute_score"
    for override in reward_overrides(where, options, version or LATEST, function):
        typer.echo(override)
