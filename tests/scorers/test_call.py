"""Calling a scorer gives a finite `Score` with plain types, or an exception with the reason."""

import sys

import pytest

from rewardkit.errors import call_catching
from rewardkit.scorers.base import Score, Status, verl_result
from rewardkit.scorers.call import (
    InvalidScoreError,
    NeverAnswersError,
    as_scorer,
    call_scorer,
    call_scorer_or_stop,
    call_verl_function,
    failed_score,
    failure_reason,
)


def returning(result):
    return lambda response, ground_truth, extra_info=None: result


def raising(error):
    def scorer(response, ground_truth, extra_info=None):
        raise error

    return scorer


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (1.0, "the scorer returned float, not a Score"),
        (None, "the scorer returned NoneType, not a Score"),
        (Score(float("nan"), False, "", Status.WRONG), "its score is nan"),
        (Score(float("-inf"), False, "", Status.WRONG), "its score is -inf"),
        (Score(0.0, False, "", "nearly"), "its status is 'nearly'"),
    ],
)
def test_an_invalid_score_is_an_error_with_a_reason(result, reason):
    error = call_scorer(returning(result), "r", "g")
    assert isinstance(error, InvalidScoreError)
    assert failure_reason(error) == reason


def test_a_score_has_plain_types_whatever_the_scorer_used():
    numpy = pytest.importorskip("numpy")
    score = Score(numpy.float32(0.5), numpy.True_, numpy.str_("x"), "correct")
    result = call_scorer(returning(score), "r", "g")
    assert result == Score(0.5, True, "x", Status.CORRECT)
    assert list(map(type, result)) == [float, bool, str, Status]


def test_a_failure_has_a_status_and_one_line_of_reason():
    error = call_scorer(raising(LookupError("no\nsuch thing")), "r", "g")
    assert failure_reason(error) == "the scorer raised LookupError: no such thing"
    assert failed_score(error, -1.0) == Score(-1.0, False, "", Status.FAILED)


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("an exception without a text")


def test_an_exception_without_a_readable_message_is_a_failure_too():
    error = call_scorer(raising(SilentError()), "r", "g")
    assert failure_reason(error) == "the scorer raised SilentError: "
    assert verl_result(raising(SilentError()), "d", "r", "g", None, {})["error"] == 1.0


def test_only_commands_stop_using_a_scorer_that_never_answers():
    scorer = raising(NeverAnswersError("it failed on the first 5 responses"))
    assert failed_score(call_scorer(scorer, "r", "g")).status is Status.TIMEOUT
    with pytest.raises(NeverAnswersError):
        call_scorer_or_stop(scorer, "r", "g")


def test_exceptions_and_exits_are_caught_and_interrupts_are_not():
    def ends(error):
        raise error

    assert isinstance(call_catching(ends, ValueError("x")), ValueError)
    assert "sys.exit(3)" in str(call_catching(sys.exit, 3))
    assert call_catching(int, "12", base=3) == 5
    with pytest.raises(KeyboardInterrupt):
        call_catching(ends, KeyboardInterrupt())


def test_a_function_with_verl_s_signature_is_a_scorer_and_others_stay():
    def verl_s(data_source, solution_str, ground_truth, extra_info=None):
        return 1.0

    def ours(response, ground_truth, extra_info=None):
        return None

    assert as_scorer(ours) is ours
    assert as_scorer(verl_s)("r", "g") == Score(1.0, None, "", Status.SCORED)


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (1.0, Score(1.0, None, "", Status.SCORED)),
        (2, Score(2.0, None, "", Status.SCORED)),
        (True, Score(1.0, True, "", Status.CORRECT)),
        ({"score": 0.5}, Score(0.5, None, "", Status.SCORED)),
        ({"score": 0.1, "acc": 0.1}, Score(0.1, None, "", Status.SCORED)),
        ({"score": 0.1, "correct": False}, Score(0.1, False, "", Status.WRONG)),
        ({"score": 0.0, "error": 1}, Score(0.0, False, "", Status.FAILED)),
        ({"score": 0.5, "acc": True, "pred": 7}, Score(0.5, True, "7", Status.CORRECT)),
        ({"score": 1.0, "acc": 0}, Score(1.0, False, "", Status.WRONG)),
    ],
)
def test_a_user_s_reward_returns_a_number_or_a_dictionary_or_is_a_coroutine(result, score):
    def plain(data_source, solution_str, ground_truth, extra_info=None, *, option=None):
        assert (data_source, solution_str, ground_truth, option) == ("d", "r", "g", 3)
        assert extra_info == {"k": 1}
        return result

    async def later(**arguments):
        return plain(**arguments)

    for function in (plain, later):
        info = {"data_source": "d", "k": 1}
        assert call_verl_function(function, "r", "g", info, option=3) == score
        assert info == {"data_source": "d", "k": 1}, "the row's own mapping is left alone"
