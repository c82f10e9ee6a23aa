"""Values of the words of a script: variables, defaults, arrays, integer arithmetic.

Everything is bounded, and nothing is run: a command substitution, or a variable that the script does
not set, stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell_tree import line_of, parse_bytes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Characters of all values of a script once expanded.
MAX_EXPANDED = 4_000_000

#: Levels of `${x:-${y:-...}}`, and of brackets in arithmetic.
MAX_DEPTH = 20

#: Characters of a default.
MAX_DEFAULT = 4_000

#: Characters of an arithmetic expression.
MAX_ARITHMETIC = 300

#: Distinct expansions that are remembered as unresolved.
MAX_UNRESOLVED = 200

#: Stands for a blank of an unresolved expansion, so that its value is not split there.
_BLANK = "\0"

_NAME = r"[A-Za-z_]\w*"
_EXPANSION = re.compile(
    rf"({_NAME})(?:\[([@*]|\d{{1,6}})\])?(?:(:?)([-=+])(.*))?", re.DOTALL | re.ASCII
)
_SYMBOL = re.compile(rf"\s*(?:(\d+|\*\*|[-+*/%()])|\$?({_NAME})|\$\{{({_NAME})\}})\s*", re.ASCII)
_EXPANSIONS = frozenset({"arithmetic_expansion", "expansion", "simple_expansion"})
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 3}


@dataclass
class ShellScope:
    """The variables at a line of a script.

    Attributes:
        variables: name -> its items; a plain variable has one.
        unresolved: expansions that stay as they are written, in order.
        has_arguments: whether the command passes the script's own arguments on (`"$@"`).
        expanded: characters of all values up to here.
    """

    variables: dict[str, list[str]] = field(default_factory=dict)
    unresolved: dict[str, None] = field(default_factory=dict)
    has_arguments: bool = False
    expanded: int = 0

    def count(self, values: list[str]) -> list[str]:
        """Add the length of values to the sum, and return them.

        Raises:
            DataError: the sum is too large.
        """
        self.expanded += sum(map(len, values)) + len(values) + 1
        if self.expanded > MAX_EXPANDED:
            raise DataError(f"the script's values expand to more than {MAX_EXPANDED:,} characters.")
        return values

    def leave_unresolved(self, text: str) -> list[str]:
        """Return an expansion as it is written, and remember it."""
        if len(self.unresolved) < MAX_UNRESOLVED:
            self.unresolved[re.sub(r"\s", " ", text)] = None
        return [re.sub(r"\s", _BLANK, text)]


def plain(text: str) -> str:
    """Return a value for a person: blanks of unresolved expansions are blanks again."""
    return text.replace(_BLANK, " ")


def value_of(node: Node | None, scope: ShellScope) -> str:
    """Return the value of a word on the right of an assignment; blanks are kept.

    Raises:
        DataError: the script's values are too long in sum.
    """
    pieces = _pieces(node, scope, 0) if node else ()
    return "".join(" ".join(values) for values, _ in pieces)


def fields_of(nodes: Iterable[Node], scope: ShellScope) -> Iterator[tuple[str, int]]:
    """Yield the arguments that words become, with their lines.

    A word becomes none, one or, unquoted or of an array, many. Nodes that touch are one word, which
    the grammar does not always see.

    Raises:
        DataError: the script's values are too long in sum.
    """
    end = -1
    line = 0
    fields: list[list[str]] = []
    for node in nodes:
        if node.start_byte != end:
            yield from (("".join(chunks), line) for chunks in fields if chunks)
            fields, line = [], line_of(node)
        for values, is_split in _pieces(node, scope, 0):
            if is_split:
                _append_split(fields, " ".join(values))
            else:
                _append(fields, values)
        end = node.end_byte
    yield from (("".join(chunks), line) for chunks in fields if chunks)


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
    if value[-1:].isspace():
        fields.append([])


def _pieces(node: Node, scope: ShellScope, depth: int) -> Iterator[tuple[list[str], bool]]:
    """Yield the values of a word's parts, and whether the shell splits them at their blanks."""
    kind = node.type
    if kind in {"command_name", "concatenation", "variable_assignment"}:
        for child in node.children:
            yield from _pieces(child, scope, depth)
    elif kind == "string":
        yield from _quoted_pieces(node, scope, depth)
    elif kind == "raw_string":
        yield scope.count([text_of(node)[1:-1]]), False
    elif kind in _EXPANSIONS:
        yield scope.count(_expand(node, scope, depth, is_quoted=False)), True
    elif kind in {"ansi_c_string", "command_substitution", "process_substitution"}:
        yield scope.count(scope.leave_unresolved(text_of(node))), False
    else:
        text = re.sub(r"\\(.?)", lambda m: m[1].strip("\n"), text_of(node), flags=re.DOTALL)
        yield scope.count([text]), False


def _quoted_pieces(node: Node, scope: ShellScope, depth: int) -> Iterator[tuple[list[str], bool]]:
    """Yield the values between double quotes; the text between expansions is a piece as well."""
    source, offset = node.text or b"", node.start_byte
    opening, *inner = node.children
    start = opening.end_byte
    yield [""], False  # "" is a field too
    for child in inner:
        if child.type == "string_content":
            continue
        text = source[start - offset : child.start_byte - offset].decode("utf-8", "replace")
        text = re.sub(r'\\([$`"\\\n])', lambda m: m[1].strip("\n"), text)
        yield scope.count([text]), False
        start = child.end_byte
        if child.type in _EXPANSIONS:
            blanks = re.match(r"\s*", text_of(child))
            yield [blanks[0] if blanks else ""], False  # the grammar counts them to the expansion
            yield scope.count(_expand(child, scope, depth, is_quoted=True)), False
        elif child.type != '"':
            for values, _ in _pieces(child, scope, depth):
                yield values, False


def _expand(node: Node, scope: ShellScope, depth: int, *, is_quoted: bool) -> list[str]:
    """Return the items of an expansion; itself as written where they are not known."""
    text = text_of(node).strip()
    values: list[str] | None = None
    if text.startswith("$((") and text.endswith("))"):
        number = arithmetic(text[3:-2], scope)
        values = None if number is None else [str(number)]
    elif node.type == "simple_expansion":
        values = _variable(text[1:], scope, depth, is_quoted=is_quoted)
    elif text.endswith("}") and depth < MAX_DEPTH:
        values = _variable(text[2:-1], scope, depth, is_quoted=is_quoted)
    return scope.leave_unresolved(text) if values is None else values


def _variable(text: str, scope: ShellScope, depth: int, *, is_quoted: bool) -> list[str] | None:
    """Return the items of `${text}`; None if the script does not say."""
    if text in {"@", "*"} or text.startswith("@:"):
        scope.has_arguments = True
        return []
    match = _EXPANSION.fullmatch(text)
    if match is None:
        return None
    name, index, colon, operator, default = match.groups()
    items = scope.variables.get(name)
    if items is not None and index not in {"@", "*"}:
        items = items[int(index or 0) :][:1]
    is_set = bool(items) and (not colon or any(items or ()))
    if operator == "+":
        return [_default(default, scope, depth, is_quoted=is_quoted)] if is_set else [""]
    if is_set or not operator:
        return items
    values = [_default(default, scope, depth, is_quoted=is_quoted)]
    if operator == "=":
        scope.variables[name] = values
    return values


def _default(text: str, scope: ShellScope, depth: int, *, is_quoted: bool) -> str:
    """Return the value of a default, which is parsed alone: the grammar does not read all of them."""
    if len(text) > MAX_DEFAULT:
        return scope.leave_unresolved(text)[0]
    if is_quoted and not re.search(r"\$\(|`", text):
        text = '"' + re.sub(r'(?<!\\)"', "", text) + '"'
    root = parse_bytes(b": " + text.encode())
    statements = root.children
    if root.has_error or [node.type for node in statements] != ["command"]:
        return text if not re.search(r"[$`\"']", text) else scope.leave_unresolved(text)[0]
    words = statements[0].children[1:]
    values = [
        "".join(v for part, _ in _pieces(word, scope, depth + 1) for v in part) for word in words
    ]
    return " ".join(values)


def arithmetic(text: str, scope: ShellScope) -> int | None:
    """Return the value of `$((text))`; None if it is not known, or bash does not compute it.

    Numbers are those of 64 bits, division is towards zero, as in bash. A name that the script does
    not set is not taken as 0: it may come from outside.
    """
    symbols: list[str] = []
    pos = 0
    while pos < len(text):
        match = _SYMBOL.match(text, pos)
        if match is None or len(text) > MAX_ARITHMETIC:
            return None
        symbols.append(match[1] or match[2] or match[3])
        pos = match.end()
    symbols.reverse()
    try:
        number = _binary(symbols, 1, scope.variables, 0)
    except ArithmeticError:
        return None
    return None if symbols else number


def _binary(symbols: list[str], lowest: int, names: Mapping[str, list[str]], depth: int) -> int:
    left = _unary(symbols, names, depth)
    while symbols and _LEVEL.get(symbols[-1], 0) >= lowest:
        operator = symbols.pop()
        above = _LEVEL[operator] + (operator != "**")
        left = _calculate(operator, left, _binary(symbols, above, names, depth + 1))
    return left


def _unary(symbols: list[str], names: Mapping[str, list[str]], depth: int) -> int:
    if depth > MAX_DEPTH or not symbols:
        raise ArithmeticError
    symbol = symbols.pop()
    if symbol in {"+", "-"}:
        number = _unary(symbols, names, depth + 1)
        return -number if symbol == "-" else number
    if symbol == "(":
        number = _binary(symbols, 1, names, depth + 1)
        if not symbols or symbols.pop() != ")":
            raise ArithmeticError
        return number
    text = symbol if symbol[0].isdigit() else "".join(names.get(symbol, [])[:1])
    if not re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", text, re.ASCII):  # 010 is octal in bash
        raise ArithmeticError
    return int(text)


def _calculate(operator: str, left: int, right: int) -> int:
    if operator == "**":
        number = left**right if 0 <= right < 64 else 1 << 64
    elif operator in {"/", "%"}:
        towards_zero = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        number = towards_zero if operator == "/" else left - right * towards_zero
    else:
        number = {"+": left + right, "-": left - right, "*": left * right}[operator]
    if abs(number) >= 1 << 63:
        raise OverflowError
    return number
