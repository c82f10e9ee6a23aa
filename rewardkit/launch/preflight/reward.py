"""The reward of a run: callable as verl calls it, right about the golds, and well behaved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import LaunchFinding, Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.files import FileFacts
from rewardkit.launch.secret_values import reveal
from rewardkit.registry import is_path

if TYPE_CHECKING:
    from rewardkit.audit.model import AttackResult, ScorerProfile

KEY = "reward.custom_reward_function.path"

#: What verl gives a reward function, by name.
ARGUMENTS = ("data_source", "solution_str", "ground_truth", "extra_info")

#: The data sources that verl's default_compute_score knows (0.9.1); a star for a prefix.
VERL_SOURCES = (
    "openai/gsm8k",
    "lighteval/MATH",
    "DigitalLearningGmbH/MATH-lighteval",
    "HuggingFaceH4/MATH-500",
    "math_dapo",
    "math",
    "math_dapo_reasoning",
    "aime*",
    "numina_*",
    "codecontests",
    "apps",
    "codeforces",
    "taco",
    "hiyouga/geometry3k",
    "searchR1_*",
)


def check_reward(
    plan: Plan, files: list[FileFacts], unchecked: list[str]
) -> Iterator[LaunchFinding]:
    """Findings about the reward.

    Args:
        plan: the run.
        files: what the parquet files are; those that could not be read are not among them.
        unchecked: is given a line for what could not be looked at.
    """
    scorer = plan.recipe.reward.scorer
    if scorer == "verl":
        yield from _verl_s_own(files)
        return
    if is_path(scorer):
        try:
            yield from _signature(scorer, plan)
        except RewardkitError as error:
            yield LaunchFinding("error", "L-51", KEY, str(error), "Mend the file or reward.scorer.")
            return
    train = [file for file in files if file.role == "train"]
    if not train:
        unchecked.append("the scorer on the golds, and its conduct: no training file is here.")
        return
    for file in train:
        yield from _conduct(plan, file)


def _signature(scorer: str, plan: Plan) -> Iterator[LaunchFinding]:
    """Whether verl's keywords and the recipe's options fit the function."""
    from rewardkit.audit.scorer_process import ScorerProcess

    spec, options = (
        scorer if ":" in scorer else f"{scorer}:compute_score",
        plan.recipe.reward.options,
    )
    with ScorerProcess(
        spec, options, seconds=1
    ) as process:  # here an import that hangs would hang all
        signature_error = process.signature_error
    if signature_error:
        given = ", ".join(f"{name}=" for name in (*ARGUMENTS, *options))
        yield LaunchFinding(
            "error",
            "L-51",
            KEY,
            f"{scorer}: {signature_error}; verl calls it with {given}",
            "Take these keywords, and **kwargs for those to come.",
            "verl trainer/ppo/reward.py",
        )


def _verl_s_own(files: list[FileFacts]) -> Iterator[LaunchFinding]:
    for file in files:
        for source in file.data_sources:
            if not any(_fits(source, known) for known in VERL_SOURCES):
                yield LaunchFinding(
                    "error",
                    "L-52",
                    "reward.scorer",
                    f"{file.path}: verl has no scorer for data_source {source!r}: every sample "
                    "would raise NotImplementedError.",
                    "Name a scorer: rewardkit list.",
                    "verl utils/reward_score",
                )


def _fits(source: str, known: str) -> bool:
    return source.startswith(known[:-1]) if known.endswith("*") else source == known


def _conduct(plan: Plan, file: FileFacts) -> Iterator[LaunchFinding]:
    """What the audit says of conduct, and whether golds are paid; in a process of its own."""
    from rewardkit.audit.run import check_behaviour

    reward = plan.recipe.reward
    scorer = reward.scorer
    if is_path(scorer) and ":" not in scorer:
        scorer = f"{scorer}:compute_score"
    try:
        profiles, results, keys = check_behaviour(
            scorer, Path(file.path).expanduser(), options=_options(plan)
        )
    except RewardkitError as error:
        yield LaunchFinding("error", "L-51", KEY, str(error), "Mend the scorer or reward.options.")
        return
    yield from _metric(plan, scorer, keys)
    for profile in profiles:
        if not profile.rewards_golds:
            yield _unpaid(profile, file, reward.scorer)
    yield from (_behaviour(each, reward.scorer) for each in results if each.failed)


def _options(plan: Plan) -> dict[str, Any]:
    """The scorer's options, secrets too: it is called here as verl calls it."""
    return {
        name: reveal(value, plan.secrets) if isinstance(value, str) else value
        for name, value in plan.recipe.reward.options.items()
    }


def _metric(plan: Plan, scorer: str, keys: Sequence[str]) -> Iterator[LaunchFinding]:
    metric = plan.get("algorithm.filter_groups.metric", "reward")
    filtered = plan.get("algorithm.filter_groups.enable") is True
    if filtered and keys and metric not in {*keys, "reward", "score", "seq_reward"}:
        yield LaunchFinding(
            "error",
            "L-50",
            "algorithm.filter_groups.metric",
            f"{metric}: {scorer} returns {', '.join(keys)} and no {metric}: verl ends at the first "
            "batch.",
            f"Return {metric}, or set metric: reward.",
            "verl 0.9.1, trainer/ppo/v1/replay_buffer.py",
        )


def _unpaid(profile: ScorerProfile, file: FileFacts, scorer: str) -> LaunchFinding:
    return LaunchFinding(
        "error",
        "L-52",
        KEY,
        f"{file.path}: {scorer} pays the gold of {profile.data_source!r} rows "
        f"{profile.right:g} and a wrong answer {profile.wrong:g}, in every form tried.",
        "Look: rewardkit explain, or name the right scorer.",
    )


def _behaviour(finding: AttackResult, scorer: str) -> LaunchFinding:
    severity: Severity = "error" if finding.severity == "high" else "warning"
    example = finding.failures[0] if finding.failures else None
    told = f" ({example.response[:60]!r} -> {example.got})" if example else ""
    return LaunchFinding(
        severity,
        "conduct",
        KEY,
        f"{scorer}: {finding.about.rstrip('.')}: {finding.failed} times{told}.",
        f"Look: rewardkit audit {scorer}.",
    )
