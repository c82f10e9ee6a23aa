"""Scoring a unit: what every engine runs, in whatever process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from rewardkit.rollouts import apart
from rewardkit.rollouts.files import Unit
from rewardkit.rollouts.prompts import group_of, prompt_of
from rewardkit.rollouts.read import Sample, Unread, samples_of
from rewardkit.rollouts.tally import Tally
from rewardkit.scorers.base import Score, Scorer, to_verl

#: Lines that could not be scored and are kept to be shown; all are counted.
EXAMPLES = 20


_scorers: dict[Plan, Scorer] = {}


@dataclass(frozen=True)
class Plan:
    """How responses are scored. Pickles, unless the scorer is a function.

    Attributes:
        scorer: a name or `file.py:function`, loaded in every process; or a function.
        options: of the scorer, as `(name, value)`.
        response_key: the field with the response; see `rollouts.read`.
        gold_key: the field with the ground truth.
        train: the training parquet that rows without a `data_source` are looked up in.
        seconds: that a scorer which is not ours may take for a response.
    """

    scorer: str | Scorer
    options: tuple[tuple[str, Any], ...] = ()
    response_key: str | None = None
    gold_key: str | None = None
    train: str | None = None
    seconds: float = apart.SECONDS


@dataclass
class Scored:
    """A unit, scored.

    Attributes:
        lines: the rows with their scores, as jsonl.
        unscored: the rows that could not be scored, as jsonl of `where` and `reason`.
        examples: the first of those.
        n_unscored: how many.
        tallies: by `total`, `data_source` and `step`.
    """

    lines: bytes = b""
    unscored: bytes = b""
    examples: list[Unread] = field(default_factory=list)
    n_unscored: int = 0
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many rows it has."""
        total = self.tallies.get("total", {}).get("", Tally())
        return total.n + self.n_unscored


def score_unit(plan: Plan, unit: Unit) -> Scored:
    """Score what a unit holds; what cannot be scored is told, never raised."""
    scorer, found = scorer_for(plan), Scored()
    lines: list[str] = []
    unscored: list[str] = []
    counts: dict[tuple[str, str | None], Tally] = {}
    for sample in samples_of(unit, plan.response_key, plan.gold_key):
        known = _looked_up(sample, plan.train) if plan.train else sample
        result = known if isinstance(known, Unread) else _judge(scorer, known)
        if isinstance(result, Unread):
            skip(found, result, unscored)
        elif isinstance(known, Sample):
            group = group_of(known, prompt_of(known))
            if (both := _groups(known)) not in counts:
                counts[both] = Tally()
            counts[both].add(result, group)
            lines.append(_line(known, result))
    found.lines = "".join(lines).encode()
    found.unscored = "".join(unscored).encode()
    found.tallies = _summed(counts)
    return found


def skip(found: Scored, row: Unread, unscored: list[str]) -> None:
    """Count a row that could not be scored."""
    found.n_unscored += 1
    unscored.append(json.dumps({"where": row.where, "reason": row.reason}) + "\n")
    if len(found.examples) < EXAMPLES:
        found.examples.append(row)


def scorer_for(plan: Plan) -> Scorer:
    """The scorer of a plan, loaded once in a process.

    Raises:
        UsageError: it does not load.
    """
    if not isinstance(plan.scorer, str):
        return plan.scorer
    if plan not in _scorers:
        _scorers[plan] = apart.scorer_of(plan.scorer, dict(plan.options), plan.seconds)
    return _scorers[plan]


def forget(plan: Plan) -> None:
    """Let go of the scorer of a plan, and of its process if it has one."""
    if scorer := _scorers.pop(plan, None):
        apart.close(scorer)


def _looked_up(sample: Sample | Unread, train: str) -> Sample | Unread:
    from rewardkit.rollouts.join import completed

    return sample if isinstance(sample, Unread) else completed(sample, train)


def _judge(scorer: Scorer, sample: Sample) -> Score | Unread:
    result = apart.asked(_call, scorer, sample)
    return Unread(sample.where, apart.why_not(result)) if isinstance(result, Exception) else result


def _call(scorer: Scorer, sample: Sample) -> Score:
    result = scorer(sample.response, sample.ground_truth, sample.extra_info)
    if not isinstance(result, Score):
        raise TypeError(f"it returned {type(result).__name__}")
    if not isfinite(result.score):
        raise ValueError(f"its score is {result.score}")
    return result


def _groups(sample: Sample) -> tuple[str, str | None]:
    """The data source and the step that a sample counts for."""
    step = sample.fields.get("step")
    source = sample.extra_info.get("data_source") or ""
    return str(source), None if step is None else str(step)


def _summed(counts: Mapping[tuple[str, str | None], Tally]) -> dict[str, dict[str, Tally]]:
    """What was counted by both, by each of them."""
    tallies: dict[str, dict[str, Tally]] = {}
    for (source, step), tally in counts.items():
        names = {"total": "", "data_source": source, "step": step}
        for group, name in names.items():
            if name is not None:
                tallies.setdefault(group, {}).setdefault(name, Tally()).merge(tally)
    return tallies


def _line(sample: Sample, score: Score) -> str:
    ours = {**to_verl(score), "status": score.status.value}
    theirs = {f"{k}_before" if k in ours else k: v for k, v in sample.fields.items()}
    return _ENCODER.encode({**theirs, **ours}) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)


#: Made once: `json.dumps` would make one for every row.
_ENCODER = json.JSONEncoder(default=_plain)
