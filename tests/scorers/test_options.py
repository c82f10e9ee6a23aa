"""Scorer options are validated once, when a scorer is loaded."""

import math
from contextlib import nullcontext
from importlib import import_module

import pytest

from rewardkit import registry
from rewardkit.adapters.common import SampleScorer
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.scorers import auto, base
from rewardkit.scorers.load import load_scorer, own_options
from rewardkit.scorers.options import option_names

TEXTS = "base_url model api_key_env rubric cache".split()
AMOUNTS = "budget_calls budget_tokens budget_window prompt_price reply_price".split()
FLAGS = {
    "math": "convert_units",
    "math_dapo": "strict_box",
    "mcq": "final_letter",
    "judge": "reverse",
    "code": "unsafe",
    "function_call": "order",
    "sql": "needs_table",
}.items()
#: An invalid value for every option of every scorer, and a part of the error.
WRONG = [
    ("gsm8k", "method", "robst", "scorer 'gsm8k' has no method 'robst'. Did you mean 'robust'?"),
    ("gsm8k", "method", ["robust"], "Its methods: strict, flexible, robust."),
    ("gsm8k", "format_score", "abc", "format_score='abc' is invalid; give a number."),
    *(("gsm8k", "format_score", value, "give a number") for value in (True, math.nan, None)),
    *(("geometry3k", "format_weight", value, "give a number from 0 to 1.") for value in (1.5, -1)),
    ("math", "significant_digits", "a", "='a' is invalid; give a whole number from 0 to 15."),
    ("math_dapo", "mode", "strict", "scorer 'math_dapo' has no mode 'strict'."),
    ("math_verify", "seconds", 0, "give a number from 0.001 to 3600."),
    ("mcq", "mode", "dianjn", "Did you mean 'dianjin'?"),
    ("mcq", "partial", "maybe", "scorer 'mcq': partial='maybe' is invalid; give true or false."),
    ("qa", "method", "exakt", "Did you mean 'exact'?"),
    ("qa", "threshold", 0, "give a number from 0.01 to 1."),
    ("qa", "format_score", 2, "give a number from 0 to 1."),
    *(("judge", name, 1, "give text") for name in TEXTS),
    ("judge", "concurrency", 0, "give a whole number from 1 to 4096."),
    ("judge", "timeout_seconds", 0, "give a number from 0.1 to 86400."),
    ("judge", "request_seconds", 0, "give a number from 0.1 to 86400."),
    ("judge", "retries", -1, "give a whole number from 0 to 100."),
    *(("judge", name, -1, "number of at least 0.") for name in AMOUNTS),
    ("judge", "failed_score", "none", "give a number or null."),
    ("judge", "seed", -1, "give a whole number from 0"),
    ("judge", "max_tokens", 0, "give a whole number from 1"),
    ("judge", "temperature", -1, "give a number from 0 to 10."),
    ("code", "reward", "most", "Its rewards: all, fraction."),
    ("code", "tests", -1, "give a whole number of at least 0."),
    ("code", "seconds", 0, "give a number from 0.1 to 3600."),
    ("code", "total_seconds", 0, "give a number from 0.1 to 36000."),
    ("code", "memory_mb", 1, "give a whole number from 32 to"),
    ("code", "backend", "fusion", "scorer 'code' has no backend 'fusion'."),
    ("code", "sandbox_url", 1, "give text"),
    ("code", "concurrency", 0, "give a whole number from 1 to 4096."),
    ("code", "request_seconds", 0, "give a number from 1 to 86400."),
    ("code", "retries", -1, "give a whole number from 0 to 100."),
    ("function_call", "reward", "part", "Its rewards: all, fraction."),
    ("json_schema", "reward", "part", "Its rewards: all, fraction."),
    ("sql", "databases", 1, "give text"),
    ("sql", "seconds", 0, "give a number from 0.1 to 3600."),
    ("sql", "memory_mb", 1, "give a whole number from 64 to"),
    ("instructions", "mode", "lose", "Did you mean 'loose'?"),
    ("instructions", "reward", "most", "Its rewards: all, fraction."),
    *((scorer, option, "yes", "give true or false.") for scorer, option in FLAGS),
    ("auto", "method", "robst", "scorer 'auto' has no method 'robst'. Did you mean 'robust'?"),
    ("auto", "mode", "x", "Its modes: strict, loose, verl, robust, dianjin, letters."),
]


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(base, "_logged", set())


@pytest.fixture
def user_file(tmp_path):
    def write(text):
        (tmp_path / "mine.py").write_text(text)
        return f"{tmp_path}/mine.py:score"

    return write


@pytest.mark.parametrize(("scorer", "option", "value", "message"), WRONG)
def test_an_invalid_value_is_an_error_when_the_scorer_is_loaded_and_in_verl_a_flag(
    scorer, option, value, message, caplog
):
    """In verl, the log has one line, however many samples have the option."""
    for load in (load_scorer, lambda name, **options: SampleScorer(name, options)):
        with pytest.raises(UsageError) as error:
            load(scorer, **{option: value})
        assert message in str(error.value)
        assert error.value.exit_code == 2
    module = import_module(f"rewardkit.scorers.{scorer}")
    source = "openai/gsm8k" if option == "method" else "math_dapo"
    for _ in range(3):
        result = module.compute_score(source, "#### 5", "5", {}, **{option: value})
        assert (result["error"], result["acc"]) == (1.0, 0.0)
    (record,) = caplog.records
    assert message in record.getMessage() or scorer == "auto"


@pytest.mark.parametrize("scorer", sorted(set(registry.SCORERS) - {"auto"}))
def test_every_option_of_every_scorer_says_which_values_it_takes(scorer):
    judge = load_scorer(scorer)
    options_in_table = {option for name, option, *_ in WRONG if name == scorer}
    assert options_in_table == option_names(judge), "each option needs a wrong value in WRONG"


def test_auto_passes_a_value_to_the_scorers_that_accept_it():
    """A mixture: `mode=robust` is for math_dapo's rows, and mcq's rows keep their own mode."""
    for mode in ("robust", "letters"):
        assert auto.score(r"\boxed{B}", "B", {"scorer": "mcq"}, mode=mode).correct
        assert auto.compute_score("cflue", r"\boxed{B}", "B", {}, mode=mode)["acc"] == 1.0
    assert auto.score("Answer: 34.0", "34", {"scorer": "math_dapo"}, mode="robust").correct
    assert own_options(load_scorer("math"), {"method": "strict"}) == {}
    assert own_options(load_scorer("math"), {"unknown": 1}) == {"unknown": 1}


ANNOTATED = """
{future}
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.options import Range
if TYPE_CHECKING:
    from nowhere import Thing
def score(response, ground_truth, extra_info: Thing = None, *, kind: Literal["a", "bc"] = "a",
          level: Optional[Literal[1, 2]] = None, share: Annotated[float, Range(0, 1)] = 0.0,
          name: str | None = None, count: int = 1, free=None, odd: "Thing" = None):
    return Score(1.0, True, "", Status.CORRECT)
"""


@pytest.mark.parametrize("is_postponed", [True, False])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "bd"}, "has no kind 'bd'. Did you mean 'bc'? Its kinds: a, bc."),
        ({"level": 3}, "has no level 3. Its levels: 1, 2."),
        ({"share": 2}, "give a number from 0 to 1."),
        ({"name": 5}, "give text, in double quotes if it looks like a number or null."),
        ({"free": object(), "odd": [1], "level": None, "kind": "bc", "name": "x", "count": 3}, ""),
    ],
)
def test_annotations_of_a_users_scorer_count_even_if_postponed(
    user_file, is_postponed, options, message
):
    """Options without a known annotation accept any value."""
    future = "from __future__ import annotations" if is_postponed else ""
    text = ANNOTATED.replace("{future}", future)
    name = user_file(text if is_postponed else text.replace(": Thing =", ": Any ="))
    if not message:
        assert load_scorer(name, **options)("", "").correct
        return
    with pytest.raises(UsageError) as error:
        load_scorer(name, **options)
    assert message in str(error.value)


@pytest.mark.parametrize("rest", ["", ", **kwargs"])
def test_options_of_a_function_with_verl_s_signature_are_checked_too(user_file, rest):
    file = user_file(
        "from typing import Literal\n"
        "def score(data_source, solution_str, ground_truth, extra_info=None,\n"
        f"          kind: Literal['a', 'b'] = 'a'{rest}):\n    return True\n"
    )
    assert load_scorer(file, kind="b")("", "").correct
    with pytest.raises(UsageError, match="has no kind 'c'"):
        load_scorer(file, kind="c")
    named = pytest.raises(UnknownNameError, match="has no option 'knd'. Did you mean 'kind'")
    with nullcontext() if rest else named:
        load_scorer(file, knd="a")
