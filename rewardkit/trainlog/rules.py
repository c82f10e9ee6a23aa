"""Diagnosis of a run: rules with thresholds and the sources of these.

The rules are in `rules.yaml`. If no source documents a threshold, the rule says that it is ours.
Conditions use the mean of several steps, so that one odd step is not a finding. The exception is
NaN, which must never occur.
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

#: Conditions by the name that `rules.yaml` uses.
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


@dataclass(frozen=True, kw_only=True)
class LogRule:
    """A problem that a log can show.

    Attributes:
        id: short name.
        severity: `error` if the run is broken, `warning` if it may be fine.
        when: the condition in words, with its threshold.
        condition: the condition.
        title: a few words, in English and Chinese, as the next two.
        meaning: what the problem means for the run.
        advice: what to change.
        keys: configuration keys to change, under their names in 0.9.
        source: source of the rule and of its threshold.
        metrics: metrics to look at.
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

    def summary(self, lang: str = "en") -> dict[str, Any]:
        """Return the finding as plain values for JSON."""
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
    """Return the findings of a run, errors first."""
    findings = [
        LogFinding(rule, run.name, evidence)
        for rule in rules()
        if (evidence := rule.condition(run))
    ]
    return sorted(findings, key=lambda finding: finding.rule.severity)


@cache
def rules() -> tuple[LogRule, ...]:
    """Return all rules in the order of the file."""
    import yaml

    text = Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")
    return tuple(map(_rule, yaml.safe_load(text)))


def _rule(fields: dict[str, Any]) -> LogRule:
    make = _CONDITIONS[fields.pop("condition")]
    arguments, options = fields.pop("arguments"), fields.pop("options", {})
    fields |= {name: tuple(fields[name]) for name in ("keys", "metrics")}
    return LogRule(condition=make(*arguments, **options), **fields)
