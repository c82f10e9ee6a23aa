"""Duplicates, conflicting golds and languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit.preprocess.base import Problem
from rewardkit.preprocess.duplicates import gold_key, question_key
from rewardkit.preprocess.prep import find_repeated
from rewardkit.row import read_rows

TEXT = st.text(alphabet="abc xyz+-=123.,$\\é题？", max_size=30)


@pytest.mark.parametrize(
    "other",
    [
        r"Find  $\frac{1}{2}+x$.",
        r"find $ \dfrac{1}{2} + x $",
        r"Find \(\tfrac{1}{2}\, + x\)?",
        "Find $\\frac{1}{2}+x$.",
    ],
)
def test_spellings_of_one_question_are_one_question(other):
    assert question_key(other) == question_key(r"Find $\frac{1}{2}+x$")


@pytest.mark.parametrize("other", ["Find x-1", "Find x+2", "Find y+1", "Find x + 1 + 1", "x+1", ""])
def test_different_questions_have_different_keys(other):
    assert question_key(other) != question_key("Find x+1")


def test_pictures_are_part_of_the_question():
    assert question_key("Find x", [b"1"]) != question_key("Find x", [b"2"])
    assert question_key("Find x", [b"1", b"2"]) != question_key("Find x", [b"12"])
    assert question_key("Find x", [b"1"]) == question_key("find x.", [b"1"])


@given(TEXT)
def test_white_space_does_not_change_the_key_of_a_question(text):
    assert question_key(text) == question_key(f"  {text.replace(' ', '  ')}\n")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("025", "25", True),
        ("1,000", "1000", True),
        ("2.50", "2.5", True),
        (str(2**60), str(2**60 + 1), False),
        ("-1", "1", False),
        ("A, C", "a,c", True),
        ("2/4", "0.5", False),
        ("9" * 5000, "9" * 5000, True),
    ],
)
def test_golds_are_compared_exactly(a, b, same):
    assert (gold_key(a) == gold_key(b)) is same


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "01", "2"])), max_size=30))
def test_every_question_remains_once_with_its_only_gold_or_is_dropped(pairs):
    problems = [Problem(question, gold) for question, gold in pairs]
    dropped = find_repeated(enumerate(problems))
    kept = [pair for i, pair in enumerate(pairs) if i not in dropped]
    assert len({question for question, _ in kept}) == len(kept)
    for question in "abcd":
        golds = {int(gold) for q, gold in pairs if q == question}
        assert sum(q == question for q, _ in kept) == (len(golds) == 1)
    for index, why in dropped.items():
        golds = {int(gold) for q, gold in pairs if q == pairs[index][0]}
        assert why.reason == ("conflicting golds" if len(golds) > 1 else "duplicate question")


@pytest.mark.parametrize(("gold", "is_same"), [("0.5", True), (r"\frac12", True), ("2", False)])
def test_golds_that_are_equal_as_answers_do_not_conflict(gold, is_same):
    dropped = find_repeated(enumerate([Problem("q", "1/2"), Problem("q", gold)]))
    assert list(dropped) == ([1] if is_same else [0, 1])


def test_options_of_prep_select_and_repeat(tmp_path):
    out = tmp_path / "out.parquet"

    def prep(**options):
        report = rewardkit.prep("dapo-math-17k", out, sample=True, overwrite=True, **options)
        return report.splits[0], [row["extra_info"]["question"] for row in read_rows(out)]

    whole, questions = prep()
    assert whole.distinct < whole.read
    assert {"duplicate question", "conflicting golds", "two answer instructions"} <= {
        *whole.dropped
    }
    english, _ = prep(language="en")
    chinese, _ = prep(language="zh")
    assert english.written + chinese.written == whole.written > english.written > 0
    every, _ = prep(dedup=False)
    assert every.duplicates > 0 < every.conflicting
    twice, again = prep(repeat=2)
    assert again == [question for question in questions for _ in range(2)]
    assert twice.stats.rows == whole.written
