import pytest

from rewardkit.errors import UnknownNameError
from rewardkit.scorers import auto


def test_the_scorer_a_row_names_wins_over_its_data_source():
    assert auto.compute_score("openai/gsm8k", r"\boxed{5}", "5", {"scorer": "math"})["score"] == 1.0
    assert auto.compute_score("openai/gsm8k", r"\boxed{5}", "5", {"scorer": ""})["score"] == 0.0
    assert auto.compute_score("openai/gsm8k", "#### 5", "5", None)["score"] == 1.0


def test_options_reach_the_chosen_scorer():
    assert auto.compute_score("openai/gsm8k", "#### $5", "5", {}, method="robust")["score"] == 1.0
    assert auto.score("#### $5", "5", {"scorer": "gsm8k"}, method="robust").correct


@pytest.mark.parametrize("scorer", ["nope", "auto", "/tmp/evil.py:score", "os:system"])
def test_a_row_that_names_no_registered_scorer_is_wrong_with_the_error_flag(scorer):
    result = auto.compute_score("openai/gsm8k", "#### 5", "5", {"scorer": scorer})
    assert (result["score"], result["error"]) == (0.0, 1.0)


def test_an_unknown_data_source_names_the_known_ones_and_the_way_to_register():
    with pytest.raises(UnknownNameError) as caught:
        auto.scorer_for("openai/gsm8", {})
    message = str(caught.value)
    assert "Did you mean 'openai/gsm8k'" in message
    assert "rewardkit.data_sources" in message
