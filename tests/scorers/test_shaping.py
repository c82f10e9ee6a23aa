import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.shaping import Correct, Format, Length, Repetition
from tests.tables import every

RIGHT = Score(1.0, True, "18", Status.CORRECT)
WRONG = Score(-1.0, False, "17", Status.WRONG)
TAGGED = "<think>a</think>\n<answer>b</answer>\n"

values = st.floats(-1e6, 1e6)


def tagged(response, **settings):
    return Format(weight=1, **settings).value(RIGHT, response)


def repetition(response, **settings):
    return Repetition(weight=1, **settings).value(RIGHT, response)


def length(score, chars, max_chars=1000, **settings):
    return Length(weight=1, max_chars=max_chars, **settings).value(score, "x" * chars)


@every(
    ("response", "settings", "value"),
    [
        ("<think>a</think><answer>b</answer>", {}, 1.0),
        ("well <think>\na\n</think> so\n<answer>b</answer>.", {}, 1.0),
        ("<think>a</think><answer> \n</answer>", {}, 0.0),
        ("<think>I write <answer> next</think><answer>b</answer>", {}, 0.0),
        ("</think><think>a</think><answer>b</answer>", {}, 0.0),
        ("<Think>a</Think><answer>b</answer>", {}, 0.0),
        (TAGGED, {"outside": False}, 1.0),
        (f"so {TAGGED}", {"outside": False}, 0.0),
        (TAGGED.replace("\n", "so", 1), {"outside": False}, 0.0),
    ],
)
def test_format_requires_each_tag_once_in_order_and_not_empty(response, settings, value):
    assert tagged(response, **settings) == value


@every(
    ("response", "score", "value"),
    [
        ("Ja, das", RIGHT, 1.0),
        ("<think>long enough</think> Ja, \n\n  da", RIGHT, 0.0),
        ("long enough", WRONG, 0.0),
    ],
)
def test_a_short_response_is_not_paid_and_blanks_and_thoughts_do_not_count(response, score, value):
    assert Correct(weight=1, min_chars=6).value(score, response) == value


@every(
    ("response", "settings", "value"),
    [
        ("abab", {"n": 2}, -1 / 3),  # ab, ba, ab
        ("a" * 20, {}, 0.0),
        ("abab", {"n": 2, "max_penalty": 0.3}, -0.1),
        ("因此我们需要重新计算这个表达式的值然后检查结果是否正确。", {}, 0.0),
        ("因此我们需要重新计算。" * 500, {}, -1.0),
    ],
)
def test_repetition_is_the_share_of_repeated_runs(response, settings, value):
    assert repetition(response, **settings) == pytest.approx(value, abs=0.01)


@given(st.text("ab我"), st.integers(1, 30), st.floats(0, 10))
def test_repetition_stays_in_range(response, n, most):
    assert -most <= repetition(response, n=n, max_penalty=most) <= 0.0


def test_length_prefers_short_right_answers_and_is_even_for_wrong_ones():
    for score, expected in ((RIGHT, [1.0, 0.75, 0.5, 0.5]), (WRONG, [-1.0] * 4)):
        assert [length(score, c) for c in (0, 500, 1000, 9000)] == pytest.approx(expected)


@given(st.booleans(), st.integers(0, 999), st.integers(1, 999), values, values)
def test_length_stays_between_its_values(is_right, chars, most, short, long):
    short, long = (short, long) if is_right else (max(short, long), min(short, long))
    kind = "correct" if is_right else "wrong"
    ends = {f"short_{kind}": short, f"long_{kind}": long}
    value = length(RIGHT if is_right else WRONG, chars, most, **ends)
    slack = 1e-9 * max(1.0, abs(short), abs(long))
    assert min(short, long) - slack <= value <= max(short, long) + slack


@pytest.mark.parametrize("unit", ["<think>", "<think>a</think>", "a", "<", "我们", "<answer>x"])
def test_time_is_linear_in_the_response(unit):
    """A quadratic step on 1 MB would take hours."""
    hostile = unit * (1_000_000 // len(unit))
    start = time.process_time()
    tagged(hostile)
    tagged(f"<think>{hostile}", tags=["think"], outside=False)
    repetition(hostile)
    assert time.process_time() - start < 5
