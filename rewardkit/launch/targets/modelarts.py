"""`modelarts`: what AscendFactory, the trainer of Huawei's ModelArts, is to be given.

AscendFactory makes a YAML of its own for a model (`ascendfactory-cli config`) in which four keys
must be set: `af_output_dir`, and under `backend_config` the train files, the validation files and
the model's path. Ours has these and every other setting of the recipe, and is laid over it. Source:
Huawei's best practice for training large models on ModelArts with verl.

Not run on ModelArts: the tests parse the YAML, and run modelarts.sh with a stand-in for the
command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.secret_values import MARK, shell_word
from rewardkit.launch.targets.base import File, Launch, as_yaml, commented, filled, one_line, slug
from rewardkit.launch.verl.hydra_values import Raw

#: Where AscendFactory's own example writes; for recipes without an absolute default_local_dir.
OUTPUT = "/home/ma-user/verl"

_HEADER = """
{name}, verl {verl}: the settings of the recipe, for AscendFactory. Made by rewardkit.

They are laid over AscendFactory's own configuration of the model; modelarts.sh does all of it:
  ascendfactory-cli config --backend=verl --af_model_name={model} --exp_name={name} --output_file_path=preset.yaml
  (modelarts.yaml over preset.yaml gives run.yaml)
  ascendfactory-cli train run.yaml
"""


def launch(plan: Plan, folder: Path) -> Launch:
    """The YAML, and a script with the three steps.

    Raises:
        UsageError: AscendFactory's name of the model is missing, or a setting cannot be written as
            YAML.
    """
    recipe = plan.recipe
    if not recipe.cluster.model_name:
        raise UsageError(
            "cluster.model_name: modelarts needs AscendFactory's name of the model (af_model_name)."
        )
    if plan.module == DAPO_RECIPE:
        raise UsageError(
            "modelarts: AscendFactory starts verl's main trainer, and before 0.9 dynamic sampling is "
            "the DAPO recipe's; leave it out, or use verl 0.9."
        )
    megatron = (
        ("The run is Megatron's: choose a preset of AscendFactory's that is too.",)
        if recipe.strategy == "megatron"
        else ()
    )
    local_dir = str(plan.get("trainer.default_local_dir", ""))
    tree = {
        "af_output_dir": local_dir if local_dir.startswith("/") else OUTPUT,
        "backend_config": _nested(plan),
    }
    header = _HEADER.format(
        name=slug(recipe.name),
        verl=plan.verl,
        model=one_line(shell_word(recipe.cluster.model_name)),
    )
    return Launch(
        files=(
            File("modelarts.yaml", commented(header) + as_yaml(tree)),
            File("modelarts.sh", filled("modelarts.sh.j2", plan), executable=True),
        ),
        argv=None,
        env={},
        next_steps=(
            f"Copy {shell_word(str(folder))} to a folder of ModelArts and run there: bash modelarts.sh",
            *megatron,
            f"The ModelArts job must have the recipe's {recipe.nodes} nodes x {recipe.devices_per_node}.",
        ),
    )


def _nested(plan: Plan) -> dict[str, Any]:
    """The plan's settings by the release's names, as YAML nests them."""
    tree: dict[str, Any] = {}
    written = [a for a in plan.arguments if not a.startswith(("--", "model_engine="))]
    for override in parse_overrides(written, "the plan"):
        if override.is_group or override.sign == "~":
            raise UsageError(f"{override}: AscendFactory takes settings, and this is none.")
        *above, name = override.key.split(".")
        place = tree
        for part in above:
            place = place.setdefault(part, {})
        place[name] = _plain(plan, override.key)
    return tree


def _plain(plan: Plan, key: str) -> Any:
    """A setting's value; whether AscendFactory follows ${...} is nowhere said."""
    value = plan.config[plan.release.latest_name_of(key)]
    if isinstance(value, str) and MARK.search(value):
        raise UsageError(
            f"{key}: a secret, and AscendFactory reads settings from a file only; leave it out."
        )
    if isinstance(value, Raw):
        raise UsageError(f"{key}={value}: write it as a YAML mapping under `verl:`.")
    return value
