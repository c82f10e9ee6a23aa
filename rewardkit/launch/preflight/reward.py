"""Checks the reward of a run: verl can call it, it rewards golds, it behaves well, and verl loads it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rewardkit.audit.model import AttackResult
from rewardkit.errors import DataError, RewardkitError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.launch.findings import Severity
from rewardkit.launch.gdpo import ESTIMATOR, REWARD_KEYS
from rewardkit.launch.plan import DAPO_RECIPE, FILTER_SINCE, Plan
from rewardkit.launch.preflight.report import FileFacts, PreflightReport
from rewardkit.launch.rules.algorithm import computed_metrics
from rewardkit.launch.rules.values import MANAGER
from rewardkit.launch.secret_values import reveal_secrets
from rewardkit.launch.verl.compose import compose_config
from rewardkit.launch.verl.releases import installed_verl, nearest
from rewardkit.launch.verl.reward_keys import NEW_KEY
from rewardkit.registry import (
    EVALUATED_BY_VERL,
    VERL_EVALUATES,
    did_you_mean,
    is_path,
    with_function,
)

#: The keyword arguments that verl passes to a reward function.
ARGUMENTS = ("data_source", "solution_str", "ground_truth", "extra_info")

#: The data sources that verl's default_compute_score knows (0.9.1), as shell patterns.
VERL_SOURCES = (
    "openai/gsm8k lighteval/MATH DigitalLearningGmbH/MATH-lighteval HuggingFaceH4/MATH-500 "
    "math_dapo math math_dapo_reasoning aime* codecontests apps codeforces taco "
    "hiyouga/geometry3k searchR1_*"
).split() + sorted(EVALUATED_BY_VERL)


#: What verl itself checks of a plan.
CHECKS = "verl's composition and validate_config"


def reward_path_key(plan: Plan) -> str:
    """Return the key that names the reward function's file in the plan's release."""
    return plan.release.name_of(f"{NEW_KEY}.path")


def check_reward(
    plan: Plan, report: PreflightReport, load_seconds: float = LOAD_TIMEOUT_SECONDS
) -> bool:
    """Check the reward function of a plan on the training files in the report.

    Returns:
        Whether its file can be imported, within `load_seconds`.
    """
    scorer = plan.recipe.reward.scorer
    if scorer == "verl":
        _check_verl_sources(plan, report)
        return True
    if is_path(scorer):
        scorer = with_function(scorer)
        try:
            is_callable = _check_signature(scorer, plan, report, load_seconds)
        except RewardkitError as error:
            fix = "Fix the file or reward.scorer."
            report.add("error", "L-51", reward_path_key(plan), str(error), fix)
            return False
        if plan.get(MANAGER) == "remote":
            report.unchecked.append(
                "the reward in other processes: verl's manager remote pickles what the file has, and "
                "a lock, an open file or a cached function (functools.cache) does not pickle. Put "
                "those into a module that the file imports, or name the reward as pkg://module."
            )
        if not is_callable:  # every other check would fail for the same reason
            return True
    files = report.files_of("train")
    if not files:
        report.unchecked.append(
            "the scorer on golds, and its behaviour: this machine has no training file."
        )
    for file in files:
        _check_behaviour(plan, scorer, file, report, load_seconds)
    return True


def _check_signature(scorer: str, plan: Plan, report: PreflightReport, load_seconds: float) -> bool:
    """Check that verl's keywords and the recipe's options fit the function; return whether so."""
    from rewardkit.audit.scorer_process import ScorerProcess

    options = dict(plan.recipe.reward.options)
    with ScorerProcess(scorer, options, seconds=1, load_seconds=load_seconds) as process:
        signature_error = process.signature_error
        is_async = process.is_async
    if is_async and plan.get(MANAGER) == "remote":
        text = f"{scorer} is async, which the reward manager remote refuses."
        fix = "Set reward.reward_manager.name=naive, or make the function synchronous."
        source = "verl experimental/reward_loop/reward_manager/remote.py"
        report.add("error", "remote-reward", MANAGER, text, fix, source)
    if signature_error:
        keywords = ", ".join(f"{name}=" for name in (*ARGUMENTS, *options))
        text = f"{signature_error}; verl calls it with {keywords}."
        fix = "Add these keywords, and **kwargs for future ones."
        report.add("error", "L-51", reward_path_key(plan), text, fix, "verl trainer/ppo/reward.py")
    return not signature_error


def _check_verl_sources(plan: Plan, report: PreflightReport) -> None:
    """Check that verl's own scorer knows the data sources, and runs no answers of theirs."""
    key = reward_path_key(plan)
    for file in report.files:
        for source in file.data_sources:
            if source in EVALUATED_BY_VERL:
                text = f"{file.path}: rows of {source}: {VERL_EVALUATES}."
                fix = f"Set reward.scorer: math, which is {key}=$(rewardkit path math)."
                report.add("error", "runs-answers", key, text, fix, "verl utils/reward_score")
                continue
            if any(fnmatchcase(source, known) for known in VERL_SOURCES):
                continue
            text = (
                f"{file.path}: verl has no scorer for data_source {source!r}: every sample would "
            )
            text += "raise NotImplementedError."
            fix = "Set a scorer; rewardkit list shows them."
            report.add("error", "L-52", "reward.scorer", text, fix, "verl utils/reward_score")


def _check_behaviour(
    plan: Plan, scorer: str, file: FileFacts, report: PreflightReport, load_seconds: float
) -> None:
    """Check in another process that the scorer rewards golds and behaves well (see `audit`)."""
    from rewardkit.audit.run import check_behaviour

    name = plan.recipe.reward.scorer
    try:
        profiles, results, keys, numeric_keys = check_behaviour(
            scorer,
            Path(file.path).expanduser(),
            options=_scorer_options(plan),
            load_seconds=load_seconds,
        )
    except RewardkitError as error:
        fix = "Fix the scorer or reward.options."
        report.add("error", "L-51", reward_path_key(plan), str(error), fix)
        return
    _check_metric(plan, scorer, keys, report)
    _check_gdpo_keys(plan, scorer, numeric_keys, report)
    silence = next((each for each in results if each.attack == "no_verdict" and each.failed), None)
    if silence is not None and plan.get("reward.reward_model.enable") is True:
        report.unchecked.append(
            f"{name} on golds: the reward model that it asks starts with the run. To check it now, "
            "serve the model and run `rewardkit audit judge --set base_url=URL`."
        )
        return
    for profile in profiles:
        if not profile.rewards_golds and silence is None:
            text = (
                f"{file.path}: {name} does not reward the golds of {profile.data_source!r} in any "
            )
            text += f"form tried: {profile.scores}."
            fix = "Try rewardkit explain on a row, or set another scorer."
            report.add("error", "L-52", reward_path_key(plan), text, fix)
    for result in results:
        if result.failed:
            _add_conduct(plan, result, report)


def _add_conduct(plan: Plan, result: AttackResult, report: PreflightReport) -> None:
    """Add the finding of a check of the scorer's behaviour that failed."""
    name, example = plan.recipe.reward.scorer, ""
    if result.failures:
        failure = result.failures[0]
        example = f" (gold {failure.gold!r}: {failure.response[:60]!r} -> {failure.got})"
    text = f"{name}: {result.about.rstrip('.')}: {result.failed} times{example}."
    severity: Severity = "error" if result.severity == "high" else "warning"
    report.add(severity, "conduct", reward_path_key(plan), text, f"See rewardkit audit {name}.")


def _scorer_options(plan: Plan) -> dict[str, Any]:
    """Return the scorer's options with the values of secrets, as verl passes them."""
    return {
        name: reveal_secrets(value, plan.secrets) if isinstance(value, str) else value
        for name, value in plan.recipe.reward.options.items()
    }


def _check_metric(plan: Plan, scorer: str, keys: tuple[str, ...], report: PreflightReport) -> None:
    """Check that the scorer returns the metric of dynamic sampling."""
    key = "algorithm.filter_groups.metric"
    metric = plan.get(key, "reward")
    is_filtered = plan.get("algorithm.filter_groups.enable") is True
    if is_filtered and keys and metric not in {*keys, "reward", "score", "seq_reward"}:
        is_v1 = plan.release.number >= FILTER_SINCE
        text = (
            f"{scorer} returns {', '.join(keys)}, but not {metric}: verl stops at the first batch."
        )
        other = (*computed_metrics(plan.release), "score")[0]
        fix = f"Return {metric}, or set {key}={other}."
        place = "trainer/ppo/v1/replay_buffer.py" if is_v1 else "recipe/dapo/dapo_ray_trainer.py"
        report.add("error", "L-50", key, text, fix, f"verl {place}")


def _check_gdpo_keys(
    plan: Plan, scorer: str, numeric_keys: tuple[str, ...], report: PreflightReport
) -> None:
    """Check that the scorer returns every part of GDPO as a number."""
    parts = plan.get(REWARD_KEYS)
    if plan.get(ESTIMATOR) != "gdpo" or not isinstance(parts, (list, tuple)):
        return
    missing = [str(part) for part in parts if part not in numeric_keys]
    if missing:
        returned = ", ".join(numeric_keys) or "no dictionary of numbers"
        text = (
            f"{scorer} returns {returned}, but no number for {', '.join(missing)}: verl stops at "
        )
        text += "the first step."
        near = did_you_mean(missing[0], list(numeric_keys))
        fix = f"Return {', '.join(missing)}, or set {REWARD_KEYS} to keys that it returns.{near}"
        report.add("error", "gdpo", REWARD_KEYS, text, fix, "verl trainer/ppo/core_algos.py")


def check_with_verl(plan: Plan, report: PreflightReport, load_seconds: float | None) -> None:
    """Run verl's own composition, validation and reward loader on a plan.

    Args:
        plan: the run.
        report: gets the findings.
        load_seconds: timeout for the reward's file; None if it does not load anyway.
    """
    installed = installed_verl()
    if installed is None:
        report.unchecked.append(f"{CHECKS}: verl is not installed.")
        return
    if nearest(installed) != plan.verl:
        report.unchecked.append(
            f"{CHECKS}: the plan is for verl {plan.verl}, and verl {installed} is installed."
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
    if composed.error:
        text = f"verl {installed} cannot compose the configuration: {composed.error}"
        report.add("error", "compose", "verl", text)
        return
    if composed.invalid:
        text = f"validate_config of verl {installed} rejects the configuration: {composed.invalid}"
        report.add("error", "validate", "verl", text, source="verl utils/config.py")
    if load_seconds is None:
        return
    if composed.reward_error:
        text = f"verl cannot load the reward function: {composed.reward_error}"
        report.add("error", "L-51", reward_path_key(plan), text)
    elif plan.recipe.reward.scorer != "verl" and composed.reward is None:
        text = (
            f"verl {installed} does not load a reward function from this configuration: it would "
        )
        text += "train with its own scorer of each data_source, without a warning."
        report.add("error", "reward", reward_path_key(plan), text)
