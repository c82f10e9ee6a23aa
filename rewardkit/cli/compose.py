"""`rewardkit compose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import Overwrite

EXAMPLES = examples(
    "rewardkit compose reward.yaml --out reward.py",
    "rewardkit check train.parquet --scorer reward.py:compute_score",
)


def command(
    recipe: Annotated[Path, typer.Argument(help="A YAML with the scorer and the parts.")],
    out: Annotated[Path, typer.Option(help="The Python file to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Write a reward of several parts (correct, format, repetition, length) as a file verl loads.

    Every part is logged under its own name. See rewardkit.scorers.compose for the parts.
    """
    from rewardkit.scorers.compose import write_reward_file

    write_reward_file(recipe, out, overwrite=overwrite)
    typer.echo(f"{out}: reward.custom_reward_function.path={out.resolve()}")
