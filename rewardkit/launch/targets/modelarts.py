"""`modelarts`: the configuration for AscendFactory, the trainer of Huawei's ModelArts.

AscendFactory writes a YAML for a model (`ascendfactory-cli config`) in which four keys must be set:
`af_output_dir`, and under `backend_config` the training files, the validation files and the model's
path. Our YAML has these and all other settings of the recipe, and is merged into AscendFactory's.
Source: Huawei's best practice for training large models on ModelArts with verl.

Not tested on ModelArts: the tests parse the YAML, and run modelarts.sh with a stand-in for the
command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.secret_values import MARK, shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    as_comment,
    as_yaml,
    comment_text,
    render_template,
    slug,
)
from rewardkit.launch.verl.hydra_values import Raw

#: The output folder if default_local_dir is not absolute: that of AscendFactory's example.
DEFAULT_OUTPUT = "/home/ma-user/verl"

_HEADER = """
{name}, verl {verl}: the settings of the recipe, for AscendFactory. Made by rewardkit.

modelarts.sh merges them into AscendFactory's configuration of the model:
  ascendfactory-cli config --backend=verl --af_model_name={model} --exp_name={name} --output_file_path=preset.yaml
  (preset.yaml and modelarts.yaml become run.yaml)
  ascendfactory-cli train run.yaml
"""


def modelarts(plan: Plan, folder: Path) -> Launch:
    """Return the YAML, and a script with the three steps.

    Raises:
        UsageError: AscendFactory's name of the model is missing, the run needs the DAPO recipe, or
            a setting cannot be written as YAML.
    """
    recipe = plan.recipe
    if not recipe.cluster.model_name:
        raise UsageError(
            "cluster.model_name: modelarts needs AscendFactory's name of the model (af_model_name)."
        )
    if plan.module == DAPO_RECIPE:
        raise UsageError(
            "modelarts: AscendFactory starts verl's main trainer, which has dynamic sampling from verl "
            "0.9 on. Remove dapo.dynamic_sampling, or use verl 0.9."
        )
    megatron = ("The run uses Megatron: choose an AscendFactory preset that does too.",)
    local_dir = str(plan.get("trainer.default_local_dir", ""))
    tree = {
        "af_output_dir": local_dir if local_dir.startswith("/") else DEFAULT_OUTPUT,
        "backend_config": _settings_tree(plan),
    }
    header = _HEADER.format(
        name=slug(recipe.name),
        verl=plan.verl,
        model=comment_text(shell_word(recipe.cluster.model_name)),
    )
    return Launch(
        files=(
            File("modelarts.yaml", as_comment(header) + as_yaml(tree)),
            File("modelarts.sh", render_template("modelarts.sh.j2", plan), executable=True),
        ),
        next_steps=(
            f"Copy {shell_word(str(folder))} to ModelArts and run in the copy: bash modelarts.sh",
            *(megatron if recipe.strategy == "megatron" else ()),
            f"Give the ModelArts job {recipe.nodes} nodes with {recipe.devices_per_node} devices each.",
        ),
    )


def _settings_tree(plan: Plan) -> dict[str, Any]:
    """Return the plan's settings by the release's names, nested as in YAML."""
    tree: dict[str, Any] = {}
    settings = [a for a in plan.arguments if not a.startswith(("--", "model_engine="))]
    for override in parse_overrides(settings, "the plan"):
        if override.is_group or override.sign == "~":
            raise UsageError(
                f"{override}: AscendFactory takes only settings, key=value. Remove it."
            )
        *parents, name = override.key.split(".")
        section = tree
        for parent in parents:
            section = section.setdefault(parent, {})
        section[name] = _resolved_value(plan, override.key)
    return tree


def _resolved_value(plan: Plan, key: str) -> Any:
    """Return a setting's value, resolved: AscendFactory's guide does not mention ${...}."""
    value = plan.config[plan.release.latest_name_of(key)]
    if isinstance(value, str) and MARK.search(value):
        raise UsageError(
            f"{key}: it is a secret, and AscendFactory reads settings only from a file. Remove it."
        )
    if isinstance(value, Raw):
        raise UsageError(f"{key}={value}: write it as a YAML mapping under `verl:`.")
    return value
