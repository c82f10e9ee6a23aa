"""The child process in verl's environment, with modules in place of verl's."""

from types import SimpleNamespace

import pytest

from rewardkit.launch.verl import compose_child


@pytest.mark.parametrize(("message", "reported"), [
    ("Error in call to target 'verl.workers.config.model.HFModelConfig': OSError(x)", ""),
    ("Error in call to target 'verl.workers.config.critic.FSDPCriticConfig': OSError(x)", ""),
    ("AssertionError: the batch is odd", "AssertionError: the batch is odd"),
])  # fmt: skip
def test_a_critic_whose_model_is_elsewhere_is_left_out_of_the_validation(
    monkeypatch, message, reported
):
    monkeypatch.setattr(compose_child, "_validate", lambda _, *, critic: message if critic else "")
    config = SimpleNamespace(algorithm=SimpleNamespace(adv_estimator="gae"))
    assert compose_child.validation_error(config) == reported
