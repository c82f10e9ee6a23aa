r"""Atoms: numbers, names, brackets, and commands with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from rewardkit.answers.latex import names
from rewardkit.answers.latex.reader import Reader
from rewardkit.answers.latex.tokens import UnreadableError
from rewardkit.answers.latex.tree import MINUS_ONE, ONE, Node, divide, fn, mul, num


class Atoms(Reader):
    """The part of the parser that reads what stands between the operators."""

    def argument(self, *, signed: bool = False) -> Node:
        """What a command or `^` applies to: a group in braces, or one atom; of digits, the first."""
        if self.accept("{"):
            return self._group("}")
        if signed and self.peek in "+-" and self.kind == "op":
            return self.factor()
        if self.kind == "num" and not signed:
            return self._first_digit()
        return self.atom()

    def _first_digit(self) -> Node:
        text = self.tokens[self.at][1]
        if len(text) == 1 or not text.isdecimal():
            return self.atom()
        self.tokens[self.at] = ("num", text[1:])
        return num(int(text[0]))

    def _group(self, closing: str) -> Node:
        self.descend()
        bars, self.bars = self.bars, 0
        node = self.items()
        self.bars = bars
        self.expect(closing)
        self.depth -= 1
        return node

    # --- atoms

    def atom(self) -> Node:
        """A number, a name, a bracket, or a command with its arguments."""
        self.descend()
        node = self._atom()
        self.depth -= 1
        return node

    def _atom(self) -> Node:
        kind, text = self.take()
        if kind == "num":
            return self._number(text)
        if kind == "word":
            return self._word(text)
        if kind == "text":
            return self._named(text)
        if kind == "cmd":
            return self._command(text)
        if kind == "op":
            return self._bracket(text)
        raise UnreadableError("an expression ends too early")

    def _number(self, text: str) -> Node:
        if text.endswith(".") and self.peek in (r"\overline", r"\dot", r"\bar"):
            return self._repeating(text + "0", 0)
        whole, _, places = text.partition(".")
        if places and self.peek in (r"\overline", r"\dot", r"\bar"):
            return self._repeating(text, len(places))
        if self.kind == "word" and names.MYRIADS.get(self.peek[:1]):
            factor = names.MYRIADS[self.take()[1][:1]]
            return num(Fraction(text) * factor)
        if "e" in places.lower() or "e" in whole.lower():
            return self._scientific(text)
        return num(
            Fraction(text if places or not text.endswith(".") else whole), len(places) or None
        )

    def _scientific(self, text: str) -> Node:
        mantissa, _, exponent = text.lower().partition("e")
        places = len(mantissa.partition(".")[2])
        return num(Fraction(text), max(0, places - int(exponent)))

    def _repeating(self, text: str, places: int) -> Node:
        r"""`0.1\overline{6}`."""
        self.at += 1
        digits = self.flat()
        if not digits.isdecimal():
            raise UnreadableError("no digits under a bar")
        tail = Fraction(int(digits), (10 ** len(digits) - 1) * 10**places)
        return num(Fraction(text) + tail)

    def _word(self, text: str) -> Node:
        """Letters in a row: a function, a name in plain text, or a product of one-letter names."""
        lowered = text.lower() if text.lower() in names.PLAIN else text
        if lowered in names.PLAIN:
            return self._command(names.PLAIN[lowered])
        if len(text) >= 3 or not text.isascii() or text.lower() in names.SHORT_WORDS:
            return self._named(text)
        first, *others = (self._letter(letter) for letter in text)
        if not others:
            return self._applied(first)
        self.tokens[self.at - 1 : self.at] = [("word", letter) for letter in text]
        return first

    def _letter(self, letter: str) -> Node:
        return {"e": ("const", "e"), "i": ("const", "i")}.get(letter, ("sym", letter))

    def _named(self, text: str) -> Node:
        """A word of plain text; one letter is the same as in mathematics."""
        if text in names.CURRENCIES:
            return ("unit", self.power(), text)
        if len(text) == 1 and text.isalpha():
            return self._applied(self._letter(text))
        if text.lower() in names.PLAIN:
            return self._command(names.PLAIN[text.lower()])
        if not text:
            return self.atom()
        if self.kind == "num" or (self.kind in ("word", "cmd") and self.starts_factor()):
            raise UnreadableError("words before a value are a sentence, no factor")
        return ("sym", text.casefold())

    def _applied(self, name: Node) -> Node:
        """`f(x)`: a letter that is used as a function's name, with a bracket right behind it."""
        if name[0] == "sym" and name[1] in names.FUNCTION_LETTERS and self.peek in ("(", "'"):
            if name[1] not in "fgFG" and not self._single_argument():
                return name
            prime = "'" * sum(1 for _ in iter(lambda: self.accept("'"), False))
            if self.accept("("):
                inside = self._group(")")
                arguments = inside[1:] if inside[0] == "list" else (inside,)
                return fn(name[1] + prime, *arguments)
        return name

    def _single_argument(self) -> bool:
        """Whether a bracket holds one name or number: `T(10)`, against `p(1-p)`."""
        opening, inside, closing = ([*self.tokens[self.at : self.at + 3], ("", "")] * 3)[:3]
        simple = inside[0] == "num" or (inside[0] == "word" and len(inside[1]) == 1)
        return opening[1] == "(" and simple and closing[1] == ")"

    def _bracket(self, text: str) -> Node:
        if text == "{":
            return self._braced("}")
        if text in "([":
            return self._interval_or_tuple(text)
        if text == "]":  # ]a, b[ : a French open interval
            return self._interval_or_tuple("(")
        if text == "|":
            return self._bars("|")
        if text == "@":
            raise UnreadableError("not mathematics")
        raise UnreadableError(f"unexpected {text!r}")

    def _braced(self, closing: str) -> Node:
        node = self._group(closing)
        return ("tuple", *node[1:]) if node[0] == "list" else node

    def _bars(self, closing: str) -> Node:
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect(closing)
        return fn("abs", node)

    def _interval_or_tuple(self, opening: str) -> Node:
        """`(a, b)` is a tuple that may be read as an interval; other brackets make an interval."""
        inside = self._inside()
        closing = self.take()[1]
        if closing not in (")", "]", "["):
            raise UnreadableError("a bracket is not closed")
        items = inside[1:] if inside[0] == "list" else (inside,)
        round_only = opening == "(" and closing == ")"
        if len(items) == 1:
            return inside
        if len(items) == 2 and not round_only:
            return ("interval", *items, opening == "(", closing != "]")
        return ("tuple", *items)

    def _inside(self) -> Node:
        self.descend()
        bars, self.bars = self.bars, 0
        node = self.items()
        self.bars = bars
        self.depth -= 1
        return node

    def read_set(self, _: str) -> Node:
        r"""`\{1, 2\}`, or `\{x \mid x < 3\}`, which is the condition."""
        if self.accept(r"\}"):
            return ("set",)
        self.bars += 1
        first = self.items()
        self.bars -= 1
        if self.accept("|", r"\mid", r"\vert", ":"):
            first = self._group(r"\}")
            return ("builder", first)
        self.expect(r"\}")
        return ("set", *(first[1:] if first[0] == "list" else (first,)))

    # --- commands

    def _command(self, name: str) -> Node:
        if name in names.CONSTANTS:
            return names.CONSTANTS[name]
        if name in names.FUNCTIONS:
            return self._function(names.FUNCTIONS[name])
        if name in names.LETTERS:
            return ("sym", "..." if name.endswith("dots") else name[1:].removeprefix("var"))
        if name in names.WRAPPERS:
            return self.argument()
        read = _COMMANDS.get(name)
        if read is None:
            raise UnreadableError(f"{name} is not known")
        return read(self, name)

    def read_fraction(self, _: str) -> Node:
        """A fraction: two arguments."""
        return divide(self.argument(), self.argument())

    def read_binomial(self, _: str) -> Node:
        """A binomial coefficient: two arguments."""
        return fn("binom", self.argument(), self.argument())

    def _function(self, name: str) -> Node:
        r"""`\sin x`, `\sin^2 x`, `\sin^{-1} x`, `\log_2 8`."""
        base = self._log_base() if name == "log" else None
        exponent = self.argument(signed=True) if self.accept("^") else None
        inside = self._operand()
        if exponent == MINUS_ONE and name in names.INVERSE:
            return fn(names.INVERSE[name], inside)
        if base is not None:
            node = divide(fn("ln", inside), fn("ln", base))
        else:
            node = fn("ln" if name == "log" else name, *_unlisted(name, inside))
        return node if exponent is None else ("pow", node, exponent)

    def _log_base(self) -> Node | None:
        return self.argument() if self.accept("_") else None

    def _operand(self) -> Node:
        """A function's argument without brackets reaches to the next sign."""
        if self.peek == "(" and self.kind == "op":
            return self.power()
        if self.accept("{"):
            return self._group("}")
        node = self.factor()
        while self.kind in ("num", "word", "cmd") and self.starts_factor():
            if self.kind == "cmd" and self.peek in names.FUNCTIONS:
                break
            node = mul(node, self.power())
        while self.accept("/"):
            node = divide(node, self.factor())
        return node

    def read_root(self, _: str) -> Node:
        """A root, of degree two where no degree stands in brackets."""
        if self.accept("["):
            degree = self._inside()
            self.expect("]")
        else:
            degree = num(2)
        inside = self.power() if self.peek == "(" else self.argument()
        if degree == num(2):
            return fn("sqrt", inside)
        odd = degree[0] == "num" and degree[1].denominator == 1 and degree[1] % 2 == 1
        return fn("root", inside, degree) if odd else ("pow", inside, divide(ONE, degree))

    def read_fence(self, name: str) -> Node:
        """A floor, a ceiling or an absolute value."""
        function, closing = names.FENCES[name]
        inside = self._inside()
        self.expect(closing)
        return fn(function, inside)

    def read_environment(self, _: str) -> Node:
        """A matrix or a determinant of any bracket; `cases` and others are not read."""
        kind = self.flat()
        if kind not in names.MATRICES:
            raise UnreadableError(f"{kind} is not read")
        if kind == "array" and self.peek == "{":
            self.flat()
        rows: list[tuple[Node, ...]] = [()]
        while not self.accept(r"\end"):
            if self.kind == "end":
                raise UnreadableError("a matrix is not closed")
            if self.accept(r"\\"):
                rows.append(())
            elif not self.accept("&", r"\hline"):
                rows[-1] = (*rows[-1], self.relation())
        self.flat()
        node: Node = ("matrix", *(("row", *row) for row in rows if row))
        return fn("det", node) if kind in ("vmatrix", "Vmatrix") else node

    def read_operator(self, name: str) -> Node:
        r"""`\sum_{k=1}^{n} k` and its like, kept as they stand."""
        limits = [self.flat() for _ in range(2) if self.accept("_", "^")]
        body = self._operand()
        return fn(name, body, *(("text", limit) for limit in limits))


def _unlisted(name: str, inside: Node) -> tuple[Node, ...]:
    r"""`\gcd(a, b)` has two arguments, `\sin(x)` one."""
    if inside[0] in ("list", "tuple") and name in names.SEVERAL_ARGUMENTS:
        return inside[1:]
    return (inside,)


_COMMANDS: Mapping[str, Callable[[Atoms, str], Node]] = {
    **dict.fromkeys((r"\frac", r"\dfrac", r"\tfrac", r"\cfrac"), Atoms.read_fraction),
    **dict.fromkeys((r"\binom", r"\dbinom", r"\tbinom"), Atoms.read_binomial),
    **dict.fromkeys(names.FENCES, Atoms.read_fence),
    **dict.fromkeys(names.NOT_EVALUATED, Atoms.read_operator),
    r"\sqrt": Atoms.read_root,
    r"\{": Atoms.read_set,
    r"\begin": Atoms.read_environment,
}
