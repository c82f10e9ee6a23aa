"""Checks a plan with the installed verl."""

from __future__ import annotations

from rewardkit.errors import DataError
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.verl.compose import ComposedConfig, compose_config
from rewardkit.launch.verl.releases import installed_verl, nearest
from rewardkit.launch.verl.reward_keys import NEW_KEY

_CHECKS = "verl's composition and validate_config"


def reward_path_key(plan: Plan) -> str:
    """Return the key that names the reward function's file in the plan's release."""
    return plan.release.name_of(f"{NEW_KEY}.path")


def check_with_verl(plan: Plan, report: PreflightReport, load_seconds: float | None) -> None:
    """Run verl's own composition, validation and reward loader on a plan.

    Args:
        plan: the run.
        report: gets the findings.
        load_seconds: timeout for the reward's file; None if it does not load anyway.
    """
    installed = installed_verl()
    if installed is None:
        report.unchecked.append(f"{_CHECKS}: verl is not installed.")
        return
    if nearest(installed) != plan.verl:
        report.unchecked.append(
            f"{_CHECKS}: the plan is for verl {plan.verl}, and verl {installed} is installed."
        )
        return
    if plan.module == DAPO_RECIPE:
        report.unchecked.append("the DAPO recipe's own trainer: main_ppo's keys were checked.")
    try:
        composed = compose_config(
            plan.local_arguments(),
            dapo_recipe=plan.release.dapo_recipe,
            load_seconds=load_seconds,
        )
    except DataError as error:
        report.add("error", "verl", "verl", str(error), "Check verl's installation.")
        return
    _add_findings(composed, installed, report)
    if load_seconds is not None and not composed.error:
        _add_reward_findings(plan, composed, installed, report)


def _add_findings(composed: ComposedConfig, installed: str, report: PreflightReport) -> None:
    if composed.error:
        text = f"verl {installed} cannot compose the configuration: {composed.error}"
        report.add("error", "compose", "verl", text)
    elif composed.invalid:
        text = f"validate_config of verl {installed} rejects the configuration: {composed.invalid}"
        report.add("error", "validate", "verl", text, source="verl utils/config.py")


def _add_reward_findings(
    plan: Plan, composed: ComposedConfig, installed: str, report: PreflightReport
) -> None:
    if composed.reward_error:
        text = f"verl cannot load the reward function: {composed.reward_error}"
        report.add("error", "L-51", reward_path_key(plan), text)
    elif plan.recipe.reward.scorer != "verl" and composed.reward is None:
        text = (
            f"verl {installed} does not load a reward function from this configuration: it would "
        )
        text += "train with its own scorer of each data_source, without a warning."
        report.add("error", "reward", reward_path_key(plan), text)
