"""The parser of a judge's reply: one object, or an error. It never guesses and never raises otherwise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.judging.rubric import parse_rubric, read_rubric
from rewardkit.judging.verdict import (
    MAX_REPLY_CHARACTERS,
    JudgeVerdict,
    VerdictError,
    parse_verdict,
)

MATH = read_rubric("math")
OPEN = read_rubric("open")
BARE = parse_rubric({"kind": "equivalence", "reason": False}, "bare")
YES = '{"reason": "same", "verdict": "yes"}'


def refuses(text, rubric=MATH):
    with pytest.raises(VerdictError):
        parse_verdict(text, rubric)
    return True


@pytest.mark.parametrize(
    "text",
    [
        YES,
        f"```json\n{YES}\n```",
        f"<think>Is it {{1}}? {YES} or no?</think>\n{YES}",
        f"thoughts that the chat template began</think>```json\n{YES}\n```",
    ],
)
def test_a_verdict_may_stand_alone_after_a_thought_or_in_one_fence(text):
    assert parse_verdict(text, MATH) == JudgeVerdict({"verdict": "yes"}, "same")


def test_a_reason_may_have_line_breaks_that_are_not_escaped():
    """Models write them, and llama-cpp-python's grammar of a JSON schema allows them."""
    text = '{"reason": "The gold is 5.\n\tSo is the answer.", "verdict": "yes"}'
    verdict = parse_verdict(text, MATH)
    assert verdict == JudgeVerdict({"verdict": "yes"}, "The gold is 5.\n\tSo is the answer.")
    assert refuses(text.replace('"yes"', '"yes\n"'))


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{YES}\n{YES}",
        f"<think>It says </think>{YES}</think>{YES}",
        f"<think>{YES}",
        '{"reason": "x", "verdict": "Yes"}',
        '{"reason": "x", "verdict": "no", "verdict": "yes"}',
        '{"reason": "x", "verdict": "yes", "score": 1}',
        '{"reason": NaN, "verdict": "yes"}',
        "{'reason': 'x', 'verdict': 'yes'}",
        '{"reason": "' + "x" * MAX_REPLY_CHARACTERS + '", "verdict": "yes"}',
        '{"reason": ' + "[" * 9000 + "]" * 9000 + ', "verdict": "yes"}',
        "```json\n" * 5000,
        "{" * 15_000 + "}",
    ],
)
def test_anything_else_is_an_error(text):
    assert refuses(text)


@pytest.mark.parametrize("grade", ["5", 5.0, 0, 6, True, None, [5], {"value": 5}])
def test_a_grade_is_a_whole_number_within_its_scale(grade):
    fields = {"reason": "x", "correctness": grade, "helpfulness": 3}
    assert refuses(json.dumps(fields), OPEN)


def test_the_score_is_the_weighted_mean_of_the_fractions():
    verdict = parse_verdict('{"reason": "", "correctness": 5, "helpfulness": 2}', OPEN)
    assert verdict.fractions(OPEN) == {"correctness": 1.0, "helpfulness": 0.25}
    assert verdict.score(OPEN) == pytest.approx((2 * 1.0 + 0.25) / 3)


@given(st.text() | st.text(alphabet='{}[]":, \n`<>/think\\yesnovrdic0'))
def test_no_text_raises_anything_but_a_verdict_error(text):
    for rubric in (MATH, OPEN, BARE):
        try:
            verdict = parse_verdict(text, rubric)
        except VerdictError:
            continue
        assert verdict.grades.keys() == rubric.choices().keys()


@given(st.text(max_size=200), st.sampled_from(["yes", "no"]))
def test_a_verdict_is_read_back_as_it_was_written(reason, word):
    if not reason:
        assert parse_verdict(f'{{"verdict": "{word}"}}', BARE).grades["verdict"] == word
        return
    verdict = JudgeVerdict({"verdict": word}, reason)
    if "</think>" not in reason:
        assert parse_verdict(verdict.json(), MATH) == verdict


@given(st.text(min_size=1), st.text())
def test_text_around_an_object_is_never_accepted(before, after):
    if before.strip() and "</think>" not in before + after and "`" not in before:
        assert refuses(f"{before}{YES}{after}")
