"""`rewardkit merge`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared.console import examples, warn
from rewardkit.errors import OutputError, UsageError

EXAMPLES = examples(
    "rewardkit merge checkpoints/DAPO/qwen3-32b/global_step_100 /models/qwen3-32b-dapo",
    "rewardkit merge checkpoints/DAPO/qwen3-32b /models/latest --dry-run",
)


class Part(str, Enum):
    """Whose weights."""

    actor = "actor"
    critic = "critic"


def command(
    checkpoint: Annotated[
        Path, typer.Argument(help="A global_step_N of verl's, its actor folder, or the run's.")
    ],
    out: Annotated[Path, typer.Argument(help="The new folder, with Hugging Face weights.")],
    part: Annotated[Part, typer.Option(help="Whose weights.")] = Part.actor,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print verl's command and do nothing.")
    ] = False,
) -> None:
    """Merge a checkpoint's shards into Hugging Face weights, with verl's own merger.

    FSDP or Megatron is found out; shards that lie on other nodes are named before anything starts.
    """
    from rewardkit.launch.checkpoints import find_checkpoint, merge_command
    from rewardkit.launch.verl.keys import installed_verl

    found = find_checkpoint(checkpoint, part.value)
    if found.backend == "hf":
        typer.echo(str(found.model))
        warn("these are Hugging Face weights already: nothing to merge.")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out} is not empty; name a new folder.")
    merger = merge_command(found, out, sys.executable)
    if dry_run:
        typer.echo(shlex.join(merger))
        return
    if installed_verl() is None:
        raise UsageError("merging is verl's: install rewardkit where verl is, or see --dry-run.")
    code = subprocess.run(merger, check=False).returncode  # noqa: S603 - verl's own module
    if code:
        warn(f"error: verl's merger ended with exit code {code}.")
        raise typer.Exit(1)
    typer.echo(str(out))
