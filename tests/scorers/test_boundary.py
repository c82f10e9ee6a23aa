"""What verl gets for each outcome of a scorer, and what a custom reward may return."""

import logging

import pytest

from rewardkit.errors import UsageError
from rewardkit.scorers import base, math_dapo
from rewardkit.scorers.base import Score, Status, options_for, spec_of, verl_result
from rewardkit.scorers.options import option_names


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(base, "_logged", set())


def returning(result):
    return lambda response, ground_truth, extra_info=None: result


@pytest.mark.parametrize(
    ("status", "flags"),
    [
        (Status.CORRECT, {"acc": 1.0}),
        (Status.WRONG, {}),
        (Status.NO_ANSWER, {"no_answer": 1.0}),
        (Status.UNPARSED_ANSWER, {}),
        (Status.AMBIGUOUS_ANSWER, {}),
        (Status.TIMEOUT, {"timeout": 1.0}),
        (Status.TOO_LONG, {}),
        (Status.BAD_GROUND_TRUTH, {"error": 1.0}),
    ],
)
def test_each_status_sets_its_own_flag_and_no_other(status, flags):
    score = Score(0.25, status is Status.CORRECT, "p", status)
    none = {"acc": 0.0, "no_answer": 0.0, "timeout": 0.0, "error": 0.0}
    expected = {"score": 0.25, "pred": "p", **none, **flags}
    assert verl_result(returning(score), "d", "r", "g", None, {}) == expected


def test_a_failure_scores_like_a_wrong_answer():
    assert spec_of(math_dapo.score).wrong_score == -1.0
    assert spec_of(returning(None)).wrong_score == 0.0
    assert spec_of(len).wrong_score == 0.0
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


@pytest.mark.parametrize(
    "name",
    ["concurrent_semaphore", "memory_limit_mb", "reward_model_tokenizer", "reward_router_address", "sandbox_fusion_url"],
)  # fmt: skip
def test_verls_own_arguments_never_reach_a_scorer(name, caplog):
    def takes_any(response, ground_truth, extra_info=None, **options):
        return options

    def takes_one(response, ground_truth, extra_info=None, *, method="a"):
        return method

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        assert options_for(takes_any, {name: 1, "method": 2}) == {"method": 2}
        assert options_for(takes_one, {name: 1, "method": 2}) == {"method": 2}
    assert not caplog.records
    assert option_names(takes_any) is None
    assert option_names(takes_one) == {"method"}


def test_a_log_line_names_the_data_and_the_cause_and_stays_short(caplog):
    def broken(response, ground_truth, extra_info=None):
        raise ValueError("x" * 2000)

    def misused(response, ground_truth, extra_info=None):
        raise UsageError("gsm8k: method='x'.")

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        verl_result(broken, "one/set", "", "1", None, {})
        verl_result(misused, "one/set", "", "1", None, {})
        bad = Score(0.0, False, "", Status.BAD_GROUND_TRUTH)
        verl_result(returning(bad), "one/set", "", "g" * 200, None, {})
    long, short, gold = (record.getMessage() for record in caplog.records)
    assert long == "one/set: ValueError: " + "x" * 488 + " Such samples count as wrong."
    assert short == "one/set: gsm8k: method='x'. Such samples count as wrong."
    assert f"'{'g' * 80}'" in gold


def test_the_same_cause_is_logged_again_for_another_data_source_or_line(caplog):
    def broken(response, ground_truth, extra_info=None):
        if response:
            raise ValueError("one place")
        raise ValueError("another place")

    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        for source in ("a", "b", "a", "b"):
            for response in ("", "x"):
                verl_result(broken, source, response, "1", None, {})
    assert len(caplog.records) == 4


def test_a_hundred_causes_are_logged_in_one_process(caplog):
    with caplog.at_level(logging.ERROR, logger="rewardkit"):
        for n in range(150):
            base.failure_result(f"source {n}", ValueError("x"))
    assert len(caplog.records) == 100
