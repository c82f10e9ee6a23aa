"""Estimators against brute force, and intervals against simulation and published tables."""

import random
from array import array
from collections import Counter
from itertools import combinations, product
from math import comb, exp, lgamma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.evaluate.estimators import ALL_MAJORITIES, best_at_n, majority, pass_at_k
from rewardkit.evaluate.intervals import of_mean, paired, t_quantile, two_sided
from rewardkit.evaluate.metrics import Answered, Group


@pytest.mark.parametrize("n", range(1, 9))
def test_pass_at_k_is_the_share_of_all_choices_of_k_with_a_right_one(n):
    for right in range(n + 1):
        responses = [True] * right + [False] * (n - right)
        for k in range(1, n + 1):
            choices = [any(chosen) for chosen in combinations(responses, k)]
            assert pass_at_k(n, right, k) == pytest.approx(sum(choices) / len(choices), abs=1e-12)


def test_pass_at_k_holds_where_binomials_overflow_a_double():
    n, right, k = 10_000, 3, 4_000
    exact = 1 - comb(n - right, k) / comb(n, k)
    assert pass_at_k(n, right, k) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(("n", "right", "expected"), [(32, 1, 0.638), (8, 1, 0.656)])
def test_verls_best_at_n_is_what_verl_was_measured_to_print(n, right, expected):
    """verl 0.9.1 printed these, from 1,000 draws, where unbiased pass@n is 1."""
    assert best_at_n(n, right, n) == pytest.approx(expected, abs=0.03)
    assert best_at_n(n, right, n) < pass_at_k(n, right, n) == 1


def test_best_at_n_is_the_mean_over_all_draws_with_replacement():
    draws = [max(d) for d in product([1, 0, 0, 0], repeat=3)]
    assert best_at_n(4, 1, 3) == pytest.approx(sum(draws) / len(draws))


def brute_majority(votes, blank, k):
    """Every choice of k responses, each counted once; ties are shared."""
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
def test_the_majority_of_k_is_that_of_every_choice_of_k(votes, blank):
    n = blank + sum(times for times, _ in votes)
    expected = [brute_majority(votes, blank, k) for k in range(1, n + 1)]
    assert majority(votes, blank) == pytest.approx(expected, abs=1e-12)


def test_beyond_64_responses_only_the_majority_of_all_is_told():
    votes = [(ALL_MAJORITIES, 1.0), (ALL_MAJORITIES, 0.0), (3, 0.0)]
    assert majority(votes, 5) == [0.5]


def test_students_t_is_that_of_published_tables():
    table = {1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 29: 2.0452, 100: 1.9840}
    for freedom, value in table.items():
        assert t_quantile(freedom) == pytest.approx(value, abs=5e-5)
        assert two_sided(value, freedom) == pytest.approx(0.05, abs=1e-5)
    assert two_sided(2.0, 10) == pytest.approx(0.07339, abs=1e-5)
    assert two_sided(0.0, 3) == 1


@pytest.mark.parametrize(("questions", "n", "a", "b"), [(30, 16, 0.5, 0.5), (100, 4, 2, 1)])
def test_95_percent_of_intervals_hold_the_true_mean(questions, n, a, b):
    """Questions differ in difficulty (a beta distribution); the mean over all of them is known."""
    rng, covered, runs = random.Random(5), 0, 1500
    for _ in range(runs):
        chances = [rng.betavariate(a, b) for _ in range(questions)]
        shares = [sum(rng.random() < chance for _ in range(n)) / n for chance in chances]
        low, high = of_mean(shares, questions * n)
        covered += low <= a / (a + b) <= high
    assert 0.935 <= covered / runs <= 0.97


@pytest.mark.parametrize(("k", "a", "b"), [(8, 2, 1), (8, 3, 2), (16, 1, 1)])
def test_95_percent_of_the_intervals_of_pass_at_k_hold_it(k, a, b):
    """Also near 1, where most questions say nothing of the rest: 32 responses are 32 / k draws."""
    true = 1 - exp(lgamma(b + k) + lgamma(a + b) - lgamma(a + b + k) - lgamma(b))
    rng, covered, runs = random.Random(5), 0, 400
    for _ in range(runs):
        group = Group(characters=array("q", [1] * 30 * 32))
        for _ in range(30):
            chance = rng.betavariate(a, b)
            right = sum(rng.random() < chance for _ in range(32))
            group.questions.append(Answered(32, right, array("d")))
        low, high = group.at(lambda each: pass_at_k(each.n, each.right, k), k)["interval"]
        covered += low <= true <= high
    assert covered / runs >= 0.94


def test_an_interval_that_ignored_questions_would_be_too_narrow():
    """The check above can fail: the same responses, counted as if each were a question."""
    rng, covered, runs = random.Random(5), 0, 300
    for _ in range(runs):
        chances = [rng.betavariate(0.5, 0.5) for _ in range(30)]
        right = sum(rng.random() < chance for chance in chances for _ in range(16))
        low, high = of_mean([1.0] * right + [0.0] * (480 - right), 480)
        covered += low <= 0.5 <= high
    assert covered / runs < 0.7


@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_95_percent_of_paired_intervals_hold_the_true_difference(effect):
    rng, covered, rejected, runs = random.Random(7), 0, 0, 1500
    for _ in range(runs):
        differences = []
        for _ in range(60):
            chance = rng.betavariate(1, 1) * 0.9
            a = sum(rng.random() < chance for _ in range(4)) / 4
            b = sum(rng.random() < chance + effect for _ in range(4)) / 4
            differences.append(b - a)
        found = paired(differences)
        covered += found.interval[0] <= effect <= found.interval[1]
        rejected += found.p < 0.05
    assert 0.935 <= covered / runs <= 0.965
    assert rejected / runs < 0.065 if not effect else rejected / runs > 0.2


@given(st.lists(st.floats(0, 1), max_size=50), st.integers(0, 1000))
def test_an_interval_lies_within_0_and_1_and_holds_the_mean(values, more):
    low, high = of_mean(values, len(values) + more)
    mean = sum(values) / len(values) if values else 0.5
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1


def test_where_all_questions_differ_alike_the_sign_test_is_told_and_no_interval():
    found = paired([0.5] * 5)
    assert found.interval is None
    assert found.p == 2 / 2**5
    assert paired([0.0] * 5).p == 1
    assert paired([1.0]).interval is None
