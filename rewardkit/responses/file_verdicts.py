"""Scores and verdicts that the rows of a file have already, as verl's dumps do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from rewardkit.responses.samples import Sample, read_samples
from rewardkit.scorers.reward_result import VERDICT_KEYS, RewardResult, RightRule, rule_of_results

#: Rows from which it is learned what states the verdicts of a file.
LEARNED_ROWS = 1000


def finite_number(value: Any) -> float | None:
    """Return a number of a file as a float; None for any other value, also an infinite one."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        return None
    return float(value)


def row_result(fields: Mapping[str, Any]) -> RewardResult | None:
    """Return the result that a row has in `score`, `acc` and `correct`; None without a number.

    `acc` stands for a missing score. A score without `acc` and `correct` is its own `acc`, as verl's
    managers write it of a reward that returns a number.
    """
    values = {
        name: value
        for name in ("score", *VERDICT_KEYS)
        if (value := finite_number(fields.get(name))) is not None
    }
    score = values.get("score", values.get("acc"))
    if score is None:
        return None
    values = {
        "score": score,
        **({} if values.keys() & {*VERDICT_KEYS} else {"acc": score}),
        **values,
    }
    return RewardResult.of(values)


def rule_of_files(
    files: Sequence[str],
    response_key: str | None,
    gold_key: str | None,
    right_score: float | None = None,
) -> RightRule:
    """Return which results in files are right, from their first rows or from `--right-score`.

    Raises:
        DataError: a file cannot be read.
    """
    if right_score is not None:
        return RightRule(right_score, False, "--right-score")
    samples = islice(read_samples(files, response_key, gold_key), LEARNED_ROWS)
    results = (row_result(sample.fields) for sample in samples if isinstance(sample, Sample))
    return rule_of_results(each for each in results if each is not None)
