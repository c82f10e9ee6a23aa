"""No target executes a value of a recipe, even if a shell would.

The fields come from the recipe's own models, so that the tests include new fields. Bash runs each
generated script in an empty folder, with stand-ins for every program that it starts.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from rewardkit.errors import RewardkitError
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import Cluster, Recipe, deep_merge, read_recipe
from rewardkit.launch.rehearsal.rehearse import write_command
from rewardkit.launch.targets import TARGETS, render
from tests.launch.conftest import PYTHON, finish, program, tree_of
from tests.launch.test_targets import scripts_of

VALUES = {
    "substitution": "$(touch pwned)",
    "backticks": "`touch pwned`",
    "single": "'; touch pwned; '",
    "double": '"; touch pwned; "',
    "newline": "x\ntouch pwned\n",
    "variable": "${IFS}$HOME",
    "dash": "-c touch",
    "blanks": " a  b ",
    "backslash": "\\",
    "glob": "* ~ # {a,b} !x",
}
TOGETHER = "-x'\"; touch pwned; $(touch pwned)`touch pwned`${IFS}\ntouch pwned\n\\ "

#: Every setting that a target may use, with harmless values.
TREE: dict[str, Any] = tree_of(
    "name=run algorithm=grpo nodes=2 devices_per_node=1 model=/m data.train=[/d/train.parquet] "
    "data.val=[/d/val.parquet] reward.scorer=verl env.NOTE=note dapo.overlong_buffer.len=4 "
    "dapo.dynamic_sampling.metric=acc cluster.head=head-0 cluster.interface=eth0 "
    "cluster.python=python3 cluster.workdir=work cluster.image=repo/verl:1 cluster.accelerator=H100 "
    "cluster.model_name=qwen3-8b cluster.partition=p cluster.account=a cluster.time_limit=1:00:00 "
    "cluster.device_resource=gpu cluster.volumes.claim=/data verl.trainer.project_name=p "
    "verl.trainer.logger=[console]"
)

#: `setup` is shell code by design; `sweep` contains recipes with the same fields.
NOT_VALUES = {("cluster", "setup"), ("sweep",)}

#: Keys of mappings that accept any key, for a hostile value.
KEYS = {"env": "NOTE", "verl": "trainer.project_name", "volumes": "claim", "options": "method"}


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()):
    """Yield (path, annotation) of every field that has no fields of its own."""
    for name, field in model.model_fields.items():
        parts = get_args(field.annotation) or (field.annotation,)
        models = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
        for part in models:
            yield from leaves(part, (*path, name))
        if not models:
            yield (*path, name), field.annotation


def values_with(path: tuple[str, ...], annotation: Any, value: str) -> list[Any]:
    """Return values for a field, with the text in each place that can hold text."""
    shape = str(annotation)
    if "dict" in shape:
        return [{KEYS.get(path[-1], "KEY"): value}, {value: "x"}, {f"+x.{value}": "x"}]
    return [[value], ["a", value]] if "list" in shape else [value]


FIELDS = [entry for entry in leaves(Recipe) if entry[0] not in NOT_VALUES]
assert {path[-1] for path, _ in FIELDS if path[0] == "cluster"} >= {*Cluster.model_fields} - {
    "setup"
}


def plan_for(tree, target):
    recipe = read_recipe(deep_merge(tree, {"cluster": {"target": target}}), "my.yaml")
    return make_plan(recipe, "0.9.1")


def fill_fields(target, value, folder):
    """Return the recipe with the value in each field that accepts it, and the errors of the rest."""
    tree, refusals = deep_merge(TREE, {"nodes": 1 if target == "local" else 2}), {}
    for path, annotation in FIELDS:
        for entry in values_with(path, annotation, value):
            if path == ("cluster", "target"):
                continue
            part = entry
            for name in reversed(path):
                part = {name: part}
            more = deep_merge(tree, part)
            try:
                render(plan_for(more, target), folder)
            except RewardkitError as error:
                assert "\n" not in str(error).strip(), (path, str(error))
                refusals[path] = str(error)
            else:
                tree = more
    return tree, refusals


@pytest.fixture
def run_script(bash, tmp_path):
    """Return a function that runs a script in an empty home, with stand-ins also for a Python."""

    def run(script: Path, python: str, workdir: str, **env: str):
        home = tmp_path / "home"
        (home / "work").mkdir(parents=True, exist_ok=True)
        (home / workdir).mkdir(exist_ok=True)
        program(tmp_path / "bin", python, PYTHON)
        own = {"HOME": home, "CURRENT_IP": "127.0.0.1", "MASTER_ADDR": None}
        return finish(bash(script, cwd=home, **own, **env))

    return run


def check(target, value, run_script, write, tmp_path):
    folder = tmp_path / "run"
    tree, refusals = fill_fields(target, value, folder)
    plan = plan_for(tree, target)
    launch = render(plan, folder)
    write(launch, folder)
    scripts = dict(scripts_of(launch))
    name = next((name for name in ("slurm.sh", *scripts) if name in scripts), "none")
    script = folder / name
    if scripts:  # also one inside YAML
        script.write_text(scripts[name], encoding="utf-8")
    cluster = plan.recipe.cluster
    if target == "local":
        assert list(launch.argv)[1:] == plan.command()[1:]
        return refusals
    if target == "ray-job":
        assert launch.argv[launch.argv.index("--address") + 1] == cluster.address
        env = yaml.safe_load((folder / "runtime_env.yaml").read_text(encoding="utf-8"))
        assert env["env_vars"].items() >= plan.env.items()
    job = {"SLURM_JOB_NODELIST": "localhost", "SLURM_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "1"}
    job["SLURM_NNODES"] = "1"
    sky = {"SKYPILOT_NODE_IPS": "127.0.0.1", "SKYPILOT_NODE_RANK": "0"}
    code, output = run_script(script, cluster.python, cluster.workdir, **job, **sky)
    assert not list(tmp_path.rglob("pwned")), output
    assert code == 0, output
    if target == "modelarts":  # verl is started by ascendfactory-cli
        arguments = (tmp_path / "dump.json.cli").read_bytes().decode().split("\0")
        assert f"--af_model_name={cluster.model_name}" in arguments
        return refusals
    call = json.loads((tmp_path / "dump.json").read_text(encoding="utf-8"))
    assert call["argv"] == plan.command()
    assert call["cwd"] == str(tmp_path / "home" / cluster.workdir)
    if target not in {"ray-job", "kuberay"}:  # their environment is in YAML
        assert call["env"].items() >= plan.env.items()
    if target in {"ascend", "slurm", "skypilot"}:
        assert call["env"]["GLOO_SOCKET_IFNAME"] == cluster.interface
    if target == "ascend":
        arguments = (tmp_path / "dump.json.getent").read_bytes().decode().split("\0")
        assert cluster.head in arguments
    return refusals


#: These run ascend's node.sh, too, so that only the full run tests them, with all values at once.
WITH_NODE_SCRIPT = {"slurm", "skypilot"}
AT_ONCE = [
    pytest.param(target, marks=[pytest.mark.full] if target in WITH_NODE_SCRIPT else [])
    for target in TARGETS
]


@pytest.mark.parametrize("target", AT_ONCE)
def test_no_value_of_a_recipe_is_executed(target, run_script, write, tmp_path):
    """Every field that accepts text has all characters that are special to a shell."""
    refusals = check(target, TOGETHER, run_script, write, tmp_path)
    assert {("nodes",), ("algorithm",), ("cluster", "port")} <= refusals.keys()


@pytest.mark.full
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("target", sorted({*TARGETS} - WITH_NODE_SCRIPT))
def test_each_hostile_value_arrives_unchanged(target, value, run_script, write, tmp_path):
    check(target, value, run_script, write, tmp_path)


def test_a_field_for_names_refuses_text_that_a_shell_would_run():
    """Options of Slurm and names of Kubernetes accept only the characters of a name."""
    for name in ("partition", "account", "time_limit", "device_resource", "namespace"):
        for value in VALUES.values():
            with pytest.raises(RewardkitError, match=rf"my.yaml: cluster.{name}: .* may have"):
                read_recipe(deep_merge(TREE, {"cluster": {name: value}}), "my.yaml")
    for name in ("A; touch pwned", "A B", "$(touch pwned)", "", "1A"):
        with pytest.raises(RewardkitError, match="is not the name of a variable"):
            plan_for(deep_merge(TREE, {"env": {name: "1"}}), "script")


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_file_or_command_can_hold_is_refused(text):
    for part in ({"model": text}, {"verl": {"trainer.project_name": [text]}}, {"env": {"A": text}}):
        with pytest.raises(RewardkitError, match="a NUL or a lone surrogate"):
            plan_for(deep_merge(TREE, part), "script")


@pytest.mark.parametrize("target", ["ray-job", "kuberay", "modelarts"])
def test_values_in_commands_to_paste_are_one_word_for_a_shell(target, tmp_path):
    fields = {"address": TOGETHER, "model_name": TOGETHER}
    launch = render(plan_for(deep_merge(TREE, {"cluster": fields}), target), tmp_path / "a $(b)")
    lines = [line.partition(": ")[2] for line in launch.next_steps]
    lines += [
        line.lstrip("# ")
        for file in launch.files
        for line in file.text.splitlines()
        if line.startswith("#   ")
    ]
    text = "\n".join(lines)
    for word in (shlex.quote(TOGETHER), " ".join(shlex.quote(TOGETHER).split())):
        text = text.replace(word, "X")
    assert "touch" not in text


def test_a_rehearsal_runs_its_command_unchanged(run_script, tmp_path):
    command = ["python3", "-m", TOGETHER, *VALUES.values()]
    write_command(tmp_path / "command.sh", command, {"NOTE": TOGETHER})
    code, output = run_script(tmp_path / "command.sh", "python3", "work")
    assert code == 0, output
    call = json.loads((tmp_path / "dump.json").read_text(encoding="utf-8"))
    assert (call["argv"], call["env"]["NOTE"]) == (command, TOGETHER)
    assert not list(tmp_path.rglob("pwned"))
