"""Checks the reward of a run: verl can call it, it rewards golds, it behaves well, and verl loads it."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, RewardkitError
from rewardkit.finding import Severity
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS
from rewardkit.launch.findings import FileFacts, PreflightReport
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.rules.values import MANAGER
from rewardkit.launch.secret_values import reveal_options
from rewardkit.launch.verl.compose import compose_config
from rewardkit.launch.verl.releases import NEW_KEY, installed_verl, nearest
from rewardkit.registry import DATA_SOURCES, VERL_EVALUATES, is_path, with_function
from rewardkit.scorers.options import VERL_PARAMETERS

#: The data sources that verl's default_compute_score knows (0.9.1), as shell patterns.
VERL_SOURCES = (
    "openai/gsm8k lighteval/MATH DigitalLearningGmbH/MATH-lighteval HuggingFaceH4/MATH-500 "
    "math_dapo math math_dapo_reasoning aime* codecontests apps codeforces taco hiyouga/geometry3k"
).split() + [source for source in DATA_SOURCES if source.startswith(("numina_", "searchR1_"))]

#: What verl itself checks of a plan.
CHECKS = "verl's composition and validate_config"


def reward_path_key(plan: Plan) -> str:
    """Return the key that names the reward function's file in the plan's release."""
    return plan.release.name_of(f"{NEW_KEY}.path")


def check_reward(
    plan: Plan, report: PreflightReport, load_seconds: float = LOAD_TIMEOUT_SECONDS
) -> dict[str, Any] | None:
    """Check the reward function of a plan on the training files in the report.

    Return the facts of `RunFacts` that it shows; None if the function cannot be loaded.
    """
    facts = dict[str, Any]()
    scorer = plan.recipe.reward.scorer
    if scorer == "verl":
        _check_verl_sources(plan, report)
        return facts
    if is_path(scorer):
        scorer = with_function(scorer)
        try:
            is_callable = _check_signature(scorer, plan, report, load_seconds)
        except RewardkitError as error:
            fix = "Fix the file or reward.scorer."
            report.add("error", "L-51", reward_path_key(plan), str(error), fix)
            return None
        if plan.get(MANAGER) == "remote":
            report.unchecked.append(
                "the reward in other processes: verl's manager remote pickles what the file has, and "
                "a lock, an open file or a cached function (functools.cache) does not pickle. Put "
                "those into a module that the file imports, or name the reward as pkg://module."
            )
        if not is_callable:  # every other check would fail for the same reason
            return facts
    files = [file for file in report.files if file.role == "train"]
    if not files:
        report.unchecked.append(
            "the scorer on golds, and its behaviour: this machine has no training file."
        )
    for file in files:
        facts = _check_behaviour(plan, scorer, file, report, load_seconds) or facts
    return facts


def _check_signature(scorer: str, plan: Plan, report: PreflightReport, load_seconds: float) -> bool:
    """Check that verl's keywords and the recipe's options fit the function; return whether so."""
    from rewardkit.audit.scorer_process import ScorerProcess

    options = dict(plan.recipe.reward.options)
    with ScorerProcess(scorer, options, seconds=1, load_seconds=load_seconds) as process:
        problem, is_async = process.signature_error, process.is_async
    if is_async and plan.get(MANAGER) == "remote":
        text = f"{scorer} is async, which the reward manager remote refuses."
        fix = f"Set {MANAGER}=naive, or make the function synchronous."
        source = "verl experimental/reward_loop/reward_manager/remote.py"
        report.add("error", "remote-reward", MANAGER, text, fix, source)
    if problem:
        keywords = ", ".join(f"{name}=" for name in (*VERL_PARAMETERS, *options))
        text = f"{problem}; verl calls it with {keywords}."
        fix = "Add these keywords, and **kwargs for future ones."
        report.add("error", "L-51", reward_path_key(plan), text, fix, "verl trainer/ppo/reward.py")
    return not problem


def _check_verl_sources(plan: Plan, report: PreflightReport) -> None:
    """Check that verl's own scorer knows the data sources, and runs no answers of theirs."""
    key, code = reward_path_key(plan), "verl utils/reward_score"
    if not report.files:
        report.unchecked.append(
            "whether verl's own reward knows the data sources, and runs their answers as code: this "
            "machine has no file of them."
        )
    for file in report.files:
        for source in file.data_sources:
            for message in (m for m, sources in VERL_EVALUATES.items() if source in sources):
                text = f"{file.path}: rows of {source}: {message}."
                fix = f"Set reward.scorer: auto, which is {key}=$(rewardkit path auto)."
                report.add("error", "runs-answers", key, text, fix, code)
            if not any(fnmatchcase(source, known) for known in VERL_SOURCES):
                text = f"{file.path}: verl has no scorer for data_source {source!r}: every sample "
                text += "would raise NotImplementedError."
                fix = "Set a scorer; rewardkit list shows them."
                report.add("error", "L-52", "reward.scorer", text, fix, code)


def _check_behaviour(
    plan: Plan, scorer: str, file: FileFacts, report: PreflightReport, load_seconds: float
) -> dict[str, Any]:
    """Check in another process that the scorer rewards golds and behaves well (see `audit`)."""
    from rewardkit.audit.run import check_behaviour

    name, key = plan.recipe.reward.scorer, reward_path_key(plan)
    try:
        profiles, results, keys, numeric_keys = check_behaviour(
            scorer,
            Path(file.path),
            options=reveal_options(plan.recipe.reward.options, plan.secrets),
            load_seconds=load_seconds,
        )
    except RewardkitError as error:
        report.add("error", "L-51", key, str(error), "Fix the scorer or reward.options.")
        return {}
    facts = {"reward_keys": [*keys], "numeric_keys": [*numeric_keys]}
    is_silent = any(result.attack == "no_verdict" and result.failed for result in results)
    if is_silent and plan.get("reward.reward_model.enable") is True:
        report.unchecked.append(
            f"{name} on golds: the reward model that it asks starts with the run. To check it now, "
            "serve the model and run `rewardkit audit judge --set base_url=URL`."
        )
        return facts
    for profile in profiles:
        if not profile.rewards_golds and not is_silent:
            text = f"{file.path}: {name} does not reward the golds of {profile.data_source!r} in "
            text += f"any form tried: {profile.scores}."
            fix = "Try rewardkit explain on a row, or set another scorer."
            report.add("error", "L-52", key, text, fix)
    for result in results:
        if result.failed:
            severity: Severity = "error" if result.severity == "high" else "warning"
            examples = [
                f" (gold {failure.gold!r}: {failure.response[:60]!r} -> {failure.got})"
                for failure in result.failures[:1]
            ]
            text = f"{name}: {result.about.rstrip('.')}: {result.failed} times{''.join(examples)}."
            report.add(severity, "conduct", key, text, f"See rewardkit audit {name}.")
    return facts


def check_with_verl(plan: Plan, report: PreflightReport, load_seconds: float | None) -> None:
    """Run verl's own composition, validation and reward loader; not the loader without `load_seconds`."""
    installed = installed_verl()
    if installed is None or nearest(installed) != plan.verl:
        reason = f"the plan is for verl {plan.verl}, and verl {installed} is installed."
        reason = reason if installed else "verl is not installed."
        report.unchecked.append(f"{CHECKS}: {reason}")
        return
    if plan.module == DAPO_RECIPE:
        report.unchecked.append("the DAPO recipe's own trainer: main_ppo's keys were checked.")
    try:
        composed = compose_config(
            plan.local_arguments(), dapo_recipe=plan.release.dapo_recipe, load_seconds=load_seconds
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
    if composed.reward_error:
        text = f"verl cannot load the reward function: {composed.reward_error}"
        report.add("error", "L-51", reward_path_key(plan), text)
    elif load_seconds and plan.recipe.reward.scorer != "verl" and composed.reward is None:
        text = (
            f"verl {installed} does not load a reward function from this configuration: it would "
        )
        text += "train with its own scorer of each data_source, without a warning."
        report.add("error", "reward", reward_path_key(plan), text)
