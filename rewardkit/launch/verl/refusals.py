"""Where each release of verl refuses a configuration: the table of `refusals.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rewardkit.launch.verl.key_renames import load_table
from rewardkit.launch.verl.releases import LATEST


def refusal(check: str, verl: str) -> str:
    """Return the place in verl that makes a check, `verl 0.9.1: utils/config.py:124`.

    A snapshot of main has the checks of the newest release; "" if the release does not make the check.
    """
    release = verl if verl in _table() else LATEST
    line = _table()[release].get(check)
    return f"verl {release}: {line}" if line else ""


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = load_table(__file__, "refusals.yaml")
    return table
