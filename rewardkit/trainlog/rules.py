"""Diagnosis of a run: rules with thresholds and the sources of these.

The rules are in `rules.yaml`, those on the onset of reward hacking in `hacking.yaml`. If no source
documents a threshold, the rule says that it is ours.
Conditions use the mean of several steps, so that one odd step is not a finding. The exception is
NaN, which must never occur.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from rewardkit.trainlog import conditions, hacking_conditions
from rewardkit.trainlog.conditions import Judgement, NotEnoughData, RuleEvidence
from rewardkit.trainlog.training_run import TrainingRun

Severity: TypeAlias = Literal["error", "warning"]

#: Fewest steps between the parts of a run that are judged.
MIN_PART_STEPS = 32


@dataclass(frozen=True, kw_only=True)
class LogRule:
    """A problem that a log can show.

    Attributes:
        id: short name.
        severity: `error` if the run is broken, `warning` if it may be fine.
        when: the condition in words, with its threshold, in English and Chinese, as are the texts below.
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
        rule = self.rule
        return {
            "rule": rule.id,
            "run": self.run,
            "severity": rule.severity,
            "title": rule.title[lang],
            "when": rule.when[lang],
            "steps": list(self.evidence.steps),
            "onset": onset_values(self.evidence),
            "phrase": self.evidence.phrase,
            "evidence": [
                {"what": item.what(), "steps": list(item.steps), "value": item.value}
                for item in self.evidence.facts
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
            return {**values, "reason": self.result.text(lang)}
        return {**values, "onset": onset_values(self.result) if self.result else None}

    @property
    def status(self) -> str:
        """`found`, `not found` or `not enough data`."""
        if isinstance(self.result, NotEnoughData):
            return "not enough data"
        return "found" if self.result else "not found"


def onset_values(evidence: RuleEvidence) -> dict[str, Any] | None:
    """Return the step at which a problem began, with its interval, as plain values."""
    onset = evidence.onset
    return {"step": onset.step, "interval": [onset.low, onset.high]} if onset else None


def diagnose(run: TrainingRun) -> list[LogFinding]:
    """Return the findings of a run, errors first."""
    findings = [
        LogFinding(rule, run.name, evidence)
        for rule in rules()
        if isinstance(evidence := _judge(rule, run), RuleEvidence)
    ]
    return sorted(findings, key=lambda finding: finding.rule.severity)


def check_onsets(run: TrainingRun) -> list[OnsetCheck]:
    """Return what each rule on the onset of reward hacking says of a run."""
    return [OnsetCheck(rule, _judge(rule, run)) for rule in rules() if rule.is_onset]


def _judge(rule: LogRule, run: TrainingRun) -> Judgement:
    """Return what a rule says of a run; of an onset, also what it said of the run's earlier parts.

    An onset is clear while the behaviour spreads, and may no longer be when it is everywhere.
    """
    result = rule.condition(run)
    if rule.is_onset and not isinstance(result, RuleEvidence):
        results = (rule.condition(part) for part in _earlier_parts(run))
        result = next((it for it in results if isinstance(it, RuleEvidence)), result)
    return result


def _earlier_parts(run: TrainingRun) -> Iterator[TrainingRun]:
    n = len(run.steps)
    distance = max(MIN_PART_STEPS, 1 << max(n // 8, 1).bit_length())
    for end in range(distance, n, distance):
        # A series ends with the steps, so that the columns need not be cut.
        steps = run.steps[:end]
        samples = tuple(sample for sample in run.samples if sample.step <= steps[-1])
        yield replace(run, steps=steps, samples=samples)


@cache
def rules() -> tuple[LogRule, ...]:
    """Return all rules in the order of the files."""
    return (*_read_rules("rules", conditions), *_read_rules("hacking", hacking_conditions))


def _read_rules(name: str, module: ModuleType) -> Iterator[LogRule]:
    import yaml

    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    for fields in yaml.safe_load(text):
        function = getattr(module, fields.pop("condition"))
        bound = partial(_call, function, fields.pop("arguments", ()), fields.pop("options", {}))
        fields |= {key: tuple(fields[key]) for key in ("keys", "metrics")}
        yield LogRule(condition=bound, is_onset=module is hacking_conditions, **fields)


def _call(
    function: Callable[..., Judgement],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    run: TrainingRun,
) -> Judgement:
    return function(run, *arguments, **options)
