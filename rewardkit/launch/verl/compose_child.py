"""Child process of `compose`, in verl's environment: compose a configuration and validate it.

The request is JSON on stdin; replies are lines of JSON on stdout, and what verl prints goes to stderr.
verl imports the user's reward last, under a deadline, so that a file that hangs costs no other part of
the reply.
"""

import faulthandler
import importlib.util
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.launch.overrides import flatten


def main() -> None:
    """Answer one request: a configuration's name, overrides, and what to do with the result."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(**reply: Any) -> None:
        print(json.dumps(reply, default=str), file=replies, flush=True)

    request = json.load(sys.stdin)
    try:
        config = compose(request["config_name"], request["overrides"])
    except ValueError as error:  # Hydra's and OmegaConf's errors are made ValueErrors below
        send(error=str(error))
    else:
        invalid = validation_error(config) if request["validate"] else ""
        send(config=flat_config(config), invalid=invalid)
        if request["load_seconds"] is not None:
            send(**load_reward(config, request["load_seconds"]))
    os._exit(0)  # threads of the reward's file may still run


def compose(config_name: str, overrides: list[str]) -> Any:
    """Compose a configuration of verl's trainer, with interpolations resolved."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    spec = importlib.util.find_spec("verl")  # importing verl would import torch and Ray
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("no verl is installed in this environment")
    folder = Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"
    try:
        with initialize_config_dir(config_dir=str(folder), version_base=None):
            config = hydra_compose(config_name, overrides=overrides)
        OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return config


def flat_config(config: Any) -> dict[str, Any]:
    """Return a configuration as dotted keys; a mandatory value that is missing is None."""
    from omegaconf import OmegaConf

    items = flatten(OmegaConf.to_container(config))
    return {key: None if value == "???" else value for key, value in items}


def validation_error(config: Any) -> str:
    """Return the error of verl's own validation; "" without one.

    From 0.7.1 on the configuration of a critic needs its model. If the model is not on this machine,
    the rest is validated without the critic.
    """
    critic = config.algorithm.adv_estimator == "gae"
    message = _validate(config, critic=critic)
    lacks_model = any(sign in message for sign in ("HFModelConfig", "CriticConfig': OSError"))
    return _validate(config, critic=False) if critic and lacks_model else message


def _validate(config: Any, *, critic: bool) -> str:
    from hydra.errors import InstantiationException
    from omegaconf.errors import OmegaConfBaseException
    from verl.utils.config import validate_config

    reference = config.algorithm.use_kl_in_reward or config.actor_rollout_ref.actor.use_kl_loss
    kinds = (AssertionError, ValueError, TypeError, KeyError, AttributeError, ImportError)
    try:
        validate_config(config=config, use_reference_policy=reference, use_critic=critic)
        _read_dataclasses(config)
    except AssertionError as error:
        return " ".join(str(error).split()) or "an assertion without a message failed"
    except (*kinds, InstantiationException, OmegaConfBaseException) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    return ""


def _read_dataclasses(config: Any) -> None:
    """Read the sections that verl turns into dataclasses, which refuse unknown keys."""
    from verl.utils.config import omega_conf_to_dataclass

    for section in (config.actor_rollout_ref.rollout, config.algorithm):
        if "_target_" in section:
            omega_conf_to_dataclass(section)


def load_reward(config: Any, seconds: float | None = None) -> dict[str, Any]:
    """Return the name of the reward function that verl's own loader finds, or why it fails.

    After `seconds` this process ends; verl's own imports are not counted. The trainers of 0.7.1 and
    0.8, and the DAPO recipe for them, move the reward's old keys first.
    """
    from verl.trainer import main_ppo
    from verl.trainer.ppo.reward import get_custom_reward_fn

    migrate = getattr(main_ppo, "migrate_legacy_reward_impl", lambda unchanged: unchanged)
    pid = os.getpid()
    if seconds is not None:  # then the stacks of the threads are on stderr
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    try:
        function = get_custom_reward_fn(migrate(config))
    except (ImportError, OSError, RuntimeError, AttributeError, ValueError, TypeError) as error:
        return {"reward_error": " ".join(f"{type(error).__name__}: {error}".split())}
    finally:
        if os.getpid() != pid:
            os._exit(0)  # a copy that the file forked
        faulthandler.cancel_dump_traceback_later()
    named = function
    while isinstance(named, partial):  # verl's adds reward_kwargs, and a scorer of ours is one too
        named = named.args[0] if named.args else named.func
    return {"reward": None if named is None else str(getattr(named, "__name__", named))}


if __name__ == "__main__":
    main()
