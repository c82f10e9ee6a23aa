"""`rewardkit compose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import LoadSeconds, Overwrite

EXAMPLES = examples(
    "rewardkit compose reward.yaml --out reward.py",
    "rewardkit check train.parquet --scorer reward.py:compute_score",
)


def command(
    recipe: Annotated[Path, typer.Argument(help="YAML file with the scorer and the parts.")],
    out: Annotated[Path, typer.Option(help="Output Python file.")],
    load_seconds: LoadSeconds = 60.0,
    overwrite: Overwrite = False,
) -> None:
    """Write a reward of several parts as one file for verl.

    Parts are correctness, format, repetition and length; verl logs each under its own name. See
    rewardkit.scorers.compose for the parts.
    """
    from rewardkit.scorers.compose import write_reward_file

    write_reward_file(recipe, out, overwrite=overwrite, load_seconds=load_seconds)
    typer.echo(f"{out}: reward.custom_reward_function.path={out.resolve()}")
