"""The rules of the inventory, from published experience and from verl's code."""

from __future__ import annotations

from collections.abc import Mapping

from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules import (
    algorithm,
    batches,
    parallel,
    refusals,
    reward,
    rollout,
    trainer,
)
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.rules.rule import PlanRule, expected_values
from rewardkit.launch.rules.values import PlanValues

__all__ = ["CHECKED_ELSEWHERE", "RULES", "check_rules"]

_MODULES = (algorithm, batches, parallel, refusals, reward, rollout, trainer)

#: The table of expected values, and every function with the decorator `rule`; the numbers of the
#: inventory come first.
RULES: tuple[PlanRule, ...] = tuple(
    sorted(
        (
            *expected_values(),
            *(v for module in _MODULES for v in vars(module).values() if isinstance(v, PlanRule)),
        ),
        key=lambda rule: (not rule.id.startswith("L-"), rule.id),
    )
)

#: Rules of the inventory that need more than a plan, and the command that checks them.
CHECKED_ELSEWHERE: Mapping[str, str] = {
    "L-22": "rewardkit logs: prompt_length/clip_ratio",
    "L-23": "rewardkit logs: response_length/clip_ratio",
    "L-24": "rewardkit check: the parquet's prompts against max_prompt_length, by the tokenizer",
    "L-51": "rewardkit check: verl's loader finds the reward function",
    "L-52": "rewardkit check: every data_source of the parquet has a scorer",
    "L-56": "rewardkit check: the files exist, under paths that all nodes share",
    "L-71": "rewardkit logs: critic/rewards/mean",
    "L-72": "rewardkit logs: global_seqlen/minmax_diff",
    "L-76": "rewardkit recipes import: comments after a backslash, repeated keys, misspelt keys",
}


def check_rules(plan: Plan, facts: RunFacts) -> list[LaunchFinding]:
    """Return the findings about a plan: at most one per rule, errors first."""
    values = PlanValues(plan, facts)
    findings = (rule.finding(values) for rule in RULES)
    return sort_by_severity(finding for finding in findings if finding is not None)
