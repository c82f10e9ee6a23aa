import logging
import pickle

import pytest

from rewardkit.scorers import base
from rewardkit.scorers.base import Score, Status, option_names, to_verl, verl_result

RIGHT = Score(1.0, True, "5", Status.CORRECT)


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(base, "_logged", set())


def test_a_score_is_frozen_and_picklable():
    assert pickle.loads(pickle.dumps(RIGHT)) == RIGHT
    with pytest.raises(AttributeError):
        RIGHT.score = 0.0


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
    }


@pytest.mark.parametrize("status", list(Status))
def test_every_status_gives_verl_the_same_keys(status):
    assert to_verl(Score(0.0, False, "", status)).keys() == to_verl(RIGHT).keys()


def test_a_raising_scorer_is_wrong_flagged_and_logged_once_per_cause(caplog):
    def broken(response, ground_truth, extra_info=None):
        if response == "a":
            raise ValueError("first")
        raise ZeroDivisionError(f"second {response}")

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        results = [verl_result(broken, "d", text, "1", None, {}) for text in "ababcdef"]
    assert {(r["score"], r["acc"], r["error"]) for r in results} == {(0.0, 0.0, 1.0)}
    assert len(caplog.records) == 2


def test_bad_golds_are_flagged_and_logged_once_per_data_source(caplog):
    def bad_gold(response, ground_truth, extra_info=None):
        return Score(0.0, False, "", Status.BAD_GROUND_TRUTH)

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        results = [verl_result(bad_gold, s, "", f"g{i}", None, {}) for s in "ab" for i in range(5)]
    assert all(r["error"] == 1.0 for r in results)
    assert len(caplog.records) == 2


def test_the_log_of_causes_is_bounded(caplog):
    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        for i in range(base.MAX_CAUSES + 50):
            base.failed(f"source {i}", ValueError("x"))
    assert len(caplog.records) == base.MAX_CAUSES


def test_unhashable_and_strange_arguments_do_not_raise():
    def scorer(response, ground_truth, extra_info=None):
        raise RuntimeError

    for data_source in (["a"], {"b": 1}, None, 3):
        assert verl_result(scorer, data_source, object(), [], 7, {})["error"] == 1.0


def test_verl_s_own_keyword_arguments_are_no_options_and_unknown_ones_are_logged(caplog):
    def scorer(response, ground_truth, extra_info=None, *, method="a"):
        return RIGHT._replace(pred=method)

    assert option_names(scorer) == {"method"}
    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        kwargs = {"method": "b", "reward_router_address": "x", "metod": "c"}
        assert verl_result(scorer, "d", "", "1", None, kwargs)["pred"] == "b"
    assert [r.message for r in caplog.records] == [
        "reward_kwargs.metod is no option of this scorer and is ignored."
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
def test_nothing_raises_into_verl_whatever_arrives(arguments):
    from rewardkit.scorers import auto, gsm8k

    data_source, solution, gold, extra, kwargs = arguments
    for module in (gsm8k, auto):
        result = module.compute_score(data_source, solution, gold, extra, **kwargs)
        assert result.keys() == to_verl(RIGHT).keys()


def test_a_scorer_that_returns_no_score_is_an_error_flag():
    assert verl_result(lambda *_: 1.0, "d", "", "1", None, {})["error"] == 1.0


def test_a_row_that_names_its_scorer_by_an_array_is_an_error_flag():
    numpy = pytest.importorskip("numpy")
    from rewardkit.scorers import auto

    info = {"scorer": numpy.array([1, 2])}
    assert auto.compute_score("openai/gsm8k", "#### 1", "1", info)["error"] == 1.0
