"""A gold is one answer, even inside a list or an array; a missing gold is never paid."""

import decimal
import importlib
import json
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers import base
from rewardkit.scorers.base import Status, explain_bad_gold
from rewardkit.scorers.gold import MAX_LIST_CHARACTERS, accept_gold, alternatives, unwrap_gold
from rewardkit.scorers.load import load_scorer
from tests.tables import every

#: Scorers with options, a gold that each of them reads, and a right response.
SCORERS = [
    ("gsm8k", {}, "18", "#### 18"),
    ("gsm8k", {"method": "flexible"}, "18", "18"),
    ("gsm8k", {"method": "robust"}, "18", "#### 18"),
    ("math", {}, r"\frac{1}{2}", r"\boxed{\frac{1}{2}}"),
    ("math_dapo", {}, "18", "Answer: 18"),
    ("math_dapo", {"strict_box": True}, "18", r"\boxed{18}"),
    ("math_dapo", {"mode": "robust"}, "18", "Answer: 18"),
    ("geometry3k", {}, "18", r"<think></think>\boxed{18}"),
    ("mcq", {}, "B", r"\boxed{B}"),
    ("mcq", {"mode": "letters"}, "AC", r"\boxed{AC}"),
    ("mcq", {"mode": "dianjin"}, "B", r"<think>.</think><answer>\boxed{B}</answer>"),
]
#: Forms of a missing gold in data files.
NO_GOLD = [
    None, float("nan"), decimal.Decimal("nan"), "", " ", "\n\t", [], (), {}, [[]], [None], [""], [float("nan")],
    "nan", "None", "null", "NULL", "<NA>", "NaT", "[]", "{}", " nan ", "[null]", "[NaN]", '[""]', '["nan"]', "['None']",
    "[None]", "[nan]", '[["null"]]', "[[]]",
]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(base, "_logged", set())


def verl(name, response, gold, source="d", **options):
    module = importlib.import_module(f"rewardkit.scorers.{name}")
    return module.compute_score(source, response, gold, None, **options)


@pytest.mark.parametrize(("name", "options", "gold", "response"), SCORERS)
def test_a_list_or_an_array_of_one_answer_is_that_answer(name, options, gold, response):
    python, single = repr([gold]), json.dumps([gold])
    texts = (single, f" {single} ", python, f"[[{single}]]")
    arrays = (np.array([gold]), np.array([gold], dtype=object), np.array(gold), np.str_(gold))
    for value in ([gold], (gold,), [[gold]], {gold}, *texts, *arrays):
        assert load_scorer(name, **options)(response, value).correct, value
        assert verl(name, response, value, **options)["acc"] == 1.0, value
        assert verl(name, "no", value, **options)["error"] == 0.0, value


@pytest.mark.parametrize("gold", NO_GOLD, ids=repr)
@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o, *_ in SCORERS])
def test_a_missing_gold_is_an_error_and_repeating_it_does_not_pay(name, options, gold):
    scorer = load_scorer(name, **options)
    text = str(gold)
    forms = (rf"\boxed{{{text}}}", f"Answer: {text}", f"#### {text}", text, "", r"\boxed{}")
    for response in (*forms, rf"<think></think>\boxed{{{text}}}"):
        result = scorer(response, gold)
        assert (result.correct, result.status) == (False, Status.BAD_GROUND_TRUTH)
        fields = verl(name, response, gold, **options)
        assert (fields["acc"], fields["error"]) == (0.0, 1.0)


SEVERAL = [["18", "19"], '["18", "19"]', "['18', '19']", ["18", None], {"target": ["18"]}, '{"target": "18"}', '["\\u0041", 1]', "['18' '19']"]  # fmt: skip


@pytest.mark.parametrize("gold", SEVERAL, ids=repr)
@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o, *_ in SCORERS if n != "mcq"])
def test_several_answers_and_an_object_are_an_error_not_a_wrong_answer(name, options, gold):
    for response in ("#### 18", r"<think></think>\boxed{18}", "Answer: 18", f"Answer: {gold}"):
        assert load_scorer(name, **options)(response, gold).status is Status.BAD_GROUND_TRUTH
        assert verl(name, response, gold, **options)["error"] == 1.0


def test_several_letters_are_a_gold_of_a_choice():
    for gold in (["A", "C"], '["A", "C"]', "['A', 'C']", "['A' 'C']", "A,C"):
        assert load_scorer("mcq")(r"\boxed{AC}", gold).correct
        assert verl("mcq", r"\boxed{A}", gold)["error"] == 0.0
    assert verl("mcq", r"\boxed{A}", {"a": "A"})["error"] == 1.0


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("[1,2]", r"\boxed{[1,2]}"), ("[-1, 0]", r"\boxed{[-1,0]}"), ("[0, 1)", r"\boxed{[0,1)}"), (r"\{1, 2\}", r"\boxed{\{1,2\}}"),
        (r"\{1\}", r"\boxed{\{1\}}"), ("none", r"\boxed{none}"), ("NaN", r"\boxed{NaN}"), ("None of the above", r"\boxed{None of the above}"),
        ('"There are equal numbers"', r"\boxed{There are equal numbers}"), ("[5]", r"\boxed{[5]}"), ("[5]", r"\boxed{5}"),
    ],
)  # fmt: skip
def test_real_golds_that_look_like_these_stay_golds(gold, response):
    assert load_scorer("math")(response, gold).correct


@pytest.mark.parametrize("method", ["strict", "flexible"])
@pytest.mark.parametrize(
    "gold", ["18.0", "-18.0", "18.00", "18.", 18.0, [18.0], "[18.0]", array("d", [18])]
)
def test_gsm8k_calls_a_whole_number_written_as_a_decimal_an_error(method, gold, caplog):
    """In verl, the answer 18 silently scores as wrong; we keep verl's score and set error."""
    text = accept_gold(gold)
    decimal_answer, integer_answer = f"#### {text}", f"#### {text.partition('.')[0]}"
    result = verl("gsm8k", integer_answer, gold, method=method)
    assert (result["score"], result["error"]) == (0.0, 1.0)
    assert "or set method=robust. Such samples count as wrong" in caplog.text
    assert verl("gsm8k", decimal_answer, gold, method=method)["score"] == 1.0
    assert verl("gsm8k", integer_answer, gold, method="robust")["acc"] == 1.0


def test_gsm8k_accepts_golds_with_a_decimal_part():
    for gold in ("18.50", ".5", "0.05", 18.5):
        result = verl("gsm8k", f"#### {gold}", gold)
        assert (result["acc"], result["error"]) == (1.0, 0.0)


@every(
    ("gold", "message"),
    [
        ("nan", "ground truth 'nan' cannot be scored: it is a missing value."),
        (["1", "2"], "it is a list of several answers; write one answer as text."),
        ("", "cannot be scored: it is empty."),
    ],
)
def test_the_log_says_why_a_gold_cannot_be_scored(caplog, gold, message):
    verl("math", "x", gold, source=message)
    assert message in caplog.messages[-1].removeprefix(message)


def test_a_gold_with_a_lost_backslash_is_an_error():
    r"""JSON reads the `\f` of a single-backslash `\frac` as a form feed, so no answer is right."""
    assert accept_gold('["\\frac{1}{2}"]') == ""
    assert accept_gold('["\\\\frac{1}{2}"]') == r"\frac{1}{2}"
    assert accept_gold(repr(["x's"])) == "x's"


@every(
    ("opening", "item", "end"),
    [("[", "1, ", "1]"), ("[", '"a", ', '"a"]'), ('{"target": [', '"a",', '"a"]}')],
)
def test_a_list_of_more_than_a_million_characters_is_no_gold(opening, item, end):
    """100 MB of it in a cell were parsed for 40 seconds, into gigabytes."""
    gold = opening + item * (MAX_LIST_CHARACTERS // len(item)) + end
    tracemalloc.start()
    assert accept_gold(gold) == ""
    assert alternatives(gold) == ()
    assert "more than 1,048,576 characters" in explain_bad_gold(gold, load_scorer("qa"))
    assert tracemalloc.get_traced_memory()[1] < 4 * len(gold)
    tracemalloc.stop()


@given(st.text())
def test_a_text_gold_stays_unchanged_and_never_raises(text):
    assert unwrap_gold(text) == text
    assert accept_gold(text) in ("", text) or text.lstrip()[0] == "["
    assert type(explain_bad_gold(text, load_scorer("gsm8k"))) is str


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '["' * 50_000, "[" + "9" * 10_000 + "]", "{" * 9_999]
)
def test_a_hostile_gold_is_read_in_bounded_time(text):
    assert type(accept_gold(text)) is str
    assert type(accept_gold(text, several=True)) is str


def test_only_exact_words_count_as_a_missing_gold():
    assert all(accept_gold(word) == word for word in ("none", "NaN", "Null", "nans", "0"))
