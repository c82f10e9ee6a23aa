"""Differences of runs come with reliable intervals and with the settings that differ."""

from __future__ import annotations

import json
from math import nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.page import verdict_badges
from rewardkit.trainlog.run_comparison import (
    CurveDifference,
    MeanInterval,
    compare_runs,
    correlated_mean_interval,
)
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.tables import comparison_tables
from tests.trainlog.runs import make_run, run_logs

METRICS = ("critic/rewards/mean", "val-core/s/acc/mean@1")


def make(name, rewards, first=1, seconds=36.0, **config):
    rows = (
        (step, {"timing_s/step": seconds, **dict.fromkeys(METRICS, reward)})
        for step, reward in enumerate(rewards, first)
    )
    return make_run(rows, name, **config)


def compare(base, other, align="step", **options):
    (comparison,) = compare_runs(
        [summarize(make("a", base)), summarize(make("b", other, **options))], align
    )
    return comparison


def test_every_common_curve_is_compared_at_common_steps():
    comparison = compare([0.0] * 13, [0.5] * 13, first=6)
    titles = [item.title for item in comparison.differences]
    assert titles == ["reward", "seconds per step", "validation s"]
    reward = comparison.differences[0]
    assert (reward.n, reward.base, reward.other) == (8, 0.0, 0.5)
    assert (reward.whole.low, reward.whole.mean, reward.whole.high) == (0.5, 0.5, 0.5)
    assert reward.whole.excludes_zero


@pytest.mark.parametrize(("align", "least", "most"), [("hours", 0.1, 1), ("step", 0, 0)])
def test_runs_are_compared_at_the_same_time_or_step(align, least, most):
    rewards = [i / 10 for i in range(1, 11)]
    assert least <= compare(rewards, rewards, align, seconds=18.0).differences[0].whole.mean <= most


def test_runs_without_common_steps_and_single_runs_are_refused():
    with pytest.raises(DataError, match=r"a\.log and b\.log"):
        compare([1, 2, 3], [1, 2, 3], first=100)
    with pytest.raises(UsageError, match="two runs"):
        compare_runs([summarize(make("a", [1, 2]))])


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=60))
def test_an_interval_contains_the_mean_and_is_deterministic(values):
    interval = correlated_mean_interval(values)
    assert interval == correlated_mean_interval(values)
    assert (interval.low is None) == (interval.high is None)
    if interval.low is not None:
        assert interval.low <= interval.mean <= interval.high
        assert len(values) >= 8


def test_values_that_are_not_finite_are_counted_and_not_compared():
    """A curve that is NaN throughout has no difference; it must not vanish."""
    comparison = compare([0.5] * 10, [nan] * 3 + [0.5] * 7)
    assert {(m.name, m.base, m.other) for m in comparison.not_finite} >= {("reward", 0, 3)}
    assert comparison.differences[0].n == 7
    comparison = compare([0.5] * 10, [nan] * 10)
    assert "reward" not in {difference.title for difference in comparison.differences}
    assert ("reward", "0", "10") in comparison_tables(comparison)[1].rows


@pytest.mark.parametrize(
    "values", [[1.0] * 7, [0.1 * i for i in range(40)], [1e300, -1e300, 1e308] * 5]
)
def test_too_few_points_and_infinite_squares_have_no_interval_and_no_star(values):
    interval = correlated_mean_interval(values)
    assert (interval.low, interval.high, interval.excludes_zero) == (None, None, False)


def test_curves_without_an_interval_do_not_count_as_equal():
    """Such as a reward that is constant in one run and grows in the other."""
    comparison = compare([0.01 * i for i in range(40)], [0.0] * 40)
    badges = verdict_badges([comparison], "en")
    assert [badge.text for badge in badges] == ["no interval on 2 of 3 curves"]


@pytest.mark.parametrize(
    ("correlation", "n", "most"), [(0.0, 8, 0.1), (0.0, 20, 0.1), (0.0, 60, 0.1), (0.8, 60, 0.15)]
)
def test_noise_without_a_difference_rarely_excludes_zero(correlation, n, most):
    significant = 0
    for seed in range(1000):
        rng, value, values = Random(seed), 0.0, []
        for _ in range(n + 50):
            value = correlation * value + rng.gauss(0, 1)
            values.append(value)
        significant += correlated_mean_interval(values[50:]).excludes_zero
    assert significant <= most * 1000
    rng = Random(1)
    assert correlated_mean_interval([0.5 + rng.gauss(0, 0.2) for _ in range(20)]).excludes_zero


def test_settings_are_compared_by_value_not_by_spelling():
    a = make("a", [1, 2], actor__lr="1e-6", actor__use_kl_loss="True", data__n=8, only_a=1)
    b = make("b", [1, 2], actor__lr=1e-06, actor__use_kl_loss=False, data__n=16)
    (comparison,) = compare_runs([summarize(a), summarize(b)])
    settings = [(item.name, item.base, item.other) for item in comparison.settings]
    assert settings == [("actor.use_kl_loss", "True", False), ("data.n", 8, 16)]
    assert comparison.keys_only_in == {"base": 1, "other": 0}


def test_the_command_prints_differences_and_settings(tmp_path):
    paths = []
    for name, gain, kl in (("with", 0.01, True), ("without", 0.02, False)):
        line = "step:{} - critic/rewards/mean:{} - actor/entropy:0.5\n"
        head = f"{{'actor_rollout_ref': {{'actor': {{'use_kl_loss': {kl}}}}}}}\n"
        paths.append(tmp_path / f"{name}.log")
        paths[-1].write_text(head + "".join(line.format(i, gain * i) for i in range(1, 41)))
    result = run_logs("compare", *paths)
    assert result.exit_code == 0
    texts = ["without compared with with", "+0.205", "actor_rollout_ref.actor.use_kl_loss", "*"]
    texts += ["+0.365 (too few)"]  # the last fifth: 8 steps that grow
    assert [text for text in texts if text not in result.stdout] == []
    (comparison,) = json.loads(run_logs("compare", *paths, "--json").stdout)
    assert comparison["differences"][0]["whole"]["mean"] == pytest.approx(0.205)
    assert comparison["settings"][0]["other"] is False
    assert isinstance(run_logs("compare", paths[0]).exception, UsageError)


@pytest.mark.parametrize(
    ("interval", "better", "verdict"),
    [
        ((1.0, 0.5, 1.5), "higher", "better"),
        ((1.0, 0.5, 1.5), "lower", "worse"),
        ((-1.0, -1.5, -0.5), "", "lower"),
        ((1.0, -0.5, 2.5), "higher", "unclear"),
        ((1.0, None, None), "higher", "too_few"),
    ],
)
def test_a_difference_says_better_only_with_an_interval_and_a_direction(interval, better, verdict):
    whole, values = MeanInterval(*interval), {"title": "t", "n": 9, "base": 0.0, "other": 1.0}
    assert CurveDifference(whole=whole, end=whole, better=better, **values).verdict == verdict
