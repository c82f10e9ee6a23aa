"""Why a response got its score: the answer, its place, its reading and the deciding comparison."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewardkit.answers.equal import compare, parse_answer
from rewardkit.answers.extract import final_answer, gold_answer
from rewardkit.scorers.base import Score, Scorer
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.isolated import open_scorer
from rewardkit.scorers.judge import explain_judgement
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.math import gold_letters, question_of
from rewardkit.scorers.missed_answer import MissedAnswer, explain_miss

#: The comparisons of `answers.equal`, in the order in which they are tried.
RUNGS = ("text", "number", "words", "value")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The way from a response to its score.

    Attributes:
        scorer: the name of the scorer.
        score: its score.
        microseconds: the time that the scorer took.
        where: the place of the answer: `box`, `tag`, `phrase`, `hash`, `line` or `sentence`; "" if
            there is no answer or the scorer has a rule of its own.
        pred_tree: the answer as it was read, "" if it was compared as text.
        gold_tree: the gold as it was read.
        rungs: the comparisons in order, each with its outcome; empty for scorers with a rule of
            their own.
        facts: what else the scorer says, by name: the prompt and the reply of a judge.
        miss: what was read instead of the gold, and what would read it; None if it is correct.
    """

    scorer: str
    score: Score
    microseconds: float
    where: str = ""
    pred_tree: str = ""
    gold_tree: str = ""
    rungs: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    miss: MissedAnswer | None = None


def explain(
    scorer: str,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,
) -> Explanation:
    """Score a response and explain the score.

    Raises:
        UnknownNameError: the scorer does not exist or has no such option.
        UsageError: an option has an invalid value.
    """
    judge = load_scorer(scorer, **options)
    explanation = explain_verdict(judge, scorer, response, ground_truth, extra_info)
    if explanation.score.correct:
        return explanation
    sample = (explanation.score, response, ground_truth, extra_info)
    return replace(explanation, miss=explain_miss(scorer, options, judge, *sample, open_scorer))


def explain_verdict(
    scorer: Scorer,
    name: str,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain a score of a scorer that is loaded already, in this process or in its own."""
    started = time.perf_counter()
    facts: tuple[tuple[str, str], ...] = ()
    if name == "judge":
        options = scorer.keywords if isinstance(scorer, partial) else {}
        score, facts = explain_judgement(response, ground_truth, extra_info, **options)
    else:
        score = scorer(response, ground_truth, extra_info)
    microseconds = (time.perf_counter() - started) * 1e6
    if name != "math":
        return Explanation(scorer=name, score=score, microseconds=microseconds, facts=facts)
    gold = gold_answer(accept_gold(ground_truth))
    return _explain_math(score, response, gold, question_of(extra_info), microseconds)


def _explain_math(
    score: Score, response: str, gold: str, question: str, microseconds: float
) -> Explanation:
    answer = final_answer(response, gold)
    trees: tuple[str, str] = ("", "")
    rungs: tuple[tuple[str, str], ...] = ()
    if gold_letters(gold) is not None:
        rungs = (("choice", score.status.value),)
    elif score.pred and gold:
        trees, rungs = (_tree(score.pred), _tree(gold)), _rungs(score.pred, gold, question)
    return Explanation(
        scorer="math",
        score=score,
        microseconds=microseconds,
        where=answer.mark if answer else "",
        pred_tree=trees[0],
        gold_tree=trees[1],
        rungs=rungs,
    )


def _tree(text: str) -> str:
    reading = parse_answer(text)
    return str(reading.value) if reading and reading.value else ""


def _rungs(pred: str, gold: str, question: str) -> tuple[tuple[str, str], ...]:
    verdict = compare(pred, gold, question)
    rungs = RUNGS[: RUNGS.index(verdict.rung) + 1]
    outcomes = ["passed on"] * (len(rungs) - 1) + [verdict.outcome]
    return tuple(zip(rungs, outcomes, strict=True))
