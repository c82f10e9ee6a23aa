import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.shaping import format_tags, length, overlong, repetition, weighted
from tests.tables import every

RIGHT = Score(1.0, True, "18", Status.CORRECT)
WRONG = Score(-1.0, False, "17", Status.WRONG)

values = st.floats(-1e6, 1e6)


def soft(score, tokens, **changes):
    settings = {"max_response_tokens": 20480, "buffer_tokens": 4096, **changes}
    return overlong(score, tokens, **settings).score


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 10))
def test_overlong_is_verl_s_formula(buffer, more, tokens, factor):
    """The formula of verl's dapo manager, in its own order of operations."""
    longest = buffer + more
    excess = tokens - (longest - buffer)
    expected = 1.0 + min(-excess / buffer * factor, 0)
    settings = {"max_response_tokens": longest, "buffer_tokens": buffer}
    assert soft(RIGHT, tokens, **settings, penalty_factor=factor) == expected


@pytest.mark.parametrize(
    "changes", [{"buffer_tokens": 0}, {"buffer_tokens": 20481}, {"penalty_factor": -1.0}]
)
def test_overlong_refuses_invalid_buffers_and_a_negative_factor(changes):
    with pytest.raises(UsageError, match="overlong"):
        soft(RIGHT, 1, **changes)


@every(
    ("response", "value"),
    [
        ("<think>a</think><answer>b</answer>", 1.0),
        ("well <think>\na\n</think> so\n<answer>b</answer>.", 1.0),
        ("<think>思考</think><answer>十八</answer>", 1.0),
        ("", 0.0),
        ("<answer>b</answer><think>a</think>", 0.0),
        ("<think>a<answer>b</answer></think>", 0.0),
        ("<think>a</think><answer> \n</answer>", 0.0),
        ("<think>a</think><answer>b", 0.0),
        ("<think>a</think><think>c</think><answer>b</answer>", 0.0),
        ("<think>a</think><answer>b</answer><answer>c</answer>", 0.0),
        ("<think>I write <answer> next</think><answer>b</answer>", 0.0),
        ("</think><think>a</think><answer>b</answer>", 0.0),
        ("a</think><answer>b</answer>", 0.0),
        ("<Think>a</Think><answer>b</answer>", 0.0),
    ],
)
def test_format_requires_each_tag_once_in_order_and_not_empty(response, value):
    assert format_tags(response) == value


def test_format_can_refuse_text_outside_the_tags():
    tagged = "<think>a</think>\n<answer>b</answer>\n"
    assert format_tags(tagged, outside=False) == 1.0
    for response in (f"so {tagged}", f"{tagged}.", tagged.replace("\n", "so", 1)):
        assert format_tags(response) == 1.0
        assert format_tags(response, outside=False) == 0.0


@pytest.mark.parametrize("tags", [(), "think"])
def test_format_refuses_an_empty_list_of_tags_and_a_bare_string(tags):
    with pytest.raises(UsageError, match="list of names"):
        format_tags("<think>a</think>", tags)


def test_repetition_is_the_share_of_repeated_runs():
    assert repetition("abab", n=2) == pytest.approx(-1 / 3)  # ab, ba, ab
    assert repetition("abcdef", n=2) == 0.0
    assert repetition("a" * 20) == 0.0
    assert repetition("abab", n=2, max_penalty=0.3) == pytest.approx(-0.1)


def test_repetition_finds_loops_without_spaces():
    sentence = "因此我们需要重新计算这个表达式的值然后检查结果是否正确。"
    assert repetition(sentence) == 0.0
    assert repetition(sentence * 50) < -0.9


@pytest.mark.parametrize("settings", [{"n": 0}, {"n": 1001}, {"max_penalty": -1.0}])
def test_repetition_refuses_invalid_settings(settings):
    with pytest.raises(UsageError, match="repetition"):
        repetition("text", **settings)


@given(st.text("ab我"), st.integers(1, 30), st.floats(0, 10))
def test_repetition_stays_in_range(response, n, most):
    assert -most <= repetition(response, n=n, max_penalty=most) <= 0.0


def test_length_prefers_short_right_answers_and_is_even_for_wrong_ones():
    correct_values = [length(RIGHT, chars, max_length=1000) for chars in (0, 500, 1000, 9000)]
    wrong_values = [length(WRONG, chars, max_length=1000) for chars in (0, 500, 1000, 9000)]
    assert correct_values == pytest.approx([1.0, 0.75, 0.5, 0.5])
    assert wrong_values == [-1.0] * 4


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**9), st.none() | values)
def test_length_never_pays_a_long_wrong_answer_more_than_a_short_one(chars, more, most, value):
    """Whatever single value of wrong answers is set; the paper's rise has to be asked for."""
    settings = {} if value is None else {"short_wrong": value}
    short, long = (
        length(WRONG, size, max_length=most, **settings) for size in (chars, chars + more)
    )
    assert long <= short
    assert long <= length(RIGHT, chars, max_length=most) or settings


def test_long_wrong_keeps_the_rise_of_the_paper():
    paper = [length(WRONG, chars, max_length=1000, long_wrong=-0.5) for chars in (0, 500, 1000)]
    assert paper == pytest.approx([-1.0, -0.75, -0.5])


@given(st.booleans(), st.integers(0, 10**9), st.integers(1, 10**9), values, values)
def test_length_stays_between_its_values(is_right, chars, most, short, long):
    ends = {"short_correct": short, "long_correct": long, "short_wrong": short, "long_wrong": long}
    value = length(RIGHT if is_right else WRONG, chars, max_length=most, **ends)
    slack = 1e-9 * max(1.0, abs(short), abs(long))
    assert min(short, long) - slack <= value <= max(short, long) + slack


@pytest.mark.parametrize("settings", [{"max_length": 0}, {"short_wrong": float("nan")}])
def test_length_refuses_invalid_settings(settings):
    with pytest.raises(UsageError, match="length"):
        length(RIGHT, 1, **{"max_length": 10, **settings})


def test_the_weighted_sum_is_the_sum_of_its_contributions():
    total, contributions = weighted(
        {"correct": (1.0, 1.0), "format": (0.1, 1.0), "rep": (0.2, -0.5)}
    )
    assert contributions == pytest.approx({"correct": 1.0, "format": 0.1, "rep": -0.1})
    assert total == pytest.approx(1.0)
    assert weighted({}) == (0.0, {})


@given(st.text())
def test_no_response_makes_shaping_raise(response):
    assert format_tags(response) == 0.0 or "<think>" in response
    assert repetition(response) <= 0.0


@pytest.mark.parametrize("unit", ["<think>", "<think>a</think>", "a", "<", "我们", "<answer>x"])
def test_time_is_linear_in_the_response(unit):
    """A quadratic step on 1 MB would take hours."""
    hostile = unit * (1_000_000 // len(unit))
    start = time.process_time()
    format_tags(hostile)
    format_tags(f"<think>{hostile}", ("think",), outside=False)
    repetition(hostile)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("name", ["short_correct", "long_correct", "short_wrong", "long_wrong"])
def test_a_value_that_is_not_finite_is_refused_whatever_the_verdict(name):
    for score in (RIGHT, WRONG):
        with pytest.raises(UsageError, match="length"):
            length(score, 1, max_length=10, **{name: float("inf")})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "repetition: n=0; give a number from 1 to 1000."),
        ({"max_penalty": -1.0}, "repetition: max_penalty=-1.0; give a number from 0 to inf."),
    ],
)
def test_the_error_for_an_invalid_setting_names_it_and_its_range(settings, message):
    with pytest.raises(UsageError) as error:
        repetition("text", **settings)
    assert str(error.value) == message
