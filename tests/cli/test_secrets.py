"""No secret is written or printed: the tests pass a canary to every command and setting."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.test_canary import CANARY, leaks
from tests.cli.test_cli import assert_failure

#: Targets; those whose files differ most are tested in every run.
TARGETS = [
    *("local", "kuberay"),
    *(
        pytest.param(name, marks=pytest.mark.full)
        for name in ("ray-job", "script", "slurm", "skypilot", "ascend", "modelarts")
    ),
]


RECIPE = """\
name: tiny
algorithm: grpo
model: /m
devices: {devices}
devices_per_node: 1
data: {{train: /d/train.parquet, val: /d/val.parquet}}
reward: {{scorer: verl}}
cluster:
  target: {target}
  python: {python}
  image: repo/verl:1
  model_name: m
  accelerator: H100
verl:
  trainer.logger: [console, wandb]
"""

#: Prints its environment and its arguments in pieces, as a careless program does.
STUB = f"""#!{sys.executable}
import os, sys, time
sys.stdout.write("env: " + repr(dict(os.environ)) + "\\n")
value = sys.argv[-1]
for part in ("args ", value[: len(value) // 2], value[len(value) // 2 :], "\\n"):
    sys.stdout.write(part)
    sys.stdout.flush()
    time.sleep(0.01)
print("the value is", value.rpartition("=")[2].strip("'"))
"""

WANDB = f"+ray_kwargs.ray_init.runtime_env.env_vars.WANDB_API_KEY={CANARY}"


@pytest.fixture
def recipe(tmp_path):
    """Return a function that writes a recipe for a target, with `more` lines at its end."""
    stub = tmp_path / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)

    def write(target="local", more=""):
        devices = "gpu" if target in {"skypilot", "modelarts"} else "cpu"
        text = RECIPE.format(target=target, python=stub, devices=devices)
        (tmp_path / "my.yaml").write_text(text + more)
        return "my.yaml"

    return write


@pytest.mark.parametrize("target", TARGETS)
def test_train_accepts_a_secret_and_never_writes_it(run, recipe, tmp_path, target):
    name = recipe(target)
    overrides = [WANDB, f"+trainer.openai_key={CANARY}", f"trainer.project_name={CANARY}"]
    overrides += [f"+trainer.proxy=http://user:{CANARY}@proxy:80", f"+trainer.tokens='{CANARY}'"]
    for options in (("--dry-run",), ("--dry-run", "--json"), ("--no-check", "--out", "o")):
        done = run("train", name, *options, "--verl-version", "0.9", "--", *overrides)
        assert leaks(tmp_path, done) == []
        if target == "modelarts" and "--out" in options:
            assert_failure(done, 2, "AscendFactory reads settings only from a file")
            assert not (tmp_path / "o").exists()
        elif target != "ray-job":  # ray may be missing here
            assert done.returncode == 0, done.stderr


def test_the_run_gets_the_secret_and_its_log_does_not(run, recipe, tmp_path):
    name = recipe()
    options = ("--no-check", "--verl-version", "0.9", "--out", "o")
    done = run("train", name, *options, "--", WANDB, MY_TOKEN=CANARY)
    assert done.returncode == 0, done.stderr
    assert leaks(tmp_path, done) == []
    assert "'MY_TOKEN': '***'" in (tmp_path / "o/console.log").read_text()
    assert "the value is ***" in done.stdout  # the run had the secret


def test_a_run_is_repeated_with_the_secret_of_the_environment(run, recipe, tmp_path):
    name = recipe()
    options = ("--no-check", "--verl-version", "0.9", "--out", "o")
    assert run("train", name, *options, "--", WANDB).returncode == 0
    arguments = ("train", "--from", "o/manifest.json", "--no-check", "--out")
    assert_failure(run(*arguments, "p"), 2, "WANDB_API_KEY is not set. Export it: it is a secret")
    assert not (tmp_path / "p").exists()
    done = run(*arguments, "p", WANDB_API_KEY=CANARY)
    assert done.returncode == 0, done.stderr
    assert "the value is ***" in done.stdout
    assert leaks(tmp_path, done) == []


@pytest.mark.parametrize("target", ["script", "kuberay"])
def test_a_script_reads_the_secret_from_the_environment_in_which_it_runs(
    run, recipe, tmp_path, target
):
    name = recipe(target)
    done = run("train", name, "--no-check", "--verl-version", "0.9", "--out", "o", "--", WANDB)
    assert "next: Set WANDB_API_KEY" in done.stderr
    script = tmp_path / "o/train.sh"
    if target == "kuberay":
        import yaml

        config_map = next(yaml.safe_load_all((tmp_path / "o/kuberay.yaml").read_text()))
        script = tmp_path / "launch.sh"
        script.write_text(config_map["data"]["launch.sh"])
    program = tmp_path / "stub"
    program.write_text('#!/bin/sh\n[ "$1" = - ] || printf \'%s\\n\' "$@" >seen\n')
    env = {"PATH": os.environ["PATH"], "CHECK_FILES": "0"}
    for value in ("", "it's"):
        bad = subprocess.run(
            ["bash", script], cwd=tmp_path, env=env | {"WANDB_API_KEY": value}, capture_output=True
        )
        assert bad.returncode == 1
        assert b"WANDB_API_KEY is not set" in bad.stderr
    good = env | {"WANDB_API_KEY": "a b$c"}
    subprocess.run(["bash", script], cwd=tmp_path, env=good, capture_output=True, check=True)
    key = WANDB.partition("=")[0]
    assert f"{key}='a b$c'" in (tmp_path / "seen").read_text().splitlines()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (f"env: {{https_proxy: 'http://u:{CANARY}@h:1'}}", "env.https_proxy: it contains a secret"),
        (f"about: my key is sk-proj-1{CANARY}", "about: it contains a secret"),
        (f"sweep: {{a: {{env: {{GH_PAT: {CANARY}}}}}}}", "sweep.a.env.GH_PAT: a secret"),
        (f"  +trainer.keys: [{{api_key: {CANARY}}}]", "a list with a secret would"),
    ],
)
def test_a_secret_in_another_part_of_a_recipe_is_refused(run, recipe, tmp_path, more, expected):
    name = recipe("script", more)
    for command in (("train", name, "--dry-run"), ("check", name), ("train", name, "--no-check")):
        done = run(*command, "--verl-version", "0.9")
        assert_failure(done, 2, expected)
        assert leaks(tmp_path, done, ["my.yaml"]) == []
    for command in (("show", name), ("cp", name, "copy.yaml")):
        done = run("recipes", *command)
        assert_failure(done, 2, "contains a secret; remove it")
        assert leaks(tmp_path, done, ["my.yaml"]) == []
    assert not (tmp_path / "runs").exists()


IMPORTED = [
    f"export OPENAI_KEY='{CANARY}' X=1\n{{}}",
    f"HF_TOKEN={CANARY} {{}}",
    f"export GH_PAT={CANARY}\n{{}} trainer.project_name=$GH_PAT trainer.experiment_name={CANARY}",
    f"MY_SECRET={CANARY}\n{{}} +trainer.note=${{{{MY_SECRET}}}} +trainer.list=[a,$MY_SECRET]",
    f"{{}} +trainer.api_key={CANARY} +ray_kwargs.env_vars.WANDB_API_KEY={CANARY}",
    f"{{}} --api-key {CANARY} --hf-token={CANARY}",
    f"export https_proxy=http://me:{CANARY}@proxy:1 HTTPS_PROXY=http://me:{CANARY}@proxy:1\n{{}}",
    f"wandb login --api-key {CANARY}\n{{}} trainer.project_name={CANARY}",
    f"curl -H 'Authorization: Bearer {CANARY}' x\n{{}} trainer.project_name={CANARY}",
    f"export AWS_CREDENTIALS={CANARY}\n{{}} nope.key={CANARY} trainer.nnodes={CANARY}",
]


@pytest.mark.parametrize("script", IMPORTED)
def test_an_imported_script_s_secrets_are_in_no_recipe(run, tmp_path, script):
    command = "python3 -m verl.trainer.main_ppo data.train_files=/d/a.parquet data.val_files=/d/b"
    (tmp_path / "run.sh").write_text(script.format(command) + "\n")
    for options in (("--json",), ("--out", "new.yaml")):
        done = run("recipes", "import", "run.sh", "--verl-version", "0.9", *options)
        assert done.returncode == 0, done.stderr
        assert leaks(tmp_path, done, ["run.sh"]) == []
    assert run("train", "new.yaml", "--dry-run", "--verl-version", "0.9").returncode == 0


def test_data_is_not_redacted(run, tmp_path):
    """Commands that show data print a response unchanged, even if it looks like a secret."""
    row = {"response": f"password={CANARY} #### 1", "ground_truth": "1"}
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    done = run("score", "r.jsonl", "--scorer", "gsm8k", "--out", "s.jsonl")
    assert done.returncode == 0, done.stderr
    assert CANARY in (tmp_path / "s.jsonl").read_text()
