"""`SampleScorer` gives a score to each sample, even if its data, scorer or options are wrong."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardkit.adapters.common import SampleScorer
from rewardkit.adapters.easyr1 import reward_func


@pytest.fixture
def file(tmp_path):
    """Write a file with a scorer whose wrong answers score -1."""

    def write(body):
        head = "def compute_score(data_source, solution_str, ground_truth, **_):"
        (tmp_path / "mine.py").write_text(f"import math\nWRONG_SCORE = -1.0\n{head}\n    {body}\n")
        return f"{tmp_path}/mine.py:compute_score"

    return write


@pytest.mark.parametrize("body", ["raise ValueError('no')", "return math.nan", "return math.inf"])
def test_a_scorer_that_fails_gives_the_score_of_a_wrong_answer(file, body):
    result = SampleScorer(file(body))("#### 1", {"ground_truth": "1"})
    assert (result["score"], result["error"], result["acc"]) == (-1.0, 1.0, 0.0)


def test_extra_info_may_be_json_and_broken_json_is_an_error():
    gold = {"ground_truth": "18", "data_source": "openai/gsm8k"}
    row = {**gold, "extra_info": '{"scorer": "math"}'}
    assert SampleScorer()(r"\boxed{18}", row)["acc"] == 1.0
    assert SampleScorer()(r"\boxed{18}", {**gold, "extra_info": '{"scorer'})["error"] == 1.0


def test_threads_load_a_file_only_once(file, tmp_path):
    name = file("return 1.0")
    with (tmp_path / "mine.py").open("a") as text:
        text.write(f"with open(r'{tmp_path}/imports', 'a') as file: file.write('i')\n")
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
    results = reward_func(inputs, scorer=file("return 1.0"), tags=["a"], weights={"b": 1})
    assert results[0]["overall"] == 1.0
