"""`rewardkit train`, `recipes`, `eval merge` and `check RECIPE` as a user meets them."""

import json
import re
import shlex
import sys

import pytest

from tests.cli.test_cli import assert_failure

TINY = """\
name: tiny
algorithm: grpo
model: {folder}/model
devices: cpu
devices_per_node: 1
data:
  train: {folder}/train.parquet
  val: {folder}/val.parquet
reward:
  scorer: gsm8k
cluster:
  python: {python}
verl:
  data.train_batch_size: 16
  actor_rollout_ref.rollout.name: hf
  actor_rollout_ref.rollout.n: 4
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu: 1
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu: 1
  actor_rollout_ref.actor: {{ppo_mini_batch_size: 8, ppo_micro_batch_size_per_gpu: 1}}
  trainer: {{logger: [console], default_local_dir: {folder}/ckpt, save_freq: 10, test_freq: 5}}
"""

#: A stand-in for `python3` that prints its arguments.
STUB = f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ['HYDRA_FULL_ERROR']]))\nsys.exit(int(os.environ.get('END', 0)))\n"


@pytest.fixture
def recipe(sample, tmp_path):
    """Write a recipe whose files exist, with a stub in place of Python."""
    stub = tmp_path / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    for split, name in (("train", "train"), ("test", "val")):
        sample(tmp_path / f"{name}.parquet", split)
    path = tmp_path / "my.yaml"
    path.write_text(TINY.format(folder=tmp_path, python=stub))
    return path


def test_a_dry_run_prints_the_command_and_writes_no_file(run, tmp_path):
    done = run("train", "qwen2.5-0.5b-ppo-gsm8k", "--dry-run", "--verl-version", "0.9")
    assert done.returncode == 0, done.stderr
    words = shlex.split(done.stdout.replace("\\\n", " "), comments=True)
    assert words[words.index("-m") + 1] == "verl.trainer.main_ppo"
    assert "reward.custom_reward_function.path=pkg://rewardkit.scorers.gsm8k" in words
    assert "+reward.custom_reward_function.reward_kwargs.method=robust" in words
    assert list(tmp_path.iterdir()) == []


#: (arguments after `train`, exit code, what the error says)
MISTAKES = [
    ("--dry-run", 2, "name a recipe"),
    ("nope --dry-run", 2, "unknown recipe 'nope'"),
    ("my.yaml --dry-run --variant x", 2, "no variant 'x' in sweep"),
    ("my.yaml --dry-run --set nodes", 2, "write it as FIELD=VALUE"),
    ("my.yaml --dry-run --set nods=2", 2, "unknown key 'nods'. Did you mean 'nodes'"),
    ("my.yaml --dry-run --target ascent", 2, "modelarts. Did you mean 'ascend'"),
    ("my.yaml --dry-run trainer.total_epoch=1", 2, "Did you mean 'trainer.total_epochs'"),
    ("my.yaml --dry-run --set reward.scorer=gsm9k", 2, "Did you mean 'gsm8k'"),
    ("my.yaml --dry-run --set reward.options.metod=x", 2, "no option 'metod'"),
    ("my.yaml --dry-run --from m.json", 2, "--from repeats a run unchanged"),
    ("my.yaml --dry-run --out o", 2, "--out is not used with --dry-run"),
    ("my.yaml --rehearse-seconds 60", 2, "--rehearse-seconds needs --rehearse"),
    ("my.yaml --no-check --set model=???", 2, "actor_rollout_ref.model.path is ???: put the value"),
    ("my.yaml --rehearse trainer.save_freq=???", 2, "trainer.save_freq is ???: put the value in"),
    ("my.yaml --no-check --set nodes=2", 2, "cluster.target local is one machine"),
    ("my.yaml --no-check --set cluster.target=kuberay", 2, "cluster.image"),
    ("my.yaml --no-check --set cluster.workdir=gone", 3, "no such folder"),
    ("my.yaml --no-check --set cluster.python=/no/python3", 3, "no such program"),
    ("my.yaml --no-check --set cluster.python=.", 2, "cannot be started"),
    ("my.yaml --rehearse --out x/y", 3, "packages that are not installed"),
    ("my.yaml --set reward.scorer=mcq --rehearse", 1, "L-52"),
]


@pytest.mark.parametrize(("line", "code", "expected"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_starts_nothing_and_leaves_no_folder(run, recipe, tmp_path, line, code, expected):
    before = {*tmp_path.iterdir()}
    assert_failure(run("train", *line.split(), "--verl-version", "0.9.1"), code, expected)
    assert {*tmp_path.iterdir()} == before


def test_a_local_run_has_a_folder_with_manifest_and_log_and_repeats(run, recipe, tmp_path):
    done = run("train", "my.yaml", "--no-check", "--out", "first", "--verl-version", "0.9")
    assert done.returncode == 0, done.stderr
    (arguments, variable), folder = json.loads(done.stdout.splitlines()[-1]), tmp_path / "first"
    assert variable == "1"
    assert json.loads((folder / "console.log").read_text()) == [arguments, variable]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"][1:] == arguments
    assert str(tmp_path / "train.parquet") in manifest["files"]
    repeated = run("train", "--from", "first/manifest.json", "--no-check", "--out", "second")
    assert json.loads(repeated.stdout.splitlines()[-1])[0] == arguments
    assert "changed" not in repeated.stderr
    (tmp_path / "train.parquet").write_bytes((tmp_path / "val.parquet").read_bytes())
    changed_run = run("train", "--from", "first/manifest.json", "--no-check", "--out", "third")
    assert "train.parquet has changed" in changed_run.stderr


def test_a_run_is_repeated_only_in_its_own_folder(run, recipe, tmp_path):
    assert run("train", "my.yaml", "--no-check", "--out", "first").returncode == 0
    manifest = json.loads((tmp_path / "first/manifest.json").read_text())
    (tmp_path / "first/manifest.json").write_text(json.dumps(manifest | {"folder": "/elsewhere"}))
    assert_failure(
        run("train", "--from", "first/manifest.json"), 2, "started in /elsewhere; go there"
    )


def test_json_of_a_run_is_one_document_even_if_the_run_prints(run, recipe, tmp_path):
    options = ("--no-check", "--verl-version", "0.9", "--json", "--out")
    done = run("train", "my.yaml", *options, "a")
    (facts,) = json.loads(done.stdout)
    assert (facts["recipe"], facts["folder"], facts["exit_code"]) == ("tiny", "a", 0)
    assert json.loads((tmp_path / "a/console.log").read_text())[0] == facts["command"][1:]
    script_report = run("train", "my.yaml", *options, "b", "--set", "cluster.target=script")
    (facts,) = json.loads(script_report.stdout)
    assert (facts["files"], facts["exit_code"]) == (["b/train.sh"], None)
    assert any("b/train.sh" in line for line in facts["next_steps"])
    failing = run("train", "my.yaml", *options, "c", END="7")
    assert (failing.returncode, json.loads(failing.stdout)[0]["exit_code"]) == (7, 7)


def test_a_rehearsal_checks_the_scorer_first(run, recipe, tmp_path):
    """verl is not installed here: a rehearsal that reached it would say so."""
    (tmp_path / "mine.py").write_text("\ndef compute_score(solution, gold):\n    return 1.0\n")
    options = ("my.yaml", "--set", f"reward.scorer={tmp_path}/mine.py", "--verl-version", "0.9.1")
    done = run("train", *options, "--rehearse")
    assert done.returncode == 1
    assert "mine.py" in done.stderr
    assert "verl calls a reward with the keywords data_source" in done.stderr
    assert done.stderr.count("error   ") == 1
    assert not (tmp_path / "runs").exists()
    assert_failure(run("train", *options, "--rehearse", "--no-check"), 3, "needs packages")


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("nodes=1", 0),
        ("verl.data.train_batch_size=30", 1),  # a rule: it does not divide
        ("reward.scorer=nope.py:score", 1),
        ("cluster.port=10002", 1),
    ],
)
def test_check_tells_a_laptop_from_a_wrong_recipe_and_train_starts_neither(run, setting, code):
    """The laptop has no GPU, no verl, no model and no parquet; the built-in recipe is right."""
    line = ("qwen2.5-0.5b-ppo-gsm8k", "--verl-version", "0.9", "--set", setting)
    done = run("check", *line, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is (code == 0)
    severities = {finding["rule"]: finding["severity"] for finding in report["findings"]}
    if code == 0:
        assert {severities["L-56"], severities["packages"], severities["devices"]} == {"machine"}
    assert ("error" in severities.values()) is (code == 1)
    reason = "errors above" if code else "findings about this machine above"
    assert_failure(run("train", *line), 1, f"not started: {reason}")
    wrong_key = ("--set", "verl.data.train_batch_sise=4")
    assert_failure(run("check", *line, *wrong_key), 2, "Did you mean 'data.train_batch_size'")


def test_a_run_whose_file_is_missing_is_not_started(run, recipe, tmp_path):
    (tmp_path / "train.parquet").unlink()
    done = run("check", "my.yaml", "--verl-version", "0.9")
    assert re.search("^machine L-56 .*train.parquet: no such file", done.stdout, re.MULTILINE)
    assert run("train", "my.yaml", "--verl-version", "0.9").returncode == 1
    assert not (tmp_path / "runs").exists()


def test_recipes_are_listed_shown_and_copied(run, tmp_path):
    names = [recipe["name"] for recipe in json.loads(run("recipes", "list", "--json").stdout)]
    assert len(names) >= 7
    done = run("recipes", "cp", names[0], "my.yaml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "my.yaml").read_text() == run("recipes", "show", names[0]).stdout
    assert_failure(run("recipes", "cp", names[0], "my.yaml"), 5, "exists")
    assert_failure(run("recipes", "show", "nope"), 2, "unknown recipe")


def test_merge_prints_verl_s_command(run, tmp_path):
    actor = tmp_path / "global_step_5" / "actor"
    actor.mkdir(parents=True)
    (actor / "model_world_size_1_rank_0.pt").touch()
    done = run("eval", "merge", "global_step_5", "out", "--dry-run")
    assert "verl.model_merger merge --backend fsdp --local_dir global_step_5/actor" in done.stdout
    (actor / "model_world_size_1_rank_0.pt").rename(actor / "model_world_size_2_rank_0.pt")
    assert_failure(
        run("eval", "merge", "global_step_5", "out", "--dry-run"), 4, "ranks 1 are missing"
    )
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    (actor / "model_world_size_1_rank_0.pt").touch()
    (actor / "model_world_size_2_rank_0.pt").unlink()
    assert_failure(run("eval", "merge", "global_step_5", "out"), 5, "out is not empty")


def test_merge_prints_the_server_s_command_with_the_recipe_s_lengths(run, tmp_path):
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "model.safetensors").touch()
    done = run("eval", "merge", "hf", "--recipe", "qwen3-32b-dapo")
    assert "--max-model-len 22528" in done.stdout
    assert "--tensor-parallel-size 4" in done.stdout
    weights = tmp_path / "hf" / "model.safetensors"
    weights.rename(weights.with_name("model_world_size_1_rank_0.pt"))
    assert_failure(run("eval", "merge", "hf", "--recipe", "qwen3-32b-dapo"), 2, "name a new folder")
    plan_output = run(
        "eval", "merge", "hf", "out", "--recipe", "qwen3-32b-dapo", "--dry-run"
    ).stdout
    assert "verl.model_merger merge" in plan_output
    assert "vllm serve out --served-model-name qwen3-32b-dapo" in plan_output
