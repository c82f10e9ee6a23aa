"""What the words of a script stand for: variables, defaults, arrays, integer arithmetic.

Within limits, and with nothing run: a command substitution, or a variable that the script does not
set, stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell_words import Part, Word, parts_inside

#: Characters of all values of a script once expanded.
MAX_EXPANDED = 4_000_000

#: `${x:-${y:-...}}` and brackets in arithmetic; characters of an arithmetic expression.
MAX_DEPTH = 20
MAX_ARITHMETIC = 300

#: Different expansions that are remembered as unresolved.
MAX_UNRESOLVED = 200

_NAME = r"[A-Za-z_]\w*"
_EXPANSION = re.compile(
    rf"({_NAME})(?:\[([@*]|\d{{1,6}})\])?(?:(:?)([-=+])(.*))?", re.DOTALL | re.ASCII
)
_SYMBOL = re.compile(rf"\s*(?:(\d+|\*\*|[-+*/%()])|\$?({_NAME})|\$\{{({_NAME})\}})\s*", re.ASCII)
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 3}


@dataclass
class Scope:
    """What is known at a line of a script.

    Attributes:
        variables: name -> its items; a plain variable has one.
        used: names that were asked for.
        unresolved: expansions that stayed as they are, in order.
        arguments: whether the script's own arguments were asked for (`"$@"`).
    """

    variables: dict[str, list[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    unresolved: dict[str, None] = field(default_factory=dict)
    arguments: bool = False
    spent: int = 0

    def spend(self, values: list[str]) -> list[str]:
        """Count the length of values.

        Raises:
            DataError: it is too much in sum.
        """
        self.spent += sum(map(len, values)) + len(values) + 1
        if self.spent > MAX_EXPANDED:
            raise DataError(f"the script's values expand to more than {MAX_EXPANDED:,} characters.")
        return values


def value_of(word: Word, scope: Scope) -> str:
    """A word as the right side of an assignment: one text, blanks kept.

    Raises:
        DataError: the script's values are too long in sum.
    """
    return "".join(" ".join(_values(part, scope)) for part in word.parts)


def fields_of(word: Word, scope: Scope) -> list[str]:
    """A word as the arguments it becomes: none, one or, unquoted or of an array, many.

    Raises:
        DataError: the script's values are too long in sum.
    """
    fields: list[list[str]] = []
    for part in word.parts:
        values = _values(part, scope)
        if part.kind == "text" or part.quoted or values == [part.raw]:
            _append(fields, values)
        else:
            _append_split(fields, " ".join(values))
    return ["".join(chunks) for chunks in fields if chunks]


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


def _values(part: Part, scope: Scope, depth: int = 0) -> list[str]:
    """The items of a part; itself as written where they are not known."""
    found: list[str] | None
    if part.kind == "text":
        found = [part.text]
    elif part.kind == "variable" and depth < MAX_DEPTH:
        found = _variable(part.text, scope, depth)
    elif part.kind == "arithmetic":
        number = arithmetic(part.text, scope)
        found = None if number is None else [str(number)]
    else:
        found = None
    if found is None:
        if len(scope.unresolved) < MAX_UNRESOLVED:
            scope.unresolved[part.raw] = None
        found = [part.raw]
    return scope.spend(found)


def _variable(text: str, scope: Scope, depth: int) -> list[str] | None:
    """The items of `${text}`; None if the script does not say."""
    if text in {"@", "*"} or text.startswith("@:"):
        scope.arguments = True
        return []
    match = _EXPANSION.fullmatch(text)
    if match is None:
        return None
    name, index, colon, operator, default = match.groups()
    scope.used.add(name)
    items = scope.variables.get(name)
    if items is not None and index not in {"@", "*"}:
        items = items[int(index or 0) :][:1]
    given = bool(items) and (not colon or any(items or ()))
    if operator == "+":
        return _default(default, scope, depth) if given else [""]
    if given or not operator:
        return items
    found = _default(default, scope, depth)
    if operator == "=":
        scope.variables[name] = found
    return found


def _default(text: str, scope: Scope, depth: int) -> list[str]:
    inner = (_values(part, scope, depth + 1) for part in parts_inside(text))
    return ["".join(" ".join(values) for values in inner)]


def arithmetic(text: str, scope: Scope) -> int | None:
    """The integer that `$((text))` is; None if it is not known, or nothing that bash computes.

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
    scope.used.update(symbols)
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
        left = _calculated(operator, left, _binary(symbols, above, names, depth + 1))
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


def _calculated(operator: str, left: int, right: int) -> int:
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
