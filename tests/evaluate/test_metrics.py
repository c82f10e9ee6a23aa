"""Metrics of known responses have the expected values."""

from rewardkit.evaluate.evaluated_responses import EvaluatedResponse, parse_result_line
from rewardkit.evaluate.metrics import compute_metrics, pass_at_k


def scored_response(question, correct, vote=None, *, source="s", subject="", level="", **fields):
    vote = ("correct" if correct else "wrong") if vote is None else vote
    status = "correct" if correct else ("wrong" if vote else "no_answer")
    response = EvaluatedResponse(
        question=question,
        group=(source, subject, level),
        correct=correct,
        score=float(correct),
        vote=vote,
        status=status,
        finish="stop",
        characters=10,
        tokens=5,
    )
    return response._replace(**fields)


def test_metrics_are_means_over_questions():
    summary = compute_metrics(
        [scored_response(0, correct) for correct in (True, True, False, False)]
        + [scored_response(1, correct) for correct in (True, False, False, False)]
    ).summary()["total"]
    assert summary["mean"]["value"] == (2 / 4 + 1 / 4) / 2
    for k in range(1, 5):
        expected = (pass_at_k(4, 2, k) + pass_at_k(4, 1, k)) / 2
        assert summary["pass@k"][str(k)]["value"] == expected
    assert summary["pass@k"]["1"]["value"] == summary["mean"]["value"]
    assert summary["maj@k"]["4"]["value"] == (0.5 + 0) / 2  # a tie is half a win
    assert list(summary["verl_best@N"]) == ["2", "4"]
    assert summary["verl_best@N"]["4"] < summary["pass@k"]["4"]["value"]


def test_with_one_response_per_question_the_interval_is_wilsons():
    from rewardkit.statistics import wilson_interval

    summary = compute_metrics(scored_response(i, i < 30) for i in range(100)).summary()["total"]
    assert summary["mean"] == {"value": 0.3, "interval": wilson_interval(30, 100)}


def test_intervals_are_wider_with_several_responses_per_question():
    correlated = compute_metrics(
        scored_response(i // 8, i // 8 % 2 == 0) for i in range(160)
    ).summary()["total"]
    independent = compute_metrics(scored_response(i, i % 2 == 0) for i in range(160)).summary()[
        "total"
    ]
    widths = [
        high - low
        for low, high in (correlated["mean"]["interval"], independent["mean"]["interval"])
    ]
    assert widths[0] > 2 * widths[1]


def test_responses_without_an_answer_do_not_vote_and_truncation_is_counted_separately():
    summary = compute_metrics(
        [
            scored_response(0, correct=False, vote="", finish="length"),
            scored_response(0, correct=False, vote="", finish="length"),
            scored_response(0, correct=True, finish="length"),
        ]
    ).summary()["total"]
    assert summary["maj@k"]["3"]["value"] == 1
    assert summary["truncated"] == {"n": 3, "share": 1.0, "right": 1}
    assert summary["no_answer"]["n"] == 2


def test_majorities_are_unknown_if_the_scorer_does_not_name_the_right_answer():
    summary = compute_metrics([scored_response(0, correct=True, vote="")]).summary()["total"]
    assert summary["maj@k"] == {}


def test_subjects_and_levels_are_grouped_by_data_source():
    summary = compute_metrics(
        [
            scored_response(0, correct=True, subject="algebra", level="1"),
            scored_response(1, correct=False, subject="algebra", level="2"),
            scored_response(2, correct=True, source="t", subject="algebra"),
        ]
    ).summary()
    assert summary["by_subject"]["s"]["algebra"]["mean"]["value"] == 0.5
    assert summary["by_subject"]["t"]["algebra"]["questions"] == 1
    assert sorted(summary["by_level"]["s"]) == ["1", "2"]
    assert summary["by_data_source"]["t"]["mean"]["value"] == 1


def test_k_goes_up_to_the_smallest_number_of_responses():
    summary = compute_metrics(
        [scored_response(0, i == 0) for i in range(3)] + [scored_response(1, correct=True)]
    ).summary()
    assert summary["total"]["n"] == [1, 3]
    assert list(summary["total"]["pass@k"]) == ["1"]
    assert summary["total"]["mean"]["value"] == (1 / 3 + 1) / 2


def test_percentiles_of_lengths_are_nearest_ranks():
    summary = compute_metrics(
        scored_response(i, correct=True, tokens=i + 1) for i in range(100)
    ).summary()["total"]
    assert summary["tokens"] == {"known": 100, "mean": 50.5, "p50": 50, "p95": 95, "max": 100}
    unknown = compute_metrics([scored_response(0, correct=True, tokens=None)]).summary()["total"]
    assert unknown["tokens"] == {"known": 0}


def test_votes_for_one_answer_in_two_typographies_are_one_vote():
    def vote(pred, no_answer=0.0):
        line = {
            "row": 0,
            "data_source": "s",
            "extra_info": {},
            "pred": pred,
            "no_answer": no_answer,
        }
        return parse_result_line(
            {**line, "score": 0.0, "acc": 0.0, "status": "wrong", "response": ""}
        ).vote

    assert vote(r"\dfrac{1}{2}") == vote(r"\frac12.") != vote(r"\frac13")
    assert vote("Monday") == vote("monday.")
    assert vote("18", no_answer=1.0) == ""
