r"""Commands with their arguments: fractions, roots, functions, fences, environments, marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rewardkit.answers.reading import names
from rewardkit.answers.reading.atoms import Atoms, rows_as_cases
from rewardkit.answers.reading.tokens import Token, UnreadableError
from rewardkit.answers.reading.tree import (
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


class Commands(Atoms):
    """The part of the parser that reads what begins with a backslash."""

    def read_command(self, token: Token) -> Node:
        """A constant, a function, a letter, a mark above a name, or a command of `_COMMANDS`."""
        name = token.text
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in names.FUNCTIONS:
            return self._function(names.FUNCTIONS[name])
        if name == r"\Delta" and self.next.kind in ("word", "letter") and len(self.next.text) == 1:
            return self._applied(("sym", f"Delta {self.take().text}"))  # a change, not a product
        if name in names.LETTERS:
            return self._applied(("sym", name[1:]))
        read = _COMMANDS.get(name)
        if read is None:
            raise UnreadableError(f"{name} is not known")
        return read(self, name)

    def read_mark(self, name: str) -> Node:
        r"""`\overline{z}` is another name than `z`; a vector's name is its letters in order."""
        if name == r"\overrightarrow":
            start = self.at
            self.argument()
            return ("sym", f"vec {self._spelled(start, self.at)}")
        inside = self.argument()
        if inside[0] == "sym" and self.is_next("(") and self._single_argument("f"):
            self.take()
            return fn(f"{name[1:]} {inside[1]}", self.group(")"))  # \dot{x}(0)
        return fn(name[1:], inside)

    def _spelled(self, start: int, end: int) -> str:
        """The text of tokens without their braces."""
        return "".join(token.text for token in self.tokens[start:end] if token.text not in "{}")

    def read_shape(self, name: str) -> Node:
        r"""`\angle ABC` is `\angle CBA`; a triangle's letters stand in any order, a polygon's do not."""
        start = self.at
        inside = self.group("}") if self.accept("{") else self.atom()
        while self.next.kind == "letter" and self.next.text.isupper():
            self.take()
        letters = self._spelled(start, self.at)
        if not (letters.isalpha() and letters.isupper()):
            return fn(name[1:], inside)
        if name == r"\triangle":
            letters = "".join(sorted(letters))
        return fn(name[1:], ("sym", min(letters, letters[::-1])))

    def read_font(self, _: str) -> Node:
        """What a font sets is the same name."""
        return self.argument()

    def read_number_set(self, name: str) -> Node:
        r"""`\mathbb{R}`, with `^+` or `^*` behind it."""
        letter = name[-2:-1]
        if self.accept("^"):
            letter += self.flat()
        return ("sym", letter if letter == "R" else f"set {letter}")

    def read_fraction(self, _: str) -> Node:
        """A fraction: two arguments."""
        start = self.at
        top = self.argument()
        middle = self.at
        bottom = self.argument()
        if all(part in _DIFFERENTIALS for part in (_first_name(top), _first_name(bottom))):
            return ("sym", f"{self._spelled(start, middle)}/{self._spelled(middle, self.at)}")
        return divide(top, bottom)

    def read_binomial(self, _: str) -> Node:
        """A binomial coefficient: two arguments."""
        return fn("binom", self.argument(), self.argument())

    def _function(self, name: str) -> Node:
        r"""`\sin x`, `\sin^2 x`, `\sin^{-1} x`, `\log_2 8`."""
        base = self._base() if name in ("log", "max", "min") and self.accept("_") else None
        exponent = self.argument(script=True) if self.accept("^") else None
        inside = self._operand()
        if exponent == MINUS_ONE and name in names.INVERSE:
            return fn(names.INVERSE[name], inside)
        if name == "log" and base is not None:
            node = divide(fn("ln", inside), fn("ln", base))
        elif name == "cbrt":
            node = fn("root", inside, num(3))
        else:
            node = fn("ln" if name == "log" else name, *_arguments(name, inside))
        if name in ("max", "min") and (base is not None or len(node) == 3):
            node = fn(f"{name} of", *node[2:], *(() if base is None else (base,)))
        return node if exponent is None else ("pow", node, exponent)

    def _base(self) -> Node:
        r"""The base of a logarithm: of `\log_28` the first digit, of `\log_10 100` the number."""
        operand = self.ahead(1).kind in ("num", "word", "letter", "cmd") or self.ahead(1).is_sign(
            "(", "{", "^"
        )
        return self.argument(script=operand)

    def _operand(self) -> Node:
        """A function's argument without brackets reaches to the next sign."""
        if self.is_next("("):
            return self.atom()  # a power behind it is the function's
        if self.accept("{"):
            return self.group("}")
        node = self.factor()
        while self.next.kind in ("num", "word", "letter", "cmd") and self.starts_factor():
            if self.next.kind == "cmd" and self.next.text in names.FUNCTIONS:
                break
            node = mul(node, self.power())
        while self.accept("/"):
            node = divide(node, self.factor())
        return node

    def read_root(self, _: str) -> Node:
        """A root, of degree two where no degree stands in brackets."""
        degree = num(2)
        if self.accept("["):
            degree = self._inside()
            self.expect("]")
        return _root(self.power() if self.is_next("(") else self.argument(), degree)

    def read_root_sign(self, _: str) -> Node:
        """`√15`: the whole number, bracket or name behind the sign."""
        return _root(self.atom(), num(2))

    def read_fence(self, name: str) -> Node:
        """A floor, a ceiling or a norm; a tuple or a mean in angle brackets."""
        function, closing = names.FENCES[name]
        inside = self._inside()
        if closing != r"\rangle" or not self.accept(">"):
            self.expect(closing)
        if function == "mean" and inside[0] == "list":
            return ("tuple", *inside[1:])
        return fn(function, inside)

    def read_environment(self, _: str) -> Node:
        """A matrix or a determinant of any bracket, a piecewise function, or rows of formulas."""
        kind = self.flat()
        if kind not in names.MATRICES and kind not in names.ROWS:
            raise UnreadableError(f"{kind} is not read")
        if kind == "array" and self.is_next("{"):
            self.flat()
        if kind in names.ROWS and "cases" not in kind:  # `&` only aligns
            rest = self.tokens[self.at :]
            self.tokens[self.at :] = [token for token in rest if not token.is_sign("&")]
        rows = self._rows(by_cell=kind in names.MATRICES or "cases" in kind)
        self.flat()
        if kind in names.ROWS:
            return rows_as_cases(rows)
        node: Node = ("matrix", *(("row", *row) for row in rows))
        return fn("det", node) if kind in ("vmatrix", "Vmatrix") else node

    def _rows(self, *, by_cell: bool) -> list[tuple[Node, ...]]:
        rows: list[tuple[Node, ...]] = [()]
        bars, self.bars = self.bars, 0
        self.brackets += 1
        while not self.accept(r"\end"):
            if self.next.kind == "end":
                raise UnreadableError("an environment is not closed")
            if self.accept("\\\\"):
                rows.append(())
            elif not self.accept("&", r"\hline", ",", ";", "."):
                rows[-1] = (*rows[-1], self.cell() if by_cell else self.relation())
        self.brackets -= 1
        self.bars = bars
        return [row for row in rows if row]

    def cell(self) -> Node:
        """An entry of a matrix, or a condition behind `if`."""
        if self.next.kind in ("text", "word", "han") and self.next.text.casefold() in names.SCOPE:
            if self.take().text.casefold() in ("otherwise", "else", "其他"):
                return ("sym", "otherwise")
            self.accept("&")
        return self.relation()

    def read_operator(self, name: str) -> Node:
        r"""`\sum_{k=1}^{n} k` and its like, kept as they stand."""
        limits = [self.flat() for _ in range(2) if self.accept("_", "^")]
        body = self.product()
        bound = limits[0][:1] if limits and limits[0][1:2] == "=" else ""
        if bound:  # its name says nothing
            body = substitute(body, {("sym", bound): ("sym", "bound")})
            limits[0] = limits[0][1:]
        return fn(name, body, *(("text", limit) for limit in limits))


_DIFFERENTIALS = frozenset({"d", "partial"})


def _first_name(node: Node) -> str:
    """The name a product begins with, the base of a power too; "" without one."""
    first: Node = node[1] if node[0] == "mul" else node
    first = first[1] if first[0] == "pow" else first
    return str(first[1]) if first[0] == "sym" and node[0] in ("mul", "sym", "pow") else ""


def _root(inside: Node, degree: Node) -> Node:
    if degree == num(2):
        return fn("sqrt", inside)
    odd = degree[0] == "num" and degree[1].denominator == 1 and degree[1] % 2 == 1
    return fn("root", inside, degree) if odd else ("pow", inside, divide(ONE, degree))


def _arguments(name: str, inside: Node) -> tuple[Node, ...]:
    r"""`\gcd(a, b)` has two arguments, `\sin(x)` one."""
    if inside[0] in ("list", "tuple", "set") and name in names.SEVERAL_ARGUMENTS:
        return inside[1:]
    return (inside,)


_COMMANDS: Mapping[str, Callable[[Commands, str], Node]] = {
    **dict.fromkeys(names.MARKS, Commands.read_mark),
    **dict.fromkeys(names.SHAPES, Commands.read_shape),
    **dict.fromkeys(names.FONTS, Commands.read_font),
    **dict.fromkeys(names.FENCES, Commands.read_fence),
    **dict.fromkeys(names.NOT_EVALUATED, Commands.read_operator),
    **{rf"\mathbb{{{letter}}}": Commands.read_number_set for letter in "RZNQCPEFKDH"},
    r"\frac": Commands.read_fraction,
    r"\binom": Commands.read_binomial,
    r"\sqrt": Commands.read_root,
    r"\surd": Commands.read_root_sign,
    r"\{": Commands.read_set,
    r"\begin": Commands.read_environment,
}
