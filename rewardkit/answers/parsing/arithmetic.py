"""Sums, products, powers, and the signs after a value: factorial, percent, degrees."""

from __future__ import annotations

from fractions import Fraction

from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.commands import CommandParser
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import (
    MINUS_ONE,
    Node,
    add,
    divide,
    fn,
    mul,
    multiply,
    neg,
    num,
    symbols,
)
from rewardkit.answers.parsing.units import UNITS, lookup_unit

#: Signs after which a number is a factor.
_SIGNS_BEFORE_NUMBER_FACTOR = ("}", ")", r"\pi")
_DEGREE_COMMANDS = (r"\circ", r"\degree")


class ArithmeticParser(CommandParser):
    """The level of the parser for operators, from the loosest to the tightest."""

    def parse_sum(self) -> Node:
        r"""Parse terms with `+`, `-` and `\pm` between them."""
        terms = [self.parse_signed_product()]
        while self.next.kind in ("op", "cmd"):
            if (self.is_next("+") and self._starts_term(1)) or (
                self.is_next("-") and not self._is_hyphen()
            ):
                terms.append(self.parse_signed_product())
            elif self.is_next(r"\pm", r"\mp"):
                terms.append(self._parse_plus_minus())
            else:
                break
        return self._set_difference(terms) or add(*terms)

    def _starts_term(self, steps: int) -> bool:
        return self.peek(steps).kind != "end"

    def _is_hyphen(self) -> bool:
        """Whether the minus sign is a hyphen, as in `30-day`."""
        word = self.peek(1)
        beside = (
            self.tokens[self.position - 1].kind == "num"
            and not word.follows_space
            and not self.next.follows_space
        )
        return beside and word.kind == "word" and len(word.text) > 2

    @staticmethod
    def _set_difference(terms: list[Node]) -> Node | None:
        r"""Return the set difference that `S - \{a\}` is; None if the terms are not sets."""
        sets = ("set", "interval", "union", "builder")
        removed = terms[1][2] if len(terms) == 2 and terms[1][:2] == ("mul", MINUS_ONE) else ("",)
        if removed[0] in sets and (terms[0][0] in sets or terms[0][0] == "sym"):
            return ("minus", terms[0], removed)
        return None

    def parse_signed_product(self) -> Node:
        """Parse a product with signs before it."""
        while self.accept("+"):
            pass
        if self.accept("-"):
            self.descend()
            node = neg(self.parse_signed_product())
            self.depth -= 1
            return node
        return self._parse_plus_minus() if self.is_next(r"\pm", r"\mp") else self.parse_product()

    def _parse_plus_minus(self) -> Node:
        r"""Parse a product after `\pm` or `\mp`; `\mp` is minus where `\pm` is plus."""
        is_minus = self.advance().text == r"\mp"
        node = self.parse_product()
        return ("pm", neg(node) if is_minus else node)

    def parse_product(self) -> Node:
        """Parse factors from left to right, with or without signs between them."""
        node = self.parse_power()
        while True:
            if self.is_next(r"\cdot", r"\times", "*"):
                if self._is_unit(self.peek(1), alone=False):
                    return node  # N·m: the dot continues a unit
                is_cross = self.advance().text == r"\times"
                right = self.parse_factor()
                are_vectors = is_cross and _is_vector(node) and _is_vector(right)
                has_gradient = ("sym", "nabla") in (node, right)
                name = "cross" if is_cross else "dot"
                node = (
                    fn(name, node, right) if are_vectors or has_gradient else multiply(node, right)
                )
            elif self.is_next("/", r"\div"):
                if self._is_unit(self.peek(1), alone=True):
                    return node
                self.advance()
                node = divide(node, self.parse_factor())
            elif (
                self.starts_factor()
                and not self._is_union_letter(node)
                and not self._is_unit_next(node)
            ):
                node = self._parse_adjacent_factor(node)
            else:
                return node

    @staticmethod
    def _is_unit(token: Token, *, alone: bool) -> bool:
        """Whether a word after a slash or a dot is a unit: in text, or of several letters."""
        is_sure = token.kind in ("text", "han") or (
            alone and token.kind == "word" and len(token.text) > 1
        )
        return is_sure and lookup_unit(token.text) is not None

    def _is_unit_next(self, node: Node) -> bool:
        r"""Whether the next token is the unit of the number before it: `10^{-5}\text{ m}`."""
        word = self.next
        is_unit = (word.kind == "text" and word.text in UNITS) or word.text in LETTER_UNITS
        return (is_unit or self.opens_unit_fraction()) and not symbols(node)

    def _is_union_letter(self, node: Node) -> bool:
        """Whether the next token is a lone `U` between two brackets, which means a union."""
        return (
            self.next.text == "U"
            and node[0] in ("interval", "tuple", "set")
            and self.peek(1).is_sign("(", "[", r"\{")
        )

    def parse_factor(self) -> Node:
        """Parse the right side of an explicit product, which may have a sign."""
        if not self.accept("-"):
            return self.parse_power()
        self.descend()
        node = neg(self.parse_factor())
        self.depth -= 1
        return node

    def _parse_adjacent_factor(self, node: Node) -> Node:
        if self.is_next("(") and self.peek(1).text == "0" and self.peek(2).is_sign(")"):
            raise UnreadableError("`(0)` after something that is not a function's name")
        return self._multiply_adjacent(node)

    def _multiply_adjacent(self, node: Node) -> Node:
        """Parse an adjacent factor, or the fraction of a mixed number; return it with `node`."""
        last = self.tokens[self.position - 1]
        whole = (
            last.kind == "num" and node[0] == "num" and node[1].denominator == 1 and node[2] is None
        )
        if not (whole and (self.is_next(r"\frac") or self._is_inline_fraction())):
            return mul(node, self.parse_power())
        part = self.parse_power()
        if part[0] == "num" and self.accept("/"):
            divisor = self.parse_power()
            part = (
                ("percent", divide(part, divisor[1]))
                if divisor[0] == "percent"
                else divide(part, divisor)
            )
        percent = part[0] == "percent"
        part = part[1] if percent else part
        if part[0] == "num" and 0 < part[1] < 1:
            node = num(node[1] + part[1] if node[1] >= 0 else node[1] - part[1])
        else:
            node = mul(node, part)
        if percent or self.accept("%"):
            return ("percent", node)
        return node

    def _is_inline_fraction(self) -> bool:
        """Whether a number, a slash and a number follow a space, as in `6 1/64`."""
        ahead = [self.peek(steps) for steps in range(3)]
        return (
            [token.kind for token in ahead] == ["num", "op", "num"]
            and ahead[0].follows_space
            and ahead[1].text == "/"
        )

    def starts_factor(self) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""
        token = self.next
        if token.kind in ("num", "rep"):
            last = self.tokens[self.position - 1]
            has_exponent = self.peek(1).is_sign("^") and (
                token.follows_space or last.kind != "num"
            )  # 2^6 3^5, n2^n
            return (
                has_exponent
                or self._is_inline_fraction()
                or last.kind == "letter"
                or last.is_sign(*_SIGNS_BEFORE_NUMBER_FACTOR)
            )
        if token.kind in ("word", "letter", "text"):
            return self._is_name(token)
        if token.kind == "cmd":
            return token.text not in vocabulary.NON_FACTOR_COMMANDS
        if self.opens_condition() or self.opens_modulus() or self.opens_unit():
            return False
        if token.text == "[" and self.peek(1).is_sign(",", r"\cup", r"\cap", ")", ""):
            return False  # ]1, 2[
        if token.text == "[" and self.peek(1).kind == "end":
            return False
        return token.kind == "op" and (
            token.text in "({[" or (token.text == "|" and self.open_bars == 0)
        )

    def _is_name(self, token: Token) -> bool:
        """Whether letters are names that multiply, and not a unit, a word or a conjunction."""
        if (
            token.text in vocabulary.ORDINAL_SUFFIXES
            and self.tokens[self.position - 1].kind == "num"
        ):
            return False
        if len(token.text) > 1 and (
            token.kind == "text" or token.text.casefold() in _NON_NAME_WORDS
        ):
            return False
        before = self.tokens[self.position - 1]
        if len(token.text) == 1:
            is_lone_unit = self.letters_are_units and token.text in UNITS
            return token.kind == "letter" or not is_lone_unit
        is_unit = token.text in LETTER_UNITS or (len(token.text) > 2 and lookup_unit(token.text))
        return not (before.kind == "num" and is_unit) and self.is_product(token)

    def parse_power(self) -> Node:
        """Parse an atom with scripts, primes, factorials, percent and degree signs."""
        self.descend()
        node, depth = self.parse_atom(), self.depth
        while self.next.kind in ("op", "cmd"):
            if self.accept("^"):
                node = self._parse_superscript(node)
            elif self.accept("!"):
                double = self.is_next("!") and not self.next.follows_space and self.accept("!")
                node = fn("fact2" if double else "fact", node)
            elif self.accept("%"):
                node = ("percent", node)
            elif self.accept(r"\permille"):
                node = ("percent", divide(node, num(10)))
            elif self.accept(r"\degree"):
                node = self._parse_degrees(node)
            elif self.is_next("_"):
                node = self._parse_subscript(node)
            else:
                break
            self.descend()  # because every sign nests the node one level deeper
        self.depth = depth - 1
        return node

    def _parse_superscript(self, node: Node) -> Node:
        if self.accept(*_DEGREE_COMMANDS):
            return self._parse_degrees(node)
        inside = self.peek(1)
        if self.is_next("{") and inside.is_sign(*_DEGREE_COMMANDS) and self.peek(2).text == "}":
            self.position += 3
            return self._parse_degrees(node)
        if self.is_next("{") and inside.is_sign("'"):
            return self._parse_prime(node, self.raw_text())
        if self.accept("'"):
            return self._parse_prime(node, "'")
        if self.is_next("{") and inside.is_sign("(") and node[0] == "sym":
            return self._parse_application(("sym", f"{node[1]}^{self.raw_text()}"))  # f^{(n)}(0)
        ordinal = inside if self.is_next("{") else self.next
        if node[0] == "num" and ordinal.text in vocabulary.ORDINAL_SUFFIXES:
            self.raw_text()
            return node
        exponent = self.parse_argument(script=True)
        if exponent == MINUS_ONE and node[0] == "sym" and node[1] in "fghFGH" and self.is_next("("):
            return self._parse_application(("sym", f"{node[1]}^-1"))
        if node[0] in ("tuple", "matrix") and exponent in (("sym", "T"), ("sym", "top")):
            return _transpose(node)
        return ("pow", node, exponent)

    def _parse_prime(self, node: Node, mark: str) -> Node:
        if node[0] != "sym":
            raise UnreadableError("a prime after something that is not a name")
        return self._parse_application(("sym", node[1] + mark))

    def _parse_degrees(self, node: Node) -> Node:
        """Parse degrees with their minutes and seconds, or a temperature."""
        if self.next.text in ("C", "F") and self.next.kind in ("text", "word"):
            return ("quantity", node, UNITS["°" + self.advance().text])
        for part, mark in ((60, "'"), (3600, '"'), (3600, "'")):
            if self.next.kind == "num" and self.peek(1).is_sign(mark):
                is_doubled = part == 3600 and mark == "'"
                if is_doubled and not self.peek(2).is_sign(mark):
                    break  # 5° 30' 36'
                node = add(node, num(Fraction(self.advance().text.replace(",", "")) / part))
                self.position += 1 + is_doubled
        return ("degree", node)

    def _parse_subscript(self, node: Node) -> Node:
        self.advance()
        index = self.raw_text()
        if node[0] == "fn":  # |PC|_{max}
            return fn(f"{node[1]}_{index}", *node[2:])
        base = node[1] if node[0] == "pow" else node  # v^2_0 is the square of v_0
        if base[0] == "sym":
            name = ("sym", f"{base[1]}_{index}")
            return ("pow", name, node[2]) if node[0] == "pow" else self._parse_application(name)
        index = index.strip("()")
        if node[0] == "num" and index.isdecimal() and node[1].denominator == 1:
            return ("base", str(node[1]), int(index[:9]))
        raise UnreadableError("a subscript of something that is not a name or a number")


_NON_NAME_WORDS = (
    vocabulary.CONJUNCTIONS
    | vocabulary.DISJUNCTIONS
    | vocabulary.CLAUSE_OPENERS
    | vocabulary.COPULAS
)
#: Units that, after a number, are not read as a product of names.
LETTER_UNITS = frozenset(
    [
        "cm",
        "mm",
        "km",
        "dm",
        "nm",
        "kg",
        "mg",
        "ml",
        "mL",
        "ft",
        "mi",
        "yd",
        "lb",
        "lbs",
        "hr",
        "hrs",
        "oz",
        "kW",
        "kN",
        "Pa",
        "Hz",
        "min",
        "sec",
        "kph",
        "mph",
        "rpm",
    ]
)


def _is_vector(node: Node) -> bool:
    r"""Whether a node is a vector, whose `\times` does not commute: an arrow, a capital, `\nabla`."""
    name: str = node[1] if node[0] == "sym" else ""
    return name[:4] == "vec " or name == "nabla" or name.isupper()


def _transpose(node: Node) -> Node:
    if node[0] == "tuple":
        return ("matrix", *(("row", item) for item in node[1:]))
    if len({len(row) for row in node[1:]}) != 1:
        raise UnreadableError("rows differ in length")
    return (
        "matrix",
        *(("row", *column) for column in zip(*(row[1:] for row in node[1:]), strict=True)),
    )
