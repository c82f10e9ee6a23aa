"""What a rule is, where the rules come from, and the two ways to write one.

A rule on the values that single settings may have is a row of `expected_values.RULES`; any other
rule is a function with the decorator `rule`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rewardkit.launch.findings import LaunchFinding, Severity
from rewardkit.launch.rules.values import PlanValues
from rewardkit.launch.verl.refusals import refusal
from rewardkit.launch.verl.translate import with_release_keys

BLOG = "blog: verl, DAPO-Math-17k and Qwen2.5-7B (2025-10-23)"
ASCEND = "Ascend guide: verl, DAPO and Qwen3-32B (hiascend.com, 2025-11-07)"
GUIDE = "verl docs/perf/best_practices.rst"
MODELARTS = "ModelArts AscendFactory: verl's parameters (support.huaweicloud.com)"
TUTORIAL = "tutorial: Qwen2.5-0.5B and GSM8K with verl"
CODE = "verl's code"


@dataclass(frozen=True)
class Violation:
    """What breaks a rule in a plan.

    Attributes:
        message: what is wrong, with the numbers; it follows the key and a colon.
        fix: what to do; it names the key and the value.
        key: the setting to change; empty for the key of the rule.
        severity: severity of the finding; None for that of the rule.
        refusal: the check of `refusals.yaml` with which verl stops; "" without one.
    """

    message: str
    fix: str
    key: str = ""
    _: KW_ONLY
    severity: Severity | None = None
    refusal: str = ""


def set_to(
    key: str,
    value: object,
    message: str,
    *,
    extra: str = "",
    severity: Severity | None = None,
    refusal: str = "",
) -> Violation:
    """Return a violation that another value of its key fixes; `extra` follows the value."""
    fix = f"Set {key}={value}{extra}."
    return Violation(message, fix, key, severity=severity, refusal=refusal)


Check = Callable[[PlanValues], Violation | None]


@dataclass(frozen=True, kw_only=True)
class PlanRule:
    """One rule of the inventory.

    Attributes:
        id: the number in the inventory, as in L-17; a short name for later rules.
        severity: severity of its findings, unless a violation has its own.
        key: the setting that the rule is mostly about, by verl 0.9.1's name.
        about: the rule in one line.
        source: the guide, post or code that the rule comes from.
        check: returns the first violation in a plan, or None. A value that is missing or has the
            wrong type never breaks a rule: verl's own composition reports it.
    """

    id: str
    severity: Severity
    key: str
    about: str
    source: str
    check: Check

    def finding(self, values: PlanValues) -> LaunchFinding | None:
        """Return the finding if a plan breaks the rule, else None; keys are named as in the release."""
        violation = self.check(values)
        if violation is None:
            return None
        release = values.plan.release
        place = refusal(violation.refusal, release.verl) if violation.refusal else ""
        return LaunchFinding(
            severity=violation.severity or self.severity,
            rule=self.id,
            key=with_release_keys(violation.key or self.key, release),
            text=with_release_keys(violation.message, release),
            fix=with_release_keys(violation.fix, release),
            source=self.source.replace(CODE, place) if place else self.source,
        )


def rule(rule_id: str, severity: Severity, key: str, *sources: str) -> Callable[[Check], PlanRule]:
    """Make a rule of a function that returns the violation in a plan.

    The first line of the function's docstring says what the rule is.
    """

    def decorate(check: Check) -> PlanRule:
        about = (check.__doc__ or "").partition("\n")[0].rstrip(".")
        return PlanRule(
            id=rule_id,
            severity=severity,
            key=key,
            about=about,
            source="; ".join(sources),
            check=check,
        )

    return decorate


@dataclass(frozen=True)
class Expectation:
    """A setting, and the values that it may have.

    Attributes:
        key: the setting.
        good: the value it should have, a tuple of values (the first is the best), or a condition.
        message: a template for `{value}`, `{good}` and the plan's `{values}`.
        when: the condition on which the rule applies to a plan; by default it always applies.
        read: the reader of the value; it follows from the type of `good`, unless `good` is a
            condition.
        fix: what to do; the default is "Set KEY=GOOD."
        severity: severity of the finding; None for that of the rule.
        explicit: whether only a value that the recipe or the command line sets counts.
        refusal: the check of `refusals.yaml` with which verl stops; the setting is free in releases
            without it.
    """

    key: str
    good: Any
    message: str
    _: KW_ONLY
    when: Callable[[PlanValues], object] = lambda _: True
    read: Callable[..., Any] | None = None
    fix: str = ""
    severity: Severity | None = None
    explicit: bool = False
    refusal: str = ""

    def violation(self, values: PlanValues) -> Violation | None:
        """Return the violation if the plan has another value, of the right type."""
        choices = self.good if isinstance(self.good, tuple) else (self.good,)
        best = choices[0]
        if self.explicit:
            value = values.explicit(self.key)
            value = value if type(value) is type(best) else None
        else:
            value = (self.read or _READERS[type(best)])(values, self.key)
        if value is None or not self.when(values):
            return None
        if best(value) if callable(best) else value in choices:
            return None
        if self.refusal and not refusal(self.refusal, values.plan.verl):
            return None
        message = self.message.format(value=value, good=best, values=values)
        fix = self.fix or f"Set {self.key}={best}."
        return Violation(message, fix, self.key, severity=self.severity, refusal=self.refusal)


#: How a setting is read, by the type of the value it should have.
_READERS: dict[type, Callable[..., Any]] = {
    bool: PlanValues.flag,
    int: PlanValues.integer,
    float: PlanValues.number,
    str: PlanValues.text,
}


def expected(
    rule_id: str, severity: Severity, source: str, about: str, *expectations: Expectation
) -> PlanRule:
    """Make a rule of expectations; the first one that a plan does not meet breaks it."""

    def check(values: PlanValues) -> Violation | None:
        violations = (expectation.violation(values) for expectation in expectations)
        return next((violation for violation in violations if violation), None)

    key = expectations[0].key
    return PlanRule(id=rule_id, severity=severity, key=key, about=about, source=source, check=check)
