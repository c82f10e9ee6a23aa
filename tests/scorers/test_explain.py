import pytest

from rewardkit.scorers.explain import explain_miss, explain_verdict, reading_rule
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import other_settings


def missed(scorer, response, gold, **options):
    loaded = load_scorer(scorer, **options)
    explanation = explain_verdict(loaded, scorer, response, gold)
    return explain_miss(explanation, options, loaded, response, gold)


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
    explanation = explain_verdict(load_scorer("math"), "math", response, gold)
    assert (explanation.where, list(explanation.rungs)) == (place, rungs)


@pytest.mark.parametrize(
    ("scorer", "options", "response", "gold", "reason", "advice"),
    [
        ("gsm8k", {}, "#### **18**", "18", "with method=strict, gsm8k reads the last `#### N`", "method=robust reads `**18**`, which is correct."),
        ("gsm8k", {}, r"\boxed{\frac{36}{2}}", "18", "No answer was read", r"The scorer math reads `\frac{36}{2}`, which is correct."),
        ("math", {}, r"The answer is not \boxed{12}.", "12", "The words around it deny it, suppose it or take it back.", "No other option"),
        ("qa", {}, "Paris or Lyon", "Paris", "The answer states several values.", "method=f1 reads"),
        ("math", {}, r"\boxed{(1,2)}", r"\{1,2\}", r"in the last \boxed{}; the gold is `\{1,2\}`. The answer is a tuple of 2 items, the gold is a set of 2 items: their types differ.", "No other option"),
        ("math", {}, r"\boxed{1 or 2}", "1", "the answer states several values, the gold one", "No other option"),
        ("math", {}, r"\boxed{3.14}", "3", "The answer is the number 3.14, the gold is the number 3: their values differ.", "No other option"),
        ("math", {}, r"\boxed{12 cm}", r"0.12 \text{ m}", "a quantity with a unit", "convert_units=true reads `12 cm`, which is correct."),
        ("geometry3k", {}, r"\boxed{C}", "B", "`C` was read; the gold is `B`.", "No other rule scorer reads the gold here."),
    ],
)  # fmt: skip
def test_a_miss_says_what_was_read_and_which_setting_reads_the_gold(
    scorer, options, response, gold, reason, advice
):
    miss = missed(scorer, response, gold, **options)
    assert reason in miss.reason
    assert advice in miss.advice


def test_the_reading_of_another_setting_has_its_options():
    assert missed("gsm8k", "#### 18", "18") is None
    miss = missed("gsm8k", "#### **18**", "18", format_score=0.1)
    assert miss.candidates == {"####": "**18**", "the last number": "18"}
    assert [(each.scorer, dict(each.options), each.pred) for each in miss.other_readings] == [
        ("gsm8k", {"format_score": 0.1, "method": "flexible"}, "18"),
        ("gsm8k", {"format_score": 0.1, "method": "robust"}, "**18**"),
    ]


@pytest.mark.parametrize("name", ["gsm8k", "math_dapo", "mcq", "qa"])
def test_every_choice_of_a_rule_scorer_has_a_rule_in_its_table(name):
    """A table that is renamed would make `explain` silent about what is read."""
    scorer = load_scorer(name)
    first = reading_rule(name, scorer)
    rules = {reading_rule(name, load_scorer(name, **{o: v})) for o, v in other_settings(scorer)}
    assert first.endswith(tuple("abcdefghijklmnopqrstuvwxyz0123456789`"))
    assert rules - {first}
    assert reading_rule("math", load_scorer("math")) == ""
