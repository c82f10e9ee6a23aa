"""Metrics agree with the enumeration of every choice of responses, and their intervals hold."""

import random
from collections import Counter
from itertools import combinations, groupby
from math import comb, exp, lgamma

import pytest

from rewardkit.evaluate.metrics import (
    EvaluatedResponse,
    EvaluationMetrics,
    MetricGroup,
    QuestionResult,
    pass_at_k,
)
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import wilson_interval


@pytest.mark.parametrize("n", range(1, 9))
def test_pass_at_k_is_the_fraction_of_choices_of_k_that_contain_a_right_response(n):
    for correct in range(n + 1):
        responses = [True] * correct + [False] * (n - correct)
        for k in range(1, n + 1):
            choices = [any(chosen) for chosen in combinations(responses, k)]
            assert pass_at_k(n, correct, k) == pytest.approx(sum(choices) / len(choices), abs=1e-12)
    exact = 1 - comb(10_000 - n, 4_000) / comb(10_000, 4_000)  # these overflow a double
    assert pass_at_k(10_000, n, 4_000) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([("5", 1)], 1),
        ([("5", 1), ("6", 0), ("5", 1)], 1),
        ([("5", 1), ("6", 0)], 0.5),  # a tie is shared
        ([("5", 1), ("6", 0), ("7", 0), ("", 0), ("", 0)], 1 / 3),  # no answer, no vote
        ([("", 0), ("", 0)], 0),
        ([("5", 1), ("5", 0), ("6", 0)], 0.5),  # the scorer calls one of two equal answers right
        ([("", 1), ("6", 0)], None),  # the scorer does not name its right answer
    ],
)
def test_the_most_frequent_answer_is_the_majority(votes, expected):
    responses = [response(0, bool(right), vote)[1] for vote, right in votes]
    assert QuestionResult.of(responses).majority == expected


@pytest.mark.parametrize(("k", "a", "b"), [(8, 2, 1), (8, 3, 2), (16, 1, 1)])
def test_95_percent_of_the_intervals_of_pass_at_k_contain_it(k, a, b):
    """This holds near 1 too, where most questions say little about the others."""
    true = 1 - exp(lgamma(b + k) + lgamma(a + b) - lgamma(a + b + k) - lgamma(b))
    rng, covered, runs = random.Random(5), 0, 400
    group = MetricGroup(finishes=Counter({"": 30 * 32}))
    for _ in range(runs):
        values = []
        for _ in range(30):
            chance = rng.betavariate(a, b)
            values.append(pass_at_k(32, sum(rng.random() < chance for _ in range(32)), k))
        low, high = group.interval(values, k)
        covered += low <= true <= high
    assert covered / runs >= 0.94


def response(question, correct, vote=None, *, source="s", subject="", level="", **fields):
    vote = ("correct" if correct else "wrong") if vote is None else vote
    status = "correct" if correct else ("wrong" if vote else "no_answer")
    group = source, subject, level
    own = EvaluatedResponse(group, correct, float(correct), vote, status, "stop", 10, 5)
    return question, own._replace(**fields)


def metrics_of(*pairs):
    metrics = EvaluationMetrics()
    for _, group in groupby(pairs, lambda pair: pair[0]):
        metrics.add([own for _, own in group])
    return metrics.summary()


def test_metrics_are_means_over_questions():
    rights = [(0, True), (0, True), (0, False), (0, False), (1, True), *[(1, False)] * 3]
    summary = metrics_of(*(response(*each) for each in rights))["total"]
    assert summary["mean"]["value"] == (2 / 4 + 1 / 4) / 2
    for k in range(1, 5):
        expected = (pass_at_k(4, 2, k) + pass_at_k(4, 1, k)) / 2
        assert summary["pass@k"][str(k)]["value"] == expected
    assert summary["maj@k"]["4"]["value"] == (0.5 + 0) / 2  # a tie is half a win
    less = metrics_of(*(response(*each) for each in rights[:5]))["total"]
    assert (less["n"], list(less["pass@k"])) == ([1, 4], ["1"])


def test_intervals_are_wilsons_with_one_response_per_question_and_wider_with_several():
    single = metrics_of(*(response(i, i < 30) for i in range(100)))["total"]
    assert single["mean"] == {"value": 0.3, "interval": wilson_interval(30, 100)}
    alike = metrics_of(*(response(i // 8, i // 8 % 2 == 0) for i in range(160)))["total"]
    independent = metrics_of(*(response(i, i % 2 == 0) for i in range(160)))["total"]
    widths = [high - low for low, high in (s["mean"]["interval"] for s in (alike, independent))]
    assert widths[0] > 2 * widths[1]


def test_responses_without_an_answer_do_not_vote_and_truncation_is_counted_separately():
    rights = ((False, ""), (False, ""), (True, None))
    summary = metrics_of(*(response(0, *each, finish="length") for each in rights))["total"]
    assert summary["maj@k"]["3"]["value"] == 1
    assert summary["truncated"] == {"n": 3, "share": 1.0, "right": 1}
    assert summary["no_answer"]["n"] == 2


def test_subjects_and_levels_are_grouped_by_data_source():
    summary = metrics_of(
        response(0, correct=True, subject="algebra", level="1"),
        response(1, correct=False, subject="algebra", level="2"),
        response(2, correct=True, source="t", subject="algebra"),
    )
    assert summary["by_subject"]["s"]["algebra"]["mean"]["value"] == 0.5
    assert summary["by_subject"]["t"]["algebra"]["questions"] == 1
    assert sorted(summary["by_level"]["s"]) == ["1", "2"]
    assert summary["by_data_source"]["t"]["mean"]["value"] == 1


def test_percentiles_of_lengths_are_nearest_ranks():
    total = metrics_of(*(response(i, correct=True, tokens=i + 1) for i in range(100)))["total"]
    assert total["tokens"] == {"known": 100, "mean": 50.5, "p50": 50, "p95": 95, "max": 100}
    unknown = metrics_of(response(0, correct=True, tokens=None))["total"]
    assert unknown["tokens"] == {"known": 0}


def test_votes_for_one_answer_in_two_typographies_are_one_vote():
    def vote(pred, status=Status.WRONG):
        sample = Sample("f:1", "", "", {}, {})
        return EvaluatedResponse.of(sample, Score(0.0, False, pred, status)).vote

    assert vote(r"\dfrac{1}{2}") == vote(r"\frac12.") != vote(r"\frac13")
    assert vote("Monday") == vote("monday.")
    assert vote("18", Status.NO_ANSWER) == ""
