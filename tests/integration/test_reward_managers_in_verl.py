"""verl's own managers `gdpo`, `rate_limited` and `remote` score with our files, and GDPO trains on parts."""

from __future__ import annotations

from inspect import iscoroutinefunction

import pytest

from rewardkit.launch.presets import gdpo_overrides
from rewardkit.launch.rules import RULES
from rewardkit.launch.rules.values import ASYNC_SCORERS
from rewardkit.scorers.compose import write_reward_file
from rewardkit.scorers.load import location
from tests.integration.conftest import VERL, make_batch
from tests.integration.test_verl import expected, right_or_wrong, rows_of

(REWARD_MANAGERS,) = {
    tuple(row.good) for rule in RULES if rule.id == "reward-manager" for row in rule.rows
}
COMPOSED = "scorer: gsm8k\nparts: {correct: 1.0, format: 0.25, repetition: -0.5}\n"

PLAIN = """
import re

PATTERN = re.compile("#### (.*)")

class Judge:
    def __call__(self, text, gold):
        match = PATTERN.search(text)
        return float(bool(match) and match[1] == gold)

JUDGE = Judge()

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": JUDGE(solution_str, ground_truth), "length": len(solution_str)}
"""

LOCK = """
import threading

LOCK = threading.Lock()

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    with LOCK:
        return float(solution_str == "#### " + ground_truth)
"""

#: Reward files that people write, each with a part of the error that Ray gives for it, or "".
OWN_FILES = {"plain": (PLAIN, ""), "lock": (LOCK, "cannot pickle '_thread.lock' object")}


@pytest.fixture
def composed(tmp_path):
    """A composed reward as a file."""
    recipe, out = tmp_path / "reward.yaml", tmp_path / "reward.py"
    recipe.write_text(COMPOSED)
    return write_reward_file(recipe, out)


def test_the_table_has_the_managers_of_this_release():
    from verl.experimental.reward_loop.reward_manager.registry import REWARD_MANAGER

    assert sorted(REWARD_MANAGER) == sorted(REWARD_MANAGERS)


@pytest.mark.parametrize("manager", ["gdpo", "rate_limited"])
def test_a_manager_returns_every_part_of_a_composed_reward(score_batch, parquet, composed, manager):
    extra = ("+reward.max_concurrent=4",) if manager == "rate_limited" else ()
    rewards, extras = score_batch(manager, composed, [parquet], right_or_wrong, *extra)
    assert [e["correct"] for e in extras] == [expected(row) for row in rows_of(parquet)]
    for reward, parts in zip(rewards, extras, strict=True):
        assert reward == pytest.approx(parts["correct"] + parts["format"] + parts["repetition"])


@pytest.fixture
def score_remotely(private_ray, reward_worker, compose, tokenizer, parquet):
    """Score with a reward worker that is an actor, and asks processes of the manager `remote`."""

    def score(file):
        config = compose(
            "reward.reward_manager.name=remote",
            "reward.num_workers=1",
            f"reward.custom_reward_function.path={file}",
        )
        data = make_batch(config, tokenizer, [parquet], right_or_wrong)
        return private_ray.get(reward_worker.score.remote(config, data), timeout=300)

    return score


def test_every_scorer_of_ours_can_be_sent_to_another_process(load_reward):
    """verl loads a file without an entry in sys.modules, so that Ray pickles what is in it by value."""
    from ray import cloudpickle

    from rewardkit import registry

    for name in registry.SCORERS:
        reward = cloudpickle.loads(cloudpickle.dumps(load_reward(location(name))))
        assert iscoroutinefunction(reward) == (name in ASYNC_SCORERS)
        if name in ASYNC_SCORERS:  # it asks a server
            continue
        result = reward(data_source="", solution_str="", ground_truth="1", extra_info={})
        assert result["acc"] == 0.0, name


NIGHTLY = [pytest.param(name, marks=pytest.mark.nightly) for name in ("gsm8k", "auto", "plain")]


@pytest.mark.parametrize("name", ["composed", "lock", *NIGHTLY])
def test_the_manager_remote_sends_our_files_to_its_processes(
    score_remotely, parquet, composed, tmp_path, name
):
    own, error = OWN_FILES.get(name, ("", ""))
    file = tmp_path / "own.py"
    file.write_text(own)
    file = file if own else composed if name == "composed" else location(name)
    if error:
        with pytest.raises(Exception, match=error):
            score_remotely(file)
        return
    rewards, extras = score_remotely(file)
    correct = [e.get("correct", reward) for reward, e in zip(rewards, extras, strict=True)]
    assert correct == [expected(row) for row in rows_of(parquet)]


def gdpo_batch(scale):
    """Return a batch as verl's older trainer has it: two groups of four, with two parts."""
    import numpy as np
    import torch
    from verl.protocol import DataProto

    correct = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    form = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    tensors = {
        "prompts": torch.ones(8, 3, dtype=torch.long),
        "attention_mask": torch.ones(8, 8, dtype=torch.long),
        "response_mask": torch.ones(8, 5, dtype=torch.long),
        "token_level_rewards": torch.zeros(8, 5),
    }
    non_tensors = {
        "uid": np.array(["a"] * 4 + ["b"] * 4, dtype=object),
        "correct": np.array(correct),
        "format": np.array([scale * value for value in form]),
    }
    return DataProto.from_dict(tensors=tensors, non_tensors=non_tensors)


def gdpo_advantages(compose, scale, weights, drop=()):
    from verl.trainer.ppo.ray_trainer import compute_advantage

    config = compose(*gdpo_overrides(weights, VERL)).algorithm
    data = gdpo_batch(scale)
    for name in drop:
        data.batch.pop(name) if name in data.batch.keys() else data.non_tensor_batch.pop(name)  # noqa: SIM118
    return compute_advantage(data, adv_estimator=config.adv_estimator, config=config).batch[
        "advantages"
    ]


def test_gdpo_reads_our_keys_and_only_its_own_weights_decide_how_much_a_part_counts(compose):
    """The size of a part has no effect, and the printed weights have one."""
    import torch

    one = gdpo_advantages(compose, 1.0, {"correct": 1.0, "format": 0.1})
    other = gdpo_advantages(compose, 0.1, {"correct": 1.0, "format": 0.1})
    equal = gdpo_advantages(compose, 0.1, {"correct": 1.0, "format": 1.0})
    assert torch.allclose(one, other, atol=1e-3)
    assert not torch.allclose(one, equal, atol=0.1)
    assert (one[3] > one[0]).all()  # the format counts
    assert (one[0] > one[1]).all()  # less than the answer


@pytest.mark.skipif(not VERL.startswith("0.9"), reason="a trainer of 0.9")
def test_the_default_trainer_of_0_9_1_cannot_train_with_gdpo(compose):
    """It passes uid and tensors of the responses; without prompts and parts verl's estimator fails."""
    from pathlib import Path

    import verl

    trainer = Path(verl.__file__).parent / "trainer/ppo/v1/trainer_base.py"
    source = trainer.read_text().partition("def _compute_advantage(")[2]
    fields = source.partition("fields = [")[2].partition("]")[0]
    assert "uid" in fields
    assert "prompts" not in fields
    for drop in (["prompts"], ["correct"]):
        with pytest.raises((AssertionError, KeyError), match=drop[0]):
            gdpo_advantages(compose, 1.0, {"correct": 1.0}, drop)


def test_verl_composes_and_accepts_a_recipe_with_gdpo(composed):
    from rewardkit.launch.plan import make_plan
    from rewardkit.launch.recipe import deep_merge, read_recipe
    from tests.integration.test_recipes_in_verl import compose_here
    from tests.launch.conftest import SMALLEST

    reward = {"scorer": f"{composed}:compute_score"}
    tree = deep_merge(SMALLEST, {"algorithm": "gdpo", "reward": reward})
    config, invalid, loaded = compose_here(make_plan(read_recipe(tree, "x"), VERL).arguments)
    assert invalid == ""
    assert loaded["reward"]
    assert config["algorithm.gdpo_reward_keys"] == ["correct", "format", "repetition"]
    assert config["algorithm.gdpo_reward_weights"] == [1.0, 0.25, 0.5]


def test_verl_refuses_a_manager_that_our_rule_calls_unknown(compose):
    if not VERL.startswith("0.9"):
        pytest.skip("0.7 has another function that looks a manager up")
    from verl.trainer.ppo.reward import resolve_reward_manager_cls

    for name in REWARD_MANAGERS:
        assert resolve_reward_manager_cls(compose(f"reward.reward_manager.name={name}"))
    for name in ("batch", "prime", "rate_limitd"):
        with pytest.raises(ValueError, match="Unknown reward manager"):
            resolve_reward_manager_cls(compose(f"reward.reward_manager.name={name}"))
