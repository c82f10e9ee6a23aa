"""Why a response got its score: what was read where, how it was read, and which rung decided."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.answers.equal import compare, read
from rewardkit.answers.extract import final_answer, gold_answer
from rewardkit.scorers.base import Score, Scorer
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.math import gold_letters, question_of

#: The rungs of `answers.equal`, in the order they are tried.
RUNGS = ("text", "number", "words", "value")


@dataclass(frozen=True)
class Explanation:
    """The way from a response to its score.

    Attributes:
        scorer: its name.
        score: what it gave.
        where: where the answer stands: `box`, `tag`, `phrase`, `hash`, `line`, `sentence`; "" if the scorer looks for it in a way of its own, or it has none.
        pred_tree: the answer as it was read, "" if it was compared as text.
        gold_tree: the gold as it was read.
        rungs: the rungs that were tried, each with what it said; empty for scorers with a rule of
            their own.
        microseconds: how long the scorer took.
    """

    scorer: str
    score: Score
    where: str
    pred_tree: str
    gold_tree: str
    rungs: tuple[tuple[str, str], ...]
    microseconds: float


def explain(
    scorer: str,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,
) -> Explanation:
    """Score a response and say how the score came about.

    Raises:
        UnknownNameError: no such scorer, or it has no such option.
        UsageError: an option does not take its value.
    """
    return explain_verdict(
        load_scorer(scorer, **options), scorer, response, ground_truth, extra_info
    )


def explain_verdict(
    judge: Scorer,
    scorer: str,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> Explanation:
    """`explain` for a scorer of that name that is loaded already, here or in another process."""
    started = time.perf_counter()
    score = judge(response, ground_truth, extra_info)
    took = (time.perf_counter() - started) * 1e6
    if scorer != "math":
        return Explanation(scorer, score, "", "", "", (), took)
    gold = gold_answer(accept_gold(ground_truth))
    return _of_math(score, response, gold, question_of(extra_info), took)


def _of_math(score: Score, response: str, gold: str, question: str, took: float) -> Explanation:
    answer = final_answer(response, gold)
    where = answer.mark if answer else ""
    if gold_letters(gold) is not None:
        return Explanation("math", score, where, "", "", (("choice", score.status.value),), took)
    if not score.pred or not gold:
        return Explanation("math", score, where, "", "", (), took)
    pred_tree, gold_tree = map(_tree, (score.pred, gold))
    rungs = _rungs(score.pred, gold, question)
    return Explanation("math", score, where, pred_tree, gold_tree, rungs, took)


def _tree(text: str) -> str:
    reading = read(text)
    return str(reading.value) if reading and reading.value else ""


def _rungs(pred: str, gold: str, question: str) -> tuple[tuple[str, str], ...]:
    verdict = compare(pred, gold, question)
    tried = RUNGS[: RUNGS.index(verdict.rung) + 1]
    said = ["passed on"] * (len(tried) - 1) + [verdict.outcome]
    return tuple(zip(tried, said, strict=True))
