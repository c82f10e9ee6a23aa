"""Built-in recipes are complete, and a mistake in a recipe is a clear error."""

import re
import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest

from rewardkit.errors import DataError, UnknownNameError
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import built_in, load_tree, read_recipe, recipe_path
from rewardkit.strict_yaml import read_yaml
from tests.tables import every


@every("name", built_in())
def test_every_built_in_recipe_describes_its_purpose_source_and_hardware(name):
    recipe = read_recipe(load_tree(name), name)
    assert recipe.name == name
    for text in (recipe.about, recipe.source, recipe.hardware, recipe.expect):
        assert text
    assert recipe.data.prepare


@every(("part", "message"), [
    ({"algoritm": "grpo"}, "my.yaml: unknown key 'algoritm'. Did you mean 'algorithm'?"),
    ({"trainer": {"nnodes": 2}}, "cluster, env, verl, sweep. Settings of verl stand under"),
    ({"nodes": -1}, "nodes: input should be greater than 0, not -1."),
    ({"data": {"train": []}}, "data.train: list should have at least 1 item"),
    ({"model": ""}, "model: string should have at least 1 character"),
    ({"data": "x.parquet"}, "pairs, not 'x.parquet'. An example: `data: {train: FILE.parquet}`"),
    ({"reward": "gsm8k"}, "not 'gsm8k'. An example: `reward: {scorer: NAME}`"),
    ({"algorithm": "GRPO"}, "Did you mean 'grpo' or 'gdpo'?"),
    ({"train_batch_size": 8}, "verl has data.train_batch_size: write it under `verl:`."),
    ({"nodes": True}, "nodes: give a whole number, not True"),
    ({"name": "../x"}, "name: string should match pattern"),
    ({"dapo": {"clip_ratio_high": float("nan")}}, "clip_ratio_high: give a number, not nan"),
    ({"verl": {"trainer": {"x": 1}, "trainer.x": 2}}, "verl: 'trainer.x' is set 2 times"),
])  # fmt: skip
def test_the_error_for_a_mistake_is_one_line_with_its_place(recipe, part, message):
    with pytest.raises(DataError) as error:
        recipe(**part)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_all_mistakes_are_reported_at_once(recipe):
    with pytest.raises(DataError) as error:
        recipe(nodes=0, modle="x", devices="tpu")
    assert len(str(error.value).splitlines()) == 3
    with pytest.raises(DataError, match="model: it is missing"):
        read_recipe({"name": "x", "algorithm": "grpo", "data": {"train": "x"}}, "my.yaml")


def test_the_error_for_an_unknown_recipe_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'qwen3-32b-dapo'"):
        recipe_path("qwen3-32-dapo")


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "x.yaml").touch()
    with pytest.raises(DataError, match=r"x\.yaml is empty"):
        load_tree(str(tmp_path / "x.yaml"))


@every(
    ("variant", "refusal"),
    [(None, ""), ({}, ""), (5, "a part of a recipe"), (["a"], "a part of a")],
)
def test_a_variant_is_a_mapping_or_empty(variant, refusal):
    tree = {**load_tree("qwen3-32b-dapo"), "sweep": {"d": variant}}
    with pytest.raises(DataError, match=refusal) if refusal else nullcontext():
        assert read_recipe(tree, "x", "d").name == "qwen3-32b-dapo-d"


def test_a_variant_is_a_complete_recipe_with_its_own_name():
    tree = load_tree("qwen2.5-7b-grpo")
    names = list(tree["sweep"])
    recipes = {name: read_recipe(tree, "x", name) for name in names}
    assert recipes["instruct-kl"].model.endswith("Instruct")
    assert recipes["base-kl"].name == "qwen2.5-7b-grpo-base-kl"
    with pytest.raises(UnknownNameError, match="no variant 'kl' in sweep. Known: base-kl"):
        read_recipe(tree, "x", "kl")


@pytest.mark.full
@pytest.mark.parametrize("name", built_in())
def test_the_commands_of_a_recipe_prepare_its_data(cli, name, tmp_path):
    """Run each `rewardkit prep` of the recipe with the packaged sample instead of the hub."""
    recipe = read_recipe(load_tree(name), name)
    outputs = set()
    for command in recipe.data.prepare:
        words = shlex.split(command)
        assert words[0] == "rewardkit"
        position = words.index("--out") if "--out" in words else words.index("--drop-overlap")
        outputs.add(words[position + 1])
        if words[1] == "prep":
            words[position + 1] = str(tmp_path / words[position + 1].replace("/", "_"))
            result = cli(*words[1:], "--sample")
            assert result.returncode == 0, result.stderr
    assert {*recipe.data.train, *recipe.data.val} <= outputs


def test_the_example_recipe_of_the_docs_can_be_planned():
    page = (Path(__file__).parents[2] / "docs/train.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    tree = read_yaml(example, "docs/train.md")
    for variant in (None, "no-kl"):
        plan = make_plan(read_recipe(tree, "docs/train.md", variant), "0.9")
        assert (plan.get("actor_rollout_ref.actor.optim.lr"), plan.notes) == (1e-6, ())
