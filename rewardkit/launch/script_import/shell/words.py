"""Words of a script: the arguments that they become, and the values on the right of assignments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell.expansions import (
    COMMANDS,
    EXPANSIONS,
    expand_tilde,
    pieces_of,
)
from rewardkit.launch.script_import.shell.patterns import PatternText
from rewardkit.launch.script_import.shell.scope import ShellScope
from rewardkit.launch.script_import.shell.tree import line_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_BRACES = re.compile(r"\{(?:[^{}]*,[^{}]*|[^{}]+\.\.[^{}]+)\}")
_RANGE = re.compile(r"\{(-?\d{1,9})\.\.(-?\d{1,9})\}")
_BRACES_SPLIT = (
    "braces without quotes: bash makes several words of them, and verl does not get the value."
)


def value_of(node: Node | None, scope: ShellScope) -> str:
    """Return the value of a word on the right of an assignment; blanks are kept.

    Raises:
        DataError: the script's values are too long in sum.
    """
    if node is None:
        return ""
    value = "".join(" ".join(piece.values) for piece in pieces_of(node, scope, 0))
    return expand_tilde(value, scope) if text_of(node)[:1] == "~" else value


def pattern_of(node: Node, scope: ShellScope) -> list[PatternText]:
    """Return the parts of a pattern; those in quotes are letters."""
    return [
        PatternText(" ".join(piece.values), piece.is_quoted) for piece in pieces_of(node, scope, 0)
    ]


def fields_of(nodes: Iterable[Node], scope: ShellScope) -> Iterator[tuple[str, int]]:
    """Yield the arguments that words become, with their lines.

    A word becomes none, one or, unquoted or of an array, many. Nodes that touch are one word, which
    the grammar does not always see.

    Raises:
        DataError: the script's values are too long in sum.
    """
    word: list[Node] = []
    for node in nodes:
        if word and node.start_byte != word[-1].end_byte:
            yield from _word_fields(word, scope)
            word = []
        word.append(node)
    if word:
        yield from _word_fields(word, scope)


def _word_fields(nodes: list[Node], scope: ShellScope) -> Iterator[tuple[str, int]]:
    line = line_of(nodes[0])
    text = "".join(map(text_of, nodes))
    if numbers := _RANGE.fullmatch(text):
        yield from ((value, line) for value in _range(*map(int, numbers.groups())))
        return
    fields: list[list[str]] = []
    literal = ""
    for node in nodes:
        for piece in pieces_of(node, scope, 0):
            literal += "x" if piece.is_quoted or piece.is_split else "".join(piece.values)
            if piece.is_split:
                _append_split(fields, " ".join(piece.values))
            else:
                _append(fields, piece.values)
    if _BRACES.search(literal):
        scope.record.problems.add(line, _BRACES_SPLIT)
    is_list = text.strip('"') in {"$@", "${@}"} or re.fullmatch(r'"\$\{\w+\[@\][^"]*\}"', text)
    if is_list and fields == [[""]]:
        return  # bash passes nothing for an empty list in quotes
    if fields and text[:1] == "~":
        fields[0] = [expand_tilde("".join(fields[0]), scope)]
    yield from (("".join(chunks), line) for chunks in fields if chunks)


def _range(first: int, last: int) -> Iterator[str]:
    step = 1 if first <= last else -1
    yield from map(str, range(first, max(min(last, first + 10_000), first - 10_000) + step, step))


def _append(fields: list[list[str]], values: list[str]) -> None:
    """Add to the last field; all values but the first begin a new one."""
    for i, value in enumerate(values):
        if i or not fields:
            fields.append([])
        fields[-1].append(value)


def _append_split(fields: list[list[str]], value: str) -> None:
    """Add a value that the shell splits at its blanks."""
    if value[:1].isspace() and fields and fields[-1]:
        fields.append([])
    _append(fields, value.split())
    if value[-1:].isspace() and fields:
        fields.append([])


def body_of(node: Node, scope: ShellScope) -> str:
    """Return the text of a here-document, whose expansions are expanded."""
    source, offset = node.text or b"", node.start_byte
    pieces: list[str] = []
    start = node.start_byte
    for child in node.children:
        if child.type in EXPANSIONS or child.type in COMMANDS:
            pieces.append(
                source[start - offset : child.start_byte - offset].decode(errors="replace")
            )
            values = [v for piece in pieces_of(child, scope, 0) for v in piece.values]
            pieces.append(" ".join(values))
            start = child.end_byte
    pieces.append(source[start - offset :].decode(errors="replace"))
    return scope.count(["".join(pieces)])[0]
