"""For rules that verl itself enforces, ours are errors exactly where verl refuses a plan."""

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, read_recipe
from rewardkit.launch.rules import check_rules
from rewardkit.launch.rules.facts import RunFacts
from tests.integration.conftest import VERL
from tests.integration.test_recipes_in_verl import compose_here

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MEGATRON = f"{ACTOR}.megatron"
SMALLEST = {
    "name": "tiny",
    "algorithm": "grpo",
    "model": "/models/tiny",
    "data": {"train": "/d/train.parquet", "val": "/d/val.parquet"},
    "reward": {"scorer": "verl"},
    "verl": {
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.n": 8,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 1,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 1,
    },
}
UNEVEN = {"data.train_batch_size": 257, f"{ROLLOUT}.n": 5}
CASES = {
    "nothing is wrong": ({}, {}),
    "mini batch over batch": ({"data.train_batch_size": 128}, {}),
    "batch that does not divide": (UNEVEN, {}),
    "validation at temperature 0": (
        {f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0},
        {},
    ),
    "sequence parallel with padding": (
        {
            f"{ACTOR}.ulysses_sequence_parallel_size": 2,
            "actor_rollout_ref.model.use_remove_padding": False,
        },
        {},
    ),
    "parallel size that does not divide": (
        {f"{MEGATRON}.tensor_model_parallel_size": 3},
        {"strategy": "megatron"},
    ),
    "batch that does not divide, Megatron": (
        {
            f"{MEGATRON}.tensor_model_parallel_size": 2,
            f"{MEGATRON}.pipeline_model_parallel_size": 2,
            **UNEVEN,
        },
        {"strategy": "megatron"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_our_rules_give_an_error_exactly_if_verl_does(name):
    verl, parts = CASES[name]
    plan = make_plan(read_recipe(deep_merge(SMALLEST, {"verl": verl, **parts}), "x"), VERL)
    errors = [f for f in check_rules(plan, RunFacts()) if f.severity == "error"]
    _, invalid, _ = compose_here(plan.arguments)
    assert bool(errors) == bool(invalid), (errors, invalid)
