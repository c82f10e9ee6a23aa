"""The rules of the inventory, from published experience and from verl's code."""

from collections.abc import Mapping

from rewardkit.finding import Finding, sort_by_severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules import checks  # noqa: F401 - it registers the functions of rules
from rewardkit.launch.rules.facts import RunFacts
from rewardkit.launch.rules.rule import read_rules
from rewardkit.launch.rules.values import PlanValues
from rewardkit.strict_yaml import read_table

__all__ = ["CHECKED_ELSEWHERE", "RULES", "check_rules"]

#: All rules, the numbers of the inventory first.
RULES = read_rules()
#: Rules of the inventory that need more than a plan, and the command that checks them.
CHECKED_ELSEWHERE: Mapping[str, str] = read_table(__file__, "rules.yaml")["checked_elsewhere"]


def check_rules(plan: Plan, facts: RunFacts) -> list[Finding]:
    """Return the findings about a plan, errors first: at most one of most rules."""
    values = PlanValues(plan, facts)
    return sort_by_severity(finding for rule in RULES for finding in rule.findings(values))
