"""The keys that make a verl release use a custom reward function.

The section moved. verl 0.9 still accepts the old one and ignores it without a message, so that it
trains with its built-in scorer (`trainer/main_ppo.py` no longer calls `migrate_legacy_reward_impl`;
measured on 0.9.1).
"""

from collections.abc import Mapping
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import NEW_KEY, parse_release

OLD_KEY = "custom_reward_function"

#: `NEW_KEY` works from this release on, and `OLD_KEY` before `OLD_KEY_IGNORED_SINCE`.
NEW_KEY_SINCE = (0, 7, 1)
OLD_KEY_IGNORED_SINCE = (0, 9, 0)

#: First release that accepts the reward as `pkg://module`.
PKG_SINCE = (0, 7, 0)


def reward_key(verl: str) -> str:
    """Return the section under which a verl release reads a custom reward function."""
    return NEW_KEY if parse_release(verl) >= NEW_KEY_SINCE else OLD_KEY


def describe_reward_keys(verl: str) -> str:
    """Return in one line which sections a verl release reads, and which it ignores."""
    if parse_release(verl) >= OLD_KEY_IGNORED_SINCE:
        return f"{NEW_KEY}.path only; {OLD_KEY}.path is accepted and silently ignored"
    if parse_release(verl) >= NEW_KEY_SINCE:
        return f"{NEW_KEY}.path, and still {OLD_KEY}.path"
    return f"{OLD_KEY}.path"


def reward_overrides(
    location: str, options: Mapping[str, Any], verl: str, function: str = "compute_score"
) -> list[str]:
    """Return the Hydra overrides that make a verl release use a scorer: a path, or `pkg://module`."""
    if location.startswith("pkg://") and parse_release(verl) < PKG_SINCE:
        raise UsageError(f"verl {verl} loads rewards from files only; leave --pkg out.")
    key = reward_key(verl)
    values = {"path": location, "name": function}
    kwargs = [f"+{key}.reward_kwargs.{k}={format_value(v)}" for k, v in options.items()]
    return [*(f"{key}.{k}={format_value(v)}" for k, v in values.items()), *kwargs]
