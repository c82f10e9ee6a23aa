"""The targets of a plan: a run on this machine, or files and commands for a cluster.

- `ascend`, for NPU (or GPU) nodes without a scheduler: one script for all of them, which compares its address
  with the head's, waits for the other nodes with a timeout, and ends its own processes by id. The script that
  the Ascend guide publishes waits forever, kills every Python of the host and removes /tmp/ray.
- `slurm` was not run on a Slurm cluster: tests run slurm.sh with stand-ins for `srun` and `scontrol`.
- `ray-job`: Ray uploads `launch.sh`, the scorer's file, and this rewardkit as a `py_module`, and starts in an
  unpacked copy of `working_dir`, so that parquet files have absolute paths. The entrypoint is `bash launch.sh`,
  because `ray job submit` of Ray 2.49 quotes arguments for Windows (measured): a Hydra value lost its quotes.
- `kuberay`: a RayJob and a ConfigMap. KubeRay passes the entrypoint to a shell and to `ray job submit`, which
  quotes it again; so it is `bash /rewardkit/launch.sh`.
- `skypilot` has its own Ray on the nodes, beside the one of SkyPilot.
- `modelarts` is merged into the YAML that `ascendfactory-cli config` writes for a model (source: Huawei's best
  practice for training large models on ModelArts with verl).

The last three are not tested on their services: the tests parse the YAML and run the scripts.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import rewardkit
from rewardkit.devices import INTERFACE_VARIABLES
from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.scorer_location import NODE_FOLDERS
from rewardkit.launch.secret_values import MARK, reveal_secrets, secret_variables, shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    ray_start_arguments,
    render_template,
    require_absolute_data,
    require_free_ports,
    require_no_secrets,
    scorer_files,
    slug,
)
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.translate import resolve
from rewardkit.strict_yaml import dump

__all__ = ["TARGETS", "File", "Launch", "render"]

#: The usual name of a device in Slurm and in Kubernetes; `cluster.device_resource` sets another one.
GRES = {"gpu": "gpu", "npu": "npu"}
RESOURCES = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/Ascend910"}

#: Cores to request: those that verl reserves (`reserved_cores`), and some for what Ray does not count.
CORES_PER_DEVICE, CORES_FOR_OTHERS = 3, 16

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


def render(plan: Plan, folder: Path) -> Launch:
    """Return the files to write below `folder` and the command to run, for a plan's target.

    This function writes nothing, and refuses what the target does not support.
    """
    require_no_secrets(plan)
    name = plan.recipe.cluster.target
    launch, secrets = TARGETS[name](plan, folder.absolute()), secret_variables(plan.arguments)
    if not secrets or name == "local":
        return launch
    where = {"kuberay": "in the Secret", "ray-job": "on the Ray cluster's nodes"}
    there = where.get(name, "in the shell that starts the run")
    step = f"Set {' and '.join(secrets)} {there}: rewardkit writes no secret into a file."
    return replace(launch, next_steps=(step, *launch.next_steps))


def local(plan: Plan, _folder: Path) -> Launch:
    """Return the command for this machine.

    verl starts its own Ray, unless RAY_ADDRESS names one: without an address it would join any
    cluster that it finds on the machine, also another user's.
    """
    recipe = plan.recipe
    if recipe.nodes > 1:
        raise UsageError(
            f"nodes: {recipe.nodes}, but cluster.target local is one machine. Set it to ray-job, "
            "slurm, ascend, kuberay, skypilot or modelarts."
        )
    if recipe.cluster.setup:
        raise UsageError(
            "cluster.setup: the target local runs in the current environment. Prepare the environment first, "
            "or set cluster.target to script."
        )
    python, *rest = (reveal_secrets(argument, plan.secrets) for argument in plan.command())
    program = sys.executable if python == "python3" else python  # verl is in this environment
    env = dict(plan.env)
    if "RAY_ADDRESS" not in os.environ:
        env.setdefault("RAY_ADDRESS", "local")
    return Launch(argv=(program, *rest), env=env, cwd=recipe.cluster.workdir)


def script(plan: Plan, folder: Path) -> Launch:
    """Return a script that runs verl on its machine and writes a log next to itself."""
    nodes = plan.recipe.nodes
    where = f"on the head of a Ray cluster of {nodes} nodes" if nodes > 1 else "on any node"
    step = f"Run it {where}: bash {shell_word(str(folder / 'train.sh'))}"
    file = File("train.sh", render_template("script.sh.j2", plan), executable=True)
    return Launch(files=(file,), next_steps=(step,))


def ascend(plan: Plan, folder: Path) -> Launch:
    """Return the script, which the user runs on every node."""
    cluster, nodes = plan.recipe.cluster, plan.recipe.nodes
    require_free_ports(plan.recipe)
    head = "" if cluster.head or nodes == 1 else "MASTER_ADDR=<the head's address> "
    where = f"Run it on each of the {nodes} nodes" if nodes > 1 else "Run it"
    step = f"{where}: {head}bash {shell_word(str(folder / 'node.sh'))}"
    return Launch(files=(_node_script(plan, log=True),), next_steps=(step,))


def _node_script(plan: Plan, *, rank: str | None = None, log: bool = False) -> File:
    """Return the script that each node of a cluster runs, which may write a log next to itself.

    `rank` is the scheduler's variable with the number of the node, 0 for the head; without it, the head is
    the node whose address is MASTER_ADDR.
    """
    variables = INTERFACE_VARIABLES[plan.recipe.devices]
    text = render_template("node.sh.j2", plan, rank=rank, log=log, interface_variables=variables)
    return File("node.sh", text, executable=True)


def slurm(plan: Plan, folder: Path) -> Launch:
    """Return the job's script, and the script that it runs on every node."""
    recipe = plan.recipe
    job = render_template(
        "slurm.sh.j2",
        plan,
        folder=str(folder),
        cpus=CORES_PER_DEVICE * recipe.devices_per_node + CORES_FOR_OTHERS,
        gres=recipe.cluster.device_resource or GRES.get(recipe.devices),
    )
    path = shell_word(str(folder / "slurm.sh"))
    node = _node_script(plan, rank="SLURM_NODEID")
    return Launch(
        files=(File("slurm.sh", job, executable=True), node),
        next_steps=(
            f"Submit it from the folder to which the recipe's relative paths refer: sbatch {path}",
            "Export secrets (WANDB_API_KEY, HF_TOKEN) in the shell that submits it.",
        ),
    )


def ray_job(plan: Plan, folder: Path) -> Launch:
    """Return the job's folder, its runtime_env and the command that submits it."""
    recipe, cluster = plan.recipe, plan.recipe.cluster
    require_absolute_data(recipe, "a job starts in a folder that Ray unpacks")
    job = f"{slug(recipe.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    text = render_template("job.sh.j2", plan, wait=False)
    files = [File("working_dir/launch.sh", text, executable=True)]
    files += [File(f"working_dir/{name}", text) for name, text in scorer_files(plan).items()]
    env: dict[str, Any] = {"working_dir": str(folder / "working_dir")}
    if recipe.reward.scorer != "verl":
        env["py_modules"] = [str(Path(rewardkit.__file__).parent)]
    env |= {"excludes": ["**/__pycache__/"], "env_vars": dict(plan.env)}
    if plan.module == DAPO_RECIPE:  # with a working_dir Ray's workers do not import from workdir
        env["env_vars"].setdefault("PYTHONPATH", cluster.workdir)
    files.append(File("runtime_env.yaml", dump(env)))  # its paths are on this machine
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    argv = [shutil.which("ray", path=path) or "ray", "job", "submit", "--address", cluster.address]
    argv += ["--submission-id", job, "--runtime-env", str(folder / "runtime_env.yaml")]
    argv += [*(["--no-wait"] if cluster.detach else ()), "--", "bash", "launch.sh"]
    address = f"--address {shell_word(cluster.address)}"
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
            "trainer.default_local_dir is relative: checkpoints would be in Ray's temporary folder"
        )
        steps.insert(0, f"{text} of one node. Set it to a folder that all nodes share.")
    return Launch(files=tuple(files), argv=tuple(argv), next_steps=tuple(steps))


def kuberay(plan: Plan, folder: Path) -> Launch:
    """Return the YAML."""
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
    step = f"Start it: kubectl apply -f {shell_word(str(folder / 'kuberay.yaml'))}"
    return Launch(files=(File("kuberay.yaml", text),), next_steps=(step,))


def skypilot(plan: Plan, folder: Path) -> Launch:
    """Return the task's YAML, and the scorer's file next to it."""
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
        run=_ADDRESSES + _node_script(plan, rank="SKYPILOT_NODE_RANK").text.partition("\n")[2],
        dict=dict,
    )
    files = {"skypilot.yaml": text, **scorers}
    path = shell_word(str(folder / "skypilot.yaml"))
    step = f"Start it: sky launch -c {slug(recipe.name)} {path}"
    return Launch(files=tuple(File(*file) for file in files.items()), next_steps=(step,))


def modelarts(plan: Plan, folder: Path) -> Launch:
    """Return the YAML, and a script with the three steps."""
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


#: The values of `cluster.target` in a recipe, with the functions that render them.
TARGETS: Mapping[str, Callable[[Plan, Path], Launch]] = {
    "local": local,
    "ray-job": ray_job,
    "script": script,
    "slurm": slurm,
    "kuberay": kuberay,
    "skypilot": skypilot,
    "ascend": ascend,
    "modelarts": modelarts,
}
