"""Brace expansion: `a{b,c}` and `{1..3}` become several words before anything else is expanded."""

from __future__ import annotations

import re
from itertools import pairwise

from rewardkit.errors import DataError

#: Words of one expansion, and opening braces of a word.
MAX_WORDS = 10_000
MAX_BRACES = 50

_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z])")


def expand_braces(text: str) -> list[str]:
    """Return the words that bash makes of a word of the source; itself without braces to expand.

    Raises:
        DataError: the word has too many braces.
    """
    if text.count("{") > MAX_BRACES:
        raise DataError(f"a word with more than {MAX_BRACES} braces.")
    braces = _first_braces(text)
    if braces is None:
        return [text]
    start, end, commas = braces
    before, inner = text[:start], text[start + 1 : end - 1]
    after = expand_braces(text[end:])
    if commas:
        places = [start, *commas, end - 1]
        parts = [text[one + 1 : other] for one, other in pairwise(places)]
        middle = [word for part in parts for word in expand_braces(part)]
    else:
        middle = _sequence(inner)
    if len(middle) * len(after) > MAX_WORDS:
        raise DataError(f"braces that become more than {MAX_WORDS:,} words.")
    return [f"{before}{word}{rest}" for word in middle for rest in after]


def _sequence(inner: str) -> list[str]:
    match = _RANGE.fullmatch(inner)
    if match is None:
        return [f"{{{inner}}}"]
    first, last, letter, other = match.groups()
    if letter:
        numbers = _counted(ord(letter), ord(other))
        return [chr(number) for number in numbers]
    width = max(len(first), len(last)) if re.search(r"(?:^|\.\.)-?0\d", inner) else 0
    return [f"{number:0{width}d}" for number in _counted(int(first), int(last))]


def _counted(first: int, last: int) -> range:
    step = 1 if first <= last else -1
    end = min(last, first + MAX_WORDS) if step > 0 else max(last, first - MAX_WORDS)
    return range(first, end + step, step)


def _first_braces(text: str) -> tuple[int, int, list[int]] | None:
    """Return where the first braces to expand begin and end, and their commas at the top level."""
    open_places: list[tuple[int, list[int]]] = []
    best: tuple[int, int, list[int]] | None = None
    pos = 0
    while pos < len(text):
        char = text[pos]
        if char in "\\'\"`$":
            pos = _skip(text, pos)
            continue
        if char == "{":
            open_places.append((pos, []))
        elif char == "," and open_places:
            open_places[-1][1].append(pos)
        elif char == "}" and open_places:
            start, commas = open_places.pop()
            expands = commas or _RANGE.fullmatch(text[start + 1 : pos])
            if expands and (best is None or start < best[0]):
                best = start, pos + 1, commas
            if best is not None and not open_places:
                return best
        pos += 1
    return best


def _skip(text: str, pos: int, depth: int = 0) -> int:
    """Return the end of what is quoted or expanded at a place of a word."""
    char, pair = text[pos], text[pos : pos + 2]
    if char == "\\":
        return pos + 2
    if char in "'`":
        end = text.find(char, pos + 1)
        return end + 1 if end > 0 else len(text)
    closing = '"' if char == '"' else {"${": "}", "$(": ")"}.get(pair)
    if closing is None or depth > MAX_BRACES:
        return pos + 1
    nested = {'"': "\\`$", "}": "\\'\"`$", ")": "\\'\"`$"}[closing]
    place = pos + (1 if char == '"' else 2)
    while place < len(text) and text[place] != closing:
        if text[place] in nested:
            place = _skip(text, place, depth + 1)
        else:
            place += 1
    return place + 1
