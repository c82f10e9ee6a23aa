"""Whether a response states the gold is compared as text, whatever the scorer says."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.recorder.gold import stated_answer, states_gold


@pytest.mark.parametrize(
    ("response", "gold", "expected"),
    [
        (r"so \boxed{18}", "18", True),
        (r"\boxed{17} or \boxed{18}", "18", True),  # the last answer counts
        (r"\boxed{\frac{1}{2}} and more text", r"\dfrac{1}{2}", True),
        (r"\boxed{1,800.0}", "1800", True),
        ("first #### 17 then #### 18", "5 + 13 = 18 #### 18", True),
        ("<think>x</think><answer> Paris </answer>", "paris", True),
        ("Therefore the answer is (B).<|im_end|>", "B", True),
        ("10 + 8 = 18. I do not know the answer.", "18", False),
        (r"\boxed{7}", '["6", "7"]', True),
        (r"\boxed{7}", 7, True),
        (r"\boxed{}", "18", False),
        ("anything", "", None),
        ("anything", "an essay " * 100, None),
    ],
)
def test_the_last_stated_answer_is_compared_with_the_gold(response, gold, expected):
    assert states_gold(response, gold) is expected


@given(st.text(max_size=60), st.one_of(st.text(max_size=20), st.none(), st.lists(st.integers())))
def test_no_text_raises(response, gold):
    states_gold(response, gold)
    states_gold(rf"\boxed{{{response}", gold)


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "answer is ", "#### ", "{", "9", "answer  ", "<answer>"]
)
def test_hostile_responses_take_bounded_work(piece):
    text = piece * (1_000_000 // len(piece))
    started = time.perf_counter()
    assert states_gold(text, "18") is False
    assert len(stated_answer(text)) <= 200
    assert time.perf_counter() - started < 0.5
