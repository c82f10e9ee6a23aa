from rewardkit.scorers.explain import explain


def test_the_rungs_up_to_the_one_that_decided_are_named():
    found = explain("math", r"so \boxed{\frac12}", "0.5")
    assert found.score.correct
    assert found.where == "box"
    assert found.rungs == (
        ("text", "passed on"),
        ("number", "passed on"),
        ("structure", "equal"),
    )
    assert "Fraction(1, 2)" in found.pred_tree


def test_a_wrong_answer_names_the_rung_that_refused_it():
    found = explain("math", "Answer: 19", "18")
    assert (found.where, found.rungs[-1]) == ("phrase", ("number", "different"))


def test_a_choice_is_judged_as_a_choice():
    found = explain("math", r"\boxed{A, C}", "AC")
    assert (found.score.pred, found.rungs) == ("AC", (("choice", "correct"),))


def test_no_answer_tries_no_rung():
    assert explain("math", "I do not know.", "18").rungs == ()


def test_scorers_with_a_rule_of_their_own_say_what_they_read():
    found = explain("gsm8k", "#### $18", "18", method="robust")
    assert (found.score.pred, found.score.correct, found.rungs) == ("$18", True, ())
