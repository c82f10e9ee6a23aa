r"""Commands with their arguments: fractions, roots, functions, fences, environments, accents."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.atoms import AtomParser, rows_as_cases
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import (
    INF,
    MINUS_ONE,
    ONE,
    PI,
    Node,
    divide,
    fn,
    mul,
    num,
    substitute,
)

_CONSTANTS: Mapping[str, Node] = {
    r"\pi": PI,
    r"\infty": INF,
    r"\emptyset": ("set",),
    r"\R": ("sym", "R"),
    r"\dots": ("sym", "..."),
}


class CommandParser(AtomParser):
    """The level of the parser for commands, which begin with a backslash."""

    def parse_command(self, token: Token) -> Node:
        """Parse a constant, a function, a letter, an accent, or a command of `_COMMANDS`."""
        name = token.text
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in vocabulary.FUNCTION_COMMANDS:
            return self._parse_function(vocabulary.FUNCTION_COMMANDS[name])
        if name == r"\Delta" and self.next.kind in ("word", "letter") and len(self.next.text) == 1:
            return self._parse_application(
                ("sym", f"Delta {self.advance().text}")
            )  # a change, not a product
        if name in vocabulary.LETTER_COMMANDS:
            return self._parse_application(("sym", name[1:]))
        read = _COMMANDS.get(name)
        if read is None:
            raise UnreadableError(f"unknown command {name}")
        return read(self, name)

    def parse_accent(self, name: str) -> Node:
        r"""Parse an accented name: `\overline{z}` differs from `z`, the vector `AB` from `BA`."""
        if name == r"\overrightarrow":
            start = self.position
            self.parse_argument()
            return ("sym", f"vec {self._raw_span(start, self.position)}")
        inside = self.parse_argument()
        if inside[0] == "sym" and self.is_next("(") and self._is_single_argument("f"):
            self.advance()
            return fn(f"{name[1:]} {inside[1]}", self.parse_group(")"))  # \dot{x}(0)
        return fn(name[1:], inside)

    def _raw_span(self, start: int, end: int) -> str:
        """Return the text of tokens without their braces."""
        return "".join(token.text for token in self.tokens[start:end] if token.text not in "{}")

    def parse_shape(self, name: str) -> Node:
        r"""Parse a shape: `\angle ABC` is `\angle CBA`; a triangle's letters may have any order."""
        start = self.position
        inside = self.parse_group("}") if self.accept("{") else self.parse_atom()
        while self.next.kind == "letter" and self.next.text.isupper():
            self.advance()
        letters = self._raw_span(start, self.position)
        if not (letters.isalpha() and letters.isupper()):
            return fn(name[1:], inside)
        if name == r"\triangle":
            letters = "".join(sorted(letters))
        return fn(name[1:], ("sym", min(letters, letters[::-1])))

    def parse_font(self, _: str) -> Node:
        """Parse the argument of a font, which does not change its meaning."""
        return self.parse_argument()

    def parse_number_set(self, name: str) -> Node:
        r"""Parse `\mathbb{R}`, with `^+` or `^*` after it."""
        letter = name[-2:-1]
        if self.accept("^"):
            letter += self.raw_text()
        return ("sym", letter if letter == "R" else f"set {letter}")

    def parse_fraction(self, _: str) -> Node:
        """Parse a fraction: two arguments."""
        start = self.position
        top = self.parse_argument()
        middle = self.position
        bottom = self.parse_argument()
        if all(part in _DIFFERENTIALS for part in (_leading_name(top), _leading_name(bottom))):
            return (
                "sym",
                f"{self._raw_span(start, middle)}/{self._raw_span(middle, self.position)}",
            )
        return divide(top, bottom)

    def parse_binomial(self, _: str) -> Node:
        """Parse a binomial coefficient: two arguments."""
        return fn("binom", self.parse_argument(), self.parse_argument())

    def _parse_function(self, name: str) -> Node:
        r"""Parse `\sin x`, `\sin^2 x`, `\sin^{-1} x` or `\log_2 8`."""
        base = (
            self._parse_log_base() if name in ("log", "max", "min") and self.accept("_") else None
        )
        exponent = self.parse_argument(script=True) if self.accept("^") else None
        inside = self._parse_operand()
        if exponent == MINUS_ONE and name in vocabulary.INVERSE_FUNCTIONS:
            return fn(vocabulary.INVERSE_FUNCTIONS[name], inside)
        if name == "log" and base is not None:
            node = divide(fn("ln", inside), fn("ln", base))
        elif name == "cbrt":
            node = fn("root", inside, num(3))
        else:
            node = fn("ln" if name == "log" else name, *_arguments(name, inside))
        if name in ("max", "min") and (base is not None or len(node) == 3):
            node = fn(f"{name} of", *node[2:], *(() if base is None else (base,)))
        return node if exponent is None else ("pow", node, exponent)

    def _parse_log_base(self) -> Node:
        r"""Parse the base of a logarithm: 2 in `\log_28`, but 10 in `\log_10 100`."""
        operand = self.peek(1).kind in ("num", "word", "letter", "cmd") or self.peek(1).is_sign(
            "(", "{", "^"
        )
        return self.parse_argument(script=operand)

    def _parse_operand(self) -> Node:
        """Parse a function's argument; without brackets it ends at the next sign."""
        if self.is_next("("):
            return self.parse_atom()  # because a power after it belongs to the function
        if self.accept("{"):
            return self.parse_group("}")
        node = self.parse_factor()
        while self.next.kind in ("num", "word", "letter", "cmd") and self.starts_factor():
            if self.next.kind == "cmd" and self.next.text in vocabulary.FUNCTION_COMMANDS:
                break
            node = mul(node, self.parse_power())
        while self.accept("/"):
            node = divide(node, self.parse_factor())
        return node

    def parse_root(self, _: str) -> Node:
        """Parse a root, of degree two without a degree in brackets."""
        degree = num(2)
        if self.accept("["):
            degree = self._parse_inside()
            self.expect("]")
        return _root(self.parse_power() if self.is_next("(") else self.parse_argument(), degree)

    def parse_root_sign(self, _: str) -> Node:
        """Parse the argument of the sign `√`: the whole number, bracket or name after it."""
        return _root(self.parse_atom(), num(2))

    def parse_fence(self, name: str) -> Node:
        """Parse a floor, a ceiling or a norm, or a tuple or a mean in angle brackets."""
        function, closing = vocabulary.FENCES[name]
        inside = self._parse_inside()
        if closing != r"\rangle" or not self.accept(">"):
            self.expect(closing)
        if function == "mean" and inside[0] == "list":
            return ("tuple", *inside[1:])
        return fn(function, inside)

    def parse_environment(self, _: str) -> Node:
        """Parse a matrix, a determinant, a piecewise function, or rows of formulas."""
        kind = self.raw_text()
        if kind not in vocabulary.MATRIX_ENVIRONMENTS and kind not in vocabulary.ROW_ENVIRONMENTS:
            raise UnreadableError(f"unknown environment {kind}")
        if kind == "array" and self.is_next("{"):
            self.raw_text()
        if kind in vocabulary.ROW_ENVIRONMENTS and "cases" not in kind:  # where `&` only aligns
            rest = self.tokens[self.position :]
            self.tokens[self.position :] = [token for token in rest if not token.is_sign("&")]
        rows = self._parse_rows(by_cell=kind in vocabulary.MATRIX_ENVIRONMENTS or "cases" in kind)
        self.raw_text()
        if kind in vocabulary.ROW_ENVIRONMENTS:
            return rows_as_cases(rows)
        node: Node = ("matrix", *(("row", *row) for row in rows))
        return fn("det", node) if kind in ("vmatrix", "Vmatrix") else node

    def _parse_rows(self, *, by_cell: bool) -> list[tuple[Node, ...]]:
        rows: list[tuple[Node, ...]] = [()]
        bars, self.open_bars = self.open_bars, 0
        self.open_brackets += 1
        while not self.accept(r"\end"):
            if self.next.kind == "end":
                raise UnreadableError("an environment is not closed")
            if self.accept("\\\\"):
                rows.append(())
            elif not self.accept("&", r"\hline", ",", ";", "."):
                rows[-1] = (*rows[-1], self.parse_cell() if by_cell else self.parse_relation())
        self.open_brackets -= 1
        self.open_bars = bars
        return [row for row in rows if row]

    def parse_cell(self) -> Node:
        """Parse an entry of a matrix, or a condition after `if`."""
        if (
            self.next.kind in ("text", "word", "han")
            and self.next.text.casefold() in vocabulary.CLAUSE_OPENERS
        ):
            if self.advance().text.casefold() in ("otherwise", "else", "其他"):
                return ("sym", "otherwise")
            self.accept("&")
        return self.parse_relation()

    def parse_big_operator(self, name: str) -> Node:
        r"""Parse an operator such as `\sum_{k=1}^{n} k`, which is never evaluated."""
        limits = [self.raw_text() for _ in range(2) if self.accept("_", "^")]
        body = self.parse_product()
        bound = limits[0][:1] if limits and limits[0][1:2] == "=" else ""
        if bound:  # a bound variable may have any name
            body = substitute(body, {("sym", bound): ("sym", "bound")})
            limits[0] = limits[0][1:]
        return fn(name, body, *(("text", limit) for limit in limits))


_DIFFERENTIALS = frozenset({"d", "partial"})


def _leading_name(node: Node) -> str:
    """Return the name at the start of a product or of a power's base; "" without one."""
    first: Node = node[1] if node[0] == "mul" else node
    first = first[1] if first[0] == "pow" else first
    return str(first[1]) if first[0] == "sym" and node[0] in ("mul", "sym", "pow") else ""


def _root(inside: Node, degree: Node) -> Node:
    if degree == num(2):
        return fn("sqrt", inside)
    odd = degree[0] == "num" and degree[1].denominator == 1 and degree[1] % 2 == 1
    return fn("root", inside, degree) if odd else ("pow", inside, divide(ONE, degree))


def _arguments(name: str, inside: Node) -> tuple[Node, ...]:
    r"""Return the arguments of a function: `\gcd(a, b)` has two, `\sin(x)` has one."""
    if inside[0] in ("list", "tuple", "set") and name in vocabulary.MULTI_ARGUMENT_FUNCTIONS:
        return inside[1:]
    return (inside,)


_COMMANDS: Mapping[str, Callable[[CommandParser, str], Node]] = {
    **dict.fromkeys(vocabulary.ACCENTS, CommandParser.parse_accent),
    **dict.fromkeys(vocabulary.SHAPE_COMMANDS, CommandParser.parse_shape),
    **dict.fromkeys(vocabulary.FONT_COMMANDS, CommandParser.parse_font),
    **dict.fromkeys(vocabulary.FENCES, CommandParser.parse_fence),
    **dict.fromkeys(vocabulary.UNEVALUATED_OPERATORS, CommandParser.parse_big_operator),
    **{rf"\mathbb{{{letter}}}": CommandParser.parse_number_set for letter in "RZNQCPEFKDH"},
    r"\frac": CommandParser.parse_fraction,
    r"\binom": CommandParser.parse_binomial,
    r"\sqrt": CommandParser.parse_root,
    r"\surd": CommandParser.parse_root_sign,
    r"\{": CommandParser.parse_set,
    r"\begin": CommandParser.parse_environment,
}
