"""Integer arithmetic of bash: `$((...))`, `((...))` and the numbers of array subscripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

#: Characters of an expression, and levels of brackets and operators.
MAX_ARITHMETIC = 300
MAX_DEPTH = 20

_NAME = r"[A-Za-z_]\w*"
_SYMBOL = re.compile(
    r"\s*(?:(\d\w*)|([A-Za-z_]\w*)"
    r"|(<<=|>>=|\*\*|\+\+|--|&&|\|\||[-+*/%<>=!&|^]=|<<|>>|[-+*/%()<>!~?:=,&|^]))\s*",
    re.ASCII,
)
_LEVELS: dict[str, int] = {
    operator: level
    for level, operators in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %", "**"), 1
    )
    for operator in operators.split()
}
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%="})


class Numbers(Protocol):
    """The variables of an expression."""

    def read(self, name: str) -> str | None:
        """Return the value of a variable; None if it is not known."""

    def write(self, name: str, value: int) -> None:
        """Set a variable."""


def arithmetic(text: str, numbers: Numbers) -> int | None:
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
        value = _Expression(symbols, numbers).sequence(0)
    except ArithmeticError:
        return None
    return None if symbols else value


class _Expression:
    """The symbols of an expression that are not read yet, the next one last."""

    def __init__(self, symbols: list[str], numbers: Numbers) -> None:
        self.symbols = symbols
        self.numbers = numbers
        self.skips = 0  # levels of `a ? b : c`, `a && b` whose value is not needed

    def sequence(self, depth: int) -> int:
        value = self.assignment(depth)
        while self.takes(","):
            value = self.assignment(depth)
        return value

    def takes(self, symbol: str) -> bool:
        if self.symbols and self.symbols[-1] == symbol:
            self.symbols.pop()
            return True
        return False

    def assignment(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ArithmeticError
        if (
            len(self.symbols) > 1
            and self.symbols[-2] in _ASSIGNMENTS
            and _is_name(self.symbols[-1])
        ):
            name, operator = self.symbols.pop(), self.symbols.pop()
            value = self.assignment(depth + 1)
            if operator != "=":
                value = self.calculate(operator[0], self.value_of(name), value)
            return self.write(name, value)
        return self.choice(depth)

    def choice(self, depth: int) -> int:
        test = self.binary(1, depth)
        if not self.takes("?"):
            return test
        yes = self.unless(not test, lambda: self.assignment(depth + 1))
        if not self.takes(":"):
            raise ArithmeticError
        no = self.unless(bool(test), lambda: self.assignment(depth + 1))
        return yes if test else no

    def unless(self, skip: bool, read: Callable[[], int]) -> int:
        """Return the value of a part; its names need no values where its value is not needed."""
        self.skips += skip
        value = read()
        self.skips -= skip
        return value

    def binary(self, lowest: int, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ArithmeticError
        left = self.unary(depth)
        while self.symbols and _LEVELS.get(self.symbols[-1], 0) >= lowest:
            operator = self.symbols.pop()
            above = _LEVELS[operator] + (operator != "**")
            skip = (operator == "&&" and not left) or (operator == "||" and bool(left))
            right = self.unless(skip, lambda above=above: self.binary(above, depth + 1))  # type: ignore[misc]
            left = self.calculate(operator, left, right)
        return left

    def unary(self, depth: int) -> int:
        if depth > MAX_DEPTH or not self.symbols:
            raise ArithmeticError
        symbol = self.symbols.pop()
        if symbol in {"+", "-", "!", "~"}:
            number = self.unary(depth + 1)
            return {"+": number, "-": -number, "!": int(not number), "~": ~number}[symbol]
        if symbol in {"++", "--"} and self.symbols and _is_name(self.symbols[-1]):
            name = self.symbols.pop()
            return self.write(name, self.value_of(name) + (1 if symbol == "++" else -1))
        if symbol == "(":
            number = self.sequence(depth + 1)
            if not self.takes(")"):
                raise ArithmeticError
            return number
        if not (symbol[0].isdigit() or _is_name(symbol)):
            raise ArithmeticError
        value = self.value_of(symbol)
        if self.symbols and self.symbols[-1] in {"++", "--"} and _is_name(symbol):
            self.write(symbol, value + (1 if self.symbols.pop() == "++" else -1))
        return value

    def write(self, name: str, value: int) -> int:
        if not self.skips:
            self.numbers.write(name, value)
        return value

    def value_of(self, symbol: str) -> int:
        text = symbol if symbol[0].isdigit() else self.numbers.read(symbol)
        if self.skips:
            return 1
        # 010 is octal in bash
        if text is None or not re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", text.strip(), re.ASCII):
            raise ArithmeticError
        return int(text)

    def calculate(self, operator: str, left: int, right: int) -> int:
        if self.skips:
            return 1
        if operator == "**":
            number = left**right if 0 <= right < 64 else 1 << 64
        elif operator in {"/", "%"}:
            towards_zero = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            number = towards_zero if operator == "/" else left - right * towards_zero
        elif operator in {"<<", ">>"}:
            if not 0 <= right < 64:
                raise ArithmeticError
            number = left << right if operator == "<<" else left >> right
        else:
            number = int(_OPERATIONS[operator](left, right))
        if abs(number) >= 1 << 63:
            raise OverflowError
        return number


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}


def _is_name(symbol: str) -> bool:
    return re.fullmatch(_NAME, symbol, re.ASCII) is not None
