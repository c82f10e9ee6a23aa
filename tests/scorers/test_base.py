import logging

import pytest

from rewardkit.scorers import base
from rewardkit.scorers.base import Score, Status, to_verl, verl_result
from rewardkit.scorers.options import option_names
from rewardkit.testing import check_scorer, check_verdict

RIGHT = Score(1.0, True, "5", Status.CORRECT)


def boxed(answer):
    return rf"<think>so</think> \boxed{{{answer}}}"


#: Right pairs, wrong pairs, and the rows' extra_info. `math_verify` hangs on some of the odd texts
#: until its process is ended, which takes seconds each, so that its own tests cover it.
PAIRS = {
    "auto": ([("#### 18", "18")], [("#### 17", "18")], {"scorer": "gsm8k"}),
    "geometry3k": ([(boxed("1/2"), "0.5")], [(boxed("3"), "2")], {}),
    "gsm8k": ([("so\n#### 18", "18")], [("#### 17", "18"), ("18", "18")], {}),
    "math": ([(boxed("1/2"), "0.5")], [(boxed("3"), "2"), ("", "2")], {}),
    "math_dapo": ([("Answer: 4", "4")], [("Answer: 5", "4")], {}),
    "mcq": ([(boxed("C、A"), "AC")], [(boxed("A or C"), "A")], {"options": ["x", "y", "z"]}),
}


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(base, "_logged", set())


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
        ("right = True", "must be wrong"),
        ("right = False", "must be correct"),
        ("return 1.0", "float 1.0 is not a Score"),
        ("return Score(float('nan'), right, '', Status.CORRECT)", "the score is nan"),
        ("return Score(1.0, right, None, Status.CORRECT)", "pred is NoneType, not text"),
        ("return Score(0.0, right, '', Status.WRONG)", "correct is True, but the status"),
        (
            "return Score(0.5, right, '', Status.CORRECT if right else Status.WRONG)",
            "a correct one",
        ),
        ("response.encode()", "UnicodeEncodeError"),
        ("extra_info['seen'] = response", "extra_info is .* after the calls"),
        ("response += str(len(calls))[1:]", "and later"),
        ("response += '!' * (__name__ == 'verl_loads_this')", "but the scorer returns"),
        ("right = response.strip() == ground_truth.strip()", "an empty gold pays"),
    ],
)
def test_each_fault_of_a_scorer_has_its_own_message(tmp_path, line, message):
    file = tmp_path / "mine.py"
    file.write_text(SCORER.format(line))
    examples = {"right": [("4", "4")], "wrong": [("5", "4")]}
    if not message:
        check_scorer(f"{file}:score", **examples)
        return
    with pytest.raises(AssertionError, match=message):
        check_scorer(f"{file}:score", **examples)


def test_a_compute_score_with_other_keys_fails_the_check(tmp_path):
    file = tmp_path / "mine.py"
    code = "def compute_score(*_, **__):\n    return {'score': 1.0}\n"
    file.write_text(SCORER.format("pass") + code)
    with pytest.raises(AssertionError, match="does not have the keys"):
        check_scorer(f"{file}:score", right=[("4", "4")], wrong=[("5", "4")])


def test_a_verdict_is_a_score():
    check_verdict(RIGHT)
    with pytest.raises(AssertionError, match="not a Score"):
        check_verdict({"score": 1.0})


def test_the_statuses_are_a_closed_set():
    assert {status.value for status in Status} == {
        "correct",
        "wrong",
        "no_answer",
        "unparsed_answer",
        "ambiguous_answer",
        "bad_ground_truth",
        "timeout",
        "too_long",
        "failed",
        "unknown_data_source",
        "scored",
    }


def test_the_status_no_verdict_of_older_files_reads_as_failed():
    assert Status("no_verdict") is Status.FAILED
    with pytest.raises(ValueError, match="no_such"):
        Status("no_such")


def test_a_scorer_that_raises_scores_wrong_sets_error_and_is_logged_once_per_cause(caplog):
    def broken(response, ground_truth, extra_info=None):
        if response == "a":
            raise ValueError("first")
        raise ZeroDivisionError(f"second {response}")

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        results = [verl_result(broken, "d", text, "1", None, {}) for text in "ababcdef"]
    assert {(r["score"], r["acc"], r["error"]) for r in results} == {(0.0, 0.0, 1.0)}
    assert len(caplog.records) == 2


def test_bad_golds_set_error_and_are_logged_once_per_data_source(caplog):
    def bad_gold(response, ground_truth, extra_info=None):
        return Score(0.0, False, "", Status.BAD_GROUND_TRUTH)

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        results = [verl_result(bad_gold, s, "", f"g{i}", None, {}) for s in "ab" for i in range(5)]
    assert all(r["error"] == 1.0 for r in results)
    assert len(caplog.records) == 2


def test_no_secret_of_an_exception_or_a_message_is_logged(caplog):
    url = "https://h/v1?key=Qx8shapedValue99"

    def fail(response, ground_truth, extra_info=None):
        raise ValueError(f"401 from {url}")

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        verl_result(fail, "d", "1", "1", None, {})
        base.log_once("a url", f"{url}: no answer.")
    assert caplog.text.count("https://h/v1?key=***") == 2
    assert "Qx8shapedValue99" not in caplog.text


def test_control_characters_of_a_message_are_escaped_in_the_log(caplog):
    """Text of a model or a server would move the cursor or set the title of a terminal."""
    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        base.log_once("escape", "503: \x1b]0;owned\x07 \x9b2J\r\nok 题")
    assert caplog.messages == [r"503: \x1b]0;owned\x07 \x9b2J\r\nok 题"]


def test_unhashable_and_strange_arguments_do_not_raise():
    def scorer(response, ground_truth, extra_info=None):
        raise RuntimeError

    for data_source in (["a"], {"b": 1}, None, 3):
        assert verl_result(scorer, data_source, object(), [], 7, {})["error"] == 1.0


def test_keyword_arguments_of_verl_are_not_options_and_unknown_ones_are_logged(caplog):
    def scorer(response, ground_truth, extra_info=None, *, method="a"):
        return RIGHT._replace(pred=method)

    assert option_names(scorer) == {"method"}
    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        kwargs = {"method": "b", "reward_router_address": "x", "metod": "c"}
        assert verl_result(scorer, "d", "", "1", None, kwargs)["pred"] == "b"
    assert [r.message for r in caplog.records] == [
        "reward_kwargs.metod is not an option of this scorer; it is ignored."
    ]


def test_numpy_scalars_and_none_are_read_as_text():
    numpy = pytest.importorskip("numpy")
    assert type(base.as_text(numpy.str_("5"))) is str
    assert base.as_text(None) == ""
    assert base.as_text(numpy.int64(5)) == "5"


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "arguments",
    [
        ("d", "#### 1", "1", None, {"format_score": "abc"}),
        ("d", "#### 2", "1", None, {"format_score": None}),
        (Unprintable(), "#### 1", "1", None, {}),
        ("d", Unprintable(), "1", None, {}),
        ("d", "#### 1", Unprintable(), None, {}),
    ],
)
def test_no_arguments_make_verl_result_raise(arguments):
    from rewardkit.scorers import auto, gsm8k

    data_source, solution, gold, extra, kwargs = arguments
    for module in (gsm8k, auto):
        result = module.compute_score(data_source, solution, gold, extra, **kwargs)
        assert result.keys() == to_verl(RIGHT).keys()


def test_a_row_with_an_array_as_its_scorer_sets_error():
    numpy = pytest.importorskip("numpy")
    from rewardkit.scorers import auto

    info = {"scorer": numpy.array([1, 2])}
    assert auto.compute_score("openai/gsm8k", "#### 1", "1", info)["error"] == 1.0
