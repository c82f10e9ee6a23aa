"""The targets that hand a run to a service: `ray-job`, `kuberay`, `skypilot` and `modelarts`.

`ray-job` is a job of a running Ray cluster. Ray uploads what it needs: the command in `launch.sh`, the
scorer's file, and this rewardkit as a `py_module`, so that the nodes score with the version that made
the plan. It starts the job in an unpacked copy of `working_dir`, so parquet files have absolute paths.
The entrypoint is `bash launch.sh`, because `ray job submit` of Ray 2.49 quotes arguments for Windows
(measured; 2.60 quotes for a shell): a Hydra value lost its single quotes.

`kuberay` is a RayJob, and a ConfigMap with its command and scorer's file. KubeRay passes the entrypoint
to a shell and to `ray job submit`, which quotes it again; so it is `bash /rewardkit/launch.sh`. The image
must have verl, and rewardkit for its scorers.

`skypilot` is a task for `sky launch`, with its own Ray on the nodes; it does not touch the one of
SkyPilot itself (ports 6380 and 8266). The image, or cluster.setup, must provide verl and rewardkit.

`modelarts` is the configuration for AscendFactory, the trainer of Huawei's ModelArts. It writes a YAML
for a model (`ascendfactory-cli config`), into which ours is merged. Source: Huawei's best practice for
training large models on ModelArts with verl.

The last three are not tested on their services: the tests parse the YAML and run the scripts.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import rewardkit
from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.scorer_location import NODE_FOLDERS
from rewardkit.launch.secret_values import MARK, secret_variables, shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    as_yaml,
    ray_start_arguments,
    render_template,
    require_absolute_data,
    require_free_ports,
    scorer_files,
    slug,
)
from rewardkit.launch.targets.scripts import node_script
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.translate import resolve

#: The usual name of a device in Kubernetes; `cluster.device_resource` sets another one.
RESOURCES = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/Ascend910"}

_SKYPILOT_PORTS = {6380: "SkyPilot's own Ray", 8266: "SkyPilot's own dashboard"}

#: The variables of the loggers' API keys; SkyPilot takes their values from the shell.
_API_KEYS = {"wandb": "WANDB_API_KEY", "swanlab": "SWANLAB_API_KEY"}

#: SkyPilot numbers the nodes and lists their addresses; the head's is the first.
_ADDRESSES = """\
MASTER_ADDR=$(head -n 1 <<<"$SKYPILOT_NODE_IPS")
CURRENT_IP=$(sed -n "$((SKYPILOT_NODE_RANK + 1))p" <<<"$SKYPILOT_NODE_IPS")
export MASTER_ADDR CURRENT_IP
"""

#: ModelArts' output folder if default_local_dir is not absolute: that of AscendFactory's example.
DEFAULT_OUTPUT = "/home/ma-user/verl"


def ray_job(plan: Plan, folder: Path) -> Launch:
    """Return the job's folder, its runtime_env and the command that submits it.

    Raises:
        UsageError: a parquet file's path is relative.
    """
    recipe = plan.recipe
    require_absolute_data(recipe, "a job starts in a folder that Ray unpacks")
    job = f"{slug(recipe.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    script = render_template("job.sh.j2", plan, wait=False)
    files = [File("working_dir/launch.sh", script, executable=True)]
    files += [File(f"working_dir/{name}", text) for name, text in scorer_files(plan).items()]
    files.append(File("runtime_env.yaml", as_yaml(_runtime_env(plan, folder))))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    submit = (shutil.which("ray", path=path) or "ray", "job", "submit")
    options = ["--address", recipe.cluster.address, "--submission-id", job]
    options += ["--runtime-env", str(folder / "runtime_env.yaml")]
    options += ["--no-wait"] if recipe.cluster.detach else []
    address = f"--address {shell_word(recipe.cluster.address)}"
    steps = [
        f"env.{name}: Ray replaces $NAME and ${{NAME}} in its value."
        for name, value in plan.env.items()
        if "$" in value
    ]
    steps += [
        f"Follow it: ray job logs --follow {address} {job}",
        f"End it: ray job stop {address} {job}",
    ]
    if not str(plan.get("trainer.default_local_dir", "")).startswith("/"):
        text = (
            "trainer.default_local_dir is relative: checkpoints would be in Ray's temporary folder "
        )
        steps.insert(0, f"{text}of one node. Set it to a folder that all nodes share.")
    argv = (*submit, *options, "--", "bash", "launch.sh")
    return Launch(files=tuple(files), argv=argv, next_steps=tuple(steps))


def _runtime_env(plan: Plan, folder: Path) -> dict[str, Any]:
    """Return the runtime_env; its paths are on this machine, where `ray job submit` reads them."""
    env: dict[str, Any] = {"working_dir": str(folder / "working_dir")}
    if plan.recipe.reward.scorer != "verl":
        env["py_modules"] = [str(Path(rewardkit.__file__).parent)]
    variables = dict(plan.env)
    if plan.module == DAPO_RECIPE:  # with a working_dir Ray's workers do not import from workdir
        variables.setdefault("PYTHONPATH", plan.recipe.cluster.workdir)
    return env | {"excludes": ["**/__pycache__/"], "env_vars": variables}


def kuberay(plan: Plan, folder: Path) -> Launch:
    """Return the YAML.

    Raises:
        UsageError: the recipe has no image, or a parquet file's path is relative.
    """
    recipe = plan.recipe
    if not recipe.cluster.image:
        raise UsageError("cluster.image: kuberay needs a container image that has verl.")
    require_absolute_data(recipe, "the image decides in which folder pods start")
    resource = recipe.cluster.device_resource or RESOURCES.get(recipe.devices)
    ray_start = {}
    if recipe.devices == "npu":  # escaped for KubeRay's shell; KubeRay counts GPUs by itself
        (argument,) = ray_start_arguments(recipe)
        escaped = argument.partition("=")[2].replace('"', '\\"')
        ray_start = {"resources": f'"{escaped}"'}
    text = render_template(
        "kuberay.yaml.j2",
        plan,
        files={"launch.sh": render_template("job.sh.j2", plan, wait=True), **scorer_files(plan)},
        folder=NODE_FOLDERS["kuberay"].rstrip("/"),
        limits={resource: str(recipe.devices_per_node)} if resource else {},
        ray_start=ray_start,
    )
    path = shell_word(str(folder / "kuberay.yaml"))
    steps = (f"Start it: kubectl apply -f {path}",)
    return Launch(files=(File("kuberay.yaml", text),), next_steps=steps)


def skypilot(plan: Plan, folder: Path) -> Launch:
    """Return the task's YAML, and the scorer's file next to it.

    Raises:
        UsageError: the recipe has no accelerator or is for NPU, or a port cannot be used.
    """
    recipe, cluster = plan.recipe, plan.recipe.cluster
    if recipe.devices == "npu":
        raise UsageError(
            "devices: SkyPilot has no NPUs. Set cluster.target to ascend, slurm or kuberay."
        )
    if recipe.devices == "gpu" and not cluster.accelerator:
        raise UsageError(
            "cluster.accelerator: skypilot needs the GPU's name, as in H100 (see sky show-gpus)."
        )
    require_free_ports(recipe, _SKYPILOT_PORTS)
    resources, scorers = {}, scorer_files(plan)
    if cluster.accelerator:
        resources["accelerators"] = f"{cluster.accelerator}:{recipe.devices_per_node}"
    if cluster.image:
        resources["image_id"] = f"docker:{cluster.image}"
    loggers = plan.get("trainer.logger") or []
    keys = [_API_KEYS[logger] for logger in loggers if logger in _API_KEYS]
    text = render_template(
        "skypilot.yaml.j2",
        plan,
        resources=resources,
        keys=list(dict.fromkeys([*keys, *secret_variables(plan.arguments)])),
        mounts={f"{NODE_FOLDERS['skypilot']}{file}": str(folder / file) for file in scorers},
        run=_ADDRESSES + node_script(plan, rank="SKYPILOT_NODE_RANK").partition("\n")[2],
        dict=dict,
    )
    path = shell_word(str(folder / "skypilot.yaml"))
    files = [File("skypilot.yaml", text), *(File(file, text) for file, text in scorers.items())]
    steps = (f"Start it: sky launch -c {slug(recipe.name)} {path}",)
    return Launch(files=tuple(files), next_steps=steps)


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
    output = str(plan.get("trainer.default_local_dir", ""))
    tree = {
        "af_output_dir": output if output.startswith("/") else DEFAULT_OUTPUT,
        "backend_config": _settings_tree(plan),
    }
    model = shell_word(recipe.cluster.model_name)
    text = render_template("modelarts.yaml.j2", plan, tree=tree, model=model)
    script = render_template("modelarts.sh.j2", plan)
    steps = [f"Copy {shell_word(str(folder))} to ModelArts and run in the copy: bash modelarts.sh"]
    if recipe.strategy == "megatron":
        steps.append("The run uses Megatron: choose an AscendFactory preset that does too.")
    size = f"{recipe.nodes} nodes with {recipe.devices_per_node} devices each"
    return Launch(
        files=(File("modelarts.yaml", text), File("modelarts.sh", script, executable=True)),
        next_steps=(*steps, f"Give the ModelArts job {size}."),
    )


def _settings_tree(plan: Plan) -> dict[str, Any]:
    """Return the plan's settings by the release's names, nested as in YAML, and resolved.

    AscendFactory's guide does not mention ${...}.
    """
    tree: dict[str, Any] = {}
    settings = [a for a in plan.arguments if not a.startswith(("--", "model_engine="))]
    for override in parse_overrides(settings, "the plan"):
        key = override.key
        if override.is_group or override.sign == "~":
            raise UsageError(
                f"{override}: AscendFactory takes only settings, key=value. Remove it."
            )
        value = resolve(key, plan.config)
        if isinstance(value, str) and MARK.search(value):
            raise UsageError(
                f"{key}: it is a secret, and AscendFactory reads settings only from a file. Remove it."
            )
        if isinstance(value, Raw):
            raise UsageError(f"{key}={value}: write it as a YAML mapping under `verl:`.")
        *parents, name = key.split(".")
        section = tree
        for parent in parents:
            section = section.setdefault(parent, {})
        section[name] = value
    return tree
