r"""DAPO-Math-17k: competition problems with integer answers, in English and Chinese.

https://huggingface.co/datasets/BytedTsinghua-SIA/DAPO-Math-17k. A raw row (an example of ours)::

    {"data_source": "math_dapo", "ability": "MATH",
     "prompt": [{"role": "user", "content": "Solve the following math problem step by step. ..."}],
     "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"},
     "extra_info": {"index": "9a9b6eb4-a1cb-49d1-8c1e-62eaf2f74079"}}

The published file has each of its 17,917 rows a hundred times; copies have the same id and gold.
The question is between the two halves of an instruction. The card's template has the same text, so
that `prep` writes the hub's prompt by default.
"""

from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.template import BUILT_IN, SLOT

_BEFORE, _AFTER = BUILT_IN["answer_line"].text.split(SLOT)

#: A second instruction, at the end of 20 questions, which asks for the answer in a box.
_CONFLICTING = "Answer: \\boxed{<final_answer>}"

#: The correct answers of rows with a wrong gold, by id: MATH or AIME has the question with this
#: answer.
WRONG_GOLDS: Mapping[str, str] = {
    "97693739-3eeb-541b-a4fb-5fe3e5325a12": "683",
    "b468aa8d-f020-5680-904d-eaa11ce9cbb9": "554",
    "937eba91-a0ca-55d1-ab36-1dde3febd9e3": "230",
    "6a018e2a-d8f6-55ca-a416-ce81cedc3888": "913",
    "2cda625d-cb8d-5275-b66d-a5c12e75a72c": "177",
    "8da79dfe-9fc7-526c-8fe7-eb541adb6d76": "2 + 2 sqrt(2) + 2 sqrt(3)",
    "eff1b023-7849-52f3-beca-314042bebd08": "88352",
    "b762c12e-24ee-5446-b0fb-7c897cbb94f6": "1 and 9",
    "e086ce57-bcd1-587f-a53e-9b8ae4683c0d": "3/2 and -3",
    "f40a683c-9a31-50fc-859a-621bca7154d0": "-2 and 1",
}


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; drop it if its gold is wrong or the question has a second instruction."""
    content, gold = raw["prompt"][-1]["content"], raw["reward_model"]["ground_truth"]
    source_id = str(raw["extra_info"]["index"])
    if not (content.startswith(_BEFORE) and content.endswith(_AFTER)):
        return Dropped("the prompt is not DAPO's", content[:80])
    if _CONFLICTING in content:
        return Dropped("two answer instructions", "asks for 'Answer:' and for a box")
    if (answer := WRONG_GOLDS.get(source_id)) is not None:
        return Dropped("the gold is wrong", f"{gold}; the correct answer is {answer}")
    question = content.removeprefix(_BEFORE).removesuffix(_AFTER)
    return Problem(question, gold, source_id=source_id)


DATASET = Dataset(
    "dapo-math-17k",
    to_problem,
    repeats=("extra_info.index", "reward_model.ground_truth"),
    dedup=True,
)
