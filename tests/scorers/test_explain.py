import pytest

from rewardkit.scorers.explain import explain


def test_the_rungs_up_to_the_one_that_decided_are_named():
    explanation = explain("math", r"so \boxed{\frac12}", "0.5")
    assert explanation.score.correct
    assert explanation.where == "box"
    assert explanation.rungs == (
        ("text", "passed on"),
        ("number", "passed on"),
        ("words", "passed on"),
        ("value", "equal"),
    )
    assert "Fraction(1, 2)" in explanation.pred_tree


def test_a_wrong_answer_names_the_rung_that_refused_it():
    explanation = explain("math", "Answer: 19", "18")
    assert (explanation.where, explanation.rungs[-1]) == ("phrase", ("number", "different"))


def test_a_choice_is_judged_as_a_choice():
    explanation = explain("math", r"\boxed{A, C}", "AC")
    assert (explanation.score.pred, explanation.rungs) == ("AC", (("choice", "correct"),))


def test_a_response_without_an_answer_has_no_rungs():
    assert explain("math", "I do not know.", "18").rungs == ()


def test_scorers_with_their_own_rule_explain_only_their_score():
    explanation = explain("gsm8k", "#### $18", "18", method="robust")
    assert (explanation.score.pred, explanation.score.correct, explanation.rungs) == (
        "$18",
        True,
        (),
    )


@pytest.mark.parametrize(
    ("response", "gold", "place", "rungs"),
    [
        (r"\boxed{18}", "18", "box", [("text", "equal")]),
        ("Answer: 018", "18", "phrase", [("text", "passed on"), ("number", "equal")]),
        ("<answer>a cat</answer>", "Cat.", "tag", [("text", "passed on"), ("number", "passed on"), ("words", "equal")]),
        ("#### 18", "18 or 19", "hash", [("text", "passed on"), ("number", "passed on"), ("words", "passed on"), ("value", "different")]),
        (r"\boxed{5}", "", "box", []), ("", "18", "", []), ("(B)", "B", "line", [("choice", "correct")]), ("(C)", "B", "line", [("choice", "wrong")]),
    ],
)  # fmt: skip
def test_the_explanation_has_the_place_and_the_outcome_of_each_rung(response, gold, place, rungs):
    explanation = explain("math", response, gold)
    assert (explanation.scorer, explanation.where, list(explanation.rungs)) == (
        "math",
        place,
        rungs,
    )
    assert 0 < explanation.microseconds < 60e6


def test_the_explanation_has_both_readings_if_they_exist():
    explanation = explain("math", r"\boxed{x}", r"\frac12")
    assert (explanation.pred_tree, explanation.gold_tree) == (
        "('sym', 'x')",
        "('num', Fraction(1, 2), None)",
    )
    for text in ("@", "1" * 300):  # no mathematics; over a limit
        explanation = explain("math", rf"\boxed{{{text}}}", "5")
        assert (explanation.pred_tree, explanation.gold_tree) == (
            "",
            "('num', Fraction(5, 1), None)",
        )
    explanation = explain("gsm8k", "#### 18", "18")
    assert (
        explanation.scorer,
        explanation.where,
        explanation.pred_tree,
        explanation.gold_tree,
        explanation.rungs,
    ) == (
        "gsm8k",
        "",
        "",
        "",
        (),
    )
    assert 0 < explanation.microseconds < 60e6
    explanation = explain("math", r"\boxed{B}", "B")
    assert (explanation.pred_tree, explanation.gold_tree) == ("", "")


def test_a_formula_of_the_question_is_refused_where_the_row_has_its_question():
    info = {"question": "What is $2^{5}$?"}
    explanation = explain("math", r"\boxed{2^{5}}", "32", info)
    assert (explanation.score.correct, explanation.rungs[-1]) == (False, ("value", "unreadable"))
    assert explain("math", r"\boxed{2^{5}}", "32").rungs[-1] == ("value", "equal")
