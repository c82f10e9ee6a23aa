"""Scored responses read from files; what has no score is scored on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.responses.prompt_groups import prompt_group, prompt_text
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.report.totals import ScoredResponse
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import Score, Scorer, Status
from rewardkit.scorers.call import call_scorer_or_stop, failure_reason
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS, open_scorer
from rewardkit.scorers.math import score as math_score


def read_scored_responses(
    files: Iterable[str],
    scorer: str = "auto",
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
) -> Iterator[ScoredResponse | SkippedRow]:
    """The responses of files in order; those without a score are scored, in `seconds` at most.

    Raises:
        DataError: a file cannot be read, or a scorer that is not ours never answers.
        UnknownNameError: no such scorer, or it has no such option.
    """
    with open_scorer(scorer, options or {}, seconds) as judge:
        for file in files:
            for sample in read_samples(Path(file), response_key, gold_key):
                yield sample if isinstance(sample, SkippedRow) else _response(sample, scorer, judge)


def _response(sample: Sample, scorer: str, judge: Scorer) -> ScoredResponse | SkippedRow:
    result: Score | Exception | None = _given(sample.fields)
    if result is None:
        result = call_scorer_or_stop(judge, sample.response, sample.ground_truth, sample.extra_info)
    if isinstance(result, Exception):
        return SkippedRow(sample.where, failure_reason(result))
    prompt = prompt_text(sample)
    name = prompt_group(sample, prompt)
    return ScoredResponse(
        sample.where,
        prompt,
        sample.response,
        sample.ground_truth,
        result.pred,
        result.status,
        result.score,
        result.correct,
        str(sample.extra_info.get("data_source") or ""),
        _step(sample.fields.get("step")),
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest(),
        _is_math(sample, scorer),
    )


def _given(fields: Mapping[str, Any]) -> Score | None:
    """The score that a row has; of verl's own dumps, right is what has 1.0 or more."""
    score = _number(fields.get("score"))
    if score is None:
        return None
    acc = _number(fields.get("acc"))
    correct = score >= 1 if acc is None else acc > 0
    pred = fields.get("pred")
    return Score(score, correct, "" if pred is None else str(pred), _status(fields, correct))


def _status(fields: Mapping[str, Any], correct: bool) -> Status:
    status = call_catching(Status, fields.get("status"))
    if isinstance(status, Status):
        return status
    flags = (
        ("error", Status.BAD_GROUND_TRUTH),
        ("timeout", Status.TIMEOUT),
        ("no_answer", Status.NO_ANSWER),
    )
    flagged = (status for name, status in flags if _number(fields.get(name)))
    return next(flagged, Status.CORRECT if correct else Status.WRONG)


def _number(value: Any) -> float | None:
    """A finite number, else None."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        return None
    return float(value)


def _step(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _is_math(sample: Sample, scorer: str) -> bool:
    if scorer != "auto":
        return scorer == "math"
    find = partial(scorer_for, sample.extra_info.get("data_source"), sample.extra_info)
    return call_catching(find) is math_score
