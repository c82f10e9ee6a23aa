"""pass@k, best@n and maj@k agree with the enumeration of every choice of responses."""

import random
from array import array
from collections import Counter
from itertools import combinations, product
from math import comb, exp, lgamma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.evaluate.metrics import (
    MAX_RESPONSES_FOR_EVERY_K,
    MetricGroup,
    QuestionResult,
    majority_at_k,
    pass_at_k,
    verl_best_at_n,
)


@pytest.mark.parametrize("n", range(1, 9))
def test_pass_at_k_is_the_share_of_choices_of_k_that_contain_a_right_response(n):
    for correct in range(n + 1):
        responses = [True] * correct + [False] * (n - correct)
        for k in range(1, n + 1):
            choices = [any(chosen) for chosen in combinations(responses, k)]
            assert pass_at_k(n, correct, k) == pytest.approx(sum(choices) / len(choices), abs=1e-12)


def test_pass_at_k_is_exact_where_binomials_overflow_a_double():
    n, correct, k = 10_000, 3, 4_000
    exact = 1 - comb(n - correct, k) / comb(n, k)
    assert pass_at_k(n, correct, k) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(("n", "correct", "expected"), [(32, 1, 0.638), (8, 1, 0.656)])
def test_verl_best_at_n_agrees_with_what_verl_prints(n, correct, expected):
    """verl 0.9.1 printed these values, from 1,000 draws, where unbiased pass@n is 1."""
    assert verl_best_at_n(n, correct, n) == pytest.approx(expected, abs=0.03)
    assert verl_best_at_n(n, correct, n) < pass_at_k(n, correct, n) == 1


def test_verl_best_at_n_is_the_mean_over_all_draws_with_replacement():
    draws = [max(d) for d in product([1, 0, 0, 0], repeat=3)]
    assert verl_best_at_n(4, 1, 3) == pytest.approx(sum(draws) / len(draws))


def brute_majority(votes, blank, k):
    """Return the share of correct majorities over every choice of k responses; ties are shared."""
    answers = [name for name, (times, _) in enumerate(votes) for _ in range(times)]
    answers += [None] * blank
    wins = []
    for chosen in combinations(answers, k):
        counts = Counter(name for name in chosen if name is not None)
        most = max(counts.values(), default=0)
        tied = [name for name, times in counts.items() if times == most]
        wins.append(sum(votes[name][1] for name in tied) / len(tied) if tied else 0.0)
    return sum(wins) / len(wins)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0.0, 1.0, 0.5])), max_size=4),
    st.integers(0, 2),
)
def test_majority_at_k_agrees_with_the_enumeration_of_every_choice_of_k(votes, blank):
    n = blank + sum(times for times, _ in votes)
    expected = [brute_majority(votes, blank, k) for k in range(1, n + 1)]
    assert majority_at_k(votes, blank) == pytest.approx(expected, abs=1e-12)


def test_with_more_than_64_responses_only_the_majority_of_all_is_computed():
    votes = [(MAX_RESPONSES_FOR_EVERY_K, 1.0), (MAX_RESPONSES_FOR_EVERY_K, 0.0), (3, 0.0)]
    assert majority_at_k(votes, 5) == [0.5]


@pytest.mark.parametrize(("k", "a", "b"), [(8, 2, 1), (8, 3, 2), (16, 1, 1)])
def test_95_percent_of_the_intervals_of_pass_at_k_contain_it(k, a, b):
    """This holds near 1 too, where most questions say little about the others."""
    true = 1 - exp(lgamma(b + k) + lgamma(a + b) - lgamma(a + b + k) - lgamma(b))
    rng, covered, runs = random.Random(5), 0, 400
    for _ in range(runs):
        group = MetricGroup(characters=array("q", [1] * 30 * 32))
        for _ in range(30):
            chance = rng.betavariate(a, b)
            correct = sum(rng.random() < chance for _ in range(32))
            group.questions.append(QuestionResult(32, correct, array("d")))
        low, high = group.metric_at(lambda question: pass_at_k(question.n, question.correct, k), k)[
            "interval"
        ]
        covered += low <= true <= high
    assert covered / runs >= 0.94
