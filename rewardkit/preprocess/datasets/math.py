r"""MATH: 12,500 competition problems (https://huggingface.co/datasets/DigitalLearningGmbH/MATH-lighteval).

A raw row (an example of ours)::

    {"problem": "A square has diagonal $6$. What is its area?",
     "level": "Level 2", "type": "Geometry",
     "solution": "Its side is $\\frac{6}{\\sqrt{2}}$, so the area is $\\boxed{18}$."}

MATH has no column for the answer. The gold is the content of the solution's last box, with balanced
braces: a pattern like `boxed{(.*?)}` cuts `\boxed{\frac{1}{2}}` short, and a quarter of all golds.
Twenty-two solutions end with two boxes side by side, some with `x=` before them. If the question
asks for all solutions, the gold is both. verl's script takes only the last one, so that half of the
answer counts as correct.
"""

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.answers.equal import equal
from rewardkit.answers.extract import boxes
from rewardkit.preprocess.base import Dataset, Dropped, Problem

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
_WITHOUT_BRACES = re.compile(r"\s+([^\s{$][^${}]*)\$")
_ALL = re.compile(r"\ball\b", re.IGNORECASE)


def to_problem(raw: Mapping[str, Any]) -> Problem | Dropped:
    """Read a raw row; drop it if the solution does not end with one clear answer."""
    question, solution = raw["problem"], raw["solution"]
    golds = last_boxes(solution)
    if not golds:
        return Dropped("no box in the solution")
    if not all(golds):
        return Dropped("the solution's box is empty")
    gold = ", ".join(golds) if _ALL.search(question) else golds[-1]
    if gold == golds[-1] and not all(equal(other, gold) for other in golds[:-1]):
        return Dropped("the solution has several answers", " and ".join(golds))
    return Problem(question, gold, answer=solution, subject=raw["type"], level=raw["level"])


def last_boxes(solution: str) -> list[str]:
    r"""Return the content of a solution's last box, `\boxed{2}` or `\boxed 2$`, and of boxes beside it."""
    *_, last = (None, *_BOX.finditer(solution))
    if last is None:
        return []
    bare = _WITHOUT_BRACES.match(solution, last.end())
    return [bare[1].strip()] if bare else boxes(solution)


DATASET = Dataset("math", to_problem)
