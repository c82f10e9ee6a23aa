"""Reading a launch request; shared by `train`, `check RECIPE` and `merge --recipe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardkit.cli.shared.console import warn
from rewardkit.redact import process_redactor

if TYPE_CHECKING:
    from rewardkit.launch.request import LaunchRequest


def read_launch_request(
    recipe: str,
    fields: list[str] | None,
    overrides: list[str] | None = None,
    verl_version: str | None = None,
) -> LaunchRequest:
    """Read the launch request of a recipe; later messages hide its secrets."""
    from rewardkit.launch.request import read_request
    from rewardkit.launch.verl.releases import LATEST, installed_verl

    if verl_version is None and installed_verl() is None:
        warn(f"verl is not installed: planning for verl {LATEST} (see --verl-version).")
    request = read_request(
        recipe, fields=fields or (), overrides=overrides or (), verl=verl_version
    )
    process_redactor().learn(request.secrets)
    return request
