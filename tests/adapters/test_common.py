"""`SampleScorer` gives a score to each sample, even if its data, scorer or options are wrong."""

import pytest

from rewardkit.adapters.common import SampleScorer
from rewardkit.adapters.easyr1 import reward_func
from rewardkit.errors import UsageError


@pytest.fixture
def file(tmp_path):
    """Write a file with a scorer whose wrong answers score -1."""

    def write(body, name="mine.py"):
        head = (
            "WRONG_SCORE = -1.0\ndef compute_score(data_source, solution_str, ground_truth, **_):\n"
        )
        (tmp_path / name).write_text(f"import math\n{head}    {body}\n")
        return f"{tmp_path / name}:compute_score"

    return write


def test_a_scorer_that_fails_gives_the_score_of_a_wrong_answer(file):
    result = SampleScorer(file("raise ValueError('no')"))("#### 1", {"ground_truth": "1"})
    assert (result["score"], result["error"]) == (-1.0, 1.0)


@pytest.mark.parametrize("value", ["math.nan", "math.inf"])
def test_a_reward_that_is_not_finite_is_an_error(file, value):
    result = SampleScorer(file(f"return {value}"))("a", {"ground_truth": "1"})
    assert (result["score"], result["error"], result["acc"]) == (-1.0, 1.0, 0.0)


def test_an_invalid_option_fails_before_any_rollout():
    with pytest.raises(UsageError, match="foo"):
        SampleScorer("gsm8k", {"method": "foo"})


def test_extra_info_may_be_json_and_broken_json_is_an_error():
    gold = {"ground_truth": "18", "data_source": "openai/gsm8k"}
    row = {**gold, "extra_info": '{"scorer": "math"}'}
    assert SampleScorer()(r"\boxed{18}", row)["acc"] == 1.0
    assert SampleScorer()(r"\boxed{18}", {**gold, "extra_info": '{"scorer'})["error"] == 1.0


def test_threads_load_a_file_only_once(file, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    name = file("return 1.0")
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "imports").touch()
    count = f"p = pathlib.Path(r'{tmp_path}/imports')\np.write_text(p.read_text() + 'i')\n"
    (tmp_path / "mine.py").write_text(f"import pathlib\n{count}{text}")
    scorer = SampleScorer(name)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: scorer("a", {"ground_truth": "1"}), range(40)))
    assert (tmp_path / "imports").read_text() == "i"


def test_a_scorer_that_another_process_cannot_import_does_not_raise(file, tmp_path):
    scorer = SampleScorer(file("return 1.0"))
    object.__setattr__(scorer, "scorer", f"{tmp_path}/gone.py:compute_score")
    assert scorer("a", {"ground_truth": "1"})["error"] == 1.0


def test_easyr1_accepts_lists_as_options(file):
    inputs = [{"response": "a", "ground_truth": "1", "response_length": 1}]
    results = reward_func(
        inputs, scorer=file("return 1.0", "lists.py"), tags=["a"], weights={"b": 1}
    )
    assert results[0]["overall"] == 1.0
