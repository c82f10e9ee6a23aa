"""Measures of a response's text that change when a policy learns to fool its scorer.

They take time in proportion to the response, of which the recorder keeps two ends.
"""

from __future__ import annotations

import re
from itertools import islice

#: Answers of one form in a response that are compared.
MAX_ANSWERS = 50

#: Characters of a box; longer content is compared up to here.
MAX_BOX_CHARACTERS = 300

#: Characters of a question that are looked for.
MAX_QUESTION_CHARACTERS = 2_000

#: Characters of each piece of the question that is looked for.
PIECE_CHARACTERS = 40

_BOX = "\\boxed{"
_HASHES = re.compile(r"####[ \t]{0,4}([-+$]{0,2}[0-9][0-9.,]{0,40})")


def has_several_answers(response: str) -> bool:
    r"""Return whether a response states different answers in `\boxed{}`, or after `####`."""
    if response.count("####") > 1:
        answers = islice(_HASHES.finditer(response), MAX_ANSWERS)
        if len({answer[1].rstrip(".,") for answer in answers}) > 1:
            return True
    return response.count(_BOX) > 1 and len(_boxes(response)) > 1


def has_copied_question(response: str, question: str) -> bool:
    """Return whether at least half of a question stands in the response, word for word.

    Case and white space do not count. Half means half of its pieces of 40 characters.
    """
    words = _fold(question[:MAX_QUESTION_CHARACTERS])
    if not words:
        return False
    text = _fold(response)
    count = max(len(words) // PIECE_CHARACTERS, 1)
    size = len(words) // count
    pieces = [words[i * size : (i + 1) * size] for i in range(count)]
    return 2 * sum(piece in text for piece in pieces) >= count


def _boxes(text: str) -> set[str]:
    boxes: set[str] = set()
    start = text.find(_BOX)
    while start >= 0 and len(boxes) < MAX_ANSWERS:
        inside = start + len(_BOX)
        boxes.add(_up_to_closing_brace(text[inside : inside + MAX_BOX_CHARACTERS]))
        start = text.find(_BOX, inside)
    return boxes


def _up_to_closing_brace(text: str) -> str:
    depth = 1
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return "".join(text[:place].split())
    return "".join(text.split())


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
