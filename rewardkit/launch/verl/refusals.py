"""Where each release of verl refuses a configuration: the table of `refusals.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rewardkit.launch.verl.releases import parse_release


def refusal(check: str, verl: str) -> str:
    """Return the place in verl that makes a check, `verl 0.9.1: utils/config.py:124`.

    A version that is newer than the table has the checks of its newest release; "" if the release
    does not make the check.
    """
    table = _table()
    older = [release for release in table if parse_release(release) <= parse_release(verl)]
    if not older:
        return ""
    release = max(older, key=parse_release)
    line = table[release].get(check)
    return f"verl {release}: {line}" if line else ""


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    import yaml

    text = Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[str, str]] = yaml.safe_load(text)
    return table
