import importlib
import inspect
import pickle

import pytest

from rewardkit import registry
from rewardkit.errors import SourceError, UnknownNameError
from rewardkit.scorers.base import Status, spec_of
from rewardkit.scorers.isolated import scorer_summary
from rewardkit.scorers.load import load_scorer, location
from tests.scorers.test_compose import load_as_verl_does

NAMES = sorted(registry.SCORERS)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_loaded_by_path_behaves_like_the_imported_module(name):
    """verl loads it without an entry in `sys.modules`."""
    by_path = load_as_verl_does(location(name))
    module_by_name = importlib.import_module(f"rewardkit.scorers.{name}")
    for text in ("#### 18", r"\boxed{18}", "Answer: 18", "", "\ud800", "18"):
        for gold in ("18", "", "x", None):
            arguments = ("openai/gsm8k", text, gold, {"scorer": ""})
            assert by_path.compute_score(*arguments) == module_by_name.compute_score(*arguments)


@pytest.mark.parametrize("name", NAMES)
def test_a_scorer_file_has_a_spec_no_class_and_what_pickles(name):
    module = importlib.import_module(f"rewardkit.scorers.{name}")
    own = [v for v in vars(module).values() if getattr(v, "__module__", "") == module.__name__]
    assert not list(filter(inspect.isclass, own))
    names = list(inspect.signature(module.compute_score).parameters)
    assert names == ["data_source", "solution_str", "ground_truth", "extra_info", "kwargs"]
    scorer, compute_score = pickle.loads(pickle.dumps((load_scorer(name), module.compute_score)))
    assert scorer("#### 5", "5", {"scorer": "gsm8k"}).status in Status
    assert spec_of(scorer) is spec_of(module.score) is module.SPEC
    if name != "judge":  # it asks a server
        assert compute_score("openai/gsm8k", "#### 5", "5") == module.compute_score(
            "openai/gsm8k", "#### 5", "5"
        )


def test_auto_accepts_exactly_the_options_of_our_scorers():
    options = {"method": "robust", "mode": "letters", "strict_box": True, "partial": False}
    for option, value in {**options, "format_weight": 1, "seconds": 2}.items():
        load_scorer("auto", **{option: value})
    for name in ("auto", "gsm8k"):
        with pytest.raises(UnknownNameError, match="no option 'metod'. Did you mean 'method'"):
            load_scorer(name, metod="robust")


def test_the_location_of_a_scorer_is_its_file_or_its_module(monkeypatch):
    assert location("gsm8k", pkg=True) == "pkg://rewardkit.scorers.gsm8k"
    assert location("gsm8k").endswith("rewardkit/scorers/gsm8k.py")
    monkeypatch.setattr(registry, "SCORERS", {"lost": "rewardkit.scorers.lost:score"})
    with pytest.raises(SourceError, match="its module rewardkit.scorers.lost is not installed"):
        location("lost")


def test_the_summary_of_a_scorer_is_its_first_line_or_its_import_error(monkeypatch):
    assert scorer_summary("gsm8k") == "GSM8K's `#### N` answers."
    monkeypatch.setattr(registry, "SCORERS", {"lost": "rewardkit.scorers.lost:score"})
    assert scorer_summary("lost").startswith("broken: ")
    monkeypatch.setattr(registry, "SCORERS", {"bare": "builtins:len"})
    assert scorer_summary("bare") == ""


def test_respond_is_found_inside_every_wrapper(tmp_path):
    from rewardkit.scorers import gsm8k, math

    assert spec_of(math.score).respond is math.respond
    assert spec_of(load_scorer("gsm8k", method="robust")).respond is gsm8k.respond
    assert spec_of(len).respond is None
    file = tmp_path / "reward.py"
    file.write_text(
        "from rewardkit.scorers.base import Score\n"
        "WRONG_SCORE, ASKS_SERVER = -1, True\n"
        "def respond(answer):\n    return '!' + answer\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None, *, bonus=0):\n"
        "    return 1.0 + bonus\n"
        "def score(response, ground_truth, extra_info=None, *, bonus=0):\n"
        "    return Score.right(response, 1.0 + bonus)\n"
    )
    for function in ("compute_score", "score"):
        scorer = load_scorer(f"{file}:{function}", bonus=1)
        assert scorer("", "").score == 2.0
        spec = spec_of(scorer)
        assert (spec.respond("x"), spec.wrong_score, spec.asks_server) == ("!x", -1.0, True)
