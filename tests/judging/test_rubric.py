"""A rubric is read strictly: a slip in the file is one line before training."""

import pytest

from rewardkit.errors import SourceError, UsageError
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.rubric import BUILT_IN, parse_rubric, read_rubric, reverse_rubric
from rewardkit.judging.verdict import parse_verdict

CRITERION = {"description": "Is it true?"}


def rubric(**fields):
    return {"kind": "criteria", "criteria": {"truth": CRITERION}, **fields}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "give `key: value` pairs, not list"),
        ({"kind": "x"}, "kind: 'x'; give equivalence, criteria"),
        (rubric(treshold=1), "unknown key 'treshold'. Did you mean 'threshold'"),
        (rubric(criteria={}), "kind: criteria needs criteria"),
        ({"kind": "equivalence", "criteria": {"truth": CRITERION}}, "has no criteria"),
        (rubric(criteria={"truth": {"description": " "}}), "criteria.truth: write a description"),
        (rubric(criteria={"truth": {**CRITERION, "weight": 0}}), "greater than 0, not 0"),
        (rubric(criteria={"truth": {**CRITERION, "scale": [0, 1000]}}), "worst and the best grade"),
        (rubric(see="all"), "see: 'all'; give answer, response"),
        (rubric(examples=[{"response": "x", "verdict": {"truth": 9}}]), "must be one of 1, 2, 3"),
        ({"kind": "equivalence", "examples": [{"verdict": "maybe"}]}, "one of yes, no"),
    ],
)
def test_a_mistake_is_one_line(value, message):
    with pytest.raises(UsageError, match="^mine") as error:
        parse_rubric(value, "mine")
    assert message in str(error.value)


def test_a_file_of_a_person_s_words_is_read(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "kind: equivalence\nquestion: Is it no?\nreason: false\n"
        "examples: [{question: q, gold: g, response: r, verdict: no}]\n"
    )
    mine = read_rubric(str(file))
    assert (mine.question, mine.examples[0].verdict) == ("Is it no?", "no")
    assert (mine.see, mine.gold, mine.max_characters) == ("answer", True, 2000)


@pytest.mark.parametrize(
    ("name", "message"),
    [("mth", "Did you mean 'math'?"), ("absent.yaml", "no such file"), ("bytes.yaml", "not UTF-8")],
)
def test_a_rubric_that_cannot_be_read_is_one_line(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises((SourceError, UsageError)) as error:
        read_rubric(name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_digest_follows_the_content_and_not_the_name(name):
    one = read_rubric(name)
    fields = one.model_dump(exclude_unset=True)
    assert one.digest == parse_rubric(fields, "other").digest
    assert one.digest != parse_rubric({**fields, "instructions": "Be kind."}, name).digest


@pytest.mark.parametrize("name", ["math", "qa"])
def test_a_reversed_rubric_exchanges_yes_and_no_everywhere(name):
    """The rules, the examples and the reading of a verdict agree with the other question."""
    rubric = read_rubric(name)
    other = reverse_rubric(rubric)
    text, other_text = (str(build_messages(each, "q", "g", "r")[0]) for each in (rubric, other))
    assert "Answer yes only if" in text
    assert "Answer no only if" in other_text
    assert [each.verdict for each in rubric.examples] == [
        {"yes": "no", "no": "yes"}[each.verdict] for each in other.examples
    ]
    for answer, score in (("yes", 0.0), ("no", 1.0)):
        reply = f'{{"reason": "x", "verdict": "{answer}"}}'
        assert parse_verdict(reply, other).score(other) == score
        assert parse_verdict(reply, rubric).score(rubric) == 1.0 - score
    assert rubric.digest != other.digest
