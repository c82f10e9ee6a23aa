"""Score a chunk of responses, in any process; every engine uses this."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, TypeAlias

from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.jsonl import json_bytes, parsed_json_bytes
from rewardkit.responses.chunks import Chunk
from rewardkit.responses.samples import Sample, SkippedRow, samples_of
from rewardkit.responses.tally import (
    MAX_EXAMPLES,
    ScoreFigures,
    Tallies,
    Tally,
    prompt_group,
    prompt_key,
    prompt_text,
)
from rewardkit.scorers import isolated
from rewardkit.scorers.base import Score, Scorer, to_verl
from rewardkit.scorers.call import call_scorer, failure_reason, require_verdict
from rewardkit.scorers.concurrent_calls import call_each
from rewardkit.scorers.options import asks_server
from rewardkit.scorers.reward_result import LITERAL, RightRule
from rewardkit.scorers.right_score import GoldRow

#: The fields that scoring adds to a row.
SCORE_FIELDS = frozenset({*to_verl(Score.wrong()), "status"})

#: Source and step, which a sample is counted under.
_GroupKey: TypeAlias = tuple[str, str | None]

_scorers: dict[ScoringPlan, Scorer] = {}


@dataclass(frozen=True)
class ScoringPlan:
    """How responses are scored. It can be pickled, unless the scorer is a function.

    Attributes:
        scorer: a name or `file.py:function`, loaded in every process; or a function.
        options: options of the scorer, as `(name, value)`.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        train: the training parquet in which rows without a `data_source` are looked up.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        lines: whether to return the rows with their scores, beside the figures.
        right_score: the lowest right score of a custom scorer; None to learn it.
        rule: which results of a custom scorer are right; None before it is learned.
    """

    scorer: str | Scorer
    options: tuple[tuple[str, Any], ...] = ()
    response_key: str | None = None
    gold_key: str | None = None
    train: str | None = None
    seconds: float = isolated.CALL_TIMEOUT_SECONDS
    load_seconds: float = LOAD_TIMEOUT_SECONDS
    lines: bool = True
    right_score: float | None = None
    rule: RightRule | None = None


@dataclass(frozen=True)
class ScoredChunk:
    """The scores of a chunk.

    Attributes:
        lines: the rows with their scores, as jsonl.
        unscored: `where` and `reason` of the rows that could not be scored, as jsonl.
        figures: the figures of these rows.
    """

    lines: bytes
    unscored: bytes
    figures: ScoreFigures


def score_chunks(plan: ScoringPlan, chunks: Sequence[Chunk]) -> tuple[float, list[ScoredChunk]]:
    """Return the time in seconds that scoring took, and the scored chunks."""
    start = monotonic()
    scored = [score_chunk(plan, chunk) for chunk in chunks]
    return monotonic() - start, scored


def score_chunk(plan: ScoringPlan, chunk: Chunk) -> ScoredChunk:
    """Score the rows of a chunk; a row that cannot be scored is returned with the reason."""
    samples = samples_of(chunk, plan.response_key, plan.gold_key)
    if plan.train:
        samples = (_look_up(sample, plan.train) for sample in samples)
    # A parquet may have values that JSON does not.
    to_json = json_bytes if chunk.rows else parsed_json_bytes
    lines: list[bytes] = []
    unscored: list[SkippedRow] = []
    counts: Counter[tuple[_GroupKey, str, bool, int]] = Counter()
    sums: dict[_GroupKey, float] = {}
    rule, between = plan.rule or LITERAL, 0
    for result in _score_samples(plan_scorer(plan), samples):
        if isinstance(result, SkippedRow):
            unscored.append(result)
            continue
        sample, score = result
        key = _group_key(sample)
        between += rule.is_between(score.score)
        prompt = prompt_key(prompt_group(sample, prompt_text(sample)))
        counts[key, score.status.value, bool(score.correct), prompt] += 1
        sums[key] = sums.get(key, 0.0) + score.score
        if plan.lines:
            lines.append(to_json(_scored_row(sample.fields, score)))
    return ScoredChunk(
        lines=b"\n".join([*lines, b""]) if lines else b"",
        unscored="".join(json.dumps(row._asdict()) + "\n" for row in unscored).encode(),
        figures=ScoreFigures(
            len(unscored), unscored[:MAX_EXAMPLES], between, _tallies(counts, sums)
        ),
    )


def plan_scorer(plan: ScoringPlan) -> Scorer:
    """Return the scorer of a plan, loaded once in a process.

    Raises:
        UsageError: it does not load.
    """
    if not isinstance(plan.scorer, str):
        return plan.scorer
    if plan not in _scorers:
        _scorers[plan] = isolated.start_scorer(
            plan.scorer, dict(plan.options), plan.seconds, plan.load_seconds, plan.rule
        )
    return _scorers[plan]


def learn_plan(
    plan: ScoringPlan, rows: Iterable[GoldRow], *, is_required: bool = False
) -> ScoringPlan:
    """Return the plan with the rule that its scorer learns, which stays loaded for it.

    Raises:
        UsageError, DataError: as `isolated.learn_rule` does.
    """
    scorer, rule = isolated.learn_rule(
        plan_scorer(plan), rows, plan.right_score, is_required=is_required
    )
    if not isinstance(plan.scorer, str):
        return replace(plan, scorer=scorer, rule=rule)
    learned = replace(plan, rule=rule)
    _scorers[learned] = _scorers.pop(plan)
    return learned


def gold_rows(plan: ScoringPlan, chunk: Chunk) -> Iterator[GoldRow]:
    """Yield the golds of a chunk, from which a custom scorer learns which score is right."""
    for sample in samples_of(chunk, plan.response_key, plan.gold_key):
        known = _look_up(sample, plan.train) if plan.train else sample
        if isinstance(known, Sample):
            yield known.ground_truth, known.extra_info


def release_scorer(plan: ScoringPlan) -> None:
    """Drop the scorer of a plan from this process, and end its own process if it has one."""
    if scorer := _scorers.pop(plan, None):
        isolated.close_scorer(scorer)


def _look_up(sample: Sample | SkippedRow, train: str) -> Sample | SkippedRow:
    from rewardkit.responses.matching import look_up_row

    return sample if isinstance(sample, SkippedRow) else look_up_row(sample, train)


def _score_samples(
    scorer: Scorer, samples: Iterable[Sample | SkippedRow]
) -> Iterator[tuple[Sample, Score] | SkippedRow]:
    """Yield each sample with its score, or the reason why it has none.

    An isolated scorer gets all samples as one batch, and one that waits for a server is called in
    threads.
    """
    batch: Iterator[Score | Exception] | None = None
    if isinstance(scorer, isolated.IsolatedScorer) or asks_server(scorer):
        samples = list(samples)
        requests = [_request(sample) for sample in samples if isinstance(sample, Sample)]
        if isinstance(scorer, isolated.IsolatedScorer):
            batch = iter(scorer.score_batch(requests))
        else:
            batch = call_each(scorer, lambda request: call_scorer(scorer, *request), requests)
    for sample in samples:
        if isinstance(sample, SkippedRow):
            yield sample
            continue
        result = next(batch) if batch else call_scorer(scorer, *_request(sample))
        result = require_verdict(result)
        if isinstance(result, Exception):
            yield SkippedRow(sample.where, failure_reason(result))
        else:
            yield sample, result


def _request(sample: Sample) -> isolated.Request:
    return sample.response, sample.ground_truth, sample.extra_info


def _group_key(sample: Sample) -> _GroupKey:
    step = sample.fields.get("step")
    source = sample.extra_info.get("data_source") or ""
    return str(source), None if step is None else str(step)


def _tallies(
    counts: Mapping[tuple[_GroupKey, str, bool, int], int], sums: Mapping[_GroupKey, float]
) -> Tallies:
    """Return the tallies of all rows, of each data source and of each step."""
    by_key = {key: Tally(score_sum=score_sum) for key, score_sum in sums.items()}
    for (key, status, correct, prompt), n in counts.items():
        by_key[key].count(status, correct, prompt, n)
    tallies: Tallies = {}
    for (source, step), tally in by_key.items():
        names = {"total": "", "data_source": source, "step": step}
        for group, name in names.items():
            if name is not None:
                tallies.setdefault(group, {}).setdefault(name, Tally()).merge(tally)
    return tallies


def _scored_row(fields: Mapping[str, Any], score: Score) -> dict[str, Any]:
    """Return a row with its score; earlier fields of these names are renamed to `<name>_before`."""
    row = {**fields}
    for name in SCORE_FIELDS.intersection(row):
        row[f"{name}_before"] = row[name]
    row.update(to_verl(score))
    if score.correct is None:
        row["acc"] = None
    row["status"] = score.status.value
    return row
