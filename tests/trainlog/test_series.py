"""Statistics of noisy curves, and sparklines."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.trainlog.series import fall_step, finite, sparkline, trend

numbers = st.one_of(st.floats(-1e306, 1e306), st.sampled_from([nan, inf, -inf]))


@given(st.lists(numbers, max_size=200))
def test_a_sparkline_has_a_mark_for_each_part_of_any_curve(values):
    series = list(enumerate(values))
    line = sparkline(series)
    assert len(line) == min(len(values), 24)
    assert set(line) <= set("▁▂▃▄▅▆▇█×")
    assert ("×" * len(line) == line) == (not finite(series))


@given(st.floats(-1e6, 1e6), st.floats(0.01, 100), st.integers(0, 100))
def test_a_constant_curve_has_no_trend_and_a_straight_line_has_its_own(level, slope, n):
    assert trend([(i, level) for i in range(n)]) == (0 if n >= 5 else None)
    for sign in (1, -1) if n >= 5 else ():
        assert sign * trend([(i, sign * slope * i) for i in range(n)]) > 0


def test_a_trend_is_the_mean_of_the_last_fifth_minus_that_of_the_first():
    """Of 30 points these are the last 6 and the first 6; points without a value do not count."""
    values = [0.0, 0.2, 0.1, 0.1, 0.2, 0.0, *[9.0] * 18, 5.0, 5.2, 5.1, 5.1, 5.2, 5.0]
    series = list(enumerate(values))
    assert trend(series) == pytest.approx(5.0)
    assert trend([*series[:3], (99, nan), *series[3:]]) == pytest.approx(5.0)
    assert trend(list(enumerate([*range(15), *reversed(range(15))]))) == 0


def test_a_curve_falls_where_it_stays_low_and_single_points_do_not_count():
    values = [5, 5, 1, 5, 5, 5, 5, 1, 1, 1, 9, 1, 1]
    assert fall_step(list(enumerate(values, start=1)), 3) == 8
    assert fall_step([(1, 0.0), (2, 0.0)], 3) == 1
    assert fall_step([(1, 5.0), (2, 5.0)], 3) == 2
