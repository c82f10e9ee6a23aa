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

AMOUNTS = {"options": ["980万元", "B. 990万元", "1000万元", "都对"]}
LETTERS = st.sets(st.sampled_from("ABCDEFGHIJ"), min_size=1).map(lambda s: "".join(sorted(s)))


@every(
    ("response", "gold", "pred", "status"),
    [
        (r"The answer is \boxed{(A)}.", "A", "A", Status.CORRECT),
        (r"\boxed{C, A}", "AC", "AC", Status.CORRECT),
        (r"\boxed{AC}", "A、C", "AC", Status.CORRECT),
        (r"\boxed{A+C}", "AC", "AC", Status.CORRECT),
        (r"\boxed{AC}", "A+C", "AC", Status.CORRECT),
        (r"\boxed{~A}", "A", "~A", Status.UNPARSED_ANSWER),
        ("<answer>A</answer>", "A", "A", Status.CORRECT),
        (r"\boxed{B}", "A", "B", Status.WRONG),
        (r"\boxed{A}", "AC", "A", Status.WRONG),
        (r"\boxed{ABC}", "AC", "ABC", Status.WRONG),
        (r"\boxed{A or B}", "A", "A or B", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{A or C}", "AC", "A or C", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{A} or \boxed{B}", "B", "A or B", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{Apple}", "A", "Apple", Status.UNPARSED_ANSWER),
        (r"\boxed{K}", "A", "K", Status.UNPARSED_ANSWER),
        (r"\boxed{}", "A", "", Status.NO_ANSWER),
        ("The answer is A", "A", "", Status.NO_ANSWER),
        (r"\boxed{A}", "", "A", Status.BAD_GROUND_TRUTH),
        (r"\boxed{}", "", "", Status.BAD_GROUND_TRUTH),
        (r"\boxed{None of the above}", "N", "None of the above", Status.BAD_GROUND_TRUTH),
        (r"\boxed{K}", "K", "K", Status.BAD_GROUND_TRUTH),
        (r"\boxed{A or B}", "A or B", "A or B", Status.BAD_GROUND_TRUTH),
    ],
)
def test_the_letters_picked_must_be_the_gold_letters(response, gold, pred, status):
    result = score(response, gold)
    assert (result.pred, result.status) == (pred, status)
    assert (result.score, result.correct) == (
        (1.0, True) if status is Status.CORRECT else (0.0, False)
    )


@pytest.mark.parametrize(
    ("answer", "gold", "status"),
    [
        ("980万元", "A", Status.CORRECT),
        ("B. 990万元", "B", Status.CORRECT),
        ("A. 990万元", "A", Status.AMBIGUOUS_ANSWER),
        ("E", "A", Status.UNPARSED_ANSWER),
        ("ABCDE", "ABCD", Status.UNPARSED_ANSWER),
        ("E", "E", Status.BAD_GROUND_TRUTH),
    ],
)
def test_the_options_of_a_row_define_texts_and_letters(answer, gold, status):
    assert score(mcq.respond(answer), gold, AMOUNTS).status is status


@pytest.mark.parametrize(
    "extra_info", [None, {}, {"options": None}, {"options": "A. x"}, {"index": 3}]
)
def test_without_options_the_letters_go_up_to_j(extra_info):
    assert score(r"\boxed{J}", "J", extra_info).correct


def test_an_option_is_picked_by_its_value_unless_two_have_it():
    options = {"options": ["1/3", "1/2", "0.75", "75%"]}
    assert score(r"\boxed{\frac12}", "B", options).correct
    assert score(r"\boxed{B. \frac12}", "B", options).correct
    assert score(r"\boxed{\frac{1}{2}}", "A", options).status is Status.WRONG
    assert score(r"\boxed{\frac34}", "C", options).status is Status.AMBIGUOUS_ANSWER
    assert score(r"\boxed{A. \frac12}", "A", options).status is Status.AMBIGUOUS_ANSWER


def test_final_letter_reads_answers_outside_a_box():
    assert score("答案：A+C", "AC", final_letter=True).correct
    assert score("Solution: Choice_B: 0.5 mm", "B", final_letter=True).correct
    assert not score("答案：AC", "AC").correct
    assert score("答案：AC", "AC", final_letter=True).correct
    assert not score("Answer: A Answer: B", "B", final_letter=True).correct


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ("AC", 1.0),
        ("A", 0.5),
        ("C", 0.5),
        ("B", 0.0),
        ("AB", 0.0),
        ("ABC", 0.0),
        ("ABCDEFGHIJ", 0.0),
    ],
)
def test_partial_pays_the_picked_part_of_the_gold_and_nothing_with_a_wrong_letter(answer, paid):
    result = score(mcq.respond(answer), "AC", partial=True)
    assert (result.score, result.correct) == (paid, paid == 1.0)


def test_with_partial_each_right_letter_raises_the_score_and_a_wrong_one_makes_it_0():
    for size in range(1, 4):
        for letters in combinations("ABD", size):
            letters_text = "".join(letters)
            paid = score(mcq.respond(letters_text), "ABD", partial=True).score
            assert paid == size / 3
            assert score(mcq.respond(letters_text + "C"), "ABD", partial=True).score == 0.0


def tagged_answer(box):
    return f"<think>thoughts</think><answer>{box}</answer>"


@pytest.mark.parametrize(
    ("box", "gold", "pred"),
    [
        (r"\boxed{A、C}", "AC", "AC"),
        (r"\boxed{B} \boxed{A}", "A", "A"),
        (r"\boxed{Apple}", "A", "A"),
        (r"\boxed{A or B}", "AB", "AB"),
        (r"\boxed{Cabbage}", "C", "C"),
        (r"\boxed{\text{B}, C}", "B", "B"),
    ],
)
def test_the_letter_rule_counts_every_capital_up_to_g_in_the_box(box, gold, pred):
    assert score(tagged_answer(box), gold, mode="dianjin")[:3] == (1.0, True, pred)
    assert score(box, gold, mode="letters")[:3] == (1.0, True, pred)


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed{A}",
        r"<answer>\boxed{A}</answer>",
        r"<think></think>\boxed{A}",
        r"<think></think><think></think><answer>\boxed{A}</answer>",
        r"<think></think><answer>\boxed{A}</answer><answer>\boxed{A}</answer>",
        r"<think></think><answer>A</answer>",
        r"<think></think><answer>\boxed{A</answer>",
        r"<think>\boxed{A}</think><answer></answer>",
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
        result = score(
            text, gold, {"options": [gold, "x"]}, partial=flag, final_letter=flag, mode=mode
        )
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


def cases(shared, name):
    lines = (shared / "cases" / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.mark.parametrize("final_letter", [False, True])
@pytest.mark.parametrize("name", ["real_mcq_gaokao.jsonl", "real_mcq_mmlupro.jsonl"])
def test_every_real_response_gets_its_label(shared, name, final_letter):
    assert [
        case["id"]
        for case in cases(shared, name)
        if score(
            case["solution_str"],
            case["ground_truth"],
            {"options": case.get("options")},
            final_letter=final_letter,
        ).correct
        != case["label"]
    ] == []


@pytest.mark.parametrize("final_letter", [False, True])
def test_no_known_exploit_pays_and_no_right_answer_is_lost(shared, final_letter):
    assert [
        case["id"]
        for case in cases(shared, "exploits.jsonl")
        if case["cls"].startswith("mcq")
        and case["label"] is not None
        and score(case["solution_str"], case["ground_truth"], final_letter=final_letter).correct
        != case["label"]
    ] == []


def test_on_real_options_a_letter_with_its_text_is_right_and_every_other_is_not(shared):
    """On CFLUE, golds with their texts score, except for repeated options; wrong ones never do."""
    path = shared / "data" / "cflue" / "knowledge.json"
    lost_questions, paid_questions = [], []
    for row in json.loads(path.read_text(encoding="utf-8"))[::4]:
        texts, gold = ast.literal_eval(row["choices"]), row["answer"]
        with_texts = "；".join(f"{letter}. {texts[letter]}" for letter in gold)
        correct_answers = [gold, "、".join(gold), "选项" + "和".join(gold), with_texts]
        wrong_answers = [
            answer
            for letter in texts.keys() - set(gold)
            for answer in (
                letter,
                texts[letter],
                f"{letter}. {texts[letter]}",
                f"{gold[0]}. {texts[letter]}",
                gold + letter,
            )
        ]
        scores = [
            score(mcq.respond(a), gold, {"options": texts}).score
            for a in correct_answers + wrong_answers
        ]
        lost_questions += [row["question"] for paid_ in scores[: len(correct_answers)] if not paid_]
        paid_questions += [row["question"] for paid_ in scores[len(correct_answers) :] if paid_]
    assert paid_questions == []
    assert len(lost_questions) <= 3


@given(
    before=st.sampled_from(
        [
            "",
            "so ",
            r"\boxed{B} ",
            r"\boxed{B} or ",
            "<think>x</think>",
            "<answer>C</answer>",
            r"\fbox{B} ",
        ]
    ),
    inside=st.sampled_from(["A", "B", "K", "a", "AB", "{A}", ""]),
    after=st.sampled_from(
        ["", ".", "</think>", r" or \boxed{C}", "\\fbox{D}", "}", "</answer>", "\ud800"]
    ),
    gold=st.sampled_from(["A", "B", "D", "AB", "K", "", "a"]),
    options=st.sampled_from(
        [None, ["x", "y"], ["x", "y", "z", "u"], ["x", None], {"A": "x", "B": "y"}, ("x", "y"), []]
    ),
)
def test_the_short_check_gives_the_verdict_of_the_full_one(before, inside, after, gold, options):
    response = f"{before}\\boxed{{{inside}}}{after}"
    short = score(response, gold, {"options": options})
    with patch.object(mcq, "_unambiguous_box", lambda *_: ""):
        assert score(response, gold, {"options": options}) == short


@every(
    ("response", "gold", "options", "result"),
    [
        # a plain box, and boxes with more around or inside them
        (r"\boxed{B}", "B", ["x", "y"], (1.0, True, "B", Status.CORRECT)),
        (r"\boxed{B}", "A", ["x", "y"], (0.0, False, "B", Status.WRONG)),
        (r"\boxed{B}", "AB", ["x", "y"], (0.0, False, "B", Status.WRONG)),
        (r"\boxed{C}", "C", ["x", "y"], (0.0, False, "C", Status.BAD_GROUND_TRUTH)),
        (r"\boxed{C}", "B", ["x", "y"], (0.0, False, "C", Status.UNPARSED_ANSWER)),
        (r"\boxed{B}", "", None, (0.0, False, "B", Status.BAD_GROUND_TRUTH)),
        (r"\boxed{B", "B", None, (0.0, False, "", Status.NO_ANSWER)),
        (r"\boxed{A} " + "x" * 60 + r" \boxed{B}", "B", None, (1.0, True, "B", Status.CORRECT)),
        (r"\boxed{A} or \boxed{B}", "B", None, (0.0, False, "A or B", Status.AMBIGUOUS_ANSWER)),
        (r"\boxed{B} <answer>A</answer>", "B", None, (0.0, False, "A", Status.WRONG)),
        (r"<think>\boxed{B}</think> \boxed{A}", "B", None, (0.0, False, "A", Status.WRONG)),
        (r"<think>\boxed{B}</think> none", "B", None, (1.0, True, "B", Status.CORRECT)),
        (r"\boxed{B} \fbox{A}", "B", None, (0.0, False, "A", Status.AMBIGUOUS_ANSWER)),
        (r"\boxed{B}", "B", ["x", None], (0.0, False, "B", Status.BAD_GROUND_TRUTH)),
        (r"\boxed{B}", "B", {"A": "x", "B": "y"}, (1.0, True, "B", Status.CORRECT)),
        (r"\boxed{y}", "B", {"A": "x", "B": "y"}, (1.0, True, "B", Status.CORRECT)),
    ],
)
def test_each_response_has_its_letters_and_its_status(response, gold, options, result):
    assert score(response, gold, {"options": options} if options else None) == result


@pytest.mark.parametrize(
    ("response", "gold", "result"),
    [
        (r"\boxed{A、C}", "AC", (1.0, True, "AC", Status.CORRECT)),
        (r"\boxed{A}", "AC", (0.0, False, "A", Status.WRONG)),
        (r"\boxed{x}", "A", (0.0, False, "x", Status.UNPARSED_ANSWER)),
        (r"\boxed{}", "A", (0.0, False, "", Status.UNPARSED_ANSWER)),
        ("A", "A", (0.0, False, "", Status.NO_ANSWER)),
        (r"\boxed{A}", "H", (0.0, False, "A", Status.BAD_GROUND_TRUTH)),
        ("A", "", (0.0, False, "", Status.BAD_GROUND_TRUTH)),
        (r"\boxed{A} \boxed{G}", "G", (1.0, True, "G", Status.CORRECT)),
    ],
)
def test_the_letter_rule_has_the_same_statuses(response, gold, result):
    assert score(response, gold, mode="letters") == result
