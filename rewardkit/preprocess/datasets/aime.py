r"""AIME 2024 and 2025: 30 problems per year, from two exams, with answers from 0 to 999.

Several copies of the exams are in use, each in its own layout (the rows are examples of ours)::

    {"id": 1, "problem": "Find $5^2$.", "answer": "025"}                        HuggingFaceH4
    {"ID": "2024-I-1", "Problem": "Find $5^2$.", "Answer": 25}                  Maxwell-Jia
    {"problem": "Find $5^2$.", "answer": "25", "id": "0"}                       math-ai
    {"question": "Find $5^2$.", "answer": "25"}                                 opencompass
    {"reward_model": {"ground_truth": "25", ...},                               BytedTsinghua-SIA
     "extra_info": {"index": 4, "raw_problem": "Find $5^2$.", ...}, ...}

All of these rows have the gold `25`; leading zeros of the paper exam, which has three boxes for
digits, are removed. The last copy has every problem 32 times; copies are skipped, and `--repeat`
repeats the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem

#: Up to three digits; one copy of 2025 had an angle as `336^\circ`.
_GOLD = re.compile(r"([0-9]{1,3})(?:\s*\^\s*\{?\\circ\}?)?")


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row of any copy; drop it if the answer is not an integer from 0 to 999."""
    question, answer, source_id = _fields(raw)
    gold = _GOLD.fullmatch(str(answer).strip())
    if gold is None:
        return Dropped("the answer is not an integer from 0 to 999", repr(answer)[:80])
    return Problem(question, str(int(gold[1])), source_id=str(source_id))


def _fields(raw: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return question, answer and id from the columns of the copy that the row is from."""
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
