"""What the installed verl says of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit.errors import DataError
from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.verl.config import ComposedConfig, compose_plan
from rewardkit.launch.verl.releases import installed_verl, nearest


def check_with_verl(plan: Plan, unchecked: list[str]) -> Iterator[LaunchFinding]:
    """Findings of verl's own composition, validation and reward loader.

    Args:
        plan: the run.
        unchecked: is given a line where this verl cannot be asked.
    """
    installed = installed_verl()
    if installed is None:
        unchecked.append(
            "composition and verl's validate_config: no verl is installed beside rewardkit."
        )
        return
    if nearest(installed) != plan.verl:
        unchecked.append(
            f"composition and verl's validate_config: the plan is for verl {plan.verl}, "
            f"{installed} is installed."
        )
        return
    if plan.module == DAPO_RECIPE:
        unchecked.append("the DAPO recipe's own trainer: its keys were judged by main_ppo's.")
    try:
        yield from _said(plan, compose_plan(plan), installed)
    except DataError as error:
        yield LaunchFinding("error", "verl", "verl", str(error), "Look at verl's installation.")


def _said(plan: Plan, composed: ComposedConfig, installed: str) -> Iterator[LaunchFinding]:
    if composed.error:
        yield LaunchFinding(
            "error", "compose", "verl", f"verl {installed} does not compose it: {composed.error}"
        )
        return
    if composed.invalid:
        yield LaunchFinding(
            "error",
            "validate",
            "verl",
            f"validate_config of verl {installed}: {composed.invalid}",
            source="verl utils/config.py",
        )
    if composed.reward_error:
        yield LaunchFinding(
            "error",
            "L-51",
            "reward.custom_reward_function.path",
            f"verl cannot load the reward: {composed.reward_error}",
        )
    elif plan.recipe.reward.scorer != "verl" and composed.reward is None:
        yield LaunchFinding(
            "error",
            "reward",
            "reward.custom_reward_function.path",
            f"verl {installed} loads no reward function from this configuration: it would train "
            "with its own scorer of each data_source and say nothing.",
        )
