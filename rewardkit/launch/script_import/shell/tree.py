"""Launch scripts as syntax trees of bash, made by tree-sitter-bash. No script is run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit.errors import DataError, MissingPackageError

if TYPE_CHECKING:
    from tree_sitter import Node

#: Nodes of a tree, and levels of nesting; published scripts have up to 2,000 nodes and 20 levels.
MAX_NODES = 200_000
MAX_DEPTH = 100

#: Work of the parser on one text, because garbage can cost it time that grows with the square of its
#: length: reads of a chunk for each chunk of the text (2 are usual), and hundreds of steps (3 are usual
#: for each kilobyte of a launch script).
CHUNK_BYTES = 4_096
MAX_READS_PER_CHUNK = 20
MAX_STEPS_HUNDREDS = 500

#: Distinct problems that are kept, and lines of each.
MAX_PROBLEMS = 1_000

#: Backslashes that bash does not read as the writer means them, and names of variables, which the
#: grammar does not read behind some signs (`a-$b`). A pair is an escaped backslash.
_REPAIRABLE = re.compile(
    rb"""(?P<pair>\\\\)
    | \$(?P<name>[A-Za-z_]\w*|\d)
    | (?P<ends>\\[^\S\n]+(?:\#[^\n]*)?(?:\n|\Z))
    | (?P<quotes>(?<=['"])\\\n(?=['"]))
    | (?P<joins>(?<=[^\s;&|(])\\\n(?=\S))
    | (?P<inline>(?<=\s)\\[^\S\n]+(?=\S))""",
    re.VERBOSE,
)
_ENDS_COMMAND = "bash ends the command here, and the settings below it are not passed."
_GLUED = "no blank before the backslash: bash joins the line with the next one."
_INLINE = "a backslash inside a line: the line ends were lost in copying."
_OPEN_QUOTE = "a quote that is never closed."

#: Nodes in which a backslash is text.
_LITERAL = frozenset({"ansi_c_string", "comment", "heredoc_body", "raw_string", "string"})
_SETTERS = frozenset(
    {"variable_assignment", "declaration_command", "for_statement", "unset_command"}
)
_CLOSING = frozenset({'"', "}", ")", "))", "`"})


class ScriptProblem(NamedTuple):
    """A problem of a script that its reader should know of.

    Attributes:
        lines: line numbers in the script, from 1.
        text: the problem.
        breaks: whether bash or verl does something else than the script means.
    """

    lines: tuple[int, ...]
    text: str
    breaks: bool


class ProblemLog:
    """The problems of a script by their text, with the lines that have them."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, bool], list[int]] = {}

    def add(self, line: int, text: str, *, breaks: bool = True) -> None:
        """Add a problem of a line; a text that is known already gets one more line."""
        if len(self._lines) < MAX_PROBLEMS or (text, breaks) in self._lines:
            lines = self._lines.setdefault((text, breaks), [])
            if len(lines) < MAX_PROBLEMS and line not in lines[-1:]:
                lines.append(line)

    def in_order(self) -> tuple[ScriptProblem, ...]:
        """Return all problems, sorted by their first line."""
        return tuple(
            sorted(ScriptProblem(tuple(lines), *key) for key, lines in self._lines.items())
        )


def parse_shell(text: str, problems: ProblemLog) -> Node:
    """Return the syntax tree of a script; lines that copying broke are read as they were meant.

    Args:
        text: the script, with Unix line ends.
        problems: gets what bash does not read as the script means it.

    Raises:
        DataError: the tree is too large or too deep.
        MissingPackageError: tree-sitter is not installed.
    """
    source = text.encode("utf-8", "replace")
    root = parse_bytes(source)
    nodes = list(_walk(root))
    if ends := [end for node, _ in nodes if node.type == "command" for end in _line_ends(node)]:
        for end in sorted(set(ends), reverse=True):
            source = source[:end] + b";" + source[end:]
        root = parse_bytes(source)
        nodes = list(_walk(root))
    repaired = _repair(source, nodes, problems)
    open_quote = next((n for n, _ in nodes if n.is_error and _bytes(n).startswith(b"'")), None)
    if open_quote:
        problems.add(line_of(open_quote), _OPEN_QUOTE)
        repaired += b"'"
    if repaired != source:
        root = parse_bytes(repaired)
        nodes = list(_walk(root))
    if root.has_error:
        _add_syntax_errors(nodes, text.count("\n") + 1, problems)
    return root


def parse_bytes(source: bytes) -> Node:
    """Return the root of the syntax tree of a piece of shell.

    Raises:
        DataError: the parser would take too long.
        MissingPackageError: tree-sitter is not installed.
    """
    new_parser, language = _tree_sitter()
    source += b"\n"
    _require_cheap(source, new_parser(language))
    root: Node = new_parser(language).parse(source).root_node
    return root


def _require_cheap(source: bytes, parser: Any) -> None:
    """Refuse a text that the parser needs much time for. Its nodes would not have their text."""
    reads = steps = 0
    most = MAX_READS_PER_CHUNK * (len(source) // CHUNK_BYTES + 10)

    def read(offset: int, _: object) -> bytes:
        nonlocal reads
        reads += 1
        return source[offset : offset + CHUNK_BYTES] if reads <= most else b""

    def is_too_much(_offset: int, _has_error: bool) -> bool:
        nonlocal steps
        steps += 1
        return steps > MAX_STEPS_HUNDREDS or reads > most

    with suppress(ValueError):  # raised where a callback ends the parser
        parser.parse(read, progress_callback=is_too_much)
    if steps > MAX_STEPS_HUNDREDS or reads > most:
        raise DataError("not a script that can be read: it takes the parser of bash too long.")


@cache
def _tree_sitter() -> tuple[Any, Any]:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        raise MissingPackageError(
            "Reading launch scripts needs tree-sitter: pip install 'rewardkit[script-import]'; without "
            "internet, from a wheelhouse with this extra (docs/how-to/offline.md)."
        ) from None
    return Parser, Language(tree_sitter_bash.language())


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return _bytes(node).decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Return the line that a node begins on, from 1."""
    return node.start_point.row + 1


def used_names(root: Node) -> frozenset[str]:
    """Return the names of the variables that a script reads."""
    return frozenset(
        text_of(node)
        for node, above in _walk(root)
        if node.type == "variable_name" and above not in _SETTERS
    )


def _bytes(node: Node) -> bytes:
    return node.text or b""


def _walk(root: Node) -> Iterator[tuple[Node, str]]:
    """Yield the nodes of a tree in the order of the text, each with the type of the one above."""
    if root.descendant_count > MAX_NODES:
        raise DataError(f"more than {MAX_NODES:,} words and signs, the limit for launch scripts.")
    cursor = root.walk()
    above = [""]
    while cursor.node:
        if len(above) > MAX_DEPTH:
            raise DataError(f"nested more than {MAX_DEPTH} levels deep.")
        yield cursor.node, above[-1]
        kind = cursor.node.type
        if cursor.goto_first_child():
            above.append(kind)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            above.pop()


def _repair(source: bytes, nodes: list[tuple[Node, str]], problems: ProblemLog) -> bytes:
    """Return the source as the script means it; its lines stay where they are."""
    starts, ends = [0], [0]
    for node, _ in nodes:
        if node.type in _LITERAL and node.start_byte >= ends[-1]:
            starts.append(node.start_byte)
            ends.append(node.end_byte)
    dollars = {n.start_byte for n, above in nodes if n.type == "$" and above != "simple_expansion"}
    if dollars:  # braces around one name show the grammar's next gap
        dollars |= {n.start_byte for n, _ in nodes if n.type == "simple_expansion"}
    newlines = [match.start() for match in re.finditer(b"\n", source)]

    def repair(match: re.Match[bytes]) -> bytes:
        place = match.start()
        if match["name"]:
            return b"${" + match["name"] + b"}" if place in dollars else match[0]
        if match["quotes"]:
            return b'"\\\n"'  # joins the words for the grammar as well
        if match["pair"] or place < ends[bisect_right(starts, place) - 1]:
            return match[0]
        line = bisect_right(newlines, place - 1) + 1
        if match["joins"] or match["inline"]:
            problems.add(line, _GLUED if match["joins"] else _INLINE)
            return match[0]
        what = "a comment" if b"#" in match[0] else "blanks"
        problems.add(line, f"{what} after the backslash: {_ENDS_COMMAND}")
        return b" \\\n"

    return _REPAIRABLE.sub(repair, source)


def _line_ends(command: Node) -> Iterator[int]:
    """Yield where a line ends behind assignments: the grammar takes the next line's command with it."""
    source, offset = _bytes(command), command.start_byte
    children = [child for child in command.children if child.type != "comment"]
    for node, behind in pairwise(children):
        if node.type != "variable_assignment":
            return
        gap = source[node.end_byte - offset : behind.start_byte - offset]
        if b"\n" in gap.replace(b"\\\n", b""):
            yield node.end_byte


def _add_syntax_errors(nodes: list[tuple[Node, str]], lines: int, problems: ProblemLog) -> None:
    """Add what does not fit bash's grammar. In defaults the grammar itself has gaps."""
    for node, above in nodes:
        if not (node.is_missing or node.is_error):
            continue
        if node.is_missing and node.type in _CLOSING and node.parent:
            opening = "quote" if node.type == '"' else text_of(node.parent)[:2]
            problems.add(line_of(node.parent), f"a {opening} that is never closed.")
        elif above not in {"expansion", "ERROR"} and _bytes(node).strip() not in {b"", b"\\"}:
            text = "not bash as far as can be read: settings of this line may be missing."
            problems.add(min(line_of(node), lines), text, breaks=False)
