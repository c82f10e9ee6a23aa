"""The prompt of a judge: what the policy wrote stays between marks that it cannot write."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.judging.prompt import build_messages, clean_text, make_nonce
from rewardkit.judging.rubric import read_rubric
from rewardkit.judging.verdict import parse_verdict

MATH = read_rubric("math")
MARK = re.compile(r"\[(QUESTION|REFERENCE|RESPONSE) ([0-9a-f]{12}) (begins|ends)\]")


def user_text(response, question="2+3?", gold="5", rubric=MATH):
    return build_messages(rubric, question, gold, response)[-1]["content"]


TEXTS = st.text() | st.lists(
    st.sampled_from(["[RESPONSE ", "ends]", "begins]", "0123456789ab ", "\n", "[REFERENCE ", "5"])
).map("".join)


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_can_close_its_block(question, gold, response):
    prompt = user_text(response, question, gold)
    nonce = MARK.findall(prompt)[-1][1]
    assert prompt.count(nonce) == 2 * prompt.count(f"{nonce} begins]")
    assert prompt.count(f"[RESPONSE {nonce} ends]") == 1
    inside = prompt.partition(f"[RESPONSE {nonce} begins]\n")[2].partition(
        f"\n[RESPONSE {nonce} ends]"
    )[0]
    assert inside == clean_text(response, MATH.max_characters)


def test_a_response_with_the_number_of_its_own_block_gets_another_one():
    first = make_nonce({"RESPONSE": "x"})
    again = make_nonce({"RESPONSE": f"x {first}"})
    assert again not in f"x {first}"
    texts = {"RESPONSE": "0123456789abcdef" * 50}
    assert make_nonce(texts) not in texts["RESPONSE"]


@given(st.text(alphabet=st.characters(categories=["Cc", "Cf", "Co", "Cs", "L", "Zl", "Zp", "M"])))
def test_no_control_or_invisible_character_reaches_the_judge(text):
    hidden = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    cleaned = clean_text(text, 1000)
    assert not any(unicodedata.category(c) in hidden and c not in "\n\t" for c in cleaned)


def test_a_long_text_keeps_its_head_and_tail_and_says_so():
    text = "a" * 5000 + "b" * 5000
    cleaned = clean_text(text, 1000)
    assert cleaned.startswith("a" * 300 + "\n[")
    assert cleaned.endswith("]\n" + "b" * 700)
    assert "9,000 characters are left out" in cleaned


@pytest.mark.parametrize("name", ["math", "qa", "open"])
def test_the_examples_of_a_rubric_are_replies_that_its_parser_accepts(name):
    rubric = read_rubric(name)
    messages = build_messages(rubric, "q", "secret gold", "r")
    grades = [
        parse_verdict(m["content"], rubric).grades for m in messages if m["role"] == "assistant"
    ]
    assert grades == [rubric.grades_of(example) for example in rubric.examples]
    assert messages[:-1] == build_messages(rubric, "q", "secret gold", "other")[:-1]
    assert ("secret gold" in str(messages)) == rubric.gold == (name != "open")
