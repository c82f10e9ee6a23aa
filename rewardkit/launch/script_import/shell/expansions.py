"""Values of the words of a script: quotes, variables, defaults, arrays, the operators of `${...}`.

Everything is bounded, and nothing is run. What only a run of the script can tell becomes a mark
(`ShellScope.unknown`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rewardkit.launch.script_import.shell.arithmetic import arithmetic
from rewardkit.launch.script_import.shell.operators import change_items, slice_items
from rewardkit.launch.script_import.shell.patterns import PatternText, match_cost
from rewardkit.launch.script_import.shell.scope import (
    BLANK,
    MARK,
    MAX_CALLS,
    ShellScope,
    is_unknown,
    unsigned,
)
from rewardkit.launch.script_import.shell.tree import parse_bytes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Levels of `${x:-${y:-...}}`.
MAX_DEPTH = 20

#: Characters of a default.
MAX_DEFAULT = 4_000

_PARAMETER = re.compile(
    r"(?P<prefix>[#!](?=[\w@*]))?(?P<name>[A-Za-z_]\w*|\d{1,6}|[@*#?$!-])"
    r"(?:\[(?P<index>[^\]\n]{1,200})\])?"
    r"(?:(?P<operator>:?[-=+?]|##?|%%?|//|/[#%]|/|\^\^?|,,?|:|@)(?P<operand>.*))?",
    re.DOTALL | re.ASCII,
)
EXPANSIONS = frozenset({"arithmetic_expansion", "expansion", "simple_expansion"})
COMMANDS = frozenset({"command_substitution", "process_substitution"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class Piece(NamedTuple):
    """A part of a word.

    Attributes:
        values: the values, one but for arrays and arguments.
        is_split: whether the shell splits them at their blanks.
        is_quoted: whether the signs of a pattern are letters.
    """

    values: list[str]
    is_split: bool = False
    is_quoted: bool = False


def expand_tilde(value: str, scope: ShellScope) -> str:
    """Return a value with `~` at its start as the home folder."""
    is_home = value[:2] in {"~", "~/"} and scope.variables.get("HOME")
    return scope.variables["HOME"][0] + value[1:] if is_home else value


def pieces_of(node: Node, scope: ShellScope, depth: int) -> Iterator[Piece]:
    """Yield the parts of a word."""
    kind = node.type
    if kind in {"command_name", "concatenation", "variable_assignment", "subscript"}:
        for child in node.children:
            yield from pieces_of(child, scope, depth)
    elif kind in {"string", "translated_string"}:
        yield from _quoted_pieces(node, scope, depth)
    elif kind == "raw_string":
        yield Piece(scope.count([text_of(node)[1:-1]]), is_quoted=True)
    elif kind == "ansi_c_string":
        escaped = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), text_of(node)[2:-1])
        yield Piece(scope.count([escaped]), is_quoted=True)
    elif kind in EXPANSIONS:
        yield Piece(scope.count(_expand(node, scope, depth, is_quoted=False)), is_split=True)
    elif kind in COMMANDS:
        yield Piece(scope.count([_run(node, scope)]), is_split=True)
    else:
        yield from _bare_pieces(node, scope, depth)


def _bare_pieces(node: Node, scope: ShellScope, depth: int) -> Iterator[Piece]:
    """Yield the parts of a word without quotes; the grammar takes some patterns as one."""
    text = text_of(node)
    if node.type in {"extglob_pattern", "regex"} and re.search(r"[$`\"']", text):
        parts = _operand_parts(text, scope, depth)
    else:
        parts = [PatternText(part, quoted) for quoted, part in _escapes(text)]
    for part in parts:
        yield Piece(scope.count([part.text]), is_quoted=part.is_quoted)


def _escapes(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text without quotes, and whether a backslash makes them letters."""
    start = 0
    for match in re.finditer(r"\\(.?)", text, re.DOTALL):
        if match.start() > start:
            yield False, text[start : match.start()]
        yield True, match[1].strip("\n")
        start = match.end()
    if start < len(text) or not text:
        yield False, text[start:]


def _run(node: Node, scope: ShellScope) -> str:
    """Return the output of a command substitution."""
    text = text_of(node)
    if text.startswith("$((") and text.endswith("))"):  # in a here-document, the grammar's mistake
        number = compute(text[3:-2], scope)
        return scope.unknown(text, *_names_in(text)) if number is None else str(number)
    if node.type != "command_substitution" or scope.calls > MAX_CALLS:
        return scope.unknown(text)
    return scope.substitute(node, scope)


def _quoted_pieces(node: Node, scope: ShellScope, depth: int) -> Iterator[Piece]:
    """Yield the values between double quotes; the text between expansions is a piece as well."""
    source, offset = node.text or b"", node.start_byte
    children = node.children
    first = next((i for i, child in enumerate(children) if child.type == '"'), 0)
    start = children[first].end_byte
    yield Piece([""], is_quoted=True)  # "" is a field too
    for child in children[first + 1 :]:
        if child.type == "string_content":
            continue
        # the grammar counts blanks before the last quote to the quote
        end = child.end_byte - 1 if child.type == '"' else child.start_byte
        text = source[start - offset : end - offset].decode("utf-8", "replace")
        text = re.sub(r'\\([$`"\\\n])', lambda m: m[1].strip("\n"), text)
        yield Piece(scope.count([text]), is_quoted=True)
        start = child.end_byte
        if child.type in EXPANSIONS:
            blanks = re.match(r"\s*", text_of(child))
            # the grammar counts them to the expansion
            yield Piece([blanks[0] if blanks else ""], is_quoted=True)
            values = _expand(child, scope, depth, is_quoted=True)
            yield Piece(scope.count(values), is_quoted=True)
        elif child.type in COMMANDS:
            yield Piece(scope.count([_run(child, scope)]), is_quoted=True)
        elif child.type != '"':
            for piece in pieces_of(child, scope, depth):
                yield Piece(piece.values, is_quoted=True)


def _expand(node: Node, scope: ShellScope, depth: int, *, is_quoted: bool) -> list[str]:
    """Return the items of an expansion; a mark where they are not known."""
    text = text_of(node).strip()
    scope.step()
    values: list[str] | None = None
    names: tuple[str, ...] = ()
    if node.type == "arithmetic_expansion" or (text.startswith("$((") and text.endswith("))")):
        inner = text[3:-2] if text.startswith("$((") else text[2:-1]
        number = compute(inner, scope)
        values = None if number is None else [str(number)]
        names = _names_in(text)
    elif node.type == "simple_expansion":
        values = _parameter(text[1:], scope, depth, is_quoted=is_quoted)
    elif text.endswith("}") and depth < MAX_DEPTH:
        values = _parameter(text[2:-1], scope, depth, is_quoted=is_quoted)
        names = _names_in(text[:40])[:1]
    return [scope.unknown(text, *names)] if values is None else values


def _names_in(text: str) -> tuple[str, ...]:
    names = re.findall(r"[A-Za-z_]\w*", text, re.ASCII)
    return tuple(dict.fromkeys(names))[:4]


class _ScopeNumbers:
    """The variables of a scope as numbers."""

    def __init__(self, scope: ShellScope) -> None:
        self.scope = scope

    def read(self, name: str) -> str | None:
        items = self.scope.variables.get(name)
        if items is None and name in self.scope.removed:
            return "0"
        if items is None:
            mark = self.scope.unknown(f"${name}", name, is_unset=True)
            self.scope.blame(mark)
            return None
        if items and is_unknown(items[0]):
            self.scope.blame(items[0])
            return None
        return unsigned(items[0]) or "0" if items else "0"

    def write(self, name: str, value: int) -> None:
        self.scope.set(name, [str(value)])


def compute(text: str, scope: ShellScope) -> int | None:
    """Return the value of an arithmetic expression, whose expansions are expanded first."""
    if re.search(r"[$`]", text):
        text = expand_text(text, scope)
        if is_unknown(text):
            scope.blame(text)
            return None
    return arithmetic(unsigned(text).replace('"', ""), _ScopeNumbers(scope))


def expand_text(text: str, scope: ShellScope) -> str:
    """Return a text as if it stood in double quotes; quotes inside it are dropped."""
    if len(text) > MAX_DEFAULT:
        return scope.unknown(text)
    return _expand_quoted(re.sub(r'(?<!\\)"', "", text), scope)


def expand_document(text: str, scope: ShellScope) -> str:
    """Return the text of a here-document, in which quotes are letters."""
    if not re.search(r"[$`\\]", text):
        return text
    return _expand_quoted(re.sub(r'(?<!\\)(\\*)"', lambda match: match[1] * 2 + '\\"', text), scope)


def _expand_quoted(text: str, scope: ShellScope) -> str:
    """Return the value of the text between two double quotes."""
    scope.step()
    scope.count([text])
    root = parse_bytes(b': "' + text.encode("utf-8", "replace") + b'"')
    words = root.children[0].children[1:] if root.children else []
    if root.has_error or len(words) != 1:
        return scope.unknown(text)
    with scope.reading_text():
        return "".join(" ".join(piece.values) for piece in pieces_of(words[0], scope, 0))


def _parameter(text: str, scope: ShellScope, depth: int, *, is_quoted: bool) -> list[str] | None:
    """Return the items of `${text}`; None if they are not known."""
    match = _PARAMETER.fullmatch(text)
    if match is None:
        return None
    prefix, name, index, operator, operand = match.groups()
    if prefix == "!":
        return _indirect(name, index, operator, scope, depth, is_quoted=is_quoted)
    items = items_of(name, index, scope)
    if prefix == "#":
        return _length(name, index, items) if not operator else None
    if operator in {"-", ":-", "=", ":=", "+", ":+", "?", ":?"}:
        return _with_default(match, items, scope, depth, is_quoted=is_quoted)
    if items is None:
        mark = scope.unknown(f"${name}", *_given_names(name), is_unset=True)
        is_argument = name.isdigit() and scope.knows_arguments
        return [""] if is_argument or name in scope.removed else [mark]
    if not operator:
        return [_separator(scope).join(items)] if is_quoted and "*" in {name, index} else items
    if any(map(is_unknown, items)) or operator == "@":
        return None
    if operator == ":":
        is_list = name in "@*" or index in {"@", "*"}
        numbers = [compute(part, scope) for part in operand.split(":")]
        return slice_items(items, numbers, is_list=is_list, has_name=name in "@*", scope=scope)
    parts = _operand_parts(operand, scope, depth)
    for item in items:
        scope.step(match_cost(len(operand), len(item), everywhere=operator[0] == "/"))
    return change_items(items, operator, parts)


def _separator(scope: ShellScope) -> str:
    """Return what stands between the items of `"${name[*]}"`: the first character of `$IFS`."""
    return (scope.variables.get("IFS") or [" "])[0][:1]


def _given_names(name: str) -> tuple[str, ...]:
    """Return the variable that a user can give for a parameter; none for an argument."""
    return (name,) if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else ()


def items_of(name: str, index: str | None, scope: ShellScope) -> list[str] | None:
    """Return the items of a variable, an argument or an array; None if it is not set."""
    if name in {"@", "*"}:
        return list(scope.arguments)
    if name == "#":
        return [str(len(scope.arguments))]
    if name == "0":
        return [scope.script] if scope.script else None
    if name.isdigit():
        return scope.arguments[int(name) - 1 : int(name)] or None
    if not _given_names(name):
        return None
    if index in {"@", "*"}:
        return scope.variables.get(name, None if name in scope.env else [])
    if index is None:
        items = scope.variables.get(name)
        return items[:1] or None if items is not None else None
    return _element(name, index, scope)


def _element(name: str, index: str, scope: ShellScope) -> list[str] | None:
    key = expand_text(index.strip("'\""), scope)
    if f"{name}[{key}]" in scope.variables:
        return scope.variables[f"{name}[{key}]"]
    items = scope.variables.get(name)
    number = compute(key, scope) if items else None
    if items is None or number is None or not -len(items) <= number < len(items):
        return None
    return [items[number]]


def _length(name: str, index: str | None, items: list[str] | None) -> list[str] | None:
    if items is None or any(map(is_unknown, items)):
        return None
    if name in {"@", "*"} or index in {"@", "*"}:
        return [str(len(items))]
    return [str(len(unsigned("".join(items))))]


def _indirect(
    name: str, index: str | None, operator: str | None, scope: ShellScope, depth: int, *,
    is_quoted: bool,
) -> list[str] | None:  # fmt: skip
    """Return the items of `${!name}`."""
    items = scope.variables.get(name)
    if index in {"@", "*"} and items is not None and not operator:
        return [str(number) for number in range(len(items))]
    if operator or index or not items or not _given_names(items[0]):
        return None
    return _parameter(items[0], scope, depth + 1, is_quoted=is_quoted)


def _with_default(
    match: re.Match[str], items: list[str] | None, scope: ShellScope, depth: int, *, is_quoted: bool
) -> list[str] | None:
    """Return the items of `${name:-default}` and of its relatives."""
    name, operator, default = match["name"], match["operator"], match["operand"]
    is_set = items is not None and (items != [] or name not in "@*")
    whole = "".join(items or ())
    if is_set and is_unknown(whole) and not unsigned(MARK.sub("", whole)):
        is_open = operator[0] == ":" or any(u.is_branch for u in scope.unknowns_in(whole))
        if is_open:  # it may be empty, or not set
            return None
    if operator[0] == ":":
        is_set = bool(whole)
    if operator[-1] == "+":
        return [_default(default, scope, depth, is_quoted=is_quoted)] if is_set else [""]
    if is_set:
        return items
    if operator[-1] == "?":
        return [scope.unknown(f"${name}", *_given_names(name), is_unset=True)]
    value = _default(default, scope, depth, is_quoted=is_quoted)
    if is_unknown(value) and _given_names(name):
        value = scope.settle(value, name)
    if operator[-1] == "=":
        scope.set(name, [value])
    return [value]


def _default(text: str, scope: ShellScope, depth: int, *, is_quoted: bool) -> str:
    """Return the value of a default, which is parsed alone: the grammar does not read all of them."""
    parts = _operand_parts(text, scope, depth, is_quoted=is_quoted)
    if not is_quoted:  # what a backslash or quotes protect is not split
        parts = [
            PatternText(p.text.replace(" ", BLANK) if p.is_quoted else p.text, False) for p in parts
        ]
    value = "".join(part.text for part in parts)
    return expand_tilde(value, scope) if not is_quoted and text[:1] == "~" else value


def _operand_parts(
    text: str, scope: ShellScope, depth: int, *, is_quoted: bool = False
) -> list[PatternText]:
    """Return the parts of the text behind the operator of `${...}`."""
    if not re.search(r"[$`\"'\\]", text):
        return [PatternText(text, False)]
    if len(text) > MAX_DEFAULT or depth >= MAX_DEPTH:
        return [PatternText(scope.unknown(text), False)]
    if is_quoted and not re.search(r"\$\(|`", text):
        text = '"' + re.sub(r'(?<!\\)"', "", text) + '"'
    scope.step()
    scope.count([text])
    root = parse_bytes(b": " + text.encode())
    statements = root.children
    if root.has_error or [node.type for node in statements] != ["command"]:
        return [PatternText(scope.unknown(text), False)]
    parts: list[PatternText] = []
    words = statements[0].children[1:]
    for i, word in enumerate(words):
        if i and word.start_byte != words[i - 1].end_byte:
            parts.append(PatternText(" ", False))
        with scope.reading_text():
            pieces = list(pieces_of(word, scope, depth + 1))
        for piece in pieces:
            parts += [PatternText(value, piece.is_quoted) for value in piece.values]
    return parts
