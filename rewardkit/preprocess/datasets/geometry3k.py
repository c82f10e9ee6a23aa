r"""Geometry3k: 3,002 school problems with a figure (https://huggingface.co/datasets/hiyouga/geometry3k).

A raw row (an example of ours)::

    {"images": [{"bytes": b"\x89PNG...", "path": None}],
     "problem": "<image>Find $x$.", "answer": "3 \\sqrt { 2 }",
     "id": 7, "choices": ["3", "3 \\sqrt { 2 }", "6", "9"], "ground_truth": "B"}

The gold is `answer`, the value. The column `ground_truth` is a letter of options that no prompt
shows. The first revision of the dataset has no `ground_truth`, `id` and `choices`; both can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem

#: The position of a figure in a question.
MARK = "<image>"


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; drop it if the numbers of figures and marks differ."""
    question, images = raw["problem"], tuple(image["bytes"] for image in raw["images"])
    marks = str.count(question, MARK)
    if not all(images):
        return Dropped("an image is not in the file", "the file has only its path")
    if marks != len(images):
        return Dropped("marks and images differ in number", f"{marks} marks, {len(images)} images")
    gold = str.strip(raw["answer"])
    return Problem(question, gold, source_id=str(raw.get("id", "")), images=images)


DATASET = Dataset("geometry3k", to_problem)
