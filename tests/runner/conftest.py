"""Recipes as tests write them: the smallest one that plans, with parts laid over it."""

import pytest

from rewardkit.runner.overrides import parse_overrides
from rewardkit.runner.plan import make_plan
from rewardkit.runner.recipe import laid_over, read_recipe

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


@pytest.fixture
def recipe():
    def build(**parts):
        return read_recipe(laid_over(SMALLEST, parts), "my.yaml")

    return build


@pytest.fixture
def plan(recipe):
    def build(release="0.9.1", *overrides, **parts):
        return make_plan(recipe(**parts), release, parse_overrides(overrides, "the command line"))

    return build
