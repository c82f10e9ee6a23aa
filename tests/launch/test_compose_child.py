"""The child process in verl's environment, with modules in place of verl's."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from rewardkit.launch.verl import compose_child


def mine(**_):
    """A reward function of a user."""


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs a verl which loads `mine` from the new key of the reward."""

    def put(**main):
        modules = {name: ModuleType(name) for name in ("verl", "verl.trainer", "verl.trainer.ppo")}
        loader = SimpleNamespace(get_custom_reward_fn=lambda config: mine if config.new else None)
        modules["verl.trainer.ppo.reward"] = loader
        modules["verl.trainer"].main_ppo = SimpleNamespace(**main)
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    return put


def test_the_reward_is_loaded_after_the_trainer_has_moved_its_old_keys(install):
    """As in 0.7.1 and 0.8; from 0.9 on the trainer moves nothing."""
    old = SimpleNamespace(new=False)
    install(migrate_legacy_reward_impl=lambda config: SimpleNamespace(new=True))
    assert compose_child.load_reward(old) == {"reward": "mine"}
    install()
    assert compose_child.load_reward(old) == {"reward": None}


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ("Error in call to target 'verl.workers.config.model.HFModelConfig': OSError(x)", ""),
        ("Error in call to target 'verl.workers.config.critic.FSDPCriticConfig': OSError(x)", ""),
        ("AssertionError: the batch is odd", "AssertionError: the batch is odd"),
    ],
)
def test_a_critic_whose_model_is_elsewhere_is_left_out_of_the_validation(
    monkeypatch, message, reported
):
    monkeypatch.setattr(compose_child, "_validate", lambda _, *, critic: message if critic else "")
    config = SimpleNamespace(algorithm=SimpleNamespace(adv_estimator="gae"))
    assert compose_child.validation_error(config) == reported
