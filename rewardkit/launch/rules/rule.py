"""What a rule is, where the rules come from, and the two ways to write one.

A rule on the values that single settings may have is an entry of `expected_values.yaml`; any other
rule is a function with the decorator `rule`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.launch.findings import LaunchFinding, Severity
from rewardkit.launch.rules.values import PlanValues
from rewardkit.launch.verl.key_renames import load_table
from rewardkit.launch.verl.releases import parse_release
from rewardkit.launch.verl.translate import with_release_keys

CODE = "verl's code"

SOURCES = {
    "BLOG": "blog: verl, DAPO-Math-17k and Qwen2.5-7B (2025-10-23)",
    "ASCEND": "Ascend guide: verl, DAPO and Qwen3-32B (hiascend.com, 2025-11-07)",
    "GUIDE": "verl docs/perf/best_practices.rst",
    "MODELARTS": "ModelArts AscendFactory: verl's parameters (support.huaweicloud.com)",
    "TUTORIAL": "tutorial: Qwen2.5-0.5B and GSM8K with verl",
    "CODE": CODE,
}


@dataclass(frozen=True)
class Violation:
    """What breaks a rule in a plan.

    Attributes:
        message: what is wrong, with the numbers; it follows the key and a colon.
        fix: what to do; it names the key and the value.
        key: the setting to change; empty for the key of the rule.
        severity: severity of the finding; None for that of the rule.
        refusal: the check of `refusals.yaml` with which verl stops; in a release without it, nothing is
            wrong. "" for what does not depend on such a check.
    """

    message: str
    fix: str
    key: str = ""
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
    return Violation(message, f"Set {key}={value}{extra}.", key, severity, refusal)


Violations = Iterator[Violation]
Check = Callable[[PlanValues], Violations]


@dataclass(frozen=True)
class PlanRule:
    """One rule of the inventory.

    Attributes:
        id: the number in the inventory, as in L-17; a short name for later rules.
        severity: severity of its findings, unless a violation has its own.
        key: the setting that the rule is mostly about, by verl 0.9.1's name.
        source: the guide, post or code that the rule comes from.
        about: the rule in one line.
        check: yields what is wrong with a plan; the first violation counts. A value that is missing or
            has the wrong type never breaks a rule: verl's own composition reports it.
    """

    id: str
    severity: Severity
    key: str
    source: str
    about: str
    check: Check

    def finding(self, values: PlanValues) -> LaunchFinding | None:
        """Return the finding if a plan breaks the rule, else None; keys are named as in the release."""
        release = values.plan.release
        for violation in self.check(values):
            place = values.refusal(violation.refusal)
            if place or not violation.refusal:
                return LaunchFinding(
                    severity=violation.severity or self.severity,
                    rule=self.id,
                    key=with_release_keys(violation.key or self.key, release),
                    text=with_release_keys(violation.message, release),
                    fix=with_release_keys(violation.fix, release),
                    source=self.source.replace(CODE, place or CODE),
                )
        return None


def rule(rule_id: str, severity: Severity, key: str, source: str) -> Callable[[Check], PlanRule]:
    """Make a rule of a function that yields the violations in a plan.

    The first line of the function's docstring says what the rule is. `source` may have names of
    `SOURCES`.
    """

    def decorate(check: Check) -> PlanRule:
        about = (check.__doc__ or "").partition("\n")[0].rstrip(".")
        return PlanRule(rule_id, severity, key, _sources(source), about, check)

    return decorate


def _sources(names: str) -> str:
    return re.sub(r"\b[A-Z]{4,}\b", lambda match: SOURCES.get(match[0], match[0]), names)


@dataclass(frozen=True)
class Row:
    """A row of `expected_values.yaml`, which says what the fields mean."""

    key: str
    message: str
    test: str
    good: Any
    best: Any = None
    fix: str = "Set {key}={best}."
    when: Mapping[str, Any] = field(default_factory=dict)
    later: Mapping[str, list[str]] = field(default_factory=dict)
    since: str = "0.0.0"
    before: str = "99.0.0"
    severity: Severity | None = None
    explicit: bool = False
    user_set: bool = False
    refusal: str = ""

    def violation(self, values: PlanValues) -> Violation | None:
        """Return the violation if the plan has another value, of the right type."""
        listed = self.good if isinstance(self.good, list) else [self.good]
        value = self._value(values, type(listed[0]))
        known = listed + [
            name for v, names in self.later.items() if self._is(values, v) for name in names
        ]
        if value is None or _TESTS[self.test](value, known) or not self._applies(values):
            return None
        best = known[0] if self.best is None else self.best
        words = {"value": value, "good": known[0], "known": ", ".join(map(str, known))}
        words |= {"verl": values.plan.verl, "values": values, "key": self.key, "best": best}
        return Violation(
            self.message.format(**words),
            self.fix.format(**words),
            self.key,
            self.severity,
            self.refusal,
        )

    def _value(self, values: PlanValues, kind: type) -> Any:
        if self.explicit:
            value = values.explicit(self.key)
            return value if type(value) is kind else None
        return _READERS[kind](values, self.key)

    def _applies(self, values: PlanValues) -> bool:
        is_release = self._is(values, self.since) and not self._is(values, self.before)
        is_users = not self.user_set or values.is_user_set(self.key)
        return (
            is_release
            and is_users
            and all(values.matches(name, wanted) for name, wanted in self.when.items())
        )

    def _is(self, values: PlanValues, since: str) -> bool:
        return values.is_since(*parse_release(since))


_TESTS: Mapping[str, Callable[[Any, list[Any]], bool]] = {
    "is": lambda value, good: value in good,
    "not": lambda value, good: value not in good,
    "above": lambda value, good: value > good[0],
    "at_least": lambda value, good: value >= good[0],
    "below": lambda value, good: value < good[0],
    "between": lambda value, good: good[0] <= value <= good[1],
}

#: How a setting is read, by the type of the value it should have.
_READERS: Mapping[type, Callable[..., Any]] = {
    bool: PlanValues.flag,
    int: PlanValues.integer,
    float: PlanValues.number,
    str: PlanValues.text,
}


def _row(fields: Mapping[str, Any], each: Mapping[str, Any]) -> Row:
    when = {**each.get("when", {}), **fields.get("when", {})}
    merged = {**each, **fields, "when": when}
    test = next(name for name in _TESTS if name in merged)
    return Row(test=test, good=merged.pop(test), **merged)


def expected_values() -> Iterator[PlanRule]:
    """Yield the rules of `expected_values.yaml`."""
    for entry in load_table(__file__, "expected_values.yaml"):
        rows = [_row(fields, entry.get("each", {})) for fields in entry["rows"]]

        def check(values: PlanValues, rows: list[Row] = rows) -> Violations:
            return (found for row in rows if (found := row.violation(values)))

        source = _sources(entry["source"])
        yield PlanRule(entry["id"], entry["severity"], rows[0].key, source, entry["about"], check)
