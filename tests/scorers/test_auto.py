import pytest

from rewardkit.errors import UnknownNameError
from rewardkit.scorers import auto
from rewardkit.scorers.options import as_scorer


def test_the_scorer_named_by_a_row_overrides_its_data_source():
    assert auto.compute_score("openai/gsm8k", r"\boxed{5}", "5", {"scorer": "math"})["score"] == 1.0
    assert auto.compute_score("openai/gsm8k", r"\boxed{5}", "5", {"scorer": ""})["score"] == 0.0
    assert auto.compute_score("openai/gsm8k", "#### 5", "5", None)["score"] == 1.0


def test_a_row_that_names_a_file_or_an_unregistered_scorer_is_an_error_and_runs_nothing(tmp_path):
    (tmp_path / "evil.py").write_text("open(__file__ + '.ran', 'w')\ndef score(*_): pass\n")
    for scorer in ("nope", "auto", "os:system", f"{tmp_path}/evil.py:score"):
        result = auto.compute_score("openai/gsm8k", "#### 5", "5", {"scorer": scorer})
        assert (result["score"], result["error"]) == (0.0, 1.0)
        with pytest.raises(UnknownNameError, match="registered scorer|unknown scorer"):
            auto.scorer_for("openai/gsm8k", {"scorer": scorer})
    assert not (tmp_path / "evil.py.ran").exists()


def test_an_unknown_data_source_lists_the_known_ones_and_says_how_to_register():
    message = r"Did you mean 'openai/gsm8k'[\s\S]*rewardkit\.data_sources"
    with pytest.raises(UnknownNameError, match=message):
        auto.scorer_for("openai/gsm8", {})


def test_rows_named_after_another_aime_have_the_scorer_of_aime_as_in_verl():
    assert auto.compute_score("aime24_x32", "Answer: 25", "25")["score"] == 1.0
    with pytest.raises(UnknownNameError, match="'AIME24'"):
        auto.scorer_for("AIME24", {})


def test_a_reward_with_verls_signature_gets_the_data_source_of_the_row(monkeypatch):
    def reward(data_source, solution_str, ground_truth, extra_info=None):
        return float(data_source == "mine" and extra_info == {"index": 7})

    monkeypatch.setattr(auto, "scorer_for", lambda data_source, info: as_scorer(reward))
    info = {"index": 7}
    assert auto.compute_score("mine", "", "", info)["score"] == 1.0
    assert auto.compute_score("other", "", "", info)["score"] == 0.0
    assert info == {"index": 7}
