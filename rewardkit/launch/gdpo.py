"""GDPO (arXiv 2601.05242): verl normalises every part of the reward apart, then adds the results.

Within a group, each part loses its mean and is divided by its spread. The size of a part's weight in
a composed reward therefore has no effect on the advantage, only its sign has. To keep the parts as
important to each other as the recipe of the reward says, the sizes of the weights become verl's
`algorithm.gdpo_reward_weights`. Only their ratios count, because verl normalises the sum once more.

`score` plays no role for the advantage: a KL in the reward and a length penalty have no effect.

Sources: verl trainer/ppo/core_algos.py (compute_gdpo_outcome_advantage) and
examples/gdpo_trainer. In 0.9.0, 0.9.1 and main of 2026-08-22, the default trainer gives the estimator
neither the parts nor the prompts (trainer/ppo/v1/trainer_base.py, _compute_advantage), so that it fails
at the first step; the older trainer, `trainer.use_v1=False`, does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.verl.releases import release_of
from rewardkit.launch.verl.translate import translate

ESTIMATOR = "algorithm.adv_estimator"
REWARD_KEYS = "algorithm.gdpo_reward_keys"
REWARD_WEIGHTS = "algorithm.gdpo_reward_weights"


def gdpo_settings(weights: Mapping[str, float], verl: str) -> dict[str, Any]:
    """Return the settings of GDPO for the parts of a composed reward, by verl 0.9.1's names.

    A part with the weight 0 is left out. Without parts, the keys are not set.
    """
    sizes = {name: abs(weight) for name, weight in weights.items() if weight}
    settings: dict[str, Any] = {ESTIMATOR: "gdpo", "reward.reward_manager.name": "gdpo"}
    if sizes:
        settings |= {REWARD_KEYS: list(sizes), REWARD_WEIGHTS: list(sizes.values())}
    return settings | ({"trainer.use_v1": False} if release_of(verl).number >= (0, 9, 0) else {})


def gdpo_overrides(weights: Mapping[str, float], verl: str) -> list[str]:
    """Return Hydra's overrides that make a release train a composed reward with GDPO."""
    settings = gdpo_settings(weights, verl)
    if REWARD_KEYS not in settings:
        raise UsageError("every part of the reward has the weight 0; give one a weight.")
    overrides = (Override(key, value, origin="--gdpo") for key, value in settings.items())
    return [str(override) for override in translate(overrides, release_of(verl))[0]]
