"""Diagnosis of a run: rules with thresholds and the sources of these.

The rules are in `rules.yaml`, those on the onset of reward hacking in `hacking.yaml`.
Conditions use the mean of several steps, so that one odd step is not a finding. The exception is
NaN, which must never occur.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

from rewardkit.strict_yaml import read_table
from rewardkit.trainlog import conditions, hacking_conditions
from rewardkit.trainlog.conditions import Judgement, NotEnoughData, RuleEvidence
from rewardkit.trainlog.training_run import TrainingRun

Severity: TypeAlias = Literal["error", "warning"]

#: Fewest steps between the parts of a run that are judged.
MIN_PART_STEPS = 32


@dataclass(frozen=True, kw_only=True)
class LogRule:
    """A problem that a log can show; texts are in English and Chinese.

    Attributes:
        id: short name.
        severity: `error` if the run is broken, `warning` if it may be fine.
        when: the condition in words, with its threshold.
        condition: the condition.
        title: a few words.
        meaning: what the problem means for the run.
        advice: what to change.
        keys: configuration keys to change, under their names in 0.9.
        source: source of the rule and of its threshold.
        metrics: metrics to look at.
        is_onset: whether it looks for the onset of reward hacking, and may lack data for that.
    """

    id: str
    severity: Severity
    when: Mapping[str, str]
    condition: Callable[[TrainingRun], Judgement]
    title: Mapping[str, str]
    meaning: Mapping[str, str]
    advice: Mapping[str, str]
    keys: tuple[str, ...]
    source: Mapping[str, str]
    metrics: tuple[str, ...]
    is_onset: bool = False


@dataclass(frozen=True)
class LogFinding:
    """A rule that holds for a run, with its evidence."""

    rule: LogRule
    run: str
    evidence: RuleEvidence

    def summary(self, lang: str = "en") -> dict[str, Any]:
        """Return the finding as plain values for JSON."""
        rule, evidence = self.rule, self.evidence
        return {
            "rule": rule.id,
            "run": self.run,
            "severity": rule.severity,
            "title": rule.title[lang],
            "when": rule.when[lang],
            "steps": list(evidence.steps),
            "onset": evidence.onset_values,
            "phrase": evidence.phrase,
            "evidence": [
                {"what": item.what(), "steps": list(item.steps), "value": item.value}
                for item in evidence.facts
            ],
            "meaning": rule.meaning[lang],
            "advice": rule.advice[lang],
            "keys": list(rule.keys),
            "source": rule.source["en"],
        }


@dataclass(frozen=True)
class OnsetCheck:
    """What a rule on the onset of reward hacking says of a run: evidence, nothing, or why neither."""

    rule: LogRule
    result: Judgement

    def summary(self, lang: str = "en") -> dict[str, Any]:
        """Return the check as plain values for JSON."""
        values = {"rule": self.rule.id, "title": self.rule.title[lang], "status": self.status}
        if isinstance(self.result, NotEnoughData):
            return {**values, "reason": self.text(lang)}
        return {**values, "onset": self.result.onset_values if self.result else None}

    @property
    def status(self) -> str:
        """`found`, `not found` or `not enough data`."""
        if isinstance(self.result, NotEnoughData):
            return "not enough data"
        return "found" if self.result else "not found"

    def text(self, lang: str) -> str:
        """Return the onset, or why the rule names none."""
        return self.result.text(lang) if self.result else ""


class Diagnosis(NamedTuple):
    """What the rules say of a run: findings, errors first, and each check for an onset of hacking."""

    findings: list[LogFinding]
    onsets: list[OnsetCheck]


def diagnose(run: TrainingRun) -> Diagnosis:
    """Judge a run by all rules."""
    results = [(rule, _judge(rule, run)) for rule in rules()]
    findings = [
        LogFinding(rule, run.name, result)
        for rule, result in results
        if isinstance(result, RuleEvidence)
    ]
    onsets = [OnsetCheck(rule, result) for rule, result in results if rule.is_onset]
    return Diagnosis(sorted(findings, key=lambda finding: finding.rule.severity), onsets)


def _judge(rule: LogRule, run: TrainingRun) -> Judgement:
    """Return what a rule says of a run; of an onset, also what it said of the run's earlier parts.

    An onset is clear while the behaviour spreads, and may no longer be when it is everywhere.
    """
    result, n = rule.condition(run), len(run.steps)
    if not rule.is_onset or isinstance(result, RuleEvidence):
        return result
    distance = max(MIN_PART_STEPS, 1 << max(n // 8, 1).bit_length())
    for end in range(distance, n, distance):
        # A series ends with the steps, so that the columns need not be cut.
        steps = run.steps[:end]
        samples = tuple(sample for sample in run.samples if sample.step <= steps[-1])
        part = rule.condition(replace(run, steps=steps, samples=samples))
        if isinstance(part, RuleEvidence):
            return part
    return result


@cache
def rules() -> tuple[LogRule, ...]:
    """Return all rules in the order of the files."""
    return (*_read_rules("rules", conditions), *_read_rules("hacking", hacking_conditions))


def _read_rules(name: str, module: ModuleType) -> Iterator[LogRule]:
    for fields in map(dict, read_table(__file__, f"{name}.yaml")):
        function = getattr(module, fields.pop("condition"))
        arguments, options = fields.pop("arguments", ()), fields.pop("options", {})
        fields["condition"] = partial(_condition, function, arguments, options)
        fields |= {key: tuple(fields[key]) for key in ("keys", "metrics")}
        yield LogRule(is_onset=module is hacking_conditions, **fields)


def _condition(
    function: Callable[..., Judgement],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    run: TrainingRun,
) -> Judgement:
    return function(run, *arguments, **options)
