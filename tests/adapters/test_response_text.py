"""Adapters extract the text of the response."""

import time
from types import SimpleNamespace

import pytest

from rewardkit.adapters.common import SampleScorer
from rewardkit.adapters.response_text import response_after_prompt, response_text
from rewardkit.scorers import math_dapo
from tests.tables import every

ROW = {"data_source": "openai/gsm8k", "ground_truth": "4", "extra_info": {"index": 0}}


@pytest.mark.parametrize(
    "mark", ["<|im_end|>", "</s>", "<｜end▁of▁sentence｜>", "<|im_end|>\n<|endoftext|>"]
)
def test_special_tokens_at_the_end_are_removed(mark):
    """verl removes special tokens; with one, math_dapo would give another verdict than in verl."""
    assert math_dapo.score(f"Answer: 4{mark}", "4").score == -1.0
    assert SampleScorer("math_dapo")(f"Answer: 4{mark}", ROW)["score"] == 1.0
    assert response_text(f"a {mark} b ") == f"a {mark} b "


def test_many_special_tokens_take_linear_time():
    text = "<|a|> " * 50_000
    start = time.process_time()
    assert response_text(f"x{text}") == "x"
    assert time.process_time() - start < 10  # seconds; a quadratic step takes minutes


CALL = {"role": "assistant", "content": None, "tool_calls": []}


def assistant(content):
    return {"role": "assistant", "content": content}


@every(
    ("messages", "text"),
    [
        (
            [
                assistant(
                    [{"type": "reasoning", "text": r"\boxed{B}"}, {"type": "text", "text": "No."}]
                )
            ],
            "No.",
        ),
        (assistant(["#### 1", "8"]), "#### 18"),
        ([SimpleNamespace(role="assistant", content="#### 4")], "#### 4"),
        ([CALL, {"role": "tool", "content": "5"}, assistant("#### 4")], "#### 4"),
        ([assistant("#### 5"), assistant(None)], ""),
        ([{"role": "user", "content": "#### 4"}], ""),
        *(([], ""), (None, ""), ("the answer is <|18|>", "the answer is <|18|>")),
    ],
)
def test_the_response_in_messages_is_the_last_of_the_assistant(messages, text):
    assert response_text(messages) == text


@every(
    ("query", "prompt", "response"),
    [
        ("2+2= 4</s>", "2+2=", " 4"),
        ("Q<|im_end|>A<|im_end|>\n<|endoftext|>", "Q<|im_end|>", "A"),
        ("Q<｜Assistant｜>x > y<｜end▁of▁sentence｜>", "Q<｜Assistant｜>", "x > y"),
        ("of it?\nA: 4", "a" * 90 + "the end of it?\nA:", None),
        ("#### 5\nNow: 2 Ω?<|im_end|>No.", "#### 5\nNow: 2 \u2126?<|im_end|>", "No."),
        ("caf\u00e9 " * 30 + "No.", "cafe\u0301 " * 30, "No."),
        ("x" * 70 + " 4 #### 2", "cut off" + "x" * 80, " 4 #### 2"),
        ("Q" + "long " * 999 + "4</s>", "Q", "long " * 999 + "4"),
    ],
)
def test_the_response_begins_where_the_prompt_ends(query, prompt, response):
    assert response_after_prompt(query, prompt) == response
