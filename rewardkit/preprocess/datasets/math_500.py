r"""MATH-500: 500 problems of MATH's test split (https://huggingface.co/datasets/HuggingFaceH4/MATH-500).

A raw row (an example of ours)::

    {"problem": "A square has diagonal $6$. What is its area?",
     "solution": "Its side is $\\frac{6}{\\sqrt{2}}$, so the area is $\\boxed{18}$.",
     "answer": "18", "subject": "Geometry", "level": 2, "unique_id": "test/geometry/0.json"}

The gold is the published `answer`, which is also in the last box of the solution. A row is dropped
if the two differ, because it is unknown which one is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.datasets.math import last_boxes


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; drop it if the answer is not in the solution's last box."""
    gold, boxed = str.strip(raw["answer"]), last_boxes(raw["solution"])
    if [gold] != boxed[-1:]:
        return Dropped("answer and solution differ", f"answer {gold!r}, boxes {boxed}")
    return Problem(
        raw["problem"],
        gold,
        answer=raw["solution"],
        source_id=raw["unique_id"],
        subject=raw["subject"],
        level=str(raw["level"]),
    )


DATASET = Dataset("math-500", to_problem)
