"""The question asked the other way round: the same verdict, with yes and no exchanged."""

import pytest

from rewardkit.errors import UsageError
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.rubric import read_rubric, reverse_rubric
from rewardkit.judging.verdict import parse_verdict
from rewardkit.scorers.load import load_scorer
from tests.judging.faulty_server import prompt_of, serving


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


def test_a_judge_that_says_yes_to_everything_contradicts_itself():
    """It pays a wrong answer for one question, and refuses it for the other."""
    with serving(lambda _: {"reason": "x", "verdict": "yes"}) as server:
        verdicts = [
            load_scorer("judge", base_url=server.url, reverse=reverse)(r"\boxed{7}", "8").correct
            for reverse in (False, True)
        ]
    assert verdicts == [True, False]
    assert "rejected" in prompt_of(server.bodies[1])


def test_criteria_have_no_other_way_round():
    """The mistake is an error when the scorer is loaded."""
    with pytest.raises(UsageError, match="only a question of equivalence"):
        load_scorer("judge", rubric="open", reverse=True)
