import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers import auto, qa
from rewardkit.scorers.base import Status
from rewardkit.scorers.gold import alternatives, unwrap_gold
from rewardkit.scorers.qa import read_answer, score
from tests.tables import every

ROOT = Path(__file__).parents[2]
TARGET = {"target": np.array(["Anna Maria Berg", "A. M. Berg"], dtype=object)}
WHO = {"question": "Who painted the ceiling of the old chapel?"}


@every(
    ("gold", "texts"),
    [
        ("Paris", ("Paris",)),
        (np.array(["Paris", "Lutetia"], dtype=object), ("Paris", "Lutetia")),
        ('["Paris", "Lutetia"]', ("Paris", "Lutetia")),
        ("['Paris', \"L'Ile\"]", ("Paris", "L'Ile")),
        ("['Paris' 'Lutetia']", ("Paris", "Lutetia")),
        ({"target": np.array(["Paris", "Lutetia"])}, ("Paris", "Lutetia")),
        ('{"target": ["Paris", "Lutetia"]}', ("Paris", "Lutetia")),
        (["", "Paris", "nan"], ("Paris",)),
        *((gold, ()) for gold in ("", None, [], "None", "[]", {"target": []}, {"a": "b"}, "{}")),
    ],
)
def test_a_gold_of_any_type_has_its_alternatives(gold, texts):
    assert alternatives(gold) == texts
    assert alternatives(unwrap_gold(gold)) == texts


@every(
    ("response", "answer"),
    [
        ("Paris", "Paris"),
        ("<think>Rome?</think> Paris", "Paris"),
        ("<think>so</think><answer>Paris</answer> I hope this helps.", "Paris"),
        (r"It is \boxed{Paris}.", "Paris"),
        (r"<answer>\boxed{Paris}</answer>", "Paris"),
        ("I thought of Rome.\n\n**Answer:** Paris", "Paris"),
        ("<answer>Paris", ""),
        ("<answer></answer>", ""),
    ],
)
def test_the_answer_is_in_tags_a_box_a_line_or_the_whole_response(response, answer):
    assert read_answer(response) == answer


@every(
    ("response", "gold", "status"),
    [
        ("<answer>Berg</answer>", TARGET, Status.CORRECT),
        ("<answer>Carl Lind or Anna Berg</answer>", TARGET, Status.AMBIGUOUS_ANSWER),
        ("<answer></answer>", TARGET, Status.NO_ANSWER),
        ("Anna Berg " * 100, TARGET, Status.UNPARSED_ANSWER),
        ("<answer>Anna Berg</answer>", {"target": []}, Status.BAD_GROUND_TRUTH),
    ],
)
def test_the_status_says_why(response, gold, status):
    assert score(response, gold, WHO).status is status


@pytest.mark.parametrize("gold", [TARGET, ["Anna Berg"], "Anna Berg", '{"target": ["Anna Berg"]}'])
def test_every_entry_of_verl_takes_every_gold(gold):
    call = {"solution_str": "<answer>Anna Berg</answer>", "ground_truth": gold, "extra_info": WHO}
    for entry in (qa.compute_score, auto.compute_score):
        result = entry(data_source="searchR1_nq", **call)
        assert result["acc"] == 1.0, entry
    exact = qa.compute_score("searchR1_nq", "<answer>Berg</answer>", gold, None, method="exact")
    assert (exact["score"], exact["error"]) == (0.0, 0.0)


@every(
    ("response", "value", "correct"),
    [
        ("<answer>The Red House!</answer>", 1.0, True),
        ("<answer>blue</answer><answer>red house</answer>", 1.0, True),
        ("<answer>red house</answer>" * 10, 1.0, True),
        ("<answer>red house</answer>" * 11, 0.25, True),
        ("<answer>red house</answer>" + "</answer>" * 10, 0.25, True),
    ],
)
def test_exact_has_the_scores_of_verl(response, value, correct):
    result = score(response, {"target": ["red house"]}, method="exact", format_score=0.1)
    assert (result.score, result.correct) == (value, correct)


def test_f1_pays_from_its_threshold_on():
    assert score("<answer>red house</answer>", "red barn", method="f1").correct
    assert not score("<answer>red house</answer>", "red barn", method="f1", threshold=0.6).correct


TEXT = st.text(st.sampled_from(list("aAtheHE nN.,!'\"-1é\n")), max_size=12)
TAGGED = st.lists(st.sampled_from(["<answer>", "</answer>"]) | TEXT, max_size=30).map("".join)


@pytest.mark.full
def test_exact_is_verl_s_verdict_on_any_text(monkeypatch):
    """verl's own file imports nothing but the standard library."""
    pattern = (
        ".venv-verl-0.9.1/lib/python*/site-packages/verl/utils/reward_score/search_r1_like_qa_em.py"
    )
    files = sorted(ROOT.glob(pattern))
    if not files:
        pytest.skip("needs .venv-verl-0.9.1, see CONTRIBUTING.md")
    rule = runpy.run_path(str(files[0]))["compute_score"]
    monkeypatch.setattr("random.randint", lambda *_: 2)  # otherwise it prints

    @given(TAGGED, st.lists(TEXT, min_size=1, max_size=3), st.sampled_from([0.0, 0.1]))
    def same(response, golds, format_score):
        golds = [gold for gold in golds if qa.normalize(gold) and gold not in ("nan", "null")]
        if golds:
            theirs = rule(response, {"target": golds}, format_score=format_score)
            ours = score(response, golds, method="exact", format_score=format_score)
            assert ours.score == theirs

    same()


@given(st.text(max_size=400), st.text(max_size=60))
def test_any_text_has_a_score(response, gold):
    for method in ("robust", "f1", "exact"):
        assert score(response, gold, {"question": gold}, method=method).score in (0.0, 1.0)
