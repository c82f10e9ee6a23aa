"""Common shapes of rewards: what each returns, and which of its scores is right.

`docs/how-to/own-reward.md` has a table of some of them, which a test compares.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    """A shape: its line in the docs, the function's last lines, and the lowest right score.

    `right` is None where the reward states its verdicts, and "unknown" where nothing says it.
    """

    text: str
    body: str
    right: float | str | None


HEAD = """\
import re
import numpy as np

class Tensor:  # stands in for torch's
    def __init__(self, value):
        self.value = value
    def __float__(self):
        return self.value

def _read(text, gold):
    boxes = re.findall(r"\\\\boxed\\{([^{}]*)\\}", text)
    marked = [*boxes, *re.findall(r"####\\s*(\\S+)", text)]
    return bool(marked) and marked[-1].strip() == gold, bool(boxes), "<think>" in text

"""

SHAPES = {
    "zero_one": Shape("1.0 or 0.0", "return 1.0 if right else 0.0", 1),
    "boolean": Shape("`True` or `False`", "return right", None),
    "plus_minus": Shape("+1 or -1", "return 1.0 if right else -1.0", 1),
    "nine_tenths": Shape("0.9 or 0", "return 0.9 if right else 0.0", 0.9),
    "pays_form": Shape(
        "1, or 0.1 for a wrong box", "return 1.0 if right else 0.1 if boxed else 0.0", 1
    ),
    "parts": Shape(
        "0.8 for the answer, 0.1 for `<think>`, 0.1 for a box",
        "return 0.8 * right + 0.1 * thought + 0.1 * boxed",
        0.8,
    ),
    "minus_three_to_three": Shape(
        "-3 to 3: form 1 or -1, answer 2 or -1.5",
        "return (1.0 if thought else -1.0) + (2.0 if right else -1.5 if boxed else -2.0)",
        1,
    ),
    "dictionary": Shape('`{"score": 0.9}`', 'return {"score": 0.9 if right else 0.0}', 0.9),
    "stated": Shape(
        '`{"score": s, "acc": True}`', 'return {"score": 0.5 + 0.4 * right, "acc": right}', None
    ),
    "copied": Shape(
        '`{"score": s, "acc": s}`, s from 0 to 1',
        'score = 1.0 if right else 0.1 if boxed else 0.0\n    return {"score": score, "acc": score}',
        1,
    ),
    "fraction": Shape(
        '`{"score": s, "acc": 0.5}`, a fraction',
        "score = 1.0 if right else 0.5 if boxed else 0.0\n"
        '    return {"score": 2 * score, "acc": score}',
        2,
    ),
    "tensor": Shape("a tensor", "return Tensor(0.9 if right else 0.0)", 0.9),
    "numpy": Shape("`np.float32`", "return np.float32(0.9 if right else 0.1)", 0.9),
    "penalties": Shape(
        "0, or below 0 for a wrong answer", "return 0.0 if right else -1.0 - 0.5 * (not boxed)", 0
    ),
    "short": Shape(
        "1 minus up to 0.5 for the length, or 0",
        "return (1.0 - 0.5 * min(len(text) / 4000, 1)) if right else 0.0",
        0.5,
    ),
    "length": Shape("the length alone", "return -abs(len(text) - 200) / 100", "unknown"),
}


def write_rewards(folder):
    """Write all shapes as functions of one file, and return its path."""
    functions = (
        f"def {name}(data_source, solution_str, ground_truth, extra_info=None):\n"
        f"    text = solution_str\n    right, boxed, thought = _read(text, ground_truth)\n"
        f"    {shape.body}\n\n\n"
        for name, shape in SHAPES.items()
    )
    file = folder / "shapes.py"
    file.write_text(HEAD + "\n" + "".join(functions), encoding="utf-8")
    return file


def docs_rows(page):
    """Return the rows of the table in the docs: the shape, and what is right."""
    return re.findall(
        r"^\| (.+?) \| (?:(at least \S+|as stated|not known)) \|$", page, re.MULTILINE
    )
