r"""Where a response states its answer: text -> candidate text, or None.

Every function is linear in the length of the response and returns the last candidate: a model
that states several answers is taken at its last word. Candidates come back stripped.
"""

from __future__ import annotations

import re

_OPEN_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_ANSWER_MARK = re.compile(r"\banswer\b[*_ \t]*[:：][*_ \t]*(?=\S)", re.IGNORECASE)


def last_hash(text: str) -> str | None:
    """The rest of the line after the last `####`, as GSM8K's solutions end; None without one."""
    _, mark, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() if mark else None


def last_answer_line(text: str) -> str | None:
    """What follows the last `Answer:` on its line; None without one. Markdown bold is skipped."""
    ends = [mark.end() for mark in _ANSWER_MARK.finditer(text)]
    return text[ends[-1] :].partition("\n")[0].strip() if ends else None


def last_boxed(text: str) -> str | None:
    r"""The content of the last balanced `\boxed{}` (or `\fbox{}`); None without one.

    A box left open, as in a truncated response, is passed over. Escaped braces (`\{`) do not
    count as grouping.
    """
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return None
    found = _balanced_boxes(text, start)
    if not found and start > 0:
        found = _balanced_boxes(text, 0)
    return text[slice(*max(found))].strip() if found else None


def _balanced_boxes(text: str, start: int) -> list[tuple[int, int]]:
    """(start, end) of the content of every balanced box from `start` on, in one pass."""
    found: list[tuple[int, int]] = []
    open_braces: list[int] = []
    for token in _BRACES.finditer(text, start):
        if _OPEN_BOX.match(token[0]):
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(-1)
        elif token[0] == "}" and open_braces and (begin := open_braces.pop()) >= 0:
            found.append((begin, token.start()))
    return found
