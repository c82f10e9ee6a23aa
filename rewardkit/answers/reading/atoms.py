r"""Atoms: numbers, names, words, brackets, and commands with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from rewardkit.answers.reading import names
from rewardkit.answers.reading.reader import Reader
from rewardkit.answers.reading.tokens import Token, UnreadableError
from rewardkit.answers.reading.tree import INF, MINUS_ONE, ONE, PI, Node, divide, fn, mul, num

_CONSTANTS: Mapping[str, Node] = {
    r"\pi": PI,
    r"\infty": INF,
    r"\emptyset": ("set",),
    r"\R": ("sym", "R"),
    r"\dots": ("sym", "..."),
}
_LETTER_CONSTANTS: Mapping[str, Node] = {"e": ("const", "e"), "i": ("const", "i")}


class Atoms(Reader):
    """The part of the parser that reads what stands between the operators."""

    def argument(self, *, script: bool = False) -> Node:
        """What a command or `^` applies to: a group in braces, or one atom.

        Of digits a command takes the first (`\\frac12`); a script takes them all (`2^10`).
        """
        if self.accept("{"):
            return self.group("}")
        if script and self.is_next("+", "-"):
            return self.factor()
        if self.next.kind == "num" and not script:
            return self._first_digit()
        return self.atom()

    def _first_digit(self) -> Node:
        token = self.next
        if len(token.text) == 1 or not token.text.isdecimal():
            return self.atom()
        self.tokens[self.at] = Token("num", token.text[1:])
        return num(int(token.text[0]))

    def group(self, closing: str) -> Node:
        """What stands up to a closing sign, which is read too."""
        self.descend()
        bars, self.bars = self.bars, 0
        self.brackets += 1
        node = self.items()
        if self.accept(r"\choose"):
            node = fn("binom", node, self.items())
        self.brackets -= 1
        self.bars = bars
        self.expect(closing)
        self.depth -= 1
        return node

    def atom(self) -> Node:
        """A number, a name, a bracket, or a command with its arguments."""
        self.descend()
        token = self.take()
        node = _BY_KIND[token.kind](self, token)
        self.depth -= 1
        return node

    # --- numbers

    def read_number(self, token: Token) -> Node:
        """A plain number, in scientific notation, or a decimal whose period stands under a mark."""
        text = token.text.replace(",", "")
        if self.is_next(".") and self.ahead(1).text in (r"\overline", r"\dot"):
            self.at += 1
            return self._period(text + ".")
        whole, _, places = text.partition(".")
        if places and self.next.text in (r"\overline", r"\dot"):
            return self._period(text)
        if "e" in text.lower():
            mantissa, _, exponent = text.lower().partition("e")
            digits = len(mantissa.partition(".")[2])
            return num(Fraction(text), max(0, digits - int(exponent)))
        return num(Fraction(text), len(places) or None)

    def read_repeating(self, token: Token) -> Node:
        """`0.1(6)`."""
        before, _, period = token.text.rstrip(")").partition("(")
        return _repeating(before, period)

    def _period(self, before: str) -> Node:
        r"""`0.1\overline{6}`, and `0.\dot{1}4285\dot{7}`, whose marks stand at both ends."""
        marks = self.take().text
        digits = self.flat()
        if marks == r"\dot" and self.next.kind == "num" and self.ahead(1).text == r"\dot":
            digits += self.take().text
            self.take()
            digits += self.flat()
        elif marks == r"\dot" and self.accept(r"\dot"):
            digits += self.flat()
        if not (digits.isdecimal() and digits.isascii()):
            raise UnreadableError("no digits under a mark")
        return _repeating(before, digits)

    # --- names and words

    def read_word(self, token: Token) -> Node:
        """Letters in a row: a name, a product of names, or a word, which is no factor."""
        text = token.text
        if len(text) == 1:
            return self._applied(self._letter(text))
        if self.is_product(token):
            self.tokens[self.at - 1 : self.at] = [Token("letter", char) for char in text]
            return self._letter(text[0])
        return self.read_text(token)

    def is_product(self, token: Token) -> bool:
        """Whether letters in a row are names that are multiplied: `xy`, `ABC`, not `cm` or `even`."""
        text = token.text
        if token.kind != "word" or text in names.SHORT_WORDS or not text.isascii():
            return False
        beside = self.ahead(0) if self.tokens[self.at] is not token else self.ahead(1)
        attached = beside.is_sign("^", "_")
        return len(text) == 2 or (len(text) <= 4 and (text.isupper() or attached))

    def read_letter(self, token: Token) -> Node:
        """One of several letters in a row."""
        return self._applied(self._letter(token.text))

    def read_text(self, token: Token) -> Node:
        """A word of plain text; one letter is the same as in mathematics."""
        text = token.text
        if len(text) == 1 and text.isalpha() and text.isascii():
            return self._applied(self._letter(text))
        if self.next.kind == "num" or self.is_next("^", "_") or (self.next.kind in ("word", "cmd") and self.starts_factor()):
            raise UnreadableError("words before a value are a sentence")
        return ("sym", text.casefold())

    def _letter(self, letter: str) -> Node:
        return _LETTER_CONSTANTS.get(letter, ("sym", letter))

    def _applied(self, name: Node) -> Node:
        """`f(x)`: a name that is used as a function's, with a bracket right behind it."""
        if name[0] != "sym" or not self.is_next("(", "'"):
            return name
        prime = 0
        while self.accept("'"):
            prime += 1
        if prime:
            name = ("sym", name[1] + "'" * prime)
        if self.is_next("(") and (name[1][0] in "fghFGH" or self._single_argument(name[1][0])):
            self.take()
            inside = self.group(")")
            arguments = inside[1:] if inside[0] == "list" else (inside,)
            if any(part[0] in ("rel", "where", "or", "and") for part in arguments):
                raise UnreadableError("a condition is no argument")
            return fn(name[1], *arguments)
        return name

    def _single_argument(self, name: str) -> bool:
        """Whether a bracket holds one name or number: `T(10)`, against `p(1-p)`; or a point."""
        inside, closing = self.ahead(1), self.ahead(2)
        simple = inside.kind == "num" or (inside.kind in ("word", "letter") and len(inside.text) == 1)
        usual = name.isupper() or name in "pqruvwy" or inside.text in ("t", "0")
        return simple and usual and closing.is_sign(")", ",")

    # --- brackets

    def read_sign(self, token: Token) -> Node:
        """A bracket, or a sign that begins no atom."""
        text = token.text
        if text == "{":
            return self.group("}")
        if text in "([":
            return self._bracket(text)
        if text == "]":  # ]a, b[ : a French open interval
            return self._bracket("(")
        if text == "|":
            return self._absolute()
        raise UnreadableError(f"unexpected {text!r}")

    def _absolute(self) -> Node:
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect("|")
        return fn("abs", node)

    def _bracket(self, opening: str) -> Node:
        """`(a, b)` is a tuple that may be an interval; other brackets make an interval."""
        inside = self._inside()
        closing = self.take()
        if not closing.is_sign(")", "]", "["):
            raise UnreadableError("a bracket is not closed")
        items = inside[1:] if inside[0] == "list" else (inside,)
        if len(items) == 1:
            return inside
        if len(items) == 2 and not (opening == "(" and closing.text == ")"):
            return ("interval", *items, opening == "(", closing.text != "]")
        return ("tuple", *items)

    def _inside(self) -> Node:
        self.descend()
        bars, self.bars = self.bars, 0
        self.brackets += 1
        node = self.items()
        self.brackets -= 1
        self.bars = bars
        self.depth -= 1
        return node

    def read_set(self, _: str) -> Node:
        r"""`\{1, 2\}`, `\{x \mid x < 3\}`, or the rows of a piecewise function."""
        if self.accept(r"\}"):
            return ("set",)
        self.bars += 1
        self.brackets += 1
        first = self.items()
        self.brackets -= 1
        self.bars -= 1
        if self.accept("|", r"\mid", ":"):
            return ("builder", first, self.group(r"\}"))
        if first[0] == "matrix" and not self.is_next(r"\}"):
            return rows_as_cases([row[1:] for row in first[1:]])
        self.expect(r"\}")
        return ("set", *(first[1:] if first[0] in ("list", "or", "and") else (first,)))

    # --- commands

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
            letters = "".join(t.text for t in self.tokens[start : self.at] if t.text not in "{}")
            return ("sym", f"vec {letters}")
        return fn(name[1:], self.argument())

    def read_shape(self, name: str) -> Node:
        r"""`\angle ABC`, `\triangle ABC`."""
        if self.accept("{"):
            return fn(name[1:], self.group("}"))
        node = self.atom()
        while self.next.kind in ("word", "letter") and self.next.text.isupper() and not self.next.gap:
            node = mul(node, self.atom())
        return fn(name[1:], node)

    def read_font(self, _: str) -> Node:
        """What a font sets is the same name."""
        return self.argument()

    def read_number_set(self, name: str) -> Node:
        r"""`\mathbb{R}`, with `^+` or `^*` behind it."""
        letter = name[-2:-1]
        if self.accept("^"):
            letter += self.flat()
        return ("sym", letter)

    def read_fraction(self, _: str) -> Node:
        """A fraction: two arguments."""
        start = self.at
        top = self.argument()
        middle = self.at
        bottom = self.argument()
        if all(part in _DIFFERENTIALS for part in (_first_name(top), _first_name(bottom))):
            name = "".join(t.text for t in self.tokens[start : self.at] if t.text not in "{}")
            return ("sym", f"{name[: middle - start]}/{name[middle - start :]}")
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
        return node if exponent is None else ("pow", node, exponent)

    def _base(self) -> Node:
        r"""The base of a logarithm: of `\log_28` the first digit, of `\log_10 100` the number."""
        operand = self.ahead(1).kind in ("num", "word", "letter", "cmd") or self.ahead(1).is_sign("(", "{", "^")
        return self.argument(script=operand)

    def _operand(self) -> Node:
        """A function's argument without brackets reaches to the next sign."""
        if self.is_next("("):
            return self.power()
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
        """A floor, a ceiling or a norm."""
        function, closing = names.FENCES[name]
        inside = self._inside()
        self.expect(closing)
        return fn(function, inside)

    def read_environment(self, _: str) -> Node:
        """A matrix or a determinant of any bracket, a piecewise function, or rows of formulas."""
        kind = self.flat()
        if kind not in names.MATRICES and kind not in names.ROWS:
            raise UnreadableError(f"{kind} is not read")
        if kind == "array" and self.is_next("{"):
            self.flat()
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
            word = self.take().text.casefold()
            if word == "otherwise":
                return ("sym", "otherwise")
        return self.relation()

    def read_operator(self, name: str) -> Node:
        r"""`\sum_{k=1}^{n} k` and its like, kept as they stand."""
        limits = [self.flat() for _ in range(2) if self.accept("_", "^")]
        return fn(name, self.product(), *(("text", limit) for limit in limits))


def rows_as_cases(rows: list[tuple[Node, ...]]) -> Node:
    """Rows of a value and its condition are a piecewise function; rows of formulas are a list."""
    if rows and all(len(row) == 2 for row in rows):
        return ("cases", *(("branch", *row) for row in rows))
    if rows and all(len(row) == 1 for row in rows):
        return ("and", *(row[0] for row in rows)) if len(rows) > 1 else rows[0][0]
    raise UnreadableError("rows of different lengths")


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


def _repeating(before: str, period: str) -> Node:
    places = len(before.partition(".")[2])
    tail = Fraction(int(period), (10 ** len(period) - 1) * 10**places)
    return num(Fraction(before + "0" if before.endswith(".") else before) + tail)


def _arguments(name: str, inside: Node) -> tuple[Node, ...]:
    r"""`\gcd(a, b)` has two arguments, `\sin(x)` one."""
    if inside[0] in ("list", "tuple", "set") and name in names.SEVERAL_ARGUMENTS:
        return inside[1:]
    return (inside,)


def _nothing(_: Atoms, token: Token) -> Node:
    raise UnreadableError(f"nothing to read at {token.text!r}")


_BY_KIND: Mapping[str, Callable[[Atoms, Token], Node]] = {
    "num": Atoms.read_number,
    "rep": Atoms.read_repeating,
    "word": Atoms.read_word,
    "letter": Atoms.read_letter,
    "text": Atoms.read_text,
    "han": Atoms.read_text,
    "cmd": Atoms.read_command,
    "op": Atoms.read_sign,
    "end": _nothing,
}
_COMMANDS: Mapping[str, Callable[[Atoms, str], Node]] = {
    **dict.fromkeys(names.MARKS, Atoms.read_mark),
    **dict.fromkeys(names.SHAPES, Atoms.read_shape),
    **dict.fromkeys(names.FONTS, Atoms.read_font),
    **dict.fromkeys(names.FENCES, Atoms.read_fence),
    **dict.fromkeys(names.NOT_EVALUATED, Atoms.read_operator),
    **{rf"\mathbb{{{letter}}}": Atoms.read_number_set for letter in "RZNQCPEFKDH"},
    r"\frac": Atoms.read_fraction,
    r"\binom": Atoms.read_binomial,
    r"\sqrt": Atoms.read_root,
    r"\surd": Atoms.read_root_sign,
    r"\{": Atoms.read_set,
    r"\begin": Atoms.read_environment,
}
