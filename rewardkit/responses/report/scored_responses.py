"""Read scored responses from files; responses without a score are scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.responses.file_verdicts import finite_number, row_result, rule_of_files
from rewardkit.responses.prompt_groups import prompt_group, prompt_text, step_of
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.responses.tally import prompt_key
from rewardkit.scorers.base import Score, Scorer, Status
from rewardkit.scorers.call import call_scorer_or_stop, failure_reason
from rewardkit.scorers.isolated import (
    CALL_TIMEOUT_SECONDS,
    IsolatedScorer,
    learn_rule,
    open_scorer,
)
from rewardkit.scorers.math import score as math_score
from rewardkit.scorers.reward_result import RightRule
from rewardkit.scorers.row_scorer import scorer_for


@dataclass(frozen=True, kw_only=True)
class ScoredResponse:
    """A scored response.

    Attributes:
        where: file:line.
        prompt: the prompt as text; "" if the row does not have it.
        text: the response.
        gold: the gold answer.
        pred: the answer that the scorer read.
        status: of the score.
        score: the reward.
        correct: whether the response is correct; None if it is not known.
        source: the data source; "" if unknown.
        step: the training step, if known.
        group: a number that all responses to one prompt share.
        is_math: whether its scorer is `math`, which can explain the score.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    status: Status
    score: float
    correct: bool | None
    source: str
    step: int | None
    group: int
    is_math: bool


def read_scored_responses(
    files: Iterable[str],
    scorer: str = "auto",
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    right_score: float | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> Iterator[ScoredResponse | SkippedRow]:
    """Yield the responses of files in order.

    Args:
        files: jsonl or parquet.
        scorer: scores rows without a score; a custom one also says which scores of the rows are right.
        options: options of the scorer.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score; None to learn it (`scorers.reward_result`).
        announce: called with a sentence about which scores are right, unless the rows state it.

    Raises:
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses.
        UnknownNameError: the scorer is unknown, or one of its options.
    """
    files = list(files)
    rule = rule_of_files(files, response_key, gold_key, right_score)
    with open_scorer(scorer, options or {}, seconds, load_seconds) as loaded_scorer:
        if isinstance(loaded_scorer, IsolatedScorer):
            samples = read_samples(files, response_key, gold_key)
            golds = ((s.ground_truth, s.extra_info) for s in samples if isinstance(s, Sample))
            learned = learn_rule(loaded_scorer, golds, right_score)[1]
            rule = rule if rule.is_known else learned
        if rule.sentence:
            announce(rule.sentence)
        total = scored = between = 0
        for sample in read_samples(files, response_key, gold_key):
            if isinstance(sample, SkippedRow):
                yield sample
                continue
            response = _scored_response(sample, rule, scorer, loaded_scorer)
            yield response
            if isinstance(response, ScoredResponse):
                total += 1
                scored += response.status is Status.SCORED
                between += rule.is_between(response.score)
        for line in rule.doubts(scored, between, total):
            announce(line)


def _scored_response(
    sample: Sample, rule: RightRule, scorer_name: str, scorer: Scorer
) -> ScoredResponse | SkippedRow:
    source = str(sample.extra_info.get("data_source") or "")
    result: Score | Exception | None = _row_score(sample.fields, rule, source)
    if result is None and isinstance(score := sample.fields.get("score"), (int, float)):
        return SkippedRow(sample.where, f"its score is {str(score)[:40]}")
    if result is None:
        result = call_scorer_or_stop(
            scorer, sample.response, sample.ground_truth, sample.extra_info
        )
    if isinstance(result, Exception):
        return SkippedRow(sample.where, failure_reason(result))
    prompt = prompt_text(sample)
    return ScoredResponse(
        where=sample.where,
        prompt=prompt,
        text=sample.response,
        gold=sample.ground_truth,
        pred=result.pred,
        status=result.status,
        score=result.score,
        correct=result.correct,
        source=source,
        step=step_of(sample.fields),
        group=prompt_key(prompt_group(sample, prompt)),
        is_math=_is_math(sample, scorer_name),
    )


def _row_score(fields: Mapping[str, Any], rule: RightRule, source: str) -> Score | None:
    """Return the score of a row with its verdict, if it has one."""
    if any(
        finite_number(value) is None
        for name in ("score", "acc")
        if (value := fields.get(name)) is not None
    ):
        return None
    result = row_result(fields)
    if result is None:
        return None
    pred = fields.get("pred")
    score = rule.judge(result.as_score(), source)._replace(pred="" if pred is None else str(pred))
    return score._replace(status=_status(fields, score))


def _status(fields: Mapping[str, Any], score: Score) -> Status:
    """Return the status of a row, or that of its verdict where the row has none or another one."""
    status = call_catching(Status, fields.get("status"))
    is_same = (status is Status.CORRECT) is (score.correct is True)
    if isinstance(status, Status) and is_same and status is not Status.SCORED:
        return status
    flags = (
        ("error", Status.BAD_GROUND_TRUTH),
        ("timeout", Status.TIMEOUT),
        ("no_answer", Status.NO_ANSWER),
    )
    statuses = (status for name, status in flags if finite_number(fields.get(name)))
    return next(statuses, score.status)


def _is_math(sample: Sample, scorer_name: str) -> bool:
    if scorer_name != "auto":
        return scorer_name == "math"
    find = partial(scorer_for, sample.extra_info.get("data_source"), sample.extra_info)
    return call_catching(find) is math_score
