"""What can be seen to be wrong with a run: rules with thresholds and where they come from.

The rules are in `rules.yaml`. A rule without a documented threshold says that the figure is ours.
Conditions look at the mean of several steps: one odd step is no finding, but for what must never
happen (NaN).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.trainlog import conditions, trend_conditions
from rewardkit.trainlog.conditions import Condition, RuleEvidence
from rewardkit.trainlog.training_run import TrainingRun

Severity: TypeAlias = Literal["error", "warning"]

#: What a rule's condition may be.
_CONDITIONS: Mapping[str, Callable[..., Condition]] = {
    condition.__name__: condition
    for condition in (
        conditions.at_limit,
        conditions.both_zero,
        conditions.falls_to,
        conditions.imbalanced,
        conditions.last_above,
        conditions.last_outside,
        conditions.never_differs,
        conditions.not_a_number,
        conditions.often_above,
        conditions.time_share,
        trend_conditions.grow_together,
        trend_conditions.grows_without_reward,
        trend_conditions.loses_gain,
        trend_conditions.rises_without_validation,
    )
}


@dataclass(frozen=True)
class LogRule:
    """Something that goes wrong.

    Attributes:
        id: a short name.
        severity: `error` if the run is broken, `warning` if it may be fine.
        when: the condition in words, with its threshold.
        condition: the condition.
        title: in a few words, in English and Chinese; so are the next two.
        meaning: what it tells about the run.
        advice: what to change.
        keys: the configuration keys to change, as 0.9 calls them.
        source: where the rule comes from.
        metrics: the curves to look at.
    """

    id: str
    severity: Severity
    when: str
    condition: Condition
    title: Mapping[str, str]
    meaning: Mapping[str, str]
    advice: Mapping[str, str]
    keys: tuple[str, ...]
    source: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class LogFinding:
    """A rule that holds for a run, with its evidence."""

    rule: LogRule
    run: str
    evidence: RuleEvidence

    def plain(self, lang: str = "en") -> dict[str, Any]:
        """The finding as plain values for JSON."""
        rule = self.rule
        return {
            "rule": rule.id,
            "run": self.run,
            "severity": rule.severity,
            "title": rule.title[lang],
            "when": rule.when,
            "steps": list(self.evidence.steps),
            "evidence": [
                {"what": item.what, "steps": list(item.steps), "value": item.value}
                for item in self.evidence.facts
            ],
            "meaning": rule.meaning[lang],
            "advice": rule.advice[lang],
            "keys": list(rule.keys),
            "source": rule.source,
        }


def diagnose(run: TrainingRun) -> list[LogFinding]:
    """What is wrong with a run, errors first; nothing if nothing shows."""
    found = [
        LogFinding(rule, run.name, evidence)
        for rule in rules()
        if (evidence := rule.condition(run))
    ]
    return sorted(found, key=lambda finding: finding.rule.severity)


@cache
def rules() -> tuple[LogRule, ...]:
    """All rules, in the order of the file."""
    import yaml

    text = Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")
    return tuple(map(_rule, yaml.safe_load(text)))


def _rule(fields: dict[str, Any]) -> LogRule:
    make = _CONDITIONS[fields.pop("condition")]
    arguments, options = fields.pop("arguments"), fields.pop("options", {})
    fields |= {name: tuple(fields[name]) for name in ("keys", "metrics")}
    return LogRule(condition=make(*arguments, **options), **fields)
