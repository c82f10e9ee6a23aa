"""Intervals, tests and percentiles agree with exact sums, mpmath, published values and simulation."""

import random
from collections import Counter
from math import comb

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.statistics import (
    clustered_interval,
    mcnemar_p_value,
    paired_difference,
    percentile_of_counts,
    student_t_p_value,
    student_t_quantile,
    wilson_interval,
)

counts = st.integers(0, 3000)


@pytest.mark.parametrize(
    ("part", "whole", "interval"),
    [  # scipy 1.17: binomtest(part, whole).proportion_ci(method="wilson")
        (0, 10, (0.0, 0.27753279986288926)),
        (940, 1000, (0.9235289252086434, 0.953103527324068)),
    ],
)
def test_the_wilson_interval_agrees_with_scipy(part, whole, interval):
    assert wilson_interval(part, whole) == pytest.approx(interval, rel=1e-12)


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_agrees_with_the_exact_sum_of_binomials(only_a, only_b):
    n, k = only_a + only_b, min(only_a, only_b)
    exact = 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n
    assert mcnemar_p_value(only_a, only_b) == pytest.approx(min(1.0, exact), rel=1e-11)


@pytest.mark.parametrize(("questions", "n", "a", "b"), [(30, 16, 0.5, 0.5), (100, 4, 2, 1)])
def test_95_percent_of_mean_intervals_hold_the_true_mean(questions, n, a, b):
    """Questions differ in difficulty (a beta distribution); the mean over all of them is known."""
    rng, covered, runs = random.Random(5), 0, 1500
    for _ in range(runs):
        chances = [rng.betavariate(a, b) for _ in range(questions)]
        shares = [sum(rng.random() < chance for _ in range(n)) / n for chance in chances]
        low, high = clustered_interval(((1, share) for share in shares), questions * n)
        covered += low <= a / (a + b) <= high
    assert 0.935 <= covered / runs <= 0.97


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
        result = paired_difference(differences)
        covered += result.interval[0] <= effect <= result.interval[1]
        rejected += result.p < 0.05
    assert 0.935 <= covered / runs <= 0.965
    assert rejected / runs < 0.065 if not effect else rejected / runs > 0.2


def test_equal_differences_have_the_p_value_of_the_sign_test_and_no_interval():
    result = paired_difference([0.5] * 5)
    assert result.interval is None
    assert result.p == 2 / 2**5
    assert paired_difference([0.0] * 5).p == 1
    assert paired_difference([1.0]).interval is None


@given(st.floats(-50, 50), st.integers(1, 400))
def test_the_p_value_of_student_t_agrees_with_mpmath(t, degrees):
    x = degrees / (degrees + mpmath.mpf(t) ** 2)
    exact = mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True)
    assert student_t_p_value(t, degrees) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 8, 15, 30, 60, 1000, 100_000])
def test_the_quantile_of_student_t_agrees_with_mpmath_at_whole_degrees(degrees):
    assert student_t_quantile(degrees) == pytest.approx(exact_t_quantile(degrees), rel=1e-9)


def exact_t_quantile(degrees):
    def excess(t):
        x = degrees / (degrees + t**2)
        return mpmath.betainc(mpmath.mpf(degrees) / 2, 0.5, 0, x, regularized=True) - 0.05

    return float(mpmath.findroot(excess, (1.9, 13), solver="anderson", tol=1e-22))


@pytest.mark.parametrize(
    ("degrees", "most"),
    [(1.1, 0.19), (1.4, 0.19), (1.9, 0.19), (2.4, 0.02), (3.5, 0.004), (20.5, 0)],
)
def test_the_quantile_of_student_t_is_slightly_too_large_between_whole_degrees(degrees, most):
    excess = student_t_quantile(degrees) / exact_t_quantile(degrees) - 1
    assert -1e-9 <= excess <= most + 1e-4


@given(st.lists(st.booleans(), max_size=200))
def test_with_one_response_per_prompt_the_clustered_interval_is_wilsons(verdicts):
    interval = clustered_interval((1, right) for right in verdicts)
    assert interval == pytest.approx(wilson_interval(sum(verdicts), len(verdicts)))


@given(st.lists(st.tuples(st.integers(1, 16), st.floats(0, 1)), min_size=1, max_size=60))
def test_a_clustered_interval_lies_within_0_and_1_and_holds_the_share(prompts):
    clusters = [(n, round(n * share)) for n, share in prompts]
    low, high = clustered_interval(clusters)
    share = sum(right for _, right in clusters) / sum(n for n, _ in clusters)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=300), st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(values, percent):
    enough = [v for v in values if 100 * sum(w <= v for w in values) >= percent * len(values)]
    assert percentile_of_counts(Counter(values), percent) == min(enough)
