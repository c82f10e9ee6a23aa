r"""Geometry3k: 3,002 school problems with a figure (https://huggingface.co/datasets/hiyouga/geometry3k).

A raw row, of our own making::

    {"images": [{"bytes": b"\x89PNG...", "path": None}],
     "problem": "<image>Find $x$.", "answer": "3 \\sqrt { 2 }",
     "id": 7, "choices": ["3", "3 \\sqrt { 2 }", "6", "9"], "ground_truth": "B"}

The gold is `answer`, the value. What is called `ground_truth` there is a letter, of options that
no prompt shows. The first revision has neither it nor `id` and `choices`; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem

#: Where a figure goes in a question.
MARK = "<image>"


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; one whose figures and marks do not pair up is dropped."""
    question, images = raw["problem"], tuple(image["bytes"] for image in raw["images"])
    marks = str.count(question, MARK)
    if not all(images):
        return Dropped("an image is not in the file", "only its path is")
    if marks != len(images):
        return Dropped("marks and images differ in number", f"{marks} marks, {len(images)} images")
    gold = str.strip(raw["answer"])
    return Problem(question, gold, source_id=str(raw.get("id", "")), images=images)


DATASET = Dataset("geometry3k", to_problem)
