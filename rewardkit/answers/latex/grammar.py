r"""Tokens -> tree: a Pratt parser with a depth limit, for the mathematics people answer with.

Implicit products (`2\pi x`), functions without brackets (`\sin 2x`), both of TeX's fractions
(`\frac12`), mixed numbers (`2\frac12`), degree and percent signs, units, subscripts, intervals
with mixed brackets, sets, set-builders, unions, matrices, chains of relations and lists.
"""

from __future__ import annotations

from fractions import Fraction

from rewardkit.answers.latex import names
from rewardkit.answers.latex.atoms import Atoms
from rewardkit.answers.latex.tokens import UnreadableError, tokenize
from rewardkit.answers.latex.tree import (
    MINUS_ONE,
    Node,
    add,
    divide,
    fn,
    mul,
    neg,
    num,
    times,
    walk,
)


def parse(text: str, *, commas_group: bool = True) -> Node:
    """The tree of a cleaned answer.

    Raises:
        UnreadableError: it is no expression the grammar knows, or is over a limit.
    """
    return Parser(tokenize(text, commas_group=commas_group)).whole()


class Parser(Atoms):
    """Lists, relations and operators, from the loosest to the tightest."""

    # --- lists and unions

    def whole(self) -> Node:
        """The tree of all tokens."""
        node = self.items()
        if self.kind != "end":
            raise UnreadableError(f"{self.peek!r} left over")
        return node

    def items(self) -> Node:
        """`a, b and c`: a list; one item alone is itself. `for all n` and what follows is dropped."""
        found = [self.alternative()]
        while self._separator():
            if self.kind == "end" or self._closes():
                break
            found.append(self.alternative())
        if names.is_scope(self.peek) and self.kind in ("text", "word", "cmd"):
            self.at = len(self.tokens) - 1
        return found[0] if len(found) == 1 else ("list", *found)

    def _separator(self) -> bool:
        read = False
        while (self.kind == "op" and self.peek in ",;") or self._is_joint(names.AND):
            self.at += 1
            read = True
        return read

    def _is_joint(self, joints: frozenset[str]) -> bool:
        return self.kind in ("text", "word", "cmd") and self.peek.casefold().strip(" ,") in joints

    def _closes(self) -> bool:
        return self.kind in ("op", "cmd") and self.peek in names.CLOSING

    def alternative(self) -> Node:
        r"""`A or B`, `A \cup B`: a union."""
        found = [self.difference()]
        while self._is_joint(names.OR) or self.peek in (r"\cup", r"\bigcup"):
            self.at += 1
            found.append(self.difference())
        return found[0] if len(found) == 1 else ("union", *found)

    def difference(self) -> Node:
        r"""`A \setminus B`."""
        node = self.relation()
        while self.accept(r"\setminus", r"\backslash"):
            node = ("minus", node, self.relation())
        return node

    # --- relations

    def relation(self) -> Node:
        r"""`a < b \le c`, `x = 5`, `x \in S`; a label with a colon (`Qing: 14`) is dropped."""
        self.descend()
        named = self.kind == "text" or (self.kind == "word" and len(self.peek) >= 3)
        if named and self.tokens[self.at + 1] == ("op", ":"):
            self.at += 2
        self.accept("=", r"\approx", r"\simeq")
        sides, operators = [self.sum()], []
        while self.kind in ("op", "cmd") and self.peek in names.RELATIONS:
            operators.append(names.RELATIONS[self.take()[1]])
            sides.append(self.sum())
        self.depth -= 1
        return sides[0] if not operators else ("rel", tuple(operators), *sides)

    # --- arithmetic

    def sum(self) -> Node:
        r"""Terms with `+`, `-` and `\pm` between."""
        terms = [self.signed()]
        while self.kind in ("op", "cmd"):
            if self.peek in ("+", "-"):
                terms.append(self.signed())
            elif self.peek in (r"\pm", r"\mp"):
                terms.append(self._both_signs())
            else:
                break
        return self._minus_set(terms) or self._unit(add(*terms))

    @staticmethod
    def _minus_set(terms: list[Node]) -> Node | None:
        r"""`S - \{a\}` is a set difference."""
        is_set = {"set", "interval", "union", "builder"}
        if len(terms) == 2 and terms[0][0] in is_set and terms[1][:2] == ("mul", MINUS_ONE):
            return ("minus", terms[0], terms[1][2])
        return None

    def signed(self) -> Node:
        """A product with signs before it."""
        while self.accept("+"):
            pass
        if self.accept("-"):
            self.descend()
            node = neg(self.signed())
            self.depth -= 1
            return node
        return self._both_signs() if self.peek in (r"\pm", r"\mp") else self.product()

    def _both_signs(self) -> Node:
        r"""`\mp` is minus where `\pm` is plus."""
        turned = self.take()[1] == r"\mp"
        node = self.product()
        return ("pm", neg(node) if turned else node)

    def product(self) -> Node:
        r"""Factors with `\cdot`, `/`, or nothing between; `a : b` is a quotient."""
        node = self.power()
        while True:
            if self.accept("*", r"\cdot", r"\times"):
                node = times(node, self.factor())
            elif self.accept("/", r"\div") or (not self.bars and self.accept(":")):
                node = divide(node, self.factor())
            elif self.starts_factor(
                after_power="pow" in (node[0], node[-1][0] if node[0] == "mul" else "")
            ):
                node = self._beside(node)
            else:
                return node

    def factor(self) -> Node:
        """The right side of an explicit product: a sign may stand before it."""
        if not self.accept("-"):
            return self.power()
        self.descend()
        node = neg(self.factor())
        self.depth -= 1
        return node

    def _beside(self, node: Node) -> Node:
        """What stands beside a factor without a sign: a mixed number's fraction, or a factor."""
        written = self.tokens[self.at - 1][0] == "num"  # in brackets it is a factor
        mixed = written and node[0] == "num" and node[1].denominator == 1 and node[2] is None
        begins = self.peek in (r"\frac", r"\dfrac", r"\tfrac") or self._inline_fraction()
        right = self._fraction_beside() if mixed and begins else self.power()
        if mixed and begins and right[0] == "percent":
            return ("percent", self._mixed(node, right[1]))
        return self._mixed(node, right) if mixed and begins else mul(node, right)

    @staticmethod
    def _mixed(whole: Node, part: Node) -> Node:
        if part[0] == "num" and 0 < part[1] < 1:
            return num(whole[1] + part[1] if whole[1] >= 0 else whole[1] - part[1])
        return mul(whole, part)

    def _inline_fraction(self) -> bool:
        """`6 1/64`: a number, a stroke and a number right behind a number."""
        kinds = [kind for kind, _ in self.tokens[self.at : self.at + 3]]
        return kinds == ["num", "op", "num"] and self.tokens[self.at + 1][1] == "/"

    def _fraction_beside(self) -> Node:
        top = self.power()
        if top[0] != "num" or not self.accept("/"):
            return top
        below = self.power()
        if below[0] == "percent":  # `6 1/2%`
            return ("percent", divide(top, below[1]))
        return divide(top, below)

    def starts_factor(self, *, after_power: bool = False) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""
        kind, text = self.tokens[self.at]
        if kind == "num":
            return after_power or self._inline_fraction() or self.tokens[self.at - 1][0] != "num"
        if kind == "word":
            return not names.is_plain_text(text)
        if kind == "cmd":
            return text not in names.NOT_A_FACTOR and not names.is_joint(text)
        return kind == "op" and (text in "({[" or (text == "|" and self.bars == 0))

    def power(self) -> Node:
        """An atom with its superscripts, subscripts, primes, factorials, percent and degree signs."""
        self.descend()
        node, depth = self.atom(), self.depth
        while self.kind in ("op", "cmd"):
            if self.accept("^"):
                node = self._raised(node)
            elif self.peek == "!" and self.accept("!"):
                node = fn("fact", node)
            elif self.accept("%", r"\%"):
                node = ("percent", node)
            elif self.accept(r"\degree", r"\textdegree", r"\textcirc"):
                node = self._degrees(node)
            elif self.peek == "_" and node[0] in ("num", "sym", "tuple"):
                node = self._subscript(node)
            else:
                break
            self.descend()  # every sign puts the node one level deeper
        self.depth = depth - 1
        return node

    def _raised(self, node: Node) -> Node:
        if (
            self.peek in (r"\circ", r"\degree")
            or self.tokens[self.at : self.at + 3] == _BRACED_CIRC
        ):
            self.at += 3 if self.peek == "{" else 1
            return self._degrees(node)
        if self.accept("'"):
            return node
        return ("pow", node, self.argument(signed=True))

    def _degrees(self, node: Node) -> Node:
        """Degrees, with minutes where `'` follows a number."""
        if self.kind == "num" and self.tokens[self.at + 1] == ("op", "'"):
            minutes = Fraction(self.take()[1])
            self.at += 1
            node = add(node, num(minutes / 60))
        return ("degree", node)

    def _subscript(self, node: Node) -> Node:
        self.at += 1
        below = self.flat()
        below = below[1:-1] if node[0] == "num" and below[:1] == "(" else below
        if node[0] == "sym":
            return ("sym", f"{node[1]}_{below}")
        if node[0] == "num" and below.isdecimal() and node[1].denominator == 1:
            return ("base", str(node[1]), int(below))
        raise UnreadableError("a subscript on something other than a name or a number")

    def _unit(self, node: Node) -> Node:
        r"""A unit behind a value: `5\text{ cm}^2`, `3 hours`, `100 元`."""
        text = ""
        while (self.kind == "text" and not self._is_scope_or_joint()) or self._plain_unit():
            word = self.take()[1]
            changing = names.CHANGING & set(word.casefold().split()) or names.DENYING & set(word)
            if changing or any(map(str.isdigit, word)):
                raise UnreadableError(f"{word!r} changes a number")
            if word.casefold() in names.MULTIPLIERS:
                node = mul(num(names.MULTIPLIERS[word.casefold()]), node)
                continue
            text += f" {word}"
            while self.kind == "op" and self.peek in "^/-":
                text += self.take()[1] + (self.flat() if self.kind != "end" else "")
        if text and not any(part[0] in ("num", "const") for part in walk(node)):
            raise UnreadableError("words, not a quantity")
        return ("unit", node, text.strip()) if text.strip() else node

    def _plain_unit(self) -> bool:
        return (
            self.kind == "word" and names.is_plain_text(self.peek) and not self._is_scope_or_joint()
        )

    def _is_scope_or_joint(self) -> bool:
        return names.is_scope(self.peek) or names.is_joint(self.peek)


_BRACED_CIRC = [("op", "{"), ("cmd", r"\circ"), ("op", "}")]
