"""The budget of a comparison, and inputs that once raised or took long."""

import sys
from functools import partial

import pytest

from rewardkit.answers.equal import MAX_CHARS, _compare, compare, parse_answer
from rewardkit.answers.parsing.tree import add, fn, num
from rewardkit.answers.scalar import TooMuchWorkError, charge_steps, run_with_budget
from rewardkit.scorers import gsm8k, math, math_dapo, mcq
from rewardkit.scorers.base import Score, Status
from tests.tables import every

MATRIX = r"\begin{pmatrix}" + r"\\".join(["&".join("x" * 9)] * 9) + r"\end{pmatrix}"
LARGE = r"1" + r"\times10^{300}" * 15


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        (MATRIX * 3, "5.5"),
        (r"[0,100]\setminus\{" + ",".join(map(str, range(1, 99))) + r"\}", "5.5"),
        ("x" + "/x" * 290, "5"),
    ],
)
def test_a_comparison_over_the_budget_is_unreadable(pred, gold):
    assert compare(pred, gold).outcome == "unreadable"


def test_items_that_cannot_match_are_not_compared():
    """58 items against 58 items, which differ in their values at one point."""
    one, other = (r"\{" + ",".join(f"x{sign}{n}^2" for n in range(1, 59)) + r"\}" for sign in "+-")
    assert compare(one, other).outcome == "different"


@every("score", [math.score, mcq.score, math_dapo.score, gsm8k.score])
@every(
    ("response", "gold"),
    [
        (r"\boxed{5_⁴}", "5"), (r"\boxed{5}", "5_①"), (r"\boxed{.1\overline{⁴}}", "5"),
        (rf"\boxed{{{LARGE}}}", "x+1"), (rf"\boxed{{{LARGE}}}", r"\sqrt2"),
        (rf"\boxed{{{LARGE}}}", "1_2"), ("####" + "y" * 10**6, "5"), ("7" * 10**6, "A"),
        ("5", "7" * 10**6), ("<answer></answer>" * 60_000, "A"), ("\\boxed{" + "{}" * 500_000, "5"),
    ],
)  # fmt: skip
def test_texts_that_once_raised_or_took_long_get_a_score(score, response, gold):
    assert isinstance(score(response, gold), Score)


def test_a_caller_deep_in_the_stack_gets_a_score():
    def at_depth(n):
        return (
            math.score(r"\boxed{A" + r"\setminus B" * 80 + "}", "5") if n == 0 else at_depth(n - 1)
        )

    depth = sys.getrecursionlimit() - len_of_stack() - 150
    assert at_depth(depth).status in (Status.WRONG, Status.UNPARSED_ANSWER)


def len_of_stack():
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_a_comparison_may_take_10000_steps_and_a_function_counts_6():
    def spending(node, times):
        return lambda pred, gold: charge_steps(node, times=times)

    sine = fn("sin", num(1))
    for node, most in ((num(1), 10_000), (add(num(1), num(2)), 3333), (sine, 1428)):
        run_with_budget(spending(node, most), num(1), num(1))
        with pytest.raises(TooMuchWorkError):
            run_with_budget(spending(node, most + 1), num(1), num(1))
    charge_steps(num(1), times=100_000)  # outside a comparison nothing is counted


# --- the number of function calls, which is the same on every machine

#: Calls within which any two answers must be judged: twice the most that is known.
MOST_CALLS = 400_000


def calls(function):
    """Return the number of function calls that a call makes."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def fresh(pred, gold):
    _compare.cache_clear()
    parse_answer.cache_clear()
    return partial(compare, pred, gold)


#: A piece, repeated up to the limit of characters.
PIECES = [
    "(", ")", "[", "{", "}", ")(", "|", "x", "1 ", "1,", "1;", "-", "+", "!", "'", "%", "$", "$1$ ", "\\", r"\frac", r"\frac1", r"\sqrt", r"\left(", r"\text{", r"\{1,", "(1,2),", "5 cm ", "5 ft ", "a and ", "x=1,", "1<x<",
    r"\begin{pmatrix}", r"\begin{cases}1&2\\", "for all x ", "mod 7 ", "甲", "½", "²", "√", r"k\pi+", "C+", r"\pm1,", r"\angle ", "f(", "a_", r"5^\circ", "1 1/2 ", r"\cup(0,1)", r"\setminus\{0\}", "=x", "x*", "x^", "the ", "is ", "1:", "_{", "^{",
]  # fmt: skip
GOLDS = [
    "5", "x", r"\sqrt2+x", "(1,2)", r"\{1,2\}", "y=x+1", r"2k\pi", r"5\text{ cm}", "Monday",
    r"x \equiv 3 \pmod 7",
]  # fmt: skip


def assert_bounded(piece, size, golds):
    text = (piece * size)[:size]
    for gold in (*golds, f"{text[:-1]} "):
        for pair in ((text, gold), (gold, text)):
            assert calls(fresh(*pair)) < MOST_CALLS, (size, gold[:40])


@pytest.mark.full
@every("piece", PIECES)
def test_an_answer_at_the_limits_is_compared_in_a_bounded_number_of_calls(piece):
    for size in (600, 1999, MAX_CHARS):
        assert_bounded(piece, size, GOLDS)


@every("piece", PIECES)
def test_parsing_is_linear_in_the_text(piece):
    def cost(size):
        parse_answer.cache_clear()
        return calls(partial(parse_answer, (piece * size)[:size]))

    assert cost(1200) < 5 * cost(300) + 2000
