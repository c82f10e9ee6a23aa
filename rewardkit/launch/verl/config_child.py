"""Run in the environment of a verl: compose its configuration, let it judge it, load the reward.

Started as `python -m rewardkit.launch.verl.config_child` with a request (JSON) on stdin; the answer is
the last line of stdout. What verl's own code prints comes before it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def main() -> None:
    """Answer one request: a configuration by its name, and overrides."""
    request = json.load(sys.stdin)
    answer: dict[str, Any] = {
        "config": {},
        "error": "",
        "invalid": "",
        "reward": None,
        "reward_error": "",
    }
    try:
        config = _composed(request)
    except ValueError as error:  # Hydra's and OmegaConf's errors are ValueErrors or below
        answer["error"] = str(error)
    else:
        answer["config"] = dict(_flat(config))
        answer["invalid"] = _invalid(config)
        answer |= _reward(config)
    sys.stdout.write("\n" + json.dumps(answer, default=str) + "\n")


def _composed(request: dict[str, Any]) -> Any:
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("there is no verl in this environment")
    folder = Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"
    try:
        with initialize_config_dir(config_dir=str(folder), version_base=None):
            config = compose(request["config_name"], overrides=request["overrides"])
            OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return config


def _flat(config: Any, prefix: str = "") -> Any:
    from omegaconf import DictConfig, OmegaConf

    for key in config:
        missing = OmegaConf.is_missing(config, key)
        value = None if missing else config[key]
        if isinstance(value, DictConfig) and len(value):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            yield f"{prefix}{key}", plain


def _invalid(config: Any) -> str:
    """What verl's own validation says against the configuration; "" for nothing.

    From 0.9 on a critic's configuration is read with its model's; where the model is not on this
    machine, the rest is judged without the critic.
    """
    critic = config.algorithm.adv_estimator == "gae"
    said = _judged(config, critic=critic)
    return _judged(config, critic=False) if critic and "HFModelConfig" in said else said


def _judged(config: Any, *, critic: bool) -> str:
    from hydra.errors import InstantiationException
    from omegaconf.errors import OmegaConfBaseException

    reference = config.algorithm.use_kl_in_reward or config.actor_rollout_ref.actor.use_kl_loss
    kinds = (AssertionError, ValueError, TypeError, KeyError, AttributeError, ImportError)
    try:
        validate = _validation()
        validate(config=config, use_reference_policy=reference, use_critic=critic)
        _as_dataclasses(config)
    except (*kinds, InstantiationException, OmegaConfBaseException) as error:
        told = (
            f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else error
        )
        return " ".join(str(told).split()) or "an assertion without a message failed"
    return ""


def _validation() -> Any:
    """The validate_config of verl; up to 0.5 it is a method of the trainer."""
    with suppress(ImportError):
        from verl.utils.config import validate_config

        return validate_config
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    def validate(config: Any, use_reference_policy: bool, use_critic: bool) -> None:
        trainer = SimpleNamespace(
            config=config, use_reference_policy=use_reference_policy, use_critic=use_critic
        )
        RayPPOTrainer._validate_config(trainer)  # noqa: SLF001 - there is no other way in 0.5

    return validate


def _as_dataclasses(config: Any) -> None:
    """The sections that verl reads into dataclasses, which refuse keys they do not have."""
    from verl.utils.config import omega_conf_to_dataclass

    for section in (config.actor_rollout_ref.rollout, config.algorithm):
        if "_target_" in section:
            omega_conf_to_dataclass(section)


def _reward(config: Any) -> dict[str, Any]:
    """What verl's own loader makes of the reward's keys."""
    from verl.trainer.ppo.reward import get_custom_reward_fn

    try:
        function = get_custom_reward_fn(config)
    except (ImportError, OSError, RuntimeError, AttributeError, ValueError, TypeError) as error:
        return {
            "reward": None,
            "reward_error": " ".join(f"{type(error).__name__}: {error}".split()),
        }
    inner = getattr(function, "args", ())  # verl wraps it in a partial that adds reward_kwargs
    named = inner[0] if inner else function
    return {"reward": None if named is None else str(getattr(named, "__qualname__", named))}


if __name__ == "__main__":
    main()
