"""Axes have few round numbers, whose labels leave room for each other."""

from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.charts import round_levels, round_ticks


def is_round(step):
    return str(step).rstrip("0") in {"1", "2", "5"}


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**12))
@example(0, 10**400)
def test_ticks_are_multiples_of_a_step_of_1_2_or_5_and_few(start, span):
    ticks = round_ticks(start, start + span)
    assert is_round(ticks.step)
    assert len(ticks) <= 8
    assert all(start <= tick < start + span and tick % ticks.step == 0 for tick in ticks)
    assert ticks or span < 10 or start % ticks.step


def test_long_labels_are_fewer():
    assert list(round_ticks(1, 137)) == [20, 40, 60, 80, 100, 120]
    assert list(round_ticks(0, 1_200_000)) == [0, 500_000, 1_000_000]


@given(st.floats(0, 1), st.floats(0, 1))
def test_levels_enclose_the_values(a, b):
    low, high = sorted((a, b))
    levels = round_levels(low, high)
    assert levels[0] <= low + 1e-9
    assert levels[-1] >= high - 1e-9
    assert 2 <= len(levels) <= 7
