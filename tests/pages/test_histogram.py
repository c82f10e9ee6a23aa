"""Every value is in one bin, and every element of the chart inside its frame."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.charts import MAX_BINS, histogram_layout, make_bins
from rewardkit.pages.model import Histogram

COUNTS = st.dictionaries(st.integers(), st.integers(0, 10**6), max_size=60)


@given(COUNTS, st.none() | st.integers())
@example({5: 1000, 7: 1}, None)
@example({1: 100_000, 10**400: 1}, 3)
def test_every_value_is_in_one_bin(counts, limit):
    bins = make_bins(counts, limit)
    assert len(bins) <= MAX_BINS
    assert sum(item.count for item in bins) == sum(counts.values())
    for value, n in counts.items():
        containing = [item for item in bins if item.low <= value <= item.high]
        assert len(containing) == 1 or not n
    for item in bins:
        assert item.count == sum(counts.get(v, 0) for v in counts if item.low <= v <= item.high)
    widths = {item.high - item.low + 1 for item in bins if not item.is_overflow}
    assert len(widths) == bool(bins)
    assert all(a.high + 1 == b.low for a, b in pairwise(bins))


@given(COUNTS, st.none() | st.integers())
def test_every_element_of_a_histogram_is_inside_the_chart(counts, limit):
    marks = (("p50", min(counts, default=0)), ("max", max(counts, default=0)))
    layout = histogram_layout(Histogram("t", counts, "tokens", marks, limit))
    if layout is None:
        assert not any(counts.values())
        return
    assert layout.total == sum(counts.values())
    assert layout.over_limit == sum(n for v, n in counts.items() if limit is not None and v > limit)
    for bar in layout.bars:
        assert -0.01 <= bar.x <= bar.x + bar.width <= 100.01
        assert layout.top - 0.01 <= bar.y <= layout.base + 0.01
    places = [x for _, x in layout.x_ticks] + [mark.x for mark in layout.markers]
    assert all(0 <= x <= 100 for x in places)
    assert 1 <= len(layout.x_ticks) <= 8 or len(counts) <= 6
