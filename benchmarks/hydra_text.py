"""Values of Hydra's override grammar, read for a comparison without rewardkit's own reader."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?")
_TOKEN = re.compile(r"""\s*('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[\[\]{},:])""")


def hydra_value(text: str) -> Any:
    """Return a value: lists, mappings, text, numbers, booleans and None.

    What does not follow the grammar is text.
    """
    text = text.strip()
    if text[:1] not in {"[", "{", "'", '"'}:
        return _primitive(text)
    try:
        value, end = _read(text, 0)
    except (ValueError, RecursionError):
        return text
    return value if not text[end:].strip() else text


def is_equal(one: Any, other: Any) -> bool:
    """Whether Hydra reads the same; 1 and 1.0 are equal, 1 and True or "1" are not."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[k], other[k]) for k in one)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _read(text: str, start: int) -> tuple[Any, int]:
    """Read one value and return it with the place behind it."""
    match = _TOKEN.match(text, start)
    if match is None or match[1] in ",:]}":
        end = re.compile(r"[^,:\[\]{}]*(?::[^,\[\]{}]*)?").match(text, start)
        assert end is not None
        return _primitive(end[0].strip()), end.end()
    if match[1][0] in "'\"":
        return re.sub(r"\\(.)", r"\1", match[1][1:-1]), match.end()
    return (_list if match[1] == "[" else _mapping)(text, match.end())


def _list(text: str, place: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    if end := re.compile(r"\s*\]").match(text, place):
        return items, end.end()
    while True:
        item, place = _read(text, place)
        items.append(item)
        separator = re.compile(r"\s*([,\]])").match(text, place)
        if separator is None:
            raise ValueError(text)
        place = separator.end()
        if separator[1] == "]":
            return items, place


def _mapping(text: str, place: int) -> tuple[dict[str, Any], int]:
    pairs: dict[str, Any] = {}
    if end := re.compile(r"\s*\}").match(text, place):
        return pairs, end.end()
    while True:
        key = re.compile(r"\s*([^:,{}\[\]]+?)\s*:").match(text, place)
        if key is None:
            raise ValueError(text)
        pairs[key[1].strip("'\"")], place = _read(text, key.end())
        separator = re.compile(r"\s*([,}])").match(text, place)
        if separator is None:
            raise ValueError(text)
        place = separator.end()
        if separator[1] == "}":
            return pairs, place


def _primitive(text: str) -> Any:
    word = text.lower()
    if word in {"true", "false"}:
        return word == "true"
    if word == "null":
        return None
    return float(text.replace("_", "")) if _NUMBER.fullmatch(text) else text
