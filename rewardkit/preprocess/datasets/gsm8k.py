r"""GSM8K: 8.5K grade-school word problems (https://huggingface.co/datasets/openai/gsm8k).

A raw row (an example of ours)::

    {"question": "A crate holds 12 jars. How many jars do 4 crates hold?",
     "answer": "4 crates hold 4*12 = <<4*12=48>>48 jars.\n#### 48"}

The gold is the number after `####` without thousands separators, as in verl's
`examples/data_preprocess/gsm8k.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem

_GOLD = re.compile(r"#### (-?[0-9.,]+)")


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; drop it if the solution has no `#### N`."""
    question, answer = raw["question"], raw["answer"]
    gold = _GOLD.search(answer)
    if gold is None:
        return Dropped("no '#### N' in the solution")
    return Problem(question, gold[1].replace(",", ""), answer)


DATASET = Dataset("gsm8k", to_problem)
