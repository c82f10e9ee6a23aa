"""Words of a script: the arguments that they become, and the values on the right of assignments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell.braces import expand_braces
from rewardkit.launch.script_import.shell.expansions import expand_tilde, pieces_of
from rewardkit.launch.script_import.shell.patterns import PatternText
from rewardkit.launch.script_import.shell.scope import BLANK, ShellScope
from rewardkit.launch.script_import.shell.tree import line_of, parse_bytes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

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
    value = value.replace(BLANK, " ")
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
    line = scope.line if scope.is_text else line_of(nodes[0])
    text = "".join(map(text_of, nodes))
    words = expand_braces(text) if "{" in text else [text]
    if words == [text]:
        yield from ((field, line) for field in _split_word(nodes, text, scope))
        return
    scope.step(len(words))
    if "=" in text.partition("{")[0]:
        scope.record.problems.add(line, _BRACES_SPLIT)
    for word in words:
        statements = parse_bytes(b": " + word.encode("utf-8", "replace")).children
        parts = statements[0].children[1:] if statements else []
        with scope.reading_text():
            yield from ((field, line) for field in _split_word(parts, word, scope))


def _split_word(nodes: list[Node], text: str, scope: ShellScope) -> Iterator[str]:
    """Yield the arguments that a word becomes."""
    fields: list[list[str]] = []
    for node in nodes:
        for piece in pieces_of(node, scope, 0):
            if piece.is_split:
                _append_split(fields, piece.values, scope)
            else:
                _append(fields, piece.values)
    is_list = text.strip('"') in {"$@", "${@}"} or re.fullmatch(r'"\$\{\w+\[@\][^"]*\}"', text)
    if is_list and len(fields) == 1 and not any(fields[0]):
        return  # bash passes nothing for an empty list in quotes
    if fields and text[:1] == "~":
        fields[0] = [expand_tilde("".join(fields[0]), scope)]
    yield from ("".join(chunks).replace(BLANK, " ") for chunks in fields if chunks)


def _append(fields: list[list[str]], values: list[str]) -> None:
    """Add to the last field; all values but the first begin a new one."""
    for i, value in enumerate(values):
        if i or not fields:
            fields.append([])
        fields[-1].append(value)


def _append_split(fields: list[list[str]], values: list[str], scope: ShellScope) -> None:
    """Add values that the shell splits at their blanks, or at the characters of `$IFS`."""
    separators = (scope.variables.get("IFS") or [" \t\n"])[0]
    if separators.strip():
        pattern = f"[{re.escape(separators)}]"
        _append(fields, [part for value in values for part in re.split(pattern, value)])
        return
    value = (separators[:1] or " ").join(values)
    parts = re.split(f"[{separators}]+", value) if separators else [value]
    if value and value[0] in separators and fields and fields[-1]:
        fields.append([])
    _append(fields, [part for part in parts if part])
    if value and value[-1] in separators and fields:
        fields.append([])
