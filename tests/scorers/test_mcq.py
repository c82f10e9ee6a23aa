import ast
import json
from itertools import combinations
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers import mcq
from rewardkit.scorers.base import Status
from rewardkit.scorers.mcq import score
from tests.tables import every

AMOUNTS = ["980万元", "B. 990万元", "1000万元", "都对"]
VALUES = ["1/3", "1/2", "0.75", "75%"]
XY, NAMED = ["x", "y"], {"A": "x", "B": "y"}
RIGHT, WRONG, NONE = Status.CORRECT, Status.WRONG, Status.NO_ANSWER
AMBIGUOUS, UNREAD, BAD = Status.AMBIGUOUS_ANSWER, Status.UNPARSED_ANSWER, Status.BAD_GROUND_TRUTH
LETTERS = st.sets(st.sampled_from("ABCDEFGHIJ"), min_size=1).map(lambda s: "".join(sorted(s)))


@every(
    ("response", "gold", "options", "pred", "status"),
    [
        (r"The answer is \boxed{(A)}.", "A", None, "A", RIGHT),
        (r"\boxed{AC}", "A、C", None, "AC", RIGHT),
        (r"\boxed{~A}", "A", None, "~A", UNREAD),
        (r"\boxed{ABC}", "AC", None, "ABC", WRONG),
        (r"\boxed{A or C}", "AC", None, "A or C", AMBIGUOUS),
        (r"\boxed{A} or \boxed{B}", "B", None, "A or B", AMBIGUOUS),
        (r"\boxed{Apple}", "A", None, "Apple", UNREAD),
        (r"\boxed{}", "A", None, "", NONE),
        ("The answer is A", "A", None, "", NONE),
        (r"\boxed{A}", "", None, "A", BAD),
        (r"\boxed{None of the above}", "N", None, "None of the above", BAD),
        # without options the letters go up to J
        *((r"\boxed{J}", "J", options, "J", RIGHT) for options in (None, 3)),
        # a plain box, and boxes with more around or inside them
        (r"\boxed{B}", "AB", XY, "B", WRONG),
        (r"\boxed{C}", "C", XY, "C", BAD),
        (r"\boxed{A} " + "x" * 60 + r" \boxed{B}", "B", None, "B", RIGHT),
        (r"\boxed{B} <answer>A</answer>", "B", None, "A", WRONG),
        (r"<think>\boxed{B}</think> \boxed{A}", "B", None, "A", WRONG),
        (r"<think>\boxed{B}</think> none", "B", None, "B", RIGHT),
        (r"\boxed{B} \fbox{A}", "B", None, "B or A", AMBIGUOUS),
        (r"\boxed{B}", "B", ["x", None], "B", BAD),
        (r"\boxed{y}", "B", NAMED, "B", RIGHT),
        # the options of a row define texts and letters
        (r"\boxed{B. 990万元}", "B", AMOUNTS, "B", RIGHT),
        (r"\boxed{A. 990万元}", "A", AMOUNTS, "A. 990万元", AMBIGUOUS),
        (r"\boxed{ABCDE}", "ABCD", AMOUNTS, "ABCDE", UNREAD),
        # an option is picked by its value unless two have it
        (r"\boxed{B. \frac12}", "B", VALUES, "B", RIGHT),
        (r"\boxed{\frac34}", "C", VALUES, r"\frac34", AMBIGUOUS),
        (r"\boxed{A. \frac12}", "A", VALUES, r"A. \frac12", AMBIGUOUS),
    ],
)
def test_the_letters_picked_must_be_the_gold_letters(response, gold, options, pred, status):
    is_right = status is RIGHT
    result = score(response, gold, {"options": options, "index": 3})
    assert result == (float(is_right), is_right, pred, status)


def test_final_letter_reads_an_answer_outside_a_box():
    assert score("答案：A+C", "AC", final_letter=True).correct
    assert not score("Answer: A Answer: B", "B", final_letter=True).correct
    assert not score("答案：A+C", "AC").correct


def test_with_partial_each_right_letter_raises_the_score_and_a_wrong_one_makes_it_0():
    for size in range(1, 4):
        for letters in map("".join, combinations("ABD", size)):
            result = score(mcq.respond(letters), "ABD", partial=True)
            assert (result.score, result.correct) == (size / 3, size == 3)
            assert score(mcq.respond(letters + "C"), "ABD", partial=True).score == 0.0


def tagged_answer(box):
    return f"<think>thoughts</think><answer>{box}</answer>"


@every(
    ("box", "gold", "pred"),
    [
        (r"\boxed{A、C}", "AC", "AC"),
        (r"\boxed{Apple}", "A", "A"),
        (r"\boxed{A or B}", "AB", "AB"),
        (r"\boxed{\text{B}, C}", "B", "B"),
    ],
)
def test_the_letter_rule_counts_every_capital_up_to_g_in_the_box(box, gold, pred):
    assert score(tagged_answer(box), gold, mode="dianjin")[:3] == (1.0, True, pred)
    assert score(box, gold, mode="letters")[:3] == (1.0, True, pred)


@every(
    ("response", "gold", "pred", "status"),
    [
        (r"\boxed{A}", "AC", "A", WRONG),
        (r"\boxed{}", "A", "", UNREAD),
        ("A", "A", "", NONE),
        (r"\boxed{A}", "H", "A", BAD),
        ("A", "", "", BAD),
        (r"\boxed{A} \boxed{G}", "G", "G", RIGHT),
    ],
)
def test_the_letter_rule_has_the_same_statuses(response, gold, pred, status):
    assert score(response, gold, mode="letters")[2:] == (pred, status)


@every(
    "response",
    [
        r"<answer>\boxed{A}</answer>",
        r"<think></think><think></think><answer>\boxed{A}</answer>",
        r"<think></think><answer>\boxed{A}</answer><answer>\boxed{A}</answer>",
        r"<think></think><answer>\boxed{A</answer>",
    ],
)
def test_dianjin_mode_requires_one_think_and_one_answer_with_a_box(response):
    result = score(response, "A", mode="dianjin")
    assert (result.score, result.status) == (0.0, Status.NO_ANSWER)


@pytest.mark.parametrize("gold", ["", "H", "none"])
@pytest.mark.parametrize("mode", ["strict", "dianjin", "letters"])
def test_a_gold_without_letters_never_pays(mode, gold):
    for box in (r"\boxed{}", r"\boxed{x}", rf"\boxed{{{gold}}}"):
        result = score(tagged_answer(box), gold, {"options": ["x", "y"]}, mode=mode)
        assert (result.score, result.status) == (0.0, Status.BAD_GROUND_TRUTH)


def official(response, gold):
    """Return the score by DianJin's rule: regular expressions, then letters in order."""
    import re

    def letters(text):
        return [letter for letter in "ABCDEFG" if letter in text]

    thoughts = re.findall(r"<think>(.*?)</think>", response, re.DOTALL)
    answers = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    if len(thoughts) != 1 or len(answers) != 1:
        return 0.0
    boxes = re.findall(r"\\boxed\{(.*?)\}", answers[0], re.DOTALL)
    return float(bool(boxes) and letters(boxes[-1]) == letters(gold))


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "{", "A", "C", "x"]


@given(
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.sampled_from(["A", "AC", "CA", "C,A"]),
)
def test_dianjin_mode_scores_as_the_official_rule(prefix, box, gold):
    for response in (prefix, tagged_answer(rf"\boxed{{{box}}}"), prefix + tagged_answer(box)):
        assert score(response, gold, mode="dianjin").score == official(response, gold)


@pytest.mark.parametrize("mode", ["strict", "dianjin", "letters"])
@given(response=st.text(), gold=st.text(), flag=st.booleans())
def test_no_text_makes_the_scorer_raise_and_scores_stay_in_range(mode, response, gold, flag):
    for text in (response, tagged_answer(rf"\boxed{{{response}}}")):
        info, flags = {"options": [gold, "x"]}, {"partial": flag, "final_letter": flag}
        result = score(text, gold, info, mode=mode, **flags)
        assert 0.0 <= result.score <= 1.0
        assert result.correct == (result.score == 1.0) == (result.status is Status.CORRECT)


@given(LETTERS, st.permutations("ABCDEFGHIJ"), st.text(max_size=100))
def test_the_gold_in_any_order_scores_after_any_thought(gold, order, thoughts):
    answer = "、".join(letter for letter in order if letter in gold)
    thoughts = thoughts.replace("<", "").replace("\\", "")
    assert score(f"{thoughts}\n{mcq.respond(answer)}", gold).correct


@given(LETTERS, LETTERS, st.sampled_from(["{}", "({})", "选{}", "answer is {}", r"\text{{{}}}"]))
def test_another_set_never_scores(gold, letters, dress):
    if set(gold) != set(letters):
        assert score(mcq.respond(dress.format(letters)), gold).score == 0.0


def test_on_real_options_a_letter_with_its_text_is_right_and_every_other_is_not(shared):
    """On CFLUE, golds with their texts score, except for repeated options; wrong ones never do."""
    path = shared / "data" / "cflue" / "knowledge.json"
    lost, paid = [], []
    for row in json.loads(path.read_text(encoding="utf-8"))[::4]:
        texts, gold = ast.literal_eval(row["choices"]), row["answer"]
        with_texts = "；".join(f"{letter}. {texts[letter]}" for letter in gold)
        right = [gold, "、".join(gold), "选项" + "和".join(gold), with_texts]
        wrong = [
            form.format(letter=letter, text=texts[letter], first=gold[0], gold=gold)
            for letter in texts.keys() - set(gold)
            for form in (
                "{letter}",
                "{text}",
                "{letter}. {text}",
                "{first}. {text}",
                "{gold}{letter}",
            )
        ]
        is_paid = {
            a: score(mcq.respond(a), gold, {"options": texts}).correct for a in right + wrong
        }
        lost += [row["question"] for answer in right if not is_paid[answer]]
        paid += [row["question"] for answer in wrong if is_paid[answer]]
    assert paid == []
    assert len(lost) <= 3


BEFORE = (
    "",
    r"\boxed{B} ",
    r"\boxed{B} or ",
    "<think>x</think>",
    "<answer>C</answer>",
    "The answer is ",
    "The answer is not ",
    "Suppose ",
    "不选",
    r"\fbox{B}",
)
AFTER = (
    "",
    ".",
    " is wrong",
    " or B",
    "?",
    "</think>",
    r" or \boxed{C}",
    "\\fbox{D}",
    "}",
    "</answer>",
    "\ud800",
)
OPTIONS = (None, XY, ["x", "y", "z", "u"], ["x", None], NAMED, ("x", "y"), [])
INSIDE, GOLDS = ("A", "B", "K", "a", "AB", "{A}", ""), ("A", "B", "D", "AB", "K", "", "a")


@given(*map(st.sampled_from, (BEFORE, INSIDE, AFTER, GOLDS, OPTIONS)))
def test_the_short_check_gives_the_verdict_of_the_full_one(before, inside, after, gold, options):
    response = f"{before}\\boxed{{{inside}}}{after}"
    short = score(response, gold, {"options": options})
    with patch.object(mcq, "_unambiguous_box", lambda *_: ""):
        assert score(response, gold, {"options": options}) == short
