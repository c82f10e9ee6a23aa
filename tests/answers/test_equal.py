import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import equal


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        ("18", "18.0"),
        (r"\$1,000", "1000"),
        (r"\frac{1}{2}", "0.5"),
        (r"\dfrac{a}{b}", r"\frac{a}{b}"),
        (r"\left( 1, 2 \right)", "(1,2)"),
        ("Monday.", "monday"),
    ],
)
def test_the_same_answer_in_another_dress_is_equal(pred, gold):
    assert equal(pred, gold)
    assert equal(gold, pred)


@pytest.mark.parametrize(
    ("pred", "gold"),
    [("18", "19"), ("3,4", "34"), ("18 or 19", "18"), ("", "0"), ("A", "B"), ("(1,2)", "(2,1)")],
)
def test_other_answers_are_different(pred, gold):
    assert not equal(pred, gold)
    assert not equal(gold, pred)


@given(st.text(), st.text())
def test_equality_is_symmetric(a, b):
    assert equal(a, b) == equal(b, a)


@given(st.text())
def test_equality_is_reflexive(a):
    assert equal(a, a)


@given(st.integers(), st.integers())
def test_integers_are_equal_as_answers_only_if_they_are(a, b):
    assert equal(str(a), str(b)) == (a == b)
