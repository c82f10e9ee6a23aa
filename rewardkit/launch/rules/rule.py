"""What a rule is, and where the rules come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewardkit.launch.findings import LaunchFinding, Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts

BLOG = "blog: verl, DAPO-Math-17k and Qwen2.5-7B (2025-10-23)"
ASCEND = "Ascend guide: verl, DAPO and Qwen3-32B (hiascend.com, 2025-11-07)"
GUIDE = "verl docs/perf/best_practices.rst"
MODELARTS = "ModelArts AscendFactory: verl's parameters (support.huaweicloud.com)"
TUTORIAL = "tutorial: Qwen2.5-0.5B and GSM8K with verl"
CODE = "verl's code"


@dataclass(frozen=True)
class Case:
    """A plan that breaks a rule.

    Attributes:
        text: what is the case, with the numbers.
        fix: what to do; it names the key and the value.
        key: to change, where it is not the rule's own.
        severity: where it is not the rule's own.
    """

    text: str
    fix: str
    key: str = ""
    severity: Severity | None = None


@dataclass(frozen=True)
class Rule:
    """One rule of the inventory.

    Attributes:
        id: as in L-17; a short name for those that came later.
        severity: of its findings, unless a case has its own.
        key: that it is mostly about, by verl 0.9.1's name.
        about: the rule in a line.
        source: where it comes from.
        check: the first case of a plan that breaks it. A value that is missing or of the wrong
            type breaks no rule: verl's own composition reports it.
    """

    id: str
    severity: Severity
    key: str
    about: str
    source: str
    check: Callable[[Plan, Facts], Case | None]

    def finding(self, plan: Plan, facts: Facts) -> LaunchFinding | None:
        """What is wrong with a plan by this rule; None for nothing."""
        case = self.check(plan, facts)
        if case is None:
            return None
        severity = case.severity or self.severity
        return LaunchFinding(
            severity, self.id, case.key or self.key, case.text, case.fix, self.source
        )


def unless(value: object, *good: object) -> bool:
    """Whether a value is known and none of those."""
    return value is not None and value not in good
