"""Calling a scorer: a finite `Score` with plain types, what verl gets of it, and what is logged."""

import logging
import sys
from contextlib import nullcontext

import pytest

from rewardkit.errors import UsageError, call_catching
from rewardkit.scorers import auto, base, gsm8k, math_dapo
from rewardkit.scorers.base import (
    MAX_PRED_CHARACTERS,
    InvalidScoreError,
    NeverAnswersError,
    Score,
    Status,
    call_scorer,
    call_scorer_or_stop,
    failed_score,
    failure_reason,
    options_for,
    spec_of,
    to_verl,
    verl_result,
)
from rewardkit.scorers.options import as_scorer, call_verl_function, option_names
from rewardkit.testing import check_scorer

RIGHT = Score(1.0, True, "5", Status.CORRECT)


def boxed(answer):
    return rf"<think>so</think> \boxed{{{answer}}}"


SCHEMA = '{"schema": {"required": ["a"]}, "gold": {"a": 1}}'

#: Right pairs, wrong pairs, and the rows' extra_info. `math_verify` hangs on some of the odd texts
#: until its process is ended, which takes seconds each, so that its own tests cover it.
PAIRS = {
    "auto": ([("#### 18", "18")], [("#### 17", "18")], {"scorer": "gsm8k"}),
    "function_call": (
        [("f(a=1)", '{"name": "f", "arguments": {"a": 1}}')],
        [("f(a=2)", "f(a=1)")],
        {},
    ),
    "json_schema": ([('{"a": 1}', SCHEMA)], [("{}", SCHEMA)], {}),
    "geometry3k": ([(boxed("1/2"), "0.5")], [(boxed("3"), "2")], {}),
    "gsm8k": ([("so\n#### 18", "18")], [("#### 17", "18"), ("18", "18")], {}),
    "math": ([(boxed("1/2"), "0.5")], [(boxed("3"), "2"), ("", "2")], {}),
    "math_dapo": ([("Answer: 4", "4")], [("Answer: 5", "4")], {}),
    "mcq": ([(boxed("C、A"), "AC")], [(boxed("A or C"), "A")], {"options": ["x", "y", "z"]}),
}


@pytest.fixture(autouse=True)
def log(monkeypatch, caplog):
    monkeypatch.setattr(base, "_logged", set())
    caplog.set_level(logging.ERROR, "rewardkit")
    return caplog


def returning(result):
    return lambda response, ground_truth, extra_info=None: result


def raising(error):
    def scorer(response, ground_truth, extra_info=None):
        raise error

    return scorer


@pytest.mark.parametrize("name", PAIRS)
def test_our_scorers_pass_the_checks_for_plug_ins(name):
    right, wrong, info = PAIRS[name]
    check_scorer(name, right=right, wrong=wrong, extra_info=info)


SCORER = """
from rewardkit.scorers.base import Score, Status, verl_result
calls = []
def score(response, ground_truth, extra_info=None):
    calls.append(response)
    right = response == ground_truth != ""
    {}
    return Score(float(right), right, response, Status.CORRECT if right else Status.WRONG)
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return verl_result(score, data_source, solution_str, ground_truth, extra_info, kwargs)
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pass", ""),
        ("pass", "does not have the keys"),
        ("right = True", "must be wrong"),
        ("right = False", "must be correct"),
        ("return 1.0", "float 1.0 is not a Score"),
        ("return Score(1.0, right, None, Status.CORRECT)", "pred is NoneType, not text"),
        ("return Score(0.0, right, '', Status.WRONG)", "correct is True, but the status"),
        ("return Score(0.5, right, '', Status('correct' if right else 'wrong'))", "a correct one"),
        ("response.encode()", "UnicodeEncodeError"),
        ("extra_info['seen'] = response", "extra_info is .* after the calls"),
        ("response += str(len(calls))[1:]", "and later"),
        ("response += '!' * (__name__ == 'verl_loads_this')", "but the scorer returns"),
        ("right = response.strip() == ground_truth.strip()", "an empty gold pays"),
    ],
)
def test_each_fault_of_a_scorer_has_its_own_message(tmp_path, line, message):
    file = tmp_path / "mine.py"
    other_keys = "\ndef compute_score(*_, **__): return {'score': 1.0}" * (message[-4:] == "keys")
    file.write_text(SCORER.format(line) + other_keys)
    with pytest.raises(AssertionError, match=message) if message else nullcontext():
        check_scorer(f"{file}:score", right=[("4", "4")], wrong=[("5", "4")])


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (1.0, "the scorer returned float, not a Score"),
        (Score(float("nan"), False, "", Status.WRONG), "its score is nan"),
        (Score(0.0, False, "", "nearly"), "its status is 'nearly'"),
    ],
)
def test_an_invalid_score_is_an_error_with_a_reason(result, reason):
    error = call_scorer(returning(result), "r", "g")
    assert isinstance(error, InvalidScoreError)
    assert failure_reason(error) == reason


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_a_score_has_plain_types_whatever_the_scorer_used():
    numpy = pytest.importorskip("numpy")
    score = Score(numpy.float32(0.5), numpy.True_, numpy.str_("x"), "correct")
    result = call_scorer(returning(score), "r", "g")
    assert result == Score(0.5, True, "x", Status.CORRECT)
    assert list(map(type, result)) == [float, bool, str, Status]
    info = {"scorer": numpy.array([1, 2])}
    assert auto.compute_score("openai/gsm8k", "#### 1", "1", info)["error"] == 1.0


def test_a_failure_has_a_status_and_one_line_of_reason():
    error = call_scorer(raising(LookupError("no\nsuch thing")), "r", "g")
    assert failure_reason(error) == "the scorer raised LookupError: no such thing"
    assert failed_score(error, -1.0) == Score(-1.0, False, "", Status.FAILED)
    error = call_scorer(raising(UnprintableError()), "r", "g")
    assert failure_reason(error) == "the scorer raised UnprintableError: "
    assert verl_result(raising(UnprintableError()), "d", "r", "g", None, {})["error"] == 1.0


def test_only_commands_stop_using_a_scorer_that_never_answers():
    scorer = raising(NeverAnswersError("it failed on the first 5 responses"))
    assert failed_score(call_scorer(scorer, "r", "g")).status is Status.TIMEOUT
    with pytest.raises(NeverAnswersError):
        call_scorer_or_stop(scorer, "r", "g")


def test_exceptions_and_exits_are_caught_and_interrupts_are_not():
    assert isinstance(call_catching(raising(ValueError("x")), "", ""), ValueError)
    assert "sys.exit(3)" in str(call_catching(sys.exit, 3))
    assert call_catching(int, "12", base=3) == 5
    with pytest.raises(KeyboardInterrupt):
        call_catching(raising(KeyboardInterrupt()), "", "")


@pytest.mark.parametrize(
    ("result", "score"),
    [
        (True, Score(1.0, True, "", Status.CORRECT)),
        ({"score": 0.1, "acc": 0.1}, Score(0.1, None, "", Status.SCORED)),
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

    for function in (as_scorer(plain), lambda *a, **k: call_verl_function(later, *a, **k)):
        info = {"data_source": "d", "k": 1}
        assert function("r", "g", info, option=3) == score
        assert info == {"data_source": "d", "k": 1}, "the row's own mapping is left alone"
    assert as_scorer(returning(None)).__name__ == "<lambda>"


@pytest.mark.parametrize(
    ("status", "flags"),
    [
        (Status.CORRECT, {"acc": 1.0}),
        (Status.WRONG, {}),
        (Status.NO_ANSWER, {"no_answer": 1.0}),
        (Status.TIMEOUT, {"timeout": 1.0}),
        (Status.BAD_GROUND_TRUTH, {"error": 1.0}),
    ],
)
def test_each_status_sets_its_own_flag_and_no_other(status, flags):
    score = Score(0.25, status is Status.CORRECT, "p", status)
    none = {"acc": 0.0, "no_answer": 0.0, "timeout": 0.0, "error": 0.0}
    expected = {"score": 0.25, "pred": "p", **none, **flags}
    assert verl_result(returning(score), "d", "r", "g", None, {}) == expected


def test_verl_gets_the_start_of_an_answer_that_is_a_long_program():
    result = verl_result(returning(Score.wrong("x" * 200_000)), "d", "r", "g", None, {})
    assert result["pred"] == "x" * MAX_PRED_CHARACTERS


def test_a_failure_scores_like_a_wrong_answer():
    assert spec_of(math_dapo.score).wrong_score == -1.0
    assert spec_of(returning(None)).wrong_score == spec_of(len).wrong_score == 0.0
    result = math_dapo.compute_score("d", "Answer: 5", "5", mode="no")
    assert (result["score"], result["error"]) == (-1.0, 1.0)


@pytest.mark.parametrize("extra_info", [None, "text", 3, ["a"]])
def test_a_scorer_gets_extra_info_as_a_mapping_or_none(extra_info):
    infos = []

    def scorer(response, ground_truth, extra_info=None):
        infos.append((response, ground_truth, extra_info))
        return Score(1, True, "", Status.CORRECT)

    verl_result(scorer, "d", None, 5, extra_info, {})
    result = verl_result(scorer, "d", 5, None, {"k": 1}, {})
    assert infos == [("", "5", None), ("5", "", {"k": 1})]
    assert type(result["score"]) is float


@pytest.mark.parametrize("name", sorted(base.VERL_KWARGS))
def test_verls_own_arguments_never_reach_a_scorer(name, log):
    def takes_any(response, ground_truth, extra_info=None, **options):
        return options

    def takes_one(response, ground_truth, extra_info=None, *, method="a"):
        return RIGHT._replace(pred=method)

    assert (option_names(takes_any), option_names(takes_one)) == (None, {"method"})
    for scorer in (takes_any, takes_one):
        assert options_for(scorer, {name: 1, "method": 2}) == {"method": 2}
    assert not log.records
    kwargs = {"method": "b", name: "x", "metod": "c"}
    assert verl_result(takes_one, "d", "", "1", None, kwargs)["pred"] == "b"
    assert log.messages == ["reward_kwargs.metod is not an option of this scorer; it is ignored."]


def test_a_cause_is_logged_once_for_each_data_source_and_line(log):
    """A process logs a hundred of them at most."""

    def broken(response, ground_truth, extra_info=None):
        if response == "a":
            raise ValueError("first")
        raise ZeroDivisionError(f"second {response}")

    bad_gold = returning(Score(0.0, False, "", Status.BAD_GROUND_TRUTH))
    for source in "stst":
        results = [verl_result(broken, source, text, "1", None, {}) for text in "ababcdef"]
        assert {(r["score"], r["acc"], r["error"]) for r in results} == {(0.0, 0.0, 1.0)}
        assert verl_result(bad_gold, source, "", f"g{source}", None, {})["error"] == 1.0
    assert len(log.records) == 2 * 2 + 2
    for n in range(150):
        base.failure_result(f"source {n}", ValueError("x"))
    assert len(log.records) == 100


def test_a_log_line_names_the_data_and_the_cause_and_stays_short(log):
    bad = Score(0.0, False, "", Status.BAD_GROUND_TRUTH)
    verl_result(raising(ValueError("x" * 2000)), "one/set", "", "1", None, {})
    verl_result(raising(UsageError("gsm8k: method='x'.")), "one/set", "", "1", None, {})
    verl_result(returning(bad), "one/set", "", "g" * 200, None, {})
    long, short, gold = log.messages
    assert long == "one/set: ValueError: " + "x" * 488 + " Such samples count as wrong."
    assert short == "one/set: gsm8k: method='x'. Such samples count as wrong."
    assert f"'{'g' * 80}'" in gold


def test_no_secret_and_no_control_character_of_a_message_is_logged(log):
    """Text of a model or a server would move the cursor or set the title of a terminal."""
    url = "https://h/v1?key=Qx8shapedValue99"
    verl_result(raising(ValueError(f"401 from {url}")), "d", "1", "1", None, {})
    base.log_once("a url", f"{url}: no answer.")
    assert log.text.count("https://h/v1?key=***") == 2
    assert "Qx8shapedValue99" not in log.text
    base.log_once("escape", "503: \x1b]0;owned\x07 \x9b2J\r\nok 题")
    assert log.messages[-1] == r"503: \x1b]0;owned\x07 \x9b2J\r\nok 题"


@pytest.mark.parametrize(
    "arguments",
    [
        ("d", "#### 1", "1", None, {"format_score": "abc"}),
        (UnprintableError(), "#### 1", "1", None, {}),
        ("d", UnprintableError(), "1", None, {}),
        ("d", "#### 1", UnprintableError(), None, {}),
        *((source, object(), [], 7, {}) for source in (["a"], {"b": 1}, None, 3)),
    ],
)
def test_no_arguments_make_verl_result_raise(arguments):
    data_source, solution, gold, extra, kwargs = arguments
    for module in (gsm8k, auto):
        result = module.compute_score(data_source, solution, gold, extra, **kwargs)
        assert result.keys() == to_verl(RIGHT).keys()
    scorer = raising(RuntimeError())
    assert verl_result(scorer, data_source, solution, gold, extra, {})["error"] == 1.0
