r"""Atoms: numbers, names, words and brackets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise

from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.parser_base import ParserBase
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node, divide, fn, num
from rewardkit.answers.parsing.units import lookup_unit

_LETTER_CONSTANTS: Mapping[str, Node] = {"e": ("const", "e"), "i": ("const", "i")}


#: Repetition at the end of the digits before an ellipsis: one digit three times, or several twice.
_PERIOD = re.compile(r"(?:(\d{2,10}?)\1|(\d)\2\2+)\Z")


_EVENT_SIGNS = (r"\cap", r"\cup", r"\mid", "|")


_VOWELS = frozenset("aeiouy")
_SIGNS_BEFORE_NAMES = ("{", "(", "+", "-", "*", "/", r"\cdot", "=")
_SIGNS_AFTER_NAMES = ("}", ")", "+", "-", "*", "/", r"\cdot", "=", "(")


class AtomParser(ParserBase):
    """The level of the parser for operands: numbers, names, words and brackets."""

    def parse_argument(self, *, script: bool = False) -> Node:
        r"""Parse the argument of a command or of `^`: a group in braces, or one atom.

        A command takes the first of several digits (`\frac12`), a script takes all (`2^10`).
        """
        if self.accept("{"):
            return self.parse_group("}")
        if script and self.is_next("+", "-"):
            return self.parse_factor()
        if self.next.kind == "num" and not script:
            return self._parse_first_digit()
        return self.parse_atom()

    def _parse_first_digit(self) -> Node:
        token = self.next
        if len(token.text) == 1 or not token.text.isdecimal():
            return self.parse_atom()
        self.tokens[self.position] = Token("num", token.text[1:])
        return num(int(token.text[0]))

    def parse_group(self, closing: str) -> Node:
        """Parse a group up to its closing sign, and the sign."""
        self.descend()
        bars, self.open_bars = self.open_bars, 0
        self.open_brackets += 1
        node = self.parse_items()
        if self.accept(r"\choose"):
            node = fn("binom", node, self.parse_items())
        elif self.accept(r"\over"):
            node = divide(node, self.parse_items())
        self.open_brackets -= 1
        self.open_bars = bars
        self.expect(closing)
        self.depth -= 1
        return node

    def parse_atom(self) -> Node:
        """Parse a number, a name, a bracket, or a command with its arguments."""
        self.descend()
        token = self.advance()
        node = _BY_KIND[token.kind](self, token)
        self.depth -= 1
        return node

    # --- numbers

    def parse_number(self, token: Token) -> Node:
        """Parse a plain number, one in scientific notation, or a decimal with a marked period."""
        text = token.text.replace(",", "")
        if self.is_next(".") and self.peek(1).text in (r"\overline", r"\dot"):
            self.position += 1
            return self._parse_period(text + ".")
        _, _, places = text.partition(".")
        if places and self.next.text in (r"\overline", r"\dot"):
            return self._parse_period(text)
        if len(places) >= 3 and self.is_next(r"\dots") and (period := _PERIOD.search(places)):
            self.advance()  # 0.333... and 0.1666...
            return _repeating_decimal(
                f"{text[: -len(places)]}{places[: period.start()]}", period[1] or period[2]
            )
        if "e" in text.lower():
            mantissa, _, exponent = text.lower().partition("e")
            digits = len(mantissa.partition(".")[2])
            return num(Fraction(text), digits - int(exponent))
        return num(Fraction(text), len(places) or None)

    def parse_repeating(self, token: Token) -> Node:
        """Parse a repeating decimal such as `0.1(6)`."""
        before, _, period = token.text.rstrip(")").partition("(")
        return _repeating_decimal(before, period)

    def _parse_period(self, before: str) -> Node:
        r"""Parse the period of `0.1\overline{6}` or of `0.\dot{1}4285\dot{7}`, marked at both ends."""
        marks = self.advance().text
        digits = self.raw_text()
        if marks == r"\dot" and self.next.kind == "num" and self.peek(1).text == r"\dot":
            digits += self.advance().text
            self.advance()
            digits += self.raw_text()
        elif marks == r"\dot" and self.accept(r"\dot"):
            digits += self.raw_text()
        if not (digits.isdecimal() and digits.isascii()):
            raise UnreadableError("the mark of a period is not above digits")
        return _repeating_decimal(before, digits)

    # --- names and words

    def parse_word(self, token: Token) -> Node:
        """Parse letters in a row: a name, a product of names, or a word, which is not a factor."""
        text = token.text
        if len(text) == 1:
            return self._parse_application(self._letter_node(text))
        if self.is_product(token):
            self.tokens[self.position - 1 : self.position] = [
                Token("letter", char) for char in text
            ]
            return self._letter_node(text[0])
        return self.parse_text(token)

    def is_product(self, token: Token) -> bool:
        """Whether letters in a row are a product of names: `xy`, `nRT`, but not `cm` or `even`.

        Three or four letters are names if mathematics is on both sides, or if no word is spelled
        like that: without a vowel, with a capital inside, or in alphabetical order.
        """
        text = token.text
        if token.kind != "word" or text in vocabulary.SHORT_WORDS or not text.isascii():
            return False
        if text in vocabulary.PERCENT_WORDS or (len(text) > 2 and lookup_unit(text)):
            return False
        if len(text) not in (3, 4) or text.isupper():
            return len(text) in (2, 3, 4)
        at = self.position if self.tokens[self.position] is token else self.position - 1
        before, after = self.tokens[at - 1] if at else token, self.tokens[at + 1]
        if after.is_sign("^", "_") or (before.kind == "num" and not token.follows_space):
            return True
        codes = [ord(char) for char in text]
        is_alphabetical = all(b - a == 1 for a, b in pairwise(codes))
        no_word = (
            not _VOWELS & set(text[1:] if text[0] in "aeiou" else text) or not text[1:].islower()
        )
        is_between_signs = before.is_sign(*_SIGNS_BEFORE_NAMES) and (
            after.is_sign(*_SIGNS_AFTER_NAMES) or after.kind == "end"
        )
        return (
            is_alphabetical
            or no_word
            or (is_between_signs and bool(before.is_sign("{", "+", "-", "*", r"\cdot")))
        )

    def parse_letter(self, token: Token) -> Node:
        """Parse one of several letters in a row."""
        return self._parse_application(self._letter_node(token.text))

    def parse_text(self, token: Token) -> Node:
        """Parse a word of plain text; a single letter means the same as in mathematics."""
        text = token.text
        if len(text) == 1 and text.isalpha() and text.isascii():
            return self._parse_application(self._letter_node(text))
        if (
            self.next.kind == "num"
            or self.is_next("^", "_")
            or (self.next.kind in ("word", "cmd") and self.starts_factor())
        ):
            raise UnreadableError("a sentence: words before a value")
        return ("sym", text.casefold())

    def _letter_node(self, letter: str) -> Node:
        return _LETTER_CONSTANTS.get(letter, ("sym", letter))

    def _parse_application(self, name: Node) -> Node:
        """Parse the application of a name, as in `f(x)`, if a bracket follows right after it."""
        if name[0] == "const" and self.is_next("(") and self.peek(1).text in ("t", "0"):
            name = ("sym", name[1])  # because i(t) is a current
        if name[0] != "sym" or len(name) != 2 or not self.is_next("(", "'", "["):
            return name
        prime = 0
        while self.accept("'"):
            prime += 1
        if prime:
            name = ("sym", name[1] + "'" * prime)
        if name[1] == "E" and self.accept("["):
            return fn("E", self.parse_group("]"))
        if name[1] in ("P", "Pr", "p") and self._is_event():
            self.advance()
            self.open_bars += 1
            event = [self.parse_items()]
            if self.accept("|", r"\mid"):
                event.append(self.parse_items())
            self.open_bars -= 1
            self.expect(")")
            return fn(name[1], *event)
        if self.is_next("(") and (name[1][0] in "fghFGH" or self._is_single_argument(name[1][0])):
            self.advance()
            inside = self.parse_group(")")
            arguments = inside[1:] if inside[0] == "list" else (inside,)
            if name[1] not in ("P", "Pr", "E", "p") and any(
                part[0] in ("rel", "where", "or", "and") for part in arguments
            ):
                raise UnreadableError("a condition is not an argument")
            return fn(name[1], *arguments)
        return name

    def _is_event(self) -> bool:
        r"""Whether a bracket holds an event: `P(X = 3)`, `P(A \cap B)`, `P(A | B)`."""
        if not self.is_next("("):
            return False
        inside = [self.peek(steps) for steps in range(1, 12)]
        end = next((place for place, token in enumerate(inside) if token.is_sign(")")), 0)
        return any(
            token.is_sign(*vocabulary.RELATION_SIGNS, *_EVENT_SIGNS) for token in inside[:end]
        )

    def _is_single_argument(self, name: str) -> bool:
        """Whether a bracket holds one name or number, as in `T(10)` but not `p(1-p)`, or a point."""
        inside, closing = self.peek(1), self.peek(2)
        is_simple = inside.kind == "num" or (
            inside.kind in ("word", "letter") and len(inside.text) == 1
        )
        is_usual = name.isupper() or name in "pqruvwy" or inside.text in ("t", "0")
        return is_simple and is_usual and closing.is_sign(")", ",")

    # --- brackets

    def parse_sign(self, token: Token) -> Node:
        """Parse a bracket.

        Raises:
            UnreadableError: an operand cannot begin with the sign.
        """
        text = token.text
        if text == "{":
            return self._parse_application(self.parse_group("}"))
        if text in "([":
            return self._parse_bracket(text)
        if text == "]":  # the French open interval ]a, b[
            return self._parse_bracket("(")
        if text == "|":
            return self._parse_absolute()
        raise UnreadableError(f"unexpected {text!r}")

    def _parse_absolute(self) -> Node:
        self.open_bars += 1
        node = self.parse_sum()
        self.open_bars -= 1
        self.expect("|")
        return fn("abs", node)

    def _parse_bracket(self, opening: str) -> Node:
        """Parse a bracket: `(a, b)` is a tuple, which may be an interval; others are intervals."""
        inside = self._parse_inside()
        closing = self.advance()
        if not closing.is_sign(")", "]", "["):
            raise UnreadableError("a bracket is not closed")
        items = inside[1:] if inside[0] == "list" else (inside,)
        if len(items) == 1:
            return inside
        if len(items) == 2 and not (opening == "(" and closing.text == ")"):
            return ("interval", *items, opening == "(", closing.text != "]")
        return ("tuple", *items)

    def _parse_inside(self) -> Node:
        self.descend()
        bars, self.open_bars = self.open_bars, 0
        self.open_brackets += 1
        node = self.parse_items()
        self.open_brackets -= 1
        self.open_bars = bars
        self.depth -= 1
        return node

    def parse_set(self, _: str) -> Node:
        r"""Parse `\{1, 2\}`, `\{x \mid x < 3\}`, or the rows of a piecewise function."""
        if self.accept(r"\}"):
            return ("set",)
        self.open_bars += 1
        self.open_brackets += 1
        first = self.parse_items()
        self.open_brackets -= 1
        self.open_bars -= 1
        if self.accept("|", r"\mid", ":"):
            return ("builder", first, self.parse_group(r"\}"))
        if first[0] == "matrix" and not self.is_next(r"\}"):
            return rows_as_cases([row[1:] for row in first[1:]])
        self.expect(r"\}")
        return ("set", *(first[1:] if first[0] in ("list", "or", "and") else (first,)))


def rows_as_cases(rows: list[tuple[Node, ...]]) -> Node:
    """Return rows of value and condition as a piecewise function, rows of formulas as a list."""
    if rows and all(len(row) == 2 for row in rows):
        return ("cases", *(("branch", *row) for row in rows))
    if rows and all(len(row) == 1 for row in rows):
        return ("and", *(row[0] for row in rows)) if len(rows) > 1 else rows[0][0]
    raise UnreadableError("rows differ in length")


def _repeating_decimal(before: str, period: str) -> Node:
    places = len(before.partition(".")[2])
    tail = Fraction(int(period), (10 ** len(period) - 1) * 10**places)
    return num(Fraction(before + "0" if before.endswith(".") else before) + tail)


def _reject_end(_: AtomParser, token: Token) -> Node:
    raise UnreadableError(f"an operand is missing at {token.text!r}")


_BY_KIND: Mapping[str, Callable[[AtomParser, Token], Node]] = {
    "num": AtomParser.parse_number,
    "rep": AtomParser.parse_repeating,
    "word": AtomParser.parse_word,
    "letter": AtomParser.parse_letter,
    "text": AtomParser.parse_text,
    "han": AtomParser.parse_text,
    "cmd": lambda reader, token: reader.parse_command(token),
    "op": AtomParser.parse_sign,
    "end": _reject_end,
}
