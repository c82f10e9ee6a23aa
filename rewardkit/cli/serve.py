"""`rewardkit serve`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared.console import examples
from rewardkit.errors import DataError

EXAMPLES = examples(
    "rewardkit serve /models/qwen3-32b-dapo --recipe qwen3-32b-dapo",
    "rewardkit serve /models/mine --recipe my.yaml --port 6380",
)


def command(
    checkpoint: Annotated[Path, typer.Argument(help="A folder with Hugging Face weights.")],
    recipe: Annotated[str, typer.Option(help="What it was trained with: lengths, devices, tp.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="To listen on, at 127.0.0.1.")] = 8000,
    name: Annotated[str | None, typer.Option(help="The server calls the model so.")] = None,
) -> None:
    """Print the vLLM command that serves a checkpoint with the lengths of its recipe.

    On NPU the same command runs with vLLM-Ascend; do not start it in /home of the Ascend image.
    """
    from rewardkit.cli.train import plan_of
    from rewardkit.launch.checkpoints import find_checkpoint, serve_command, serve_env
    from rewardkit.launch.recipe import load_tree
    from rewardkit.launch.rules.values import response_length

    found = find_checkpoint(checkpoint)
    if found.backend != "hf":
        raise DataError(f"{found.folder} holds shards: merge them first (rewardkit merge).")
    model = found.model
    plan = plan_of(load_tree(recipe), recipe, []).plan
    command = serve_command(
        str(model),
        lengths=(plan.get("data.max_prompt_length", 0), response_length(plan) or 0),
        tp=plan.get("actor_rollout_ref.rollout.tensor_model_parallel_size", 1),
        port=port,
        name=name or plan.recipe.name,
    )
    for key, value in serve_env(plan.recipe.devices).items():
        typer.echo(f"export {key}={value}")
    typer.echo(shlex.join(command))
