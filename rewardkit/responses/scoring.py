"""Score a chunk of responses, in any process; every engine and every command uses this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import Any

from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.jsonl import json_bytes, parsed_json_bytes
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.responses.figures import MAX_EXAMPLES, ScoreFigures, Tally, prompt_key
from rewardkit.responses.files import Chunk, SkippedRow
from rewardkit.responses.samples import (
    USUAL_NAMES,
    FieldNames,
    Sample,
    rule_of_samples,
    samples_of,
    stated_score,
)
from rewardkit.scorers import isolated
from rewardkit.scorers.base import Score, Scorer, Status, to_verl
from rewardkit.scorers.call import NO_VERDICT, call_scorer, failure_reason, require_verdict
from rewardkit.scorers.concurrent_calls import call_each
from rewardkit.scorers.reward_result import LITERAL, RightRule
from rewardkit.scorers.right_score import GoldRow

#: The fields that scoring adds to a row.
SCORE_FIELDS = frozenset({*to_verl(Score.wrong()), "status"})

#: The size of chunks is divided by this for a custom scorer, which may be slow.
CUSTOM_SCORER_DIVISOR = 16

#: Chunks that together take less than this are sent to a process together.
GROUP_SECONDS = 0.25

_scorers: dict[ScoringPlan, Scorer] = {}


@dataclass(frozen=True)
class ScoringPlan:
    """How responses are scored. It can be pickled, unless the scorer is a function.

    Attributes:
        scorer: a scorer's name or `file.py:function`, loaded in every process; `auto` scores each
            row with its own. Or a function.
        options: options of the scorer, as `(name, value)`.
        names: the fields with response and ground truth.
        train: the training parquet in which rows without a `data_source` are looked up.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score of a custom scorer; None to learn it from the first golds.
        rule: which results of a custom scorer are right; None before it is learned.
        keeps_scores: whether a row that states a score keeps it.
        counts_failures: whether a response without a verdict counts as wrong, with a `reason`.
        lines: whether to return the rows with their scores, beside the figures.
        samples: whether to return the samples with their scores, too.
    """

    scorer: str | Scorer = "auto"
    options: tuple[tuple[str, Any], ...] = ()
    names: FieldNames = USUAL_NAMES
    train: Path | None = None
    seconds: float = isolated.CALL_TIMEOUT_SECONDS
    load_seconds: float = LOAD_TIMEOUT_SECONDS
    right_score: float | None = None
    rule: RightRule | None = None
    keeps_scores: bool = False
    counts_failures: bool = False
    lines: bool = True
    samples: bool = False

    @property
    def is_custom(self) -> bool:
        """Whether the scorer is loaded by name and runs in a process of its own."""
        return isinstance(self.scorer, str) and not isolated.is_built_in(self.scorer)

    @property
    def divisor(self) -> int:
        """The divisor of the size of chunks: a custom scorer may call a model for each response."""
        return CUSTOM_SCORER_DIVISOR if self.is_custom else 1

    @property
    def label(self) -> str:
        """The scorer with its options: `gsm8k?method=strict`."""
        settings = dict(self.options)
        if self.right_score is not None:
            settings["right_score"] = self.right_score
        options = ",".join(f"{name}={value}" for name, value in sorted(settings.items()))
        return f"{self.scorer}?{options}" if options else str(self.scorer)


@dataclass(frozen=True)
class ScoredChunk:
    """The scores of a chunk.

    Attributes:
        lines: the rows with their scores, as jsonl.
        unscored: `where` and `reason` of the rows that could not be scored, as jsonl.
        figures: the figures of these rows.
        samples: the samples with their scores, if the plan wants them.
    """

    lines: bytes
    unscored: bytes
    figures: ScoreFigures
    samples: tuple[tuple[Sample, Score], ...] = ()


def score_chunk(plan: ScoringPlan, chunk: Chunk) -> ScoredChunk:
    """Score the rows of a chunk; a row that cannot be scored is returned with the reason."""
    # A parquet may have values that JSON does not.
    to_json = json_bytes if chunk.rows else parsed_json_bytes
    lines: list[bytes] = []
    unscored: list[SkippedRow] = []
    scored: list[tuple[Sample, Score]] = []
    tallies: dict[tuple[str, str | None], Tally] = {}
    rule, figures = plan.rule or LITERAL, ScoreFigures()
    for result in _score_samples(plan, plan_samples(plan, chunk)):
        if isinstance(result, SkippedRow):
            unscored.append(result)
            continue
        sample, score = result
        step = sample.fields.get("step")
        tally = tallies.setdefault((sample.source, None if step is None else str(step)), Tally())
        prompt = prompt_key(sample.group(sample.prompt))
        tally.add(score, len(sample.response), prompt)
        figures.between += rule.is_between(score.score)
        if plan.lines:
            lines.append(to_json(_scored_row(sample.fields, score)))
        if plan.samples:
            scored.append(result)
    for (source, name), tally in tallies.items():
        figures.add_tally(source, name, tally)
    figures.unscored, figures.examples = len(unscored), unscored[:MAX_EXAMPLES]
    return ScoredChunk(
        lines=b"\n".join([*lines, b""]) if lines else b"",
        unscored="".join(json.dumps(row._asdict()) + "\n" for row in unscored).encode(),
        figures=figures,
        samples=tuple(scored),
    )


def plan_samples(plan: ScoringPlan, chunk: Chunk) -> list[Sample | SkippedRow]:
    """Return the samples of a chunk, looked up in the training parquet if the plan has one."""
    samples = list(samples_of(chunk, plan.names))
    if not plan.train:
        return samples
    from rewardkit.responses.matching import look_up_row

    train = plan.train
    return [look_up_row(s, train) if isinstance(s, Sample) else s for s in samples]


def call_plan(plan: ScoringPlan, samples: Iterable[Sample]) -> Iterator[Score | Exception]:
    """Yield the score of each sample, or why it has none."""
    scorer = plan_scorer(plan)
    requests = [(sample.response, sample.ground_truth, sample.extra_info) for sample in samples]
    if isinstance(scorer, isolated.IsolatedScorer):
        yield from map(require_verdict, scorer.score_batch(requests))
        return
    results = call_each(scorer, lambda request: call_scorer(scorer, *request), requests)
    yield from map(require_verdict, results)


def _score_samples(
    plan: ScoringPlan, samples: Sequence[Sample | SkippedRow]
) -> Iterator[tuple[Sample, Score] | SkippedRow]:
    stated: list[Score | str | None] = [None] * len(samples)
    if plan.keeps_scores:
        rule = plan.rule or LITERAL
        stated = [stated_score(s, rule) if isinstance(s, Sample) else None for s in samples]
    pairs = list(zip(samples, stated, strict=True))
    results = call_plan(plan, (s for s, own in pairs if isinstance(s, Sample) and own is None))
    for sample, own in pairs:
        if isinstance(sample, SkippedRow):
            yield sample
            continue
        result = next(results) if own is None else own
        if isinstance(result, Score) and (result.correct is not None or not plan.counts_failures):
            yield sample, result
            continue
        reason = NO_VERDICT if isinstance(result, Score) else result
        reason = failure_reason(reason) if isinstance(reason, Exception) else reason
        if plan.counts_failures:
            fields = {**sample.fields, "reason": reason}
            yield sample._replace(fields=fields), Score.wrong("", Status.FAILED)
        else:
            yield SkippedRow(sample.where, reason)


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


def release_scorer(plan: ScoringPlan) -> None:
    """Drop the scorer of a plan from this process, and end its own process if it has one."""
    if scorer := _scorers.pop(plan, None):
        isolated.close_scorer(scorer)


@contextmanager
def loaded_plan(
    plan: ScoringPlan, golds: Iterable[GoldRow], *, is_required: bool = False
) -> Iterator[ScoringPlan]:
    """Load the scorer of a plan, so that its errors come first, and release it at the end.

    Yields the plan with the rule that a custom scorer learns from golds.

    Raises:
        UsageError, DataError: as `isolated.learn_rule` does.
    """
    try:
        scorer = plan_scorer(plan)
        may_learn = plan.is_custom or plan.right_score is not None or callable(plan.scorer)
        if plan.rule is None and may_learn:
            scorer, rule = isolated.learn_rule(
                scorer, golds, plan.right_score, is_required=is_required
            )
            _scorers.pop(plan, None)
            plan = replace(plan, rule=rule)
            if isinstance(plan.scorer, str):
                _scorers[plan] = scorer
            else:
                plan = replace(plan, scorer=scorer)
        yield plan
    finally:
        release_scorer(plan)


@contextmanager
def loaded_chunks(
    plan: ScoringPlan, chunks: Iterator[Chunk], *, is_required: bool = False
) -> Iterator[tuple[ScoringPlan, Iterator[Chunk]]]:
    """`loaded_plan` with the golds of the first chunk; also yields all chunks."""
    first: list[Chunk] = []

    def samples() -> Iterator[Sample | SkippedRow]:
        first.extend(islice(chunks, 1))
        for chunk in first:
            yield from plan_samples(plan, chunk)

    if plan.keeps_scores:
        plan = replace(plan, rule=rule_of_samples(samples(), plan.right_score))
    golds = ((s.ground_truth, s.extra_info) for s in samples() if isinstance(s, Sample))
    with loaded_plan(plan, golds, is_required=is_required) as learned:
        yield learned, chain(first, chunks)


def score_in_order(
    plan: ScoringPlan, chunks: Iterator[Chunk], jobs: int, *, is_large: bool = False
) -> Iterator[ScoredChunk]:
    """Yield the scored chunks in order.

    A process gets one chunk at a time, or several if they take little time: the scores of a slow
    scorer arrive chunk by chunk, and those of a fast one in few messages.

    Args:
        plan: how responses are scored; a function is called in this process only.
        chunks: the chunks.
        jobs: number of processes.
        is_large: whether other processes are started at once.
    """
    size = 1

    def groups() -> Iterator[list[Chunk]]:
        while group := list(islice(chunks, size)):
            yield group

    jobs = jobs if isinstance(plan.scorer, str) else 1
    inline = 0 if plan.is_custom or is_large else INLINE_BATCHES
    for _, (seconds, scored) in in_order(partial(_score_group, plan), groups(), jobs, inline):
        yield from scored
        size = min(2 * size, plan.divisor) if seconds < GROUP_SECONDS else max(size // 2, 1)


def _score_group(plan: ScoringPlan, chunks: Sequence[Chunk]) -> tuple[float, list[ScoredChunk]]:
    start = monotonic()
    scored = [score_chunk(plan, chunk) for chunk in chunks]
    return monotonic() - start, scored
