"""Recipes for tests: the smallest one, and one with text that a shell would change."""

from __future__ import annotations

import pytest

from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, read_recipe
from rewardkit.launch.script_import import script_runs
from rewardkit.launch.verl.hydra_values import parse_value

SMALLEST = {
    "name": "tiny",
    "algorithm": "grpo",
    "model": "/models/tiny",
    "data": {"train": "/data/train.parquet", "val": "/data/val.parquet"},
    "verl": {
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": 8,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 1,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 1,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 1,
    },
}

#: A recipe with spaces, quotes, shell characters and Chinese text.
AWKWARD = {
    "name": "Qwen3 跑 $HOME 'x' \"y\"",
    "about": "first line\nexit 1",
    "algorithm": "dapo",
    "strategy": "fsdp2",
    "nodes": 2,
    "devices_per_node": 16,
    "model": "/模型/Qwen3 8B",
    "data": {"train": ["/数据/a b.parquet", "/d/it's $x.parquet"], "val": "/数据/val.parquet"},
    "reward": {"scorer": "verl"},
    "dapo": {"overlong_buffer": {"len": 4}},
    "env": {"NOTE": "a 'b' \"c\" $d `e` \\ 中文", "NUMBER": "1e-6", "YES": "y"},
    "cluster": {
        "image": "repo/verl:1",
        "accelerator": "H100",
        "model_name": "qwen3-8b",
        "wait_s": 60,
    },
    "verl": {
        "trainer.logger": ["console", "wandb"],
        "trainer.project_name": "p 'q' \"r\" $(touch pwned) `touch pwned` \\ *",
        "trainer.default_local_dir": "/存档/$USER x",
    },
}


@pytest.fixture
def recipe():
    """Return a function that reads the smallest recipe, merged with the given parts."""

    def build(**parts):
        return read_recipe(deep_merge(SMALLEST, parts), "my.yaml")

    return build


@pytest.fixture
def plan(recipe):
    """Return a function that plans the smallest recipe for a release, with overrides and parts."""

    def build(release="0.9.1", *overrides, **parts):
        return make_plan(recipe(**parts), release, parse_overrides(overrides, "the command line"))

    return build


def tree_of(words):
    """Return the parts of a recipe that words name, as in `devices=npu verl.data.seed=1`."""
    tree = {}
    for word in words.split():
        name, _, value = word.partition("=")
        names = ["verl", name[5:]] if name.startswith("verl.") else name.split(".")
        part = parse_value(value)
        for each in reversed(names):
            part = {each: part}
        tree = deep_merge(tree, part)
    return tree


@pytest.fixture
def words(plan):
    """Return a function that plans the smallest recipe, with fields as words and with overrides."""
    return lambda release="0.9.1", fields="", *overrides: plan(
        release, *overrides, **tree_of(fields)
    )


@pytest.fixture
def plan_of():
    """Return a function that plans the awkward recipe for a target, with changes."""

    def make(target, *, devices="npu", version="0.9.1", **changes):
        tree = deep_merge(AWKWARD, {"cluster": {"target": target}, "devices": devices})
        if target == "local":
            tree["nodes"] = 1
        recipe = read_recipe(deep_merge(tree, changes), "test")
        return make_plan(recipe, version)

    return make


@pytest.fixture
def write():
    """Return a function that writes a launch's files into a folder, as the command line does."""

    def write_files(launch, folder):
        for file in launch.files:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
            path.chmod(0o755 if file.executable else 0o644)
        return folder

    return write_files


@pytest.fixture(scope="module")
def shared_bash():
    """Let all scripts of a module be read in one child process, which takes long to start."""
    processes = []

    class Shared:
        def __init__(self, module):
            self.module = module

        def exchange(self, request, seconds):
            processes[:] = processes or [ChildProcess(self.module)]
            try:
                return processes[0].exchange(request, seconds)
            except (ChildCrashError, ChildTimeoutError):
                processes.clear()
                raise

        def close(self):
            """The process goes on with the next script."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script_runs, "ChildProcess", Shared)
        yield
    for process in processes:
        process.close()
