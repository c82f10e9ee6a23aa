"""Every element of a chart is inside it, and its axes have few round labels."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.charts import (
    MAX_BINS,
    LinePoint,
    line_layout,
    make_bins,
    round_levels,
    round_ticks,
)
from rewardkit.pages.model import Histogram

POINTS = st.lists(
    st.tuples(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    min_size=1,
    max_size=80,
    unique_by=lambda point: point[0],
)


@given(POINTS)
def test_every_point_and_interval_is_inside_the_line_chart(values):
    points = []
    for step, *shares in sorted(values):
        low, value, high = sorted(shares)
        points.append(LinePoint(step, value, low, high))
    layout = line_layout("t", points)
    for dot in layout.dots:
        assert 0 <= dot.x <= 100
        assert -0.01 <= dot.high_y <= dot.y <= dot.low_y <= layout.height + 0.01
    levels = [y for _, y in layout.y_ticks]
    assert levels == sorted(levels, reverse=True)
    assert 2 <= len(levels) <= 12
    assert len(layout.x_ticks) <= 8
    assert layout.y_ticks[0][0] in ("0%", "0.0%")


COUNTS = st.dictionaries(st.integers(), st.integers(0, 10**6), max_size=60)


@given(COUNTS, st.none() | st.integers())
@example({5: 1000, 7: 1}, None)
@example({1: 100_000, 10**400: 1}, 3)
def test_every_value_is_in_one_bin(counts, limit):
    bins = make_bins(counts, limit)
    assert len(bins) <= MAX_BINS
    assert sum(item.rows for item in bins) == sum(counts.values())
    for value, n in counts.items():
        containing = [item for item in bins if item.low <= value <= item.high]
        assert len(containing) == 1 or not n
    for item in bins:
        assert item.rows == sum(counts.get(v, 0) for v in counts if item.low <= v <= item.high)
    widths = [item.high - item.low + 1 for item in bins]
    assert len({*widths[:-1]}) <= 1
    assert all(a.high + 1 == b.low for a, b in pairwise(bins))


def test_a_histogram_counts_the_rows_above_its_limit():
    assert Histogram("t", {5: 2, 9: 3, 10: 4}, "tokens", (), 9).rows_over_limit == 4


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


@given(st.floats(0, 1), st.floats(0, 1))
def test_levels_enclose_the_values(a, b):
    low, high = sorted((a, b))
    levels = round_levels(low, high)
    assert levels[0] <= low + 1e-9
    assert levels[-1] >= high - 1e-9
    assert 2 <= len(levels) <= 7
