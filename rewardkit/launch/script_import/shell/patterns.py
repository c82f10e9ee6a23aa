"""Patterns of bash: `*`, `?` and `[a-z]` in `case`, `[[ a == b* ]]` and `${name%pattern}`.

A pattern is matched state by state, so that the time grows with the lengths of pattern and text only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: Steps of one match; above it, the result is not known.
MAX_MATCH = 200_000


class PatternSign(NamedTuple):
    """A sign of a pattern.

    Attributes:
        kind: "*", "?" or "[": any text, any character, or one of `characters`.
        characters: the characters that the sign matches, or does not match if `is_other`.
        is_other: whether it is `[!...]`.
    """

    kind: str
    characters: frozenset[str] = frozenset()
    is_other: bool = False

    def takes(self, character: str) -> bool:
        """Whether the sign matches a character."""
        return self.kind != "[" or (character in self.characters) != self.is_other


class PatternText(NamedTuple):
    """A part of a pattern; in quotes, its signs are letters."""

    text: str
    is_quoted: bool


def match_cost(pattern: int, text: int, *, everywhere: bool = False) -> int:
    """Return the statements that a match counts as, by the lengths of pattern and text."""
    steps = (pattern + 1) * (text + 1) ** (2 if everywhere else 1)
    return 1 + min(steps, MAX_MATCH) // 100


def read_pattern(parts: Iterable[PatternText]) -> list[PatternSign] | None:
    """Return the signs of a pattern; None for `@(a|b)` and other patterns that are not supported."""
    signs: list[PatternSign] = []
    for text, is_quoted in parts:
        if is_quoted:
            signs += [PatternSign("[", frozenset(char)) for char in text]
            continue
        pos = 0
        while pos < len(text):
            read = _read_sign(text, pos)
            if read is None:
                return None
            sign, pos = read
            signs.append(sign)
    return signs


def _read_sign(text: str, pos: int) -> tuple[PatternSign, int] | None:
    char = text[pos]
    if char in "@+!?*" and text[pos + 1 : pos + 2] == "(":
        return None
    if char in "*?":
        return PatternSign(char), pos + 1
    if char == "\\" and pos + 1 < len(text):
        return PatternSign("[", frozenset(text[pos + 1])), pos + 2
    if char == "[":
        end = text.find("]", pos + 2 + (text[pos + 1 : pos + 2] in {"!", "^"}))
        if end > 0:
            return _read_class(text[pos + 1 : end]), end + 1
    return PatternSign("[", frozenset(char)), pos + 1


def _read_class(text: str) -> PatternSign:
    is_other = text[:1] in {"!", "^"}
    text = text[is_other:]
    named = {"[:digit:": "0-9", "[:alpha:": "a-zA-Z", "[:alnum:": "a-zA-Z0-9", "[:space:": " \t\n"}
    text = named.get(text, text)
    characters: set[str] = set()
    pos = 0
    while pos < len(text):
        if text[pos + 1 : pos + 2] == "-" and pos + 2 < len(text):
            first, last = ord(text[pos]), ord(text[pos + 2])
            characters.update(map(chr, range(first, min(last, first + 200) + 1)))
            pos += 3
        else:
            characters.add(text[pos])
            pos += 1
    return PatternSign("[", frozenset(characters), is_other)


def match_ends(signs: list[PatternSign], text: str) -> list[int] | None:
    """Return where a match that begins at the start of a text can end; None if that takes too long."""
    if (len(signs) + 1) * (len(text) + 1) > MAX_MATCH:
        return None
    ends = []
    states = _reach({0}, signs)
    for end in range(len(text) + 1):
        if len(signs) in states:
            ends.append(end)
        if end == len(text) or not states:
            break
        states = _reach(_advance(states, signs, text[end]), signs)
    return ends


def _advance(states: set[int], signs: list[PatternSign], char: str) -> set[int]:
    after = set()
    for state in states:
        if state < len(signs) and signs[state].takes(char):
            after.add(state if signs[state].kind == "*" else state + 1)
    return after


def _reach(states: set[int], signs: list[PatternSign]) -> set[int]:
    """Add the states behind stars, which match nothing as well."""
    reached = set(states)
    for state in states:
        behind = state
        while behind < len(signs) and signs[behind].kind == "*":
            behind += 1
            reached.add(behind)
    return reached


def matches(signs: list[PatternSign], text: str) -> bool | None:
    """Whether a pattern matches a whole text; None if that takes too long."""
    ends = match_ends(signs, text)
    return None if ends is None else len(text) in ends


def without_prefix(text: str, signs: list[PatternSign], *, longest: bool) -> str | None:
    """Return `${text#pattern}` or `${text##pattern}`; None if that takes too long."""
    ends = match_ends(signs, text)
    if ends is None:
        return None
    return text[(max(ends) if longest else min(ends)) :] if ends else text


def without_suffix(text: str, signs: list[PatternSign], *, longest: bool) -> str | None:
    """Return `${text%pattern}` or `${text%%pattern}`; None if that takes too long."""
    rest = without_prefix(text[::-1], signs[::-1], longest=longest)
    return None if rest is None else rest[::-1]


def replace_matches(
    text: str, signs: list[PatternSign], new: str, *, kind: str = "/"
) -> str | None:
    """Return `${text/pattern/new}`; None if that takes too long.

    Args:
        text: the value.
        signs: the pattern.
        new: what stands for a match.
        kind: `/` for the first match, `//` for all, `/#` and `/%` for one at the start or end.
    """
    if (len(signs) + 1) * (len(text) + 1) ** 2 > MAX_MATCH:
        return None
    if kind == "/%":
        rest = without_suffix(text, signs, longest=True)
        ends = match_ends(signs[::-1], text[::-1])
        return rest + new if ends and rest is not None else text
    pieces: list[str] = []
    pos = 0
    while pos < len(text):
        ends = [end for end in match_ends(signs, text[pos:]) or () if end]
        if not ends:
            if kind == "/#":
                break
            pieces.append(text[pos])
            pos += 1
            continue
        pieces.append(new)
        pos += max(ends)
        if kind != "//":
            break
    return "".join(pieces) + text[pos:]
