r"""AIME 2024 and 2025: the 30 problems of a year's two exams, whose answers are 0 to 999.

Several copies of one exam are in use, and each writes it in a way of its own (rows of our own
making)::

    {"id": 1, "problem": "Find $5^2$.", "answer": "025"}                        HuggingFaceH4
    {"ID": "2024-I-1", "Problem": "Find $5^2$.", "Answer": 25}                  Maxwell-Jia
    {"problem": "Find $5^2$.", "answer": "25", "id": "0"}                       math-ai
    {"question": "Find $5^2$.", "answer": "25"}                                 opencompass
    {"reward_model": {"ground_truth": "25", ...},                               BytedTsinghua-SIA
     "extra_info": {"index": 4, "raw_problem": "Find $5^2$.", ...}, ...}

All give the gold `25`: no scorer has to know that a paper exam fills three boxes with digits. The
last copy repeats every problem 32 times; repeats are left out (`--repeat` puts them back).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem

#: Up to three digits; one copy of 2025 has published an angle as `336^\circ`.
_GOLD = re.compile(r"([0-9]{1,3})(?:\s*\^\s*\{?\\circ\}?)?")


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row of any of the copies; an answer other than an integer from 0 to 999 is dropped."""
    question, answer, source_id = _fields(raw)
    gold = _GOLD.fullmatch(str(answer).strip())
    if gold is None:
        return Dropped("the answer is not an integer from 0 to 999", repr(answer)[:80])
    return Problem(question, str(int(gold[1])), source_id=str(source_id))


def _fields(raw: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Question, answer and id, from the columns of whichever copy the row is of."""
    if "extra_info" in raw:
        gold, source_id = raw["reward_model"]["ground_truth"], raw["extra_info"]["index"]
        return raw["extra_info"].get("raw_problem"), gold, source_id
    if "Problem" in raw:
        return raw["Problem"], raw["Answer"], raw["ID"]
    return raw["problem" if "problem" in raw else "question"], raw["answer"], raw.get("id", "")


DATASET = Dataset(
    "aime",
    to_problem,
    repeats=("extra_info.index", "reward_model.ground_truth"),
    dedup=True,
)
