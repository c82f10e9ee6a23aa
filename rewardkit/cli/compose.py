"""`rewardkit compose`."""

from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.options import argument, examples, option

EXAMPLES = examples(
    "rewardkit compose reward.yaml --out reward.py",
    "rewardkit compose reward.yaml --out reward.py --gdpo --verl-version 0.9",
    "rewardkit check train.parquet --scorer reward.py:compute_score",
)


def command(
    recipe: Annotated[Path, argument("YAML file with the scorer and the parts.")],
    out: Annotated[Path, option("Output Python file.")],
    gdpo: Annotated[
        bool, option("Also print verl's overrides for GDPO over the parts.", "--gdpo")
    ] = False,
    verl_version: opt.VerlVersion = None,
    load_seconds: opt.LoadSeconds = 60.0,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write a reward of several parts as one file for verl.

    Parts are correctness, format, repetition and length; verl logs each under its own name. A second
    scorer, such as a judge, can be asked about what the first one did not call correct, or did. The page
    docs/how-to/own-reward.md has a table of the keys.

    --gdpo prints one override a line for GDPO, which normalises the parts apart and needs verl 0.7.1
    or newer. A part's weight then has no effect through the part's size, so that the sizes of the
    weights become verl's gdpo_reward_weights; their signs stay in the parts.
    """
    from rewardkit.launch.presets import gdpo_overrides, gdpo_settings
    from rewardkit.launch.verl.releases import LATEST, installed_verl, reward_key
    from rewardkit.scorers.compose import part_weights, write_reward_file

    version = verl_version or installed_verl() or LATEST
    key = reward_key(version)
    if gdpo:
        gdpo_settings({}, version)  # a release without GDPO is refused before the file is written
    write_reward_file(recipe, out, overwrite=overwrite, load_seconds=load_seconds, announce=warn)
    typer.echo(f"{out}: {key}.path={out.resolve()}")
    if gdpo:
        for override in gdpo_overrides(part_weights(out), version):
            typer.echo(override)
