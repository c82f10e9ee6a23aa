import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers import gsm8k
from rewardkit.scorers.base import Status
from rewardkit.scorers.gsm8k import score
from tests.tables import every

METHODS = ("strict", "flexible", "robust")
BIG = "2209999999999895142"


@every(
    ("response", "gold", "correct", "pred", "status"),
    [
        ("so #### 18", "18", True, "18", Status.CORRECT),
        ("#### 1,000", "1000", True, "1000", Status.CORRECT),
        ("#### 17 #### 18", "18", True, "18", Status.CORRECT),
        ("#### 18 so #### it is", "18", True, "18", Status.CORRECT),
        ("#### -1,8.5", "-18.5", True, "-18.5", Status.CORRECT),
        ("#### 18.", "18", False, "18.", Status.WRONG),
        ("#### $18", "18", False, "", Status.NO_ANSWER),
        ("####18", "18", False, "", Status.NO_ANSWER),
        (f"#### 18{' ' * 300}", "18", False, "", Status.NO_ANSWER),
        ("#### 1,000", "1,000", False, "1000", Status.BAD_GROUND_TRUTH),
        ("#### ,", "", False, "", Status.BAD_GROUND_TRUTH),
    ],
)
def test_strict_mode_reads_what_verl_reads(response, gold, correct, pred, status):
    result = score(response, gold)
    assert (result.correct, result.pred, result.status) == (correct, pred, status)


@every(
    "response",
    [
        *("#### 18", "#### 18.00", "#### $18", "#### 18 dollars", "#### 18.", "#### **18**"),
        *("####18", "#### \\boxed{18}", "#### 18<|im_end|>", "#### 17\nno, wait\n#### 18"),
        *(f"#### 18\n{'as shown above. ' * 40}", "#### １８"),
    ],
)
def test_robust_mode_reads_a_correct_answer_with_any_markup(response):
    result = score(response, "18", method="robust")
    assert (result.score, result.correct, result.status) == (1.0, True, Status.CORRECT)


@every(
    ("response", "gold", "pred", "status"),
    [
        ("18", "18", "", Status.NO_ANSWER),
        ("#### eighteen", "18", "eighteen", Status.UNPARSED_ANSWER),
        ("#### 18 or 19", "18", "18 or 19", Status.AMBIGUOUS_ANSWER),
        ("#### 18\n#### 19", "18", "19", Status.WRONG),
        (f"#### {BIG}5", f"{BIG}4", f"{BIG}5", Status.WRONG),
        (r"#### 12\frac{3}{5}", "123/5", r"12\frac{3}{5}", Status.WRONG),
        ("#### ١٨", "١٨", "١٨", Status.BAD_GROUND_TRUTH),
        ("#### 3", "", "3", Status.BAD_GROUND_TRUTH),
        ("#### 3", "3 or 4", "3", Status.BAD_GROUND_TRUTH),
    ],
)
def test_robust_mode_scores_other_answers_0(response, gold, pred, status):
    assert score(response, gold, method="robust") == (0.0, False, pred, status)


@pytest.mark.parametrize("method", METHODS)
@given(response=st.text(), gold=st.text())
def test_no_text_makes_the_scorer_raise_and_scores_stay_in_range(method, response, gold):
    result = score(response, gold, method=method)
    assert result.score in (0.0, 1.0)
    assert result.correct == (result.score == 1.0) == (result.status is Status.CORRECT)


@pytest.mark.parametrize("method", METHODS)
@given(st.integers(), st.integers(), st.text(max_size=400).filter(lambda t: "#" not in t))
def test_the_gold_in_the_requested_format_always_scores_and_no_other(method, gold, number, text):
    assert score(f"{text}\n{gsm8k.respond(str(gold))}", str(gold), method=method).correct
    assert score(f"#### {number}", str(gold), method=method).correct == (gold == number)


def test_verl_s_modes_read_the_last_300_characters_and_robust_mode_reads_all():
    for method, answer, length in (("strict", "#### 18", 293), ("flexible", "18", 298)):
        assert score(answer + "x" * length, "18", method=method).correct
        assert not score(answer + "x" * (length + 1), "18", method=method).correct
    assert score("#### 18\n" + "x" * 5000, "18", method="robust").correct


@every(
    ("response", "gold", "correct", "pred", "status"),
    [
        ("17, then 18.", "18.", True, "18.", Status.CORRECT),
        ("it is 1,000", "1,000", True, "1,000", Status.CORRECT),
        ("it is 18 .", "18", True, "18", Status.CORRECT),
        ("it is 19", "18", False, "19", Status.WRONG),
        ("none", "18", False, "", Status.NO_ANSWER),
    ],
)
def test_flexible_mode_reads_the_last_number(response, gold, correct, pred, status):
    result = score(response, gold, method="flexible")
    assert (result.score, result.correct, result.pred, result.status) == (
        float(correct), correct, pred, status,
    )  # fmt: skip


@every(
    ("method", "response", "paid"),
    [
        ("strict", "#### 19", 0.25), ("strict", "19", 0.0), ("flexible", "19", 0.25), ("flexible", "none", 0.0),
        ("robust", "#### 19", 0.25), ("robust", "19", 0.0), ("robust", "#### many", 0.0), ("robust", "#### $18", 1.0),
    ],
)  # fmt: skip
def test_the_format_score_is_only_for_a_wrong_number_in_the_requested_format(
    method, response, paid
):
    assert score(response, "18", method=method, format_score=0.25).score == paid
