"""`rewardkit eval merge`."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.options import argument, complete_recipes, examples, option
from rewardkit.errors import MissingPackageError, OutputError, UsageError

MERGE_EXAMPLES = examples(
    "rewardkit eval merge checkpoints/DAPO/qwen3-32b/global_step_100 /models/qwen3-32b-dapo \\",
    "    --recipe qwen3-32b-dapo",
    "rewardkit eval merge checkpoints/DAPO/qwen3-32b /models/latest --dry-run",
    "rewardkit eval merge /models/qwen3-32b-dapo --recipe qwen3-32b-dapo --port 6380",
)


def merge(
    checkpoint: Annotated[
        Path,
        argument(
            "Checkpoint of verl: a global_step_N, its actor folder, or the folder of the run."
        ),
    ],
    out: Annotated[
        Path | None, argument("New folder for the weights; not needed if they are merged already.")
    ] = None,
    part: Annotated[Literal["actor", "critic"], option("Model to merge.")] = "actor",
    recipe: Annotated[
        str | None,
        option(
            "Recipe of the run; prints the vLLM command that serves the merged model with "
            "the recipe's lengths.",
            autocompletion=complete_recipes,
        ),
    ] = None,
    port: Annotated[int, option("Port of the vLLM server, at 127.0.0.1.", min=1, max=65535)] = 8000,
    name: Annotated[
        str | None, option("Model name that the vLLM server uses; the default is the recipe's.")
    ] = None,
    load_seconds: opt.LoadSeconds = 60.0,
    dry_run: Annotated[
        bool, option("Print verl's merge command and do not run it.", "--dry-run")
    ] = False,
) -> None:
    """Merge a checkpoint into Hugging Face weights.

    verl's own merger does the work; FSDP and Megatron checkpoints are told apart automatically,
    and shards that are missing on this node are reported before anything starts. With --recipe
    the vLLM command that serves the merged model is printed too. On NPU the same command runs
    with vLLM-Ascend; do not start it in /home of the Ascend image.
    """
    from rewardkit.checkpoints import find_checkpoint, merge_command

    shards = find_checkpoint(checkpoint, part)
    merged = shards.backend == "hf"
    model = shards.model if merged else out
    if model is None:
        raise UsageError("name a new folder for the merged weights after the checkpoint.")
    if not merged and model.exists() and (not model.is_dir() or any(model.iterdir())):
        raise OutputError(f"{model} is not empty; name a new folder.")
    lines = _serve_lines(model, recipe, port, name, load_seconds) if recipe else [str(model)]
    if merged:
        warn("the checkpoint has Hugging Face weights already: nothing to merge.")
    elif dry_run:
        lines = [
            shlex.join(merge_command(shards, model, sys.executable)),
            *(lines if recipe else ()),
        ]
    else:
        _merge(merge_command(shards, model, sys.executable))
    typer.echo("\n".join(lines))
    if not recipe:
        warn("to print the vLLM command that serves the model, add --recipe RECIPE.")


def _merge(command: list[str]) -> None:
    from rewardkit.launch.verl.releases import installed_verl

    if installed_verl() is None:
        raise MissingPackageError(
            "merging needs verl: install rewardkit in verl's environment, or use --dry-run to "
            "print the command."
        )
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - verl's own
    if code:
        warn(f"error: verl's merger ended with exit code {code}.")
        raise typer.Exit(1)


def _serve_lines(
    model: Path, recipe: str, port: int, name: str | None, load_seconds: float
) -> list[str]:
    """Return the environment and the vLLM command for a model, with the lengths of its recipe."""
    from rewardkit.checkpoints import serve_command, serve_env
    from rewardkit.cli.shared.launch import read_launch_request
    from rewardkit.launch.request import plan_from_request
    from rewardkit.launch.rules.values import PlanValues

    plan = plan_from_request(read_launch_request(recipe, None), load_seconds)
    command = serve_command(
        str(model),
        lengths=(plan.get("data.max_prompt_length", 0), PlanValues(plan).response_tokens or 0),
        tp=plan.get("actor_rollout_ref.rollout.tensor_model_parallel_size", 1),
        port=port,
        name=name or plan.recipe.name,
    )
    exports = [f"export {key}={value}" for key, value in serve_env(plan.recipe.devices).items()]
    return [*exports, shlex.join(command)]
