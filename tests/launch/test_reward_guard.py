"""`reward: {guard: ...}` in a recipe: the launch writes the guarded file and names it for verl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rewardkit
from rewardkit.errors import UsageError
from rewardkit.launch.request import plan_from_request, read_request
from rewardkit.launch.targets import render
from rewardkit.scorers.compose import write_reward_file
from tests.launch.conftest import tree_of

RETURN = '    return {"score": float(bool(extra_info["question"])) + bonus, "form": 1.0}\n'
REWARD = f"""
def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
{RETURN}"""
PATH, NAME = "reward.custom_reward_function.path", "reward.custom_reward_function.name"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a reward, rows, and a recipe that guards the reward."""
    monkeypatch.chdir(tmp_path)
    Path("my_reward.py").write_text(REWARD, encoding="utf-8")
    rewardkit.prep("gsm8k", Path("rows.parquet"), sample=True)
    write_recipe(guard={"seconds": 7})
    return tmp_path


def write_recipe(cluster=None, data=None, **reward):
    """Write a recipe; JSON is YAML."""
    recipe = tree_of(
        "name=guarded algorithm=grpo devices_per_node=1 model=Qwen/Qwen2.5-0.5B-Instruct "
        "data.train=rows.parquet data.val=rows.parquet reward.scorer=my_reward.py:compute_score"
    )
    recipe["reward"] |= {"options": {"bonus": 0.5}, **reward}
    recipe |= {"cluster": cluster or {}, **({"data": data} if data else {})}
    Path("recipe.yaml").write_text(json.dumps(recipe), encoding="utf-8")


def plan(*overrides):
    return plan_from_request(read_request("recipe.yaml", overrides=overrides, verl="0.9.1"))


def test_the_file_is_tried_on_the_training_rows_and_named_for_verl(folder):
    """A reward that needs `question` is tried on rows that have it, with its options."""
    settings = plan().settings
    file = Path(settings[PATH])
    assert file.parent == folder / "runs/guards"
    assert settings[NAME] == "compute_score"
    assert not [key for key in settings if "reward_kwargs" in key]
    text = file.read_text(encoding="utf-8")
    assert str(folder / "my_reward.py:compute_score") in text
    assert "'form': 0.0" in text
    assert "seconds=7.0" in text
    assert "options={'bonus': 0.5}" in text


def test_an_override_of_another_field_keeps_the_guard(folder):
    """Only another reward function on the command line replaces it."""
    path = plan().settings[PATH]
    assert plan("actor_rollout_ref.model.path=/models/other").settings[PATH] == path
    other = plan(f"{PATH}={folder}/my_reward.py")
    assert other.settings[PATH] == f"{folder}/my_reward.py"


def test_other_settings_are_another_file(folder):
    """A run that has started keeps its file when the recipe changes; an equal plan has the same."""
    first = plan().settings[PATH]
    before = Path(first).read_bytes()
    assert plan().settings[PATH] == first
    write_recipe(guard={"seconds": 8}, record="records")
    planned = plan()
    assert "runs/guards" not in planned.recipe.model_dump_json()  # a manifest repeats the guard
    second = planned.settings[PATH]
    assert second != first
    assert Path(first).read_bytes() == before
    assert f"record='{folder}/records'" in Path(second).read_text(encoding="utf-8")


@pytest.mark.parametrize(("reward", "message"), [
    ({"scorer": "gsm8k", "options": {}}, "needs no guard"),
    ({"scorer": "my_reward.py:missing"}, "has no 'missing'"),
    ({"options": {"unknown": 1}}, "failed on all"),
    ({"guard": None, "record": "records"}, "add `guard: {}`"),
    ({"guard": {"second": 1}}, "second"),
])  # fmt: skip
def test_a_guard_that_cannot_be_written_is_one_line(folder, reward, message):
    """It names the key of the recipe, or the reward."""
    write_recipe(**{"guard": {}, **reward})
    with pytest.raises(ValueError, match=message) as error:
        plan()
    assert "\n" not in str(error.value)
    assert isinstance(error.value, UsageError) or "recipe.yaml" in str(error.value)


def test_a_composed_reward_records_without_a_guard(folder):
    """Its function takes `record` itself."""
    Path("reward.yaml").write_text("scorer: gsm8k\nparts: {correct: 1.0}\n", encoding="utf-8")
    write_reward_file("reward.yaml", "composed.py")
    write_recipe(scorer="composed.py:compute_score", options={}, record="records")
    key = "reward.custom_reward_function.reward_kwargs.record"
    assert plan().settings[key] == f"{folder}/records"


CLUSTERS = {
    "ray-job": {"address": "http://head:8265"},
    "kuberay": {"image": "verl:1", "volumes": {"data": "/data"}},
    "skypilot": {"accelerator": "H100"},
}


@pytest.mark.parametrize("target", CLUSTERS)
def test_targets_that_copy_the_reward_copy_the_guard_with_it(folder, target):
    """The guard looks for the reward beside itself on the nodes."""
    rows = {"train": "/data/rows.parquet", "val": "/data/rows.parquet"}
    own = {"scorer": "my_reward.py:plain", "options": {}, "guard": {"keys": ["score"]}}
    write_recipe({"target": target, **CLUSTERS[target]}, rows, **own)
    plain = "def plain(data_source, solution_str, ground_truth, extra_info=None): return 0.5\n"
    Path("my_reward.py").write_text(plain, encoding="utf-8")
    current = plan()
    name = Path(current.settings[PATH]).name
    assert name.startswith("my_reward-")
    text = "".join(file.text for file in render(current, folder / "run").files)
    names = {Path(file.name).name for file in render(current, folder / "run").files}
    assert {name, "my_reward.py"} <= names or target == "kuberay"
    assert plain.strip() in text
    assert text.count(name) >= (1 if target == "ray-job" else 2)


def test_records_of_a_guard_are_on_storage_of_the_nodes(folder):
    """A relative folder would be another one on each node."""
    write_recipe({"target": "ray-job", **CLUSTERS["ray-job"]}, guard={}, record="records")
    with pytest.raises(UsageError, match="record: records is relative"):
        plan()


def test_a_secret_option_is_read_from_the_environment_by_the_written_file(folder, monkeypatch):
    code = REWARD.replace("bonus=0.0", "api_key=''")
    code += "    return 1.0 if api_key == 'Zq7canaryValue42' else 1 / 0\n"
    Path("my_reward.py").write_text(code.replace(RETURN, ""), encoding="utf-8")
    write_recipe(options={"api_key": "Zq7canaryValue42"}, guard={})
    with pytest.raises(UsageError, match="reads from API_KEY. Export it here and where verl runs"):
        plan()
    monkeypatch.setenv("JUDGE_KEY", "Zq7canaryValue42")
    text = Path(plan().settings[PATH]).read_text(encoding="utf-8")
    assert "options={'api_key': read_secret('JUDGE_KEY')}," in text
    assert "Zq7canaryValue42" not in text


def test_a_secret_in_a_mapping_of_options_is_refused(folder):
    write_recipe(options={"headers": {"api_key": "Zq7canaryValue42"}}, guard={})
    with pytest.raises(UsageError, match="a secret in a mapping would be written into a file"):
        plan()
