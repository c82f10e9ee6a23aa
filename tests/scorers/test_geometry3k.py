import re
from itertools import product

import pytest

from rewardkit.scorers.base import Status
from rewardkit.scorers.geometry3k import is_well_formed, respond, score

# The forms of gold that the data set has, beside plain integers.
GOLDS = [
    *("22", "- 8", "6.5", "2:3", "x < 60", "a + b = 90", "not enough information", r"36 \pi"),
    *(r"\frac { 3 } { 7 }", r"5 \sqrt { 3 }", r"\frac { 2 \sqrt { 2 } } { 5 }"),
]


@pytest.mark.parametrize(
    ("response", "reward", "status"),
    [
        (r"<think>t</think>\boxed{3/7}", 1.0, Status.CORRECT),
        (r"<think>t</think>\boxed{4/7}", 0.1, Status.WRONG),
        (r"\boxed{\frac{3}{7}}", 0.9, Status.CORRECT),
        (r"<think>t \boxed{3/7}", 0.0, Status.NO_ANSWER),
        ("", 0.0, Status.NO_ANSWER),
    ],
)
def test_the_answer_counts_0_9_and_the_format_0_1(response, reward, status):
    result = score(response, r"\frac { 3 } { 7 }")
    assert (result.score, result.status) == (reward, status)


def test_the_format_is_that_of_verls_pattern():
    """The test compares every sequence of six pieces, with broken and repeated tags."""
    pattern = re.compile(r"<think>.*</think>.*\\boxed\{.*\}.*", re.DOTALL)
    pieces = ["<think>", "</think>", r"\boxed{", "}", "\n", "<think"]
    for row in product(pieces, repeat=6):
        response = "".join(row)
        assert is_well_formed(response) == bool(pattern.fullmatch(response)), response


@pytest.mark.parametrize(
    "response",
    ["<think>" * 50_000, "<think></think>" * 50_000, "<think></think>" + r"\boxed{" * 50_000],
)
def test_thousands_of_unfinished_tags_are_not_well_formed(response):
    assert score(response, "5").score == 0.0


@pytest.mark.parametrize("gold", GOLDS)
def test_a_gold_in_a_box_scores_1_with_and_without_its_spaces(gold):
    assert score(respond(gold), gold) == (1.0, True, gold, Status.CORRECT)
    dense = gold if gold.isalpha() or "enough" in gold else re.sub(r"(?<!\\pi) ", "", gold)
    assert score(respond(dense), gold).correct
    assert not score(respond("1234567"), gold).correct


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_weight_may_be_0_or_1(weight):
    assert score(r"\boxed{5}", "5", format_weight=weight).score == 1.0 - weight
    assert score(r"<think></think>\boxed{6}", "5", format_weight=weight).score == weight
    assert score("", "5", format_weight=weight).score == 0.0
    assert score(r"\boxed{}", "", format_weight=weight).status is Status.BAD_GROUND_TRUTH
