"""Every point and interval is inside the chart, drawn as dots or as a band."""

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.pages.charts import MAX_DOTS, line_layout
from rewardkit.pages.html import to_html
from rewardkit.pages.model import LineChart, LinePoint, Page

POINTS = st.lists(
    st.tuples(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    min_size=1,
    max_size=80,
    unique_by=lambda point: point[0],
)


@given(POINTS, st.booleans())
def test_every_point_and_interval_is_inside_the_line_chart(values, from_zero):
    points = []
    for step, *shares in sorted(values):
        low, value, high = sorted(shares)
        points.append(LinePoint(step, value, low, high))
    layout = line_layout(LineChart("t", tuple(points), from_zero=from_zero))
    for dot in layout.dots:
        assert 0 <= dot.x <= 100
        assert -0.01 <= dot.high_y <= dot.y <= dot.low_y <= layout.height + 0.01
    levels = [y for _, y in layout.y_ticks]
    assert levels == sorted(levels, reverse=True)
    assert 2 <= len(levels) <= 12
    assert len(layout.x_ticks) <= 8
    assert (
        layout.y_ticks[0][0] == ("0%" if "." not in layout.y_ticks[0][0] else "0.0%")
        or not from_zero
    )


def test_a_long_line_has_a_band_and_a_short_one_has_dots():
    points = tuple(LinePoint(step, 0.5, 0.4, 0.6) for step in range(MAX_DOTS + 1))
    html = to_html(Page("title", (), (LineChart("t", points),)))
    assert "<polygon" in html
    assert "<circle" not in html
    html = to_html(Page("title", (), (LineChart("t", points[1:]),)))
    assert "<polygon" not in html
    assert html.count("<circle") == MAX_DOTS
