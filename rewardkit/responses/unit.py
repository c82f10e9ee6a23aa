"""Scoring a unit: what every engine runs, in whatever process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from rewardkit.responses.files import Unit
from rewardkit.responses.json_lines import json_bytes, parsed_json_bytes
from rewardkit.responses.prompt_groups import group_of, prompt_of
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample, samples_of
from rewardkit.responses.tally import Tallies, Tally, prompt_bucket
from rewardkit.scorers import isolated
from rewardkit.scorers.base import Score, Scorer, to_verl
from rewardkit.scorers.call import call_scorer, failure_reason

#: Lines that could not be scored and are kept to be shown; all are counted.
EXAMPLES = 20


#: What a scored row has of ours.
OUR_FIELDS = frozenset({*to_verl(Score.wrong()), "status"})

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
        lines: whether the rows are wanted with their scores, or the figures alone.
    """

    scorer: str | Scorer
    options: tuple[tuple[str, Any], ...] = ()
    response_key: str | None = None
    gold_key: str | None = None
    train: str | None = None
    seconds: float = isolated.CALL_TIMEOUT_SECONDS
    lines: bool = True


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
    examples: list[SkippedRow] = field(default_factory=list)
    n_unscored: int = 0
    tallies: Tallies = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many rows it has."""
        total = self.tallies.get("total", {}).get("", Tally())
        return total.n + self.n_unscored


def score_units(plan: Plan, some: Sequence[Unit]) -> tuple[float, list[Scored]]:
    """The units, scored, and the seconds that this took."""
    started = monotonic()
    scored = [score_unit(plan, unit) for unit in some]
    return monotonic() - started, scored


def score_unit(plan: Plan, unit: Unit) -> Scored:
    """Score what a unit holds; what cannot be scored is told, never raised."""
    scored = Scored()
    samples = samples_of(unit, plan.response_key, plan.gold_key)
    if plan.train:
        samples = (_looked_up(sample, plan.train) for sample in samples)
    # What a parquet holds may be nothing that JSON has.
    write = json_bytes if unit.rows else parsed_json_bytes
    lines: list[bytes] = []
    unscored: list[str] = []
    counts: Counter[tuple[str, str | None, str, bool, int]] = Counter()
    sums: dict[tuple[str, str | None], float] = {}
    for judged in _judged(scorer_for(plan), samples):
        if isinstance(judged, SkippedRow):
            skip(scored, judged, unscored)
            continue
        sample, result = judged
        source, step = both = _groups(sample)
        bucket = prompt_bucket(group_of(sample, prompt_of(sample)))
        counts[source, step, result.status.value, result.correct, bucket] += 1
        sums[both] = sums.get(both, 0.0) + result.score
        if plan.lines:
            lines.append(write(_row(sample.fields, result)))
    scored.lines = b"\n".join([*lines, b""]) if lines else b""
    scored.unscored = "".join(unscored).encode()
    scored.tallies = _summed(counts, sums)
    return scored


def skip(found: Scored, row: SkippedRow, unscored: list[str]) -> None:
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
        _scorers[plan] = isolated.start_scorer(plan.scorer, dict(plan.options), plan.seconds)
    return _scorers[plan]


def forget(plan: Plan) -> None:
    """Let go of the scorer of a plan, and of its process if it has one."""
    if scorer := _scorers.pop(plan, None):
        isolated.close_scorer(scorer)


def _looked_up(sample: Sample | SkippedRow, train: str) -> Sample | SkippedRow:
    from rewardkit.responses.matching.join import completed

    return sample if isinstance(sample, SkippedRow) else completed(sample, train)


def _judged(
    scorer: Scorer, samples: Iterable[Sample | SkippedRow]
) -> Iterator[tuple[Sample, Score] | SkippedRow]:
    """Each sample with its verdict, or why there is none. An isolated scorer gets all of them at once."""
    batch: Iterator[Score | Exception] | None = None
    if isinstance(scorer, isolated.IsolatedScorer):
        samples = list(samples)
        batch = iter(scorer.score_batch([_request(s) for s in samples if isinstance(s, Sample)]))
    for sample in samples:
        if isinstance(sample, SkippedRow):
            yield sample
        else:
            result = next(batch) if batch else call_scorer(scorer, *_request(sample))
            if isinstance(result, Exception):
                yield SkippedRow(sample.where, failure_reason(result))
            else:
                yield sample, result


def _request(sample: Sample) -> isolated.Request:
    return sample.response, sample.ground_truth, sample.extra_info


def _groups(sample: Sample) -> tuple[str, str | None]:
    """The data source and the step that a sample counts for."""
    step = sample.fields.get("step")
    source = sample.extra_info.get("data_source") or ""
    return str(source), None if step is None else str(step)


def _summed(
    counts: Mapping[tuple[str, str | None, str, bool, int], int],
    sums: Mapping[tuple[str, str | None], float],
) -> Tallies:
    """What was counted by data source and step together, by each of them."""
    tallies: dict[tuple[str, str | None], Tally] = {
        both: Tally(score_sum=s) for both, s in sums.items()
    }
    for (source, step, status, correct, bucket), n in counts.items():
        tallies[source, step].count(status, correct, bucket, n)
    summed: Tallies = {}
    for (source, step), tally in tallies.items():
        for group, name in {"total": "", "data_source": source, "step": step}.items():
            if name is not None:
                summed.setdefault(group, {}).setdefault(name, Tally()).merge(tally)
    return summed


def _row(fields: Mapping[str, Any], score: Score) -> dict[str, Any]:
    """The fields of a row and its verdict; what has the name of ours is kept as `<name>_before`."""
    row = {**fields}
    for name in OUR_FIELDS.intersection(row):
        row[f"{name}_before"] = row[name]
    row.update(to_verl(score))
    row["status"] = score.status.value
    return row
