"""What a reviewer found in the adapters and the server: silent mismatches, and what they pay."""

import json
import time

import pytest

from rewardkit.adapters.common import Judge, text_of
from rewardkit.adapters.easyr1 import reward_func
from rewardkit.adapters.openrlhf import _verdict
from rewardkit.errors import UsageError
from rewardkit.reward_server.openrlhf import read_openrlhf
from rewardkit.reward_server.payload import Item
from rewardkit.reward_server.scoring import Judge as Judges
from rewardkit.reward_server.strict_json import RefusedError, read_json


@pytest.fixture
def file(tmp_path):
    """A scorer's file; wrong is -1."""

    def write(body, name="mine.py"):
        head = (
            "WRONG_SCORE = -1.0\ndef compute_score(data_source, solution_str, ground_truth, **_):\n"
        )
        (tmp_path / name).write_text(f"import math\n{head}    {body}\n")
        return f"{tmp_path / name}:compute_score"

    return write


def test_a_scorer_that_fails_pays_what_a_wrong_answer_gets(file):
    verdict = Judge(file("raise ValueError('no')"))("#### 1", {"ground_truth": "1"})
    assert (verdict["score"], verdict["error"]) == (-1.0, 1.0)
    judges = Judges("gsm8k", {}, 1, 1.0, wrong=-1.0)
    try:
        (failed,) = judges._judged(lambda *_: 1 / 0, [Item("", "a", "b", {})])
    finally:
        judges.close()
    assert failed.score.score == -1.0


@pytest.mark.parametrize("value", ["math.nan", "math.inf"])
def test_a_reward_that_is_no_number_is_an_error(file, value):
    verdict = Judge(file(f"return {value}"))("a", {"ground_truth": "1"})
    assert (verdict["score"], verdict["error"], verdict["acc"]) == (-1.0, 1.0, 0.0)


def test_the_value_of_an_option_is_looked_at_before_any_rollout():
    with pytest.raises(UsageError, match="foo"):
        Judge("gsm8k", {"method": "foo"})


def test_extra_info_stored_as_json_is_read_and_other_text_is_an_error():
    gold = {"ground_truth": "18", "data_source": "openai/gsm8k"}
    named = {**gold, "extra_info": '{"scorer": "math"}'}
    assert Judge()(r"\boxed{18}", named)["acc"] == 1.0
    assert Judge()(r"\boxed{18}", {**gold, "extra_info": '{"scorer'})["error"] == 1.0


def test_what_was_only_thought_is_no_part_of_the_answer():
    parts = [{"type": "reasoning", "text": r"maybe \boxed{B}"}, {"type": "text", "text": "No."}]
    assert text_of([{"role": "assistant", "content": parts}]) == "No."
    assert text_of({"role": "assistant", "content": ["#### 1", "8"]}) == "#### 18"


@pytest.mark.parametrize("mark", ["[EOS]", "[|endofturn|]", "<seed:eos>", "<turn|>", "<|im_end|>"])
def test_marks_of_the_end_are_taken_off(mark):
    assert text_of(f"#### 18{mark}") == "#### 18"


def test_a_number_between_bars_is_no_mark():
    assert text_of("the answer is <|18|>") == "the answer is <|18|>"


def test_a_file_is_executed_once_however_many_threads_ask(file, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    name = file("return 1.0")
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "imports").touch()
    count = f"p = pathlib.Path(r'{tmp_path}/imports')\np.write_text(p.read_text() + 'i')\n"
    (tmp_path / "mine.py").write_text(f"import pathlib\n{count}{text}")
    judge = Judge(name)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: judge("a", {"ground_truth": "1"}), range(40)))
    assert (tmp_path / "imports").read_text() == "i"


def test_a_scorer_that_another_process_cannot_find_is_an_error_and_no_exception(file, tmp_path):
    judge = Judge(file("return 1.0"))
    object.__setattr__(judge, "scorer", f"{tmp_path}/gone.py:compute_score")
    assert judge("a", {"ground_truth": "1"})["error"] == 1.0


def test_options_of_easyr1_may_be_lists(file):
    inputs = [{"response": "a", "ground_truth": "1", "response_length": 1}]
    found = reward_func(inputs, scorer=file("return 1.0", "lists.py"), tags=["a"], weights={"b": 1})
    assert found[0]["overall"] == 1.0


def test_the_examples_of_a_prompt_that_is_not_found_are_not_judged():
    judge = Judge("gsm8k")
    assert _verdict(judge, None, "5")["error"] == 1.0
    body = {"query": ["#### 5\nquite other"], "prompts": ["#### 5\nNow?"], "labels": ["5"]}
    with pytest.raises(RefusedError, match="does not begin with"):
        read_openrlhf(json.dumps(body).encode(), 8)


def test_the_reward_model_of_prep_is_a_label():
    label = {"style": "rule", "ground_truth": "18"}
    body = {"query": ["Q#### 18"], "prompts": ["Q"], "labels": [label]}
    assert read_openrlhf(json.dumps(body).encode(), 8).items[0].ground_truth == "18"


def test_many_names_are_refused_in_linear_time():
    names = ",".join(f'"{i}":0' for i in range(200_000))
    started = time.process_time()
    with pytest.raises(RefusedError, match="given twice"):
        read_json(f'{{{names},"0":0}}'.encode())
    assert time.process_time() - started < 5
