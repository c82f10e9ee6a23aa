"""Our view of verl's configuration, by release.

The key that sets a custom reward moved. verl 0.9 still composes the old one and ignores it
without a word, so that training runs with verl's built-in scorer (`trainer/main_ppo.py` stopped
calling `migrate_legacy_reward_impl`; measured on 0.9.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import format_value

#: The release our plans are for where none is installed or named.
LATEST = "0.9.1"

OLD_KEY = "custom_reward_function"
NEW_KEY = "reward.custom_reward_function"

#: From this release on `NEW_KEY` works; `OLD_KEY` stops working at `OLD_KEY_DEAD`.
NEW_KEY_SINCE = (0, 7, 1)
OLD_KEY_DEAD = (0, 9, 0)

#: From this release on the reward may be given as `pkg://module`.
PKG_SINCE = (0, 7, 0)


def installed_verl() -> str | None:
    """The version of the installed verl, without importing it; None if there is none."""
    try:
        return version("verl")
    except PackageNotFoundError:
        return None


def parse_release(text: str) -> tuple[int, ...]:
    """`"0.7.1.dev0"` -> `(0, 7, 1)`, `"0.8"` -> `(0, 8, 0)`.

    Raises:
        UsageError: the text does not start like a version.
    """
    match = re.match(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?!\d)", text)
    if match is None:
        raise UsageError(f"{text!r} is no verl version; write it as in 0.9.1.")
    parts = [int(part) for part in match[1].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def reward_key(verl: str) -> str:
    """The key under which a verl release honours a custom reward."""
    return NEW_KEY if parse_release(verl) >= NEW_KEY_SINCE else OLD_KEY


def describe_reward_keys(verl: str) -> str:
    """One line that says which keys a verl release honours and which it ignores."""
    if parse_release(verl) >= OLD_KEY_DEAD:
        return f"{NEW_KEY}.path only; {OLD_KEY}.path composes and is silently ignored"
    if parse_release(verl) >= NEW_KEY_SINCE:
        return f"{NEW_KEY}.path, and still {OLD_KEY}.path"
    return f"{OLD_KEY}.path"


def reward_overrides(location: str, options: Mapping[str, Any], verl: str) -> list[str]:
    """The Hydra overrides that make a verl release use a scorer.

    Args:
        location: a file's path, or `pkg://module`.
        options: of the scorer; they become `reward_kwargs`.
        verl: the release.

    Raises:
        UsageError: `pkg://` for a release that loads rewards from files only.
    """
    if location.startswith("pkg://") and parse_release(verl) < PKG_SINCE:
        raise UsageError(f"verl {verl} loads rewards from files only; leave --pkg out.")
    key = reward_key(verl)
    kwargs = [
        f"+{key}.reward_kwargs.{name}={format_value(value)}" for name, value in options.items()
    ]
    return [f"{key}.path={format_value(location)}", f"{key}.name=compute_score", *kwargs]
