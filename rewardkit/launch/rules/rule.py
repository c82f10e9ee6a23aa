"""What a rule is: rows of `rules.yaml`, and a function for what no row can say.

The head of `rules.yaml` says what a row is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import ge, gt, le, lt
from string import Formatter
from typing import Any

from rewardkit.finding import Finding, Severity
from rewardkit.launch.rules.values import PlanValues, divisor_up_to, has_type
from rewardkit.launch.verl.releases import LATEST, parse_release
from rewardkit.registry import did_you_mean
from rewardkit.strict_yaml import read_table

#: What a source's name in `rules.yaml` stands for where a finding names the line of verl.
CODE = "verl's code"


@dataclass(frozen=True)
class Violation:
    """What breaks a rule in a plan; without a key or a severity it has those of the rule.

    `refusal` is the check of `refusals.yaml` with which verl stops; in a release without it, nothing is
    wrong. It is "" for what does not depend on such a check.
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

#: The functions of rules, by the rule's id.
CHECKS: dict[str, Check] = {}


def check(rule_id: str) -> Callable[[Check], Check]:
    """Make a function that yields the violations in a plan a part of a rule."""
    return partial(CHECKS.setdefault, rule_id)


@dataclass(frozen=True, kw_only=True)
class PlanRule:
    """One rule of the inventory: its number there, as in L-17, or a short name for later rules.

    `about` and `zh` are the rule in one line. With `every` each violation is a finding, and not only the
    first.
    """

    id: str
    severity: Severity
    key: str
    source: str
    about: str
    zh: str
    rows: "Sequence[Row]" = ()
    every: bool = False

    def findings(self, values: PlanValues) -> Iterator[Finding]:
        """Yield the finding if a plan breaks the rule; keys are named as in the release.

        The first violation counts, those of the function before those of rows. A value that is
        missing or has the wrong type breaks no rule: verl's own composition reports it.
        """
        own = CHECKS[self.id](values) if self.id in CHECKS else ()
        for violation in filter(None, chain(own, (row.violation(values) for row in self.rows))):
            location = refusal(violation.refusal, values.plan.verl)
            if location or not violation.refusal:
                sentences = (violation.key or self.key, violation.message, violation.fix)
                key, text, fix = map(values.plan.release.with_own_names, sentences)
                severity = violation.severity or self.severity
                source = self.source.replace(CODE, location or CODE)
                yield Finding(severity, self.id, key, text, fix, source)
                if not self.every:
                    return


def refusal(name: str, verl: str) -> str:
    """Return the file and line where a release makes a check, as `verl 0.9.1: utils/config.py:124`; else "".

    A snapshot of main has the checks of the newest release.
    """
    table = read_table(__file__, "refusals.yaml")
    release = verl if verl in table else LATEST
    line = table[release].get(name)
    return f"verl {release}: {line}" if line else ""


#: What a value must be; the second argument is what a row says.
TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": lambda value, good: value in _as_list(good),
    "not": lambda value, bad: value not in _as_list(bad),
    "above": gt,
    "at_least": ge,
    "below": lt,
    "at_most": le,
    "between": lambda value, ends: ends[0] <= value <= ends[1],
    "outside": lambda value, ends: not ends[0] <= value <= ends[1],
    "divides": lambda value, total: value < 1 or total % value == 0,
    "multiple_of": lambda value, part: value % part == 0,
    "contains": lambda value, part: part in value,
    "set": lambda value, wanted: (value not in (None, "", [])) == wanted,
}

#: Tests of a value of any type, also of one that is missing; in a row only `set` is.
_ANY_TYPE = {"is", "not", "set"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of `rules.yaml`."""

    key: str
    message: str
    test: str
    good: Any
    best: Any = None
    fix: str = "Set {key}={best}."
    value: str = ""
    when: Mapping[str, Any] = field(default_factory=dict)
    since: str = "0.0.0"
    before: str = "99.0.0"
    severity: Severity | None = None
    explicit: bool = False
    user_set: bool = False
    refusal: str = ""

    def violation(self, values: PlanValues) -> Violation | None:
        """Return the violation if the row applies to a plan that has another value."""
        name, good = self.value or self.key, _named(values, self.good)
        value = values.explicit(name) if self.explicit else values.value(name)
        number = values.plan.release.number
        if (
            (self.test != "set" and not has_type(value, good))
            or not parse_release(self.since) <= number < parse_release(self.before)
            or (self.user_set and not values.is_user_set(self.key))
            or not all(_matches(values, key, wanted) for key, wanted in self.when.items())
            or TESTS[self.test](value, good)
        ):
            return None
        known = _as_list(good)
        best = divisor_up_to(value, good) if self.test == "divides" else known[0]
        words = {
            "key": self.key,
            "value": value,
            "good": known[0],
            "known": ", ".join(map(str, known)),
            "near": did_you_mean(str(value), [str(each) for each in known]),
            "best": best if self.best is None else _named(values, self.best),
            "verl": values.plan.verl,
        }
        template = _Template(words, values)
        try:
            message, fix = template.format(self.message), template.format(self.fix)
        except (LookupError, ValueError):  # a value in it is missing, or has the wrong type
            return None
        return Violation(message, fix, self.key, self.severity, self.refusal)


@dataclass(frozen=True)
class _Template(Formatter):
    """A template's words, and the values that it may name."""

    words: Mapping[str, Any]
    values: PlanValues

    def get_field(self, field_name: str, *_: Any) -> tuple[Any, str]:
        value = self.values.value(field_name, self.words)
        if value is None:
            raise LookupError(field_name)
        return value, field_name


def _matches(values: PlanValues, name: str, wanted: Any) -> bool:
    """Whether a value is the one that a row wants, one of a list, or passes tests."""
    value = values.value(name)
    if not isinstance(wanted, Mapping):
        return any(value is w if isinstance(w, bool) else value == w for w in _as_list(wanted))
    goods = {test: _named(values, good) for test, good in wanted.items()}
    return all(
        (test in _ANY_TYPE or has_type(value, good)) and TESTS[test](value, good)
        for test, good in goods.items()
    )


def _named(values: PlanValues, good: Any) -> Any:
    """Return what a row says, with the values of names (`=batch`)."""
    if isinstance(good, list):
        return [_named(values, each) for each in good]
    return values.value(good[1:]) if isinstance(good, str) and good[:1] == "=" else good


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def read_rules() -> tuple[PlanRule, ...]:
    """Return the rules of `rules.yaml`."""
    table, rules = read_table(__file__, "rules.yaml"), []
    for entry in map(dict, table["rules"]):
        fields = {"key": entry["key"]} | entry.pop("each", {})
        rows = [_row(fields, row) for row in entry.pop("rows", ())]
        for name, text in table["sources"].items():
            entry["source"] = entry["source"].replace(name, text)
        rules.append(PlanRule(about=entry.pop("en"), rows=rows, **entry))
    return tuple(rules)


def _row(each: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    fields = {**each, **row, "when": {**each.get("when", {}), **row.get("when", {})}}
    tests = {name: fields.pop(name) for name in TESTS if name in fields}
    ((test, good),) = ((name, good) for name, good in tests.items() if good is not None)
    return Row(test=test, good=good, **fields)
