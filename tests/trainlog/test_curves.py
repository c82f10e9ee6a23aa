"""Curves: statistics, topics of all releases, and every text in both languages."""

from math import inf, nan
from pathlib import Path
from string import Formatter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.trainlog import translations
from rewardkit.trainlog.rules import rules
from rewardkit.trainlog.series import fall_step, finite, sparkline, trend
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.topics import TOPICS, step_seconds, validations
from tests.trainlog.runs import make_run

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


def test_a_validation_uses_the_n_of_all_prompts_not_of_repeated_ones():
    row = {
        "val-core/s/acc/mean@2": 0.0,
        "val-aux/s/acc/mean@1": 0.12,
        "val-aux/s/reward/mean@1": 0.7,
        "val-aux/t/acc/mean@4": 0.5,
        "val-aux/t/acc/mean@3": 0.1,
        "val-core/t/acc/mean@8": 0.9,
    }
    assert validations(make_run({1: row})) == {"s": [(1, 0.12)], "t": [(1, 0.1)]}
    run = make_run({1: row}, actor_rollout_ref__rollout__val_kwargs__n=4)
    assert validations(run) == {"s": [(1, 0.12)], "t": [(1, 0.5)]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"testing": 20.0}, 120.0),  # from 0.6.1 on
        ({"testing": 200.0, "save_checkpoint": 50.0}, 350.0),  # 0.6.1 and 0.7.0
        ({"save_checkpoint": 50.0}, 150.0),
        ({"gen": 40.0, "testing": 20.0, "save_checkpoint": 50.0}, 120.0),  # from 0.7.1 on
        ({"gen": 20.0, "testing": 20.0, "save_checkpoint": 50.0}, 100.0),  # up to 0.5
    ],
)
def test_a_step_includes_phases_that_releases_time_outside_it(parts, expected):
    row = {"gen": 90.0, "adv": 5.0, "step": 100.0} | parts
    run = make_run({1: {f"timing_s/{name}": value for name, value in row.items()}})
    assert step_seconds(run) == [(1, expected)]
    summary = summarize(run)
    assert summary.seconds == expected
    assert sum(summary.phases.values()) == pytest.approx(1)


TEXTS = yaml.safe_load(
    Path(translations.__file__).with_name("translations.yaml").read_text(encoding="utf-8")
)


def fields(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("part", TEXTS)
def test_every_text_has_both_languages_and_the_same_fields(part):
    for name, text in TEXTS[part].items():
        assert set(text) == {"en", "zh"}, name
        assert all(text.values()), name
        assert fields(text["en"]) == fields(text["zh"]), name
    assert {topic.id for topic in TOPICS} <= TEXTS["topics"].keys()
    for rule in rules():
        for text in (rule.title, rule.when, rule.meaning, rule.advice, rule.source):
            assert set(text) == {"en", "zh"}, rule.id
