"""Pairs found by mutation testing: wrong answers that were rewarded, and right ones that were not."""

import pytest

from rewardkit.scorers import mcq
from rewardkit.scorers.base import Status
from rewardkit.scorers.math import score
from tests.tables import every


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (r"-\pi", "3.141"),
        (r"\frac13", "-0.333"),
        ("Vitamin A", "Vitamin"),
        ("Plan A", "Plan"),
        (r"(3)\frac12", "3.5"),
        ("5个苹果和6个梨", "5"),
        (r"50\%", "50 cm"),
        ("50 cm", r"50\%"),
    ],
)
def test_a_wrong_answer_is_not_paid(answer, gold):
    assert not score(rf"\boxed{{{answer}}}", gold).correct


@every(
    ("answer", "gold"),
    [
        (r"\pi", "3.141"),
        ("a cat", "cat"),
        (r"3\frac12", "3.5"),
        ("5个苹果", "5"),
        ("¥5", "5"),
        ("5", "¥5"),
        ("5元", "¥5"),
        ("0.5", "50 percent"),
        ("60 km per hour", "60 km/h"),
        ("6", r"\gcd(12,18)"),
        (r"\operatorname{lcm}(6,4)", r"\operatorname{lcm}(4,6)"),
        ("6 1/2%", "6.5%"),
    ],
)
def test_a_right_answer_is_paid(answer, gold):
    assert score(rf"\boxed{{{answer}}}", gold).correct


@pytest.mark.parametrize(
    ("response", "gold", "status"),
    [
        (r"\fbox{1} or \boxed{2}", "2", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{1} no: \boxed 2", "1", Status.WRONG),
        (r"\boxed{1} no: \boxed 2", "2", Status.CORRECT),
        (r"\boxed{1}, \boxed 2", "1, 2", Status.CORRECT),
    ],
)
def test_boxes_of_each_kind_are_read_together(response, gold, status):
    assert score(response, gold).status is status


def test_an_or_in_capitals_is_an_or():
    options = {"options": ["cash", "shares", "bonds"]}
    assert not mcq.score(r"\boxed{A. cash OR (C) bonds}", "AC", options).correct
