"""Findings of a red team: wrong answers that once were paid."""

import pytest

from rewardkit.answers.equal import compare
from rewardkit.scorers.math import score
from tests.tables import every


@every(
    ("pred", "gold"),
    [
        ("5!", "5"), (r"[0,1]\setminus\{0\}", "[0,1]"), ("at least 5", "5"), ("5 million", "5"),
        (r"5\text{ squared}", "5"), (r"5\text{ not}", "5"), (r"5\text{ or 6}", "5"),
        (r"\$5", r"5\text{ cents}"), (r"20^\circ C", r"20^\circ F"), ("(1,5)", "1.5"),
        ("0.00", r"\frac{1}{300}"), (r"\frac{7}{27}", "0.25"), ("1.000000001", "1.000000002"),
        ("f(2)=5", "f(3)=5"), ("a_n=2n", "b_n=2n"), ("x_1=1,x_2=2", "x_1=2,x_2=1"), ("x>5", "y>5"),
        ("5 January", "5"), ("|x-10|", "10-x"), ("|k|", "k"), (r"\sqrt{k^2}", "k"),
        (r"\lfloor n/2\rfloor+1", r"\lceil n/2\rceil"), ("2^{31}+k", "2^{31}+k+1"),
        ("x+10^{-12}", "x"), ("x+y=10^{10}", "x+2y=10^{10}"), ("e^{-100}", "e^{-200}"),
        ("c:b", "a:b"), (r"2^{n+1}\pmod 7", r"2^n+1 \pmod 7"), ("y''=y", "y'=y"),
        ("no", "no solution"), ("no", "on"), ("Alice", "Alice beats Bob"), ("3 if x, else 4", "3"),
        (r"18^\circ", r"18\%"), ("不是5", "5"), ("负5", "5"),
    ],
)  # fmt: skip
def test_different_answers_stay_different(pred, gold):
    assert compare(pred, gold).outcome != "equal"
    assert not score(rf"\boxed{{{pred}}}", gold).correct


@every(
    ("pred", "gold"),
    [
        ("n!", "n(n-1)!"), (r"[0,1]\setminus\{0\}", "(0,1]"), ("5 million", "5000000"),
        (r"(-\infty,\infty)", r"\mathbb{R}"), ("p(1-p)", "p-p^2"), ("x=y", "y=x"), ("a<b", "b>a"),
        (r"33\frac{1}{3}\%", r"\frac{1}{3}"), (r"\sqrt[3]{-8}", "-2"), (r"x \approx 3.14", "3.14"),
        (r"x\in\{1,2\}", "1,2"), ("no solution", "No solution"),
        (r"\binom n3", r"\frac{n(n-1)(n-2)}{6}"), ("2^{2020}", "4^{1010}"), ("18人", "18"),
    ],
)  # fmt: skip
def test_the_same_answers_are_equal(pred, gold):
    assert compare(pred, gold).outcome == "equal"


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed{3} or \boxed{4}", r"\boxed{3}/\boxed{4}", "The answer is 4; or 3",
        "The answer is $4$ (or $3$)",
    ],
)  # fmt: skip
def test_hedges_are_wrong(response):
    assert not score(response, "4").correct
    assert not score(response, "3").correct
