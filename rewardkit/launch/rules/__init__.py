"""The rules of the inventory: what experience and verl's code say against a plan."""

from __future__ import annotations

from collections.abc import Mapping

from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules import (
    algorithm,
    batch,
    data,
    lengths,
    losses,
    megatron,
    memory,
    micro,
    npu,
    parallel,
    rollout,
    sampling,
    trainer,
)
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import Rule

__all__ = ["ELSEWHERE", "RULES", "check_rules"]


def _place(rule: Rule) -> tuple[bool, str]:
    """The inventory's order; rules that came later after it."""
    return not rule.id.startswith("L-"), rule.id


RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *algorithm.RULES,
            *batch.RULES,
            *data.RULES,
            *lengths.RULES,
            *losses.RULES,
            *megatron.RULES,
            *memory.RULES,
            *micro.RULES,
            *npu.RULES,
            *parallel.RULES,
            *rollout.RULES,
            *sampling.RULES,
            *trainer.RULES,
        ),
        key=_place,
    )
)

#: Rules of the inventory that need more than a plan, and who looks at them.
ELSEWHERE: Mapping[str, str] = {
    "L-22": "rewardkit logs: prompt_length/clip_ratio",
    "L-23": "rewardkit logs: response_length/clip_ratio",
    "L-24": "rewardkit check: prompts of the parquet against max_prompt_length, with the tokenizer",
    "L-51": "rewardkit check: the reward is loaded the way verl loads it",
    "L-52": "rewardkit check: every data_source of the parquet has a scorer",
    "L-56": "rewardkit check: the files are there, under paths that all nodes share",
    "L-71": "rewardkit logs: critic/rewards/mean",
    "L-72": "rewardkit logs: global_seqlen/minmax_diff",
    "L-76": "rewardkit recipes import: comments after a backslash, keys twice, misspelt keys",
}


def check_rules(plan: Plan, facts: Facts) -> list[LaunchFinding]:
    """What the rules say against a plan: at most one finding for each, the worst first."""
    findings = (rule.finding(plan, facts) for rule in RULES)
    return sort_by_severity(finding for finding in findings if finding is not None)
