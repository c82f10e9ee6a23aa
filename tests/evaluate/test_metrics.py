"""Figures of known responses."""

from rewardkit.evaluate.estimators import pass_at_k
from rewardkit.evaluate.judge import JudgedResponse, parse_judged_line
from rewardkit.evaluate.metrics import compute_metrics


def judged(question, right, vote=None, *, source="s", subject="", level="", **fields):
    vote = ("right" if right else "wrong") if vote is None else vote
    status = "correct" if right else ("wrong" if vote else "no_answer")
    made = JudgedResponse(
        question=question,
        group=(source, subject, level),
        right=right,
        score=float(right),
        vote=vote,
        status=status,
        finish="stop",
        characters=10,
        tokens=5,
    )
    return made._replace(**fields)


def test_figures_are_means_over_questions():
    found = compute_metrics(
        [judged(0, right) for right in (True, True, False, False)]
        + [judged(1, right) for right in (True, False, False, False)]
    ).summary()["total"]
    assert found["mean"]["value"] == (2 / 4 + 1 / 4) / 2
    for k in range(1, 5):
        expected = (pass_at_k(4, 2, k) + pass_at_k(4, 1, k)) / 2
        assert found["pass@k"][str(k)]["value"] == expected
    assert found["pass@k"]["1"]["value"] == found["mean"]["value"]
    assert found["maj@k"]["4"]["value"] == (0.5 + 0) / 2  # a tie is half a win
    assert list(found["verl_best@N"]) == ["2", "4"]
    assert found["verl_best@N"]["4"] < found["pass@k"]["4"]["value"]


def test_with_one_response_each_the_interval_is_wilsons():
    from rewardkit.statistics import wilson_interval

    found = compute_metrics(judged(i, i < 30) for i in range(100)).summary()["total"]
    assert found["mean"] == {"value": 0.3, "interval": wilson_interval(30, 100)}


def test_responses_to_one_question_say_less_than_questions():
    alike = compute_metrics(judged(i // 8, i // 8 % 2 == 0) for i in range(160)).summary()["total"]
    apart = compute_metrics(judged(i, i % 2 == 0) for i in range(160)).summary()["total"]
    widths = [high - low for low, high in (alike["mean"]["interval"], apart["mean"]["interval"])]
    assert widths[0] > 2 * widths[1]


def test_no_answer_has_no_vote_and_truncation_is_counted_apart():
    found = compute_metrics(
        [
            judged(0, right=False, vote="", finish="length"),
            judged(0, right=False, vote="", finish="length"),
            judged(0, right=True, finish="length"),
        ]
    ).summary()["total"]
    assert found["maj@k"]["3"]["value"] == 1
    assert found["truncated"] == {"n": 3, "share": 1.0, "right": 1}
    assert found["no_answer"]["n"] == 2


def test_majorities_are_unknown_where_the_scorer_names_no_answer():
    found = compute_metrics([judged(0, right=True, vote="")]).summary()["total"]
    assert found["maj@k"] == {}


def test_subjects_and_levels_are_those_of_their_data_source():
    found = compute_metrics(
        [
            judged(0, right=True, subject="algebra", level="1"),
            judged(1, right=False, subject="algebra", level="2"),
            judged(2, right=True, source="t", subject="algebra"),
        ]
    ).summary()
    assert found["by_subject"]["s"]["algebra"]["mean"]["value"] == 0.5
    assert found["by_subject"]["t"]["algebra"]["questions"] == 1
    assert sorted(found["by_level"]["s"]) == ["1", "2"]
    assert found["by_data_source"]["t"]["mean"]["value"] == 1


def test_with_different_numbers_of_responses_k_goes_up_to_the_least():
    found = compute_metrics(
        [judged(0, i == 0) for i in range(3)] + [judged(1, right=True)]
    ).summary()
    assert found["total"]["n"] == [1, 3]
    assert list(found["total"]["pass@k"]) == ["1"]
    assert found["total"]["mean"]["value"] == (1 / 3 + 1) / 2


def test_lengths_are_nearest_ranks():
    found = compute_metrics(judged(i, right=True, tokens=i + 1) for i in range(100)).summary()[
        "total"
    ]
    assert found["tokens"] == {"known": 100, "mean": 50.5, "p50": 50, "p95": 95, "max": 100}
    unknown = compute_metrics([judged(0, right=True, tokens=None)]).summary()["total"]
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
        return parse_judged_line(
            {**line, "score": 0.0, "acc": 0.0, "status": "wrong", "response": ""}
        ).vote

    assert vote(r"\dfrac{1}{2}") == vote(r"\frac12.") != vote(r"\frac13")
    assert vote("Monday") == vote("monday.")
    assert vote("18", no_answer=1.0) == ""
