r"""Tokens -> trees of mathematics: numbers, names, brackets, commands, operators.

The parser is one class in two files: `grammar.AnswerParser` adds the levels above a sum, which are
quantities, relations, lists and clauses.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise

from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import (
    INF,
    MINUS_ONE,
    ONE,
    PI,
    Node,
    add,
    divide,
    fn,
    mul,
    multiply,
    neg,
    num,
    substitute,
    symbols,
)
from rewardkit.answers.parsing.units import UNITS, lookup_unit
from rewardkit.answers.parsing.vocabulary import (
    ACCENTS,
    CLAUSE_OPENERS,
    CONJUNCTIONS,
    COPULAS,
    DISJUNCTIONS,
    FENCES,
    FUNCTION_COMMANDS,
    INVERSE_FUNCTIONS,
    LETTER_COMMANDS,
    LETTER_UNITS,
    MATRIX_ENVIRONMENTS,
    NON_FACTOR_COMMANDS,
    ORDINAL_SUFFIXES,
    PERCENT_WORDS,
    RELATION_SIGNS,
    ROW_ENVIRONMENTS,
    SHAPE_COMMANDS,
    SHORT_WORDS,
    UNEVALUATED_OPERATORS,
)

#: Deepest nesting that is parsed.
MAX_DEPTH = 64

_CONSTANTS: Mapping[str, Node] = {
    "e": ("const", "e"),
    "i": ("const", "i"),
    r"\pi": PI,
    r"\infty": INF,
    r"\emptyset": ("set",),
    r"\R": ("sym", "R"),
    r"\dots": ("sym", "..."),
}
#: Repetition at the end of the digits before an ellipsis: one digit three times, or several twice.
_PERIOD = re.compile(r"(?:(\d{2,10}?)\1|(\d)\2\2+)\Z")
_VOWELS = frozenset("aeiouy")
_SIGNS_BEFORE_NAMES = ("{", "+", "-", "*", r"\cdot")
_SIGNS_AFTER_NAMES = ("}", ")", "+", "-", "*", "/", r"\cdot", "=", "(")
_DEGREE_COMMANDS = (r"\circ", r"\degree")
_PERIOD_MARKS = (r"\overline", r"\dot")
_NON_NAME_WORDS = CONJUNCTIONS | DISJUNCTIONS | CLAUSE_OPENERS | COPULAS


class ExpressionParser(ABC):
    """One pass over the tokens by recursive descent.

    Args:
        tokens: the tokens of a text, the end token last.
        letters_are_units: whether a lone letter after a number may be a unit, as in `5 m`.
    """

    def __init__(self, tokens: list[Token], *, letters_are_units: bool = False) -> None:
        self.tokens = tokens
        self.letters_are_units = letters_are_units
        self.position = 0
        self.depth = 0
        self.open_bars = 0
        self.open_brackets = 0

    @abstractmethod
    def parse_items(self) -> Node:
        """Parse a list of answers, or one answer."""

    @abstractmethod
    def parse_relation(self) -> Node:
        """Parse one answer: a relation or a value."""

    # --- tokens

    @property
    def next(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def peek(self, steps: int) -> Token:
        """Return the token `steps` further on; the end token beyond the end."""
        return self.tokens[min(self.position + steps, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Consume the next token and return it."""
        token = self.tokens[self.position]
        self.position += token.kind != "end"
        return token

    def is_next(self, *signs: str) -> bool:
        """Whether the next token is one of these operators or commands."""
        token = self.tokens[self.position]
        return token.text in signs and token.kind in ("op", "cmd")

    def accept(self, *signs: str) -> bool:
        """Consume the next token if it is one of these signs; return whether it was."""
        is_next = self.is_next(*signs)
        self.position += is_next
        return is_next

    def expect(self, sign: str) -> None:
        """Consume a sign."""
        if not self.accept(sign):
            raise UnreadableError(f"expected {sign}, not {self.next.text!r}")

    def descend(self) -> None:
        """Enter a deeper level; the caller leaves it by `depth -= 1`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deeply")

    def raw_text(self) -> str:
        """Consume one token or one group in braces and return its text."""
        if not self.accept("{"):
            return self.advance().text
        parts = []
        while self.next.kind != "end" and not self.is_next("}"):
            parts.append(self.advance().text)
        self.expect("}")
        return "".join(parts)

    def _raw_span(self, start: int) -> str:
        tokens = self.tokens[start : self.position]
        return "".join(token.text for token in tokens if token.text not in "{}")

    # --- what a bracket opens

    def opens_condition(self) -> bool:
        r"""Whether a bracket opens a condition on a name: `(k \in Z)`, `(n \ge 1)`."""
        name, sign = self.peek(1), self.peek(2)
        is_name = name.kind in ("word", "text", "letter") and len(name.text) == 1
        if not (self.is_next("(") and is_name):
            return False
        if sign.is_sign(","):
            return self.peek(4).is_sign(r"\in")
        return sign.is_sign(r"\in", r"\ge", r"\le", r"\ne", "<", ">", "=")

    def opens_unit(self) -> bool:
        """Whether a bracket holds a unit of several letters: `5 (cm)`."""
        unit = self.peek(1)
        is_unit = unit.is_word and len(unit.text) > 1 and lookup_unit(unit.text) is not None
        return self.is_next("(") and is_unit and self.peek(2).is_sign(")")

    def opens_unit_fraction(self) -> bool:
        r"""Whether a fraction of units comes next: `\frac{\mathrm{m}}{\mathrm{s}}`."""
        unit = self.peek(2)
        is_unit = unit.kind == "text" and lookup_unit(unit.text) is not None
        return self.is_next(r"\frac") and is_unit and self.peek(3).text in ("}", "^")

    def opens_modulus(self) -> bool:
        """Whether a bracket opens `(mod 7)`."""
        return self.is_next("(") and self.peek(1).text in (r"\bmod", r"\pmod", "mod")

    # --- sums and products

    def parse_sum(self) -> Node:
        r"""Parse terms with `+`, `-` and `\pm` between them."""
        terms = [self._parse_term()]
        while True:
            is_plus = self.is_next("+") and self.peek(1).kind != "end"
            is_minus = self.is_next("-") and not self._is_hyphen()
            if not (is_plus or is_minus or self.is_next(r"\pm", r"\mp")):
                break
            terms.append(self._parse_term())
        if len(terms) == 2 and terms[1][:2] == ("mul", MINUS_ONE):
            removed, sets = terms[1][2], ("set", "interval", "union", "builder")
            if removed[0] in sets and terms[0][0] in (*sets, "sym"):
                return ("minus", terms[0], removed)
        return add(*terms)

    def _is_hyphen(self) -> bool:
        """Whether the minus sign is a hyphen, as in `30-day`."""
        word = self.peek(1)
        is_joined = not word.follows_space and not self.next.follows_space
        is_word = word.kind == "word" and len(word.text) > 2
        return is_joined and is_word and self.tokens[self.position - 1].kind == "num"

    def _parse_term(self) -> Node:
        r"""Parse a product with signs before it; `\mp` is minus where `\pm` is plus."""
        while self.accept("+"):
            pass
        if self.accept("-"):
            self.descend()
            node = neg(self._parse_term())
            self.depth -= 1
            return node
        if self.is_next(r"\pm", r"\mp"):
            is_minus = self.advance().text == r"\mp"
            node = self.parse_product()
            return ("pm", neg(node) if is_minus else node)
        return self.parse_product()

    def parse_product(self) -> Node:
        """Parse factors from left to right, with or without signs between them."""
        node = self.parse_power()
        while True:
            if self.is_next(r"\cdot", r"\times", "*"):
                if self._is_unit(self.peek(1), alone=False):
                    return node  # N·m: the dot continues a unit
                node = self._multiply(node, self.advance().text)
            elif self.is_next("/", r"\div"):
                if self._is_unit(self.peek(1), alone=True):
                    return node
                self.advance()
                node = divide(node, self.parse_factor())
            elif self.starts_factor() and not self._continues_otherwise(node):
                node = self._parse_adjacent_factor(node)
            else:
                return node

    def _multiply(self, left: Node, sign: str) -> Node:
        r"""Parse a factor after a sign; `\times` of vectors does not commute."""
        right = self.parse_factor()
        are_vectors = sign == r"\times" and _is_vector(left) and _is_vector(right)
        if are_vectors or ("sym", "nabla") in (left, right):
            return fn("cross" if sign == r"\times" else "dot", left, right)
        return multiply(left, right)

    @staticmethod
    def _is_unit(token: Token, *, alone: bool) -> bool:
        """Whether a word after a slash or a dot is a unit: in text, or of several letters."""
        is_sure = token.kind in ("text", "han") or (
            alone and token.kind == "word" and len(token.text) > 1
        )
        return is_sure and lookup_unit(token.text) is not None

    def _continues_otherwise(self, node: Node) -> bool:
        r"""Whether the next token is the unit of a number, or the `U` of a union."""
        word = self.next
        is_union = word.text == "U" and self.peek(1).is_sign("(", "[", r"\{")
        if is_union and node[0] in ("interval", "tuple", "set"):
            return True
        is_unit = (word.kind == "text" and word.text in UNITS) or word.text in LETTER_UNITS
        return (is_unit or self.opens_unit_fraction()) and not symbols(node)

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
        is_whole = node[0] == "num" and node[1].denominator == 1 and node[2] is None
        is_mixed = is_whole and self.tokens[self.position - 1].kind == "num"
        if not (is_mixed and (self.is_next(r"\frac") or self._is_inline_fraction())):
            return mul(node, self.parse_power())
        part = self.parse_power()
        if part[0] == "num" and self.accept("/"):
            bottom = self.parse_power()
            is_percent = bottom[0] == "percent"
            part = ("percent", divide(part, bottom[1])) if is_percent else divide(part, bottom)
        is_percent = part[0] == "percent"
        part = part[1] if is_percent else part
        if part[0] == "num" and 0 < part[1] < 1:
            node = num(node[1] + part[1] if node[1] >= 0 else node[1] - part[1])
        else:
            node = mul(node, part)
        return ("percent", node) if is_percent or self.accept("%") else node

    def _is_inline_fraction(self) -> bool:
        slash, bottom = self.peek(1), self.peek(2)
        is_fraction = self.next.kind == bottom.kind == "num" and slash.is_sign("/")
        return is_fraction and self.next.follows_space

    def starts_factor(self) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""
        token, last = self.next, self.tokens[self.position - 1]
        if token.kind in ("num", "rep"):
            is_separate = token.follows_space or last.kind != "num"
            return (
                (is_separate and self.peek(1).is_sign("^"))  # 2^6 3^5, n2^n
                or self._is_inline_fraction()
                or last.kind == "letter"
                or last.is_sign("}", ")", r"\pi")
            )
        if token.kind in ("word", "letter", "text"):
            return self._is_name(token, last)
        if token.kind == "cmd":
            return token.text not in NON_FACTOR_COMMANDS
        if token.text == "[":  # but not in `]1, 2[`
            after = self.peek(1)
            return after.kind != "end" and not after.is_sign(",", r"\cup", r"\cap", ")")
        if token.text == "|":
            return self.open_bars == 0
        is_open = token.kind == "op" and token.text in "({"
        return is_open and not (self.opens_condition() or self.opens_modulus() or self.opens_unit())

    def _is_name(self, token: Token, last: Token) -> bool:
        """Whether letters are names that multiply, and not a unit, a word or a conjunction."""
        text = token.text
        if last.kind == "num" and text in ORDINAL_SUFFIXES:
            return False
        if len(text) == 1:
            is_lone_unit = self.letters_are_units and text in UNITS
            return token.kind == "letter" or not is_lone_unit
        if token.kind == "text" or token.low in _NON_NAME_WORDS:
            return False
        is_unit = text in LETTER_UNITS or (len(text) > 2 and lookup_unit(text))
        return not (last.kind == "num" and is_unit) and self.is_product(token)

    # --- powers, and the signs after a value

    def parse_power(self) -> Node:
        """Parse an atom with scripts, primes, factorials, percent and degree signs."""
        self.descend()
        node, depth = self.parse_atom(), self.depth
        while self.next.kind in ("op", "cmd"):
            if self.accept("^"):
                node = self._parse_superscript(node)
            elif self.accept("!"):
                is_double = not self.next.follows_space and self.accept("!")
                node = fn("fact2" if is_double else "fact", node)
            elif self.accept("%"):
                node = ("percent", node)
            elif self.accept(r"\permille"):
                node = ("percent", divide(node, num(10)))
            elif self.accept(r"\degree"):
                node = self._parse_degrees(node)
            elif self.accept("_"):
                node = self._parse_subscript(node)
            else:
                break
            self.descend()  # because every sign nests the node one level deeper
        self.depth = depth - 1
        return node

    def _parse_superscript(self, node: Node) -> Node:
        if self.accept(*_DEGREE_COMMANDS):
            return self._parse_degrees(node)
        is_group = self.is_next("{")
        inside = self.peek(1) if is_group else self.next
        if is_group and inside.is_sign(*_DEGREE_COMMANDS) and self.peek(2).text == "}":
            self.position += 3
            return self._parse_degrees(node)
        if inside.is_sign("'"):
            if node[0] != "sym":
                raise UnreadableError("a prime after something that is not a name")
            return self._parse_application(("sym", node[1] + self.raw_text()))
        if is_group and inside.is_sign("(") and node[0] == "sym":
            return self._parse_application(("sym", f"{node[1]}^{self.raw_text()}"))  # f^{(n)}(0)
        if node[0] == "num" and inside.text in ORDINAL_SUFFIXES:
            self.raw_text()
            return node
        exponent = self.parse_argument(script=True)
        if exponent == MINUS_ONE and node[0] == "sym" and node[1] in "fghFGH" and self.is_next("("):
            return self._parse_application(("sym", f"{node[1]}^-1"))
        if node[0] in ("tuple", "matrix") and exponent in (("sym", "T"), ("sym", "top")):
            return _transpose(node)
        return ("pow", node, exponent)

    def _parse_degrees(self, node: Node) -> Node:
        if self.next.text in ("C", "F") and self.next.is_word:
            return ("quantity", node, UNITS["°" + self.advance().text])
        for size, mark in ((60, "'"), (3600, '"'), (3600, "'")):
            if self.next.kind == "num" and self.peek(1).is_sign(mark):
                is_doubled = size == 3600 and mark == "'"
                if is_doubled and not self.peek(2).is_sign(mark):
                    break  # 5° 30' 36'
                part = Fraction(self.advance().text.replace(",", "")) / size
                node = add(node, num(part))
                self.position += 1 + is_doubled
        return ("degree", node)

    def _parse_subscript(self, node: Node) -> Node:
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

    # --- atoms

    def parse_atom(self) -> Node:
        """Parse a number, a name, a bracket, or a command with its arguments."""
        self.descend()
        token = self.advance()
        match token.kind:
            case "num":
                node = self._parse_number(token.text.replace(",", ""))
            case "rep":
                node = _repeating_decimal(*token.text.rstrip(")").split("("))
            case "cmd":
                node = self._parse_command(token.text)
            case "op":
                node = self._parse_sign(token.text)
            case "end":
                raise UnreadableError("an operand is missing")
            case _:
                node = self._parse_word(token)
        self.depth -= 1
        return node

    def parse_argument(self, *, script: bool = False) -> Node:
        r"""Parse the argument of a command or of `^`: a group in braces, or one atom.

        A command takes the first of several digits (`\frac12`), a script takes all (`2^10`).
        """
        token = self.next
        if self.accept("{"):
            return self.parse_group("}")
        if script and self.is_next("+", "-"):
            return self.parse_factor()
        if token.kind == "num" and not script and len(token.text) > 1 and token.text.isdecimal():
            self.tokens[self.position] = Token("num", token.text[1:])
            return num(int(token.text[0]))
        return self.parse_atom()

    def _parse_number(self, text: str) -> Node:
        """Parse a plain number, one in scientific notation, or a decimal with a marked period."""
        _, _, places = text.partition(".")
        if self.is_next(".") and self.peek(1).text in _PERIOD_MARKS:
            self.position += 1
            return self._parse_period(text + ".")
        if places and self.next.text in _PERIOD_MARKS:
            return self._parse_period(text)
        if len(places) >= 3 and self.is_next(r"\dots") and (period := _PERIOD.search(places)):
            self.advance()  # 0.333... and 0.1666...
            return _repeating_decimal(
                text[: len(text) - len(places) + period.start()], period[1] or period[2]
            )
        mantissa, _, exponent = text.lower().partition("e")
        if exponent:
            return num(Fraction(text), len(mantissa.partition(".")[2]) - int(exponent))
        return num(Fraction(text), len(places) or None)

    def _parse_period(self, before: str) -> Node:
        r"""Parse the period of `0.1\overline{6}` or of `0.\dot{1}4285\dot{7}`, marked at both ends."""
        marks = self.advance().text
        digits = self.raw_text()
        if marks == r"\dot":
            if self.next.kind == "num" and self.peek(1).text == r"\dot":
                digits += self.advance().text
            if self.accept(r"\dot"):
                digits += self.raw_text()
        if not (digits.isdecimal() and digits.isascii()):
            raise UnreadableError("the mark of a period is not above digits")
        return _repeating_decimal(before, digits)

    def _parse_word(self, token: Token) -> Node:
        text = token.text
        if len(text) == 1 and text.isascii():
            return self._parse_application(_CONSTANTS.get(text, ("sym", text)))
        if self.is_product(token):
            self.tokens[self.position - 1 : self.position] = [Token("letter", c) for c in text]
            return _CONSTANTS.get(text[0], ("sym", text[0]))
        is_before_name = self.next.kind in ("word", "cmd") and self.starts_factor()
        if self.next.kind == "num" or self.is_next("^", "_") or is_before_name:
            raise UnreadableError("a sentence: words before a value")
        return ("sym", token.low)

    def is_product(self, token: Token) -> bool:
        """Whether letters in a row are a product of names: `xy`, `nRT`, but not `cm` or `even`.

        Three or four letters are names if mathematics is on both sides, or if no word is spelled
        like that: without a vowel, with a capital inside, or in alphabetical order.
        """
        text = token.text
        if token.kind != "word" or not 2 <= len(text) <= 4 or text in SHORT_WORDS:
            return False
        if text in PERCENT_WORDS or (len(text) > 2 and lookup_unit(text)):
            return False
        if len(text) == 2 or text.isupper():
            return True
        at = self.position if self.tokens[self.position] is token else self.position - 1
        before, after = self.tokens[at - 1] if at else token, self.tokens[at + 1]
        if after.is_sign("^", "_") or (before.kind == "num" and not token.follows_space):
            return True
        if all(ord(b) - ord(a) == 1 for a, b in pairwise(text)):
            return True
        if not _VOWELS & set(text[text[0] in "aeiou" :]) or not text[1:].islower():
            return True
        is_before_sign = after.is_sign(*_SIGNS_AFTER_NAMES) or after.kind == "end"
        return is_before_sign and before.is_sign(*_SIGNS_BEFORE_NAMES)

    def _parse_application(self, name: Node) -> Node:
        """Parse the application of a name, as in `f(x)`, if a bracket follows right after it."""
        if name[0] == "const" and self.is_next("(") and self.peek(1).text in ("t", "0"):
            name = ("sym", name[1])  # because i(t) is a current
        if name[0] != "sym":
            return name
        text: str = name[1]
        while self.accept("'"):
            text += "'"
        if text == "E" and self.accept("["):
            return fn("E", self.parse_group("]"))
        if self.is_next("(") and text in ("P", "Pr", "p") and self._is_event():
            self.advance()
            self.open_bars += 1
            event = [self.parse_items()]
            if self.accept("|", r"\mid"):
                event.append(self.parse_items())
            self.open_bars -= 1
            self.expect(")")
            return fn(text, *event)
        if self.is_next("(") and (text[0] in "fghFGH" or self._is_single_argument(text[0])):
            self.advance()
            inside = self.parse_group(")")
            arguments = inside[1:] if inside[0] == "list" else (inside,)
            if any(part[0] in ("rel", "where", "or", "and") for part in arguments):
                raise UnreadableError("a condition is not an argument")
            return fn(text, *arguments)
        return ("sym", text)

    def _is_event(self) -> bool:
        for steps in range(1, 12):
            if self.peek(steps).is_sign(")"):
                return False
            if self.peek(steps).is_sign(*RELATION_SIGNS, r"\cap", r"\cup", r"\mid", "|"):
                return True
        return False

    def _is_single_argument(self, name: str) -> bool:
        """Whether a bracket holds one name or number, as in `T(10)` but not `p(1-p)`, or a point."""
        inside = self.peek(1)
        is_simple = inside.kind == "num" or (
            inside.kind in ("word", "letter") and len(inside.text) == 1
        )
        is_usual = name.isupper() or name in "pqruvwy" or inside.text in ("t", "0")
        return is_simple and is_usual and self.peek(2).is_sign(")", ",")

    # --- brackets

    def parse_group(self, closing: str) -> Node:
        """Parse a group up to its closing sign, and the sign."""
        node = self._parse_inside()
        self.expect(closing)
        return node

    def _parse_inside(self, bars: int = 0) -> Node:
        """Parse the content of a bracket, with a number of bars that are open in it."""
        self.descend()
        bars, self.open_bars = self.open_bars, bars
        self.open_brackets += 1
        node = self.parse_content()
        self.open_brackets -= 1
        self.open_bars = bars
        self.depth -= 1
        return node

    def parse_content(self) -> Node:
        r"""Parse a list, or the two sides of `\over` or `\choose`."""
        node = self.parse_items()
        if self.accept(r"\choose"):
            return fn("binom", node, self.parse_items())
        return divide(node, self.parse_items()) if self.accept(r"\over") else node

    def _parse_sign(self, sign: str) -> Node:
        """Parse a bracket: `(a, b)` is a tuple, which may be an interval; others are intervals."""
        if sign == "{":
            return self._parse_application(self.parse_group("}"))
        if sign == "|":
            self.open_bars += 1
            node = self.parse_sum()
            self.open_bars -= 1
            self.expect("|")
            return fn("abs", node)
        if sign not in ("(", "[", "]"):
            raise UnreadableError(f"unexpected {sign!r}")
        is_open = sign != "["  # ]a, b[ is the French open interval
        inside = self._parse_inside()
        closing = self.advance()
        if not closing.is_sign(")", "]", "["):
            raise UnreadableError("a bracket is not closed")
        items = inside[1:] if inside[0] == "list" else (inside,)
        if len(items) == 1:
            return inside
        if len(items) == 2 and not (is_open and closing.text == ")"):
            return ("interval", *items, is_open, closing.text != "]")
        return ("tuple", *items)

    # --- commands

    def _parse_command(self, name: str) -> Node:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in FUNCTION_COMMANDS:
            return self._parse_function(FUNCTION_COMMANDS[name])
        if name == r"\Delta" and self.next.kind in ("word", "letter") and len(self.next.text) == 1:
            change = f"Delta {self.advance().text}"  # not a product
            return self._parse_application(("sym", change))
        if name in LETTER_COMMANDS:
            return self._parse_application(("sym", name[1:]))
        parse = _COMMANDS.get(name)
        if parse is None:
            raise UnreadableError(f"unknown command {name}")
        return parse(self, name)

    def parse_accent(self, name: str) -> Node:
        r"""Parse an accented name: `\overline{z}` differs from `z`, the vector `AB` from `BA`."""
        start = self.position
        inside = self.parse_argument()
        if name == r"\overrightarrow":
            return ("sym", f"vec {self._raw_span(start)}")
        is_argument = self.peek(1).text in ("t", "0") and self.peek(2).is_sign(")")
        if inside[0] == "sym" and self.is_next("(") and is_argument:
            self.advance()
            return fn(f"{name[1:]} {inside[1]}", self.parse_group(")"))  # \dot{x}(0)
        return fn(name[1:], inside)

    def parse_shape(self, name: str) -> Node:
        r"""Parse a shape: `\angle ABC` is `\angle CBA`; a triangle's letters may have any order."""
        start = self.position
        inside = self.parse_group("}") if self.accept("{") else self.parse_atom()
        while self.next.kind == "letter" and self.next.text.isupper():
            self.advance()
        letters = self._raw_span(start)
        if not (letters.isalpha() and letters.isupper()):
            return fn(name[1:], inside)
        if name == r"\triangle":
            letters = "".join(sorted(letters))
        return fn(name[1:], ("sym", min(letters, letters[::-1])))

    def parse_number_set(self, name: str) -> Node:
        r"""Parse `\mathbb{R}`, with `^+` or `^*` after it."""
        letter = name[-2:-1] + (self.raw_text() if self.accept("^") else "")
        return ("sym", letter if letter == "R" else f"set {letter}")

    def parse_fraction(self, _: str) -> Node:
        """Parse a fraction, or a derivative such as `dy/dx`."""
        start = self.position
        top = self.parse_argument()
        above = self._raw_span(start)
        middle = self.position
        bottom = self.parse_argument()
        if {_leading_name(top), _leading_name(bottom)} <= {"d", "partial"}:
            return ("sym", f"{above}/{self._raw_span(middle)}")
        return divide(top, bottom)

    def _parse_function(self, name: str) -> Node:
        r"""Parse `\sin x`, `\sin^2 x`, `\sin^{-1} x`, `\log_2 8` or `\max_{x} f`."""
        base = exponent = None
        if name in ("log", "max", "min") and self.accept(
            "_"
        ):  # 2 in `\log_28`, 10 in `\log_10 100`
            operand = self.peek(1)
            is_all = operand.kind not in ("op", "end") or operand.is_sign("(", "{", "^")
            base = self.parse_argument(script=is_all)
        if self.accept("^"):
            exponent = self.parse_argument(script=True)
        inside = self._parse_operand()
        if exponent == MINUS_ONE and name in INVERSE_FUNCTIONS:
            return fn(f"arc{name}", inside)
        node = fn("ln" if name == "log" else name, inside)
        if name == "log" and base is not None:
            node = divide(node, fn("ln", base))
        elif name == "cbrt":
            node = fn("root", inside, num(3))
        elif name in ("gcd", "lcm", "max", "min") and inside[0] in ("list", "tuple", "set"):
            node = fn(name, *inside[1:])
        if name in ("max", "min") and (base is not None or len(node) == 3):
            node = fn(f"{name} of", *node[2:], *(() if base is None else (base,)))
        return node if exponent is None else ("pow", node, exponent)

    def _parse_operand(self) -> Node:
        if self.is_next("("):
            return self.parse_atom()  # because a power after it belongs to the function
        if self.accept("{"):
            return self.parse_group("}")
        node = self.parse_factor()
        while self.next.kind in ("num", "word", "letter", "cmd") and self.starts_factor():
            if self.next.kind == "cmd" and self.next.text in FUNCTION_COMMANDS:
                break
            node = mul(node, self.parse_power())
        while self.accept("/"):
            node = divide(node, self.parse_factor())
        return node

    def parse_root(self, name: str) -> Node:
        r"""Parse a root; `√` takes the whole number, bracket or name after it."""
        if name == r"\surd":
            return fn("sqrt", self.parse_atom())
        degree = self.parse_group("]") if self.accept("[") else num(2)
        inside = self.parse_power() if self.is_next("(") else self.parse_argument()
        if degree == num(2):
            return fn("sqrt", inside)
        is_odd = degree[0] == "num" and degree[1].denominator == 1 and degree[1] % 2 == 1
        return fn("root", inside, degree) if is_odd else ("pow", inside, divide(ONE, degree))

    def parse_fence(self, name: str) -> Node:
        """Parse a floor, a ceiling or a norm, or a tuple or a mean in angle brackets."""
        function, closing = FENCES[name]
        inside = self._parse_inside()
        if function != "mean" or not self.accept(">"):
            self.expect(closing)
        if function == "mean" and inside[0] == "list":
            return ("tuple", *inside[1:])
        return fn(function, inside)

    def parse_set(self, _: str) -> Node:
        r"""Parse `\{1, 2\}`, `\{x \mid x < 3\}`, or the rows of a piecewise function."""
        if self.accept(r"\}"):
            return ("set",)
        first = self._parse_inside(bars=1)
        if self.accept("|", r"\mid", ":"):
            return ("builder", first, self.parse_group(r"\}"))
        if first[0] == "matrix" and not self.is_next(r"\}"):
            return _rows_as_cases([row[1:] for row in first[1:]])
        self.expect(r"\}")
        return ("set", *(first[1:] if first[0] in ("list", "or", "and") else (first,)))

    def parse_environment(self, _: str) -> Node:
        """Parse a matrix, a determinant, a piecewise function, or rows of formulas."""
        kind = self.raw_text()
        is_matrix = kind in MATRIX_ENVIRONMENTS
        if not is_matrix and kind not in ROW_ENVIRONMENTS:
            raise UnreadableError(f"unknown environment {kind}")
        if kind == "array" and self.is_next("{"):
            self.raw_text()
        has_cells = is_matrix or "cases" in kind
        if not has_cells:  # `&` only aligns
            rest = self.tokens[self.position :]
            self.tokens[self.position :] = [token for token in rest if not token.is_sign("&")]
        rows = self._parse_rows(has_cells=has_cells)
        self.raw_text()
        if not is_matrix:
            return _rows_as_cases(rows)
        node: Node = ("matrix", *(("row", *row) for row in rows))
        return fn("det", node) if kind in ("vmatrix", "Vmatrix") else node

    def _parse_rows(self, *, has_cells: bool) -> list[tuple[Node, ...]]:
        rows: list[tuple[Node, ...]] = [()]
        bars, self.open_bars = self.open_bars, 0
        self.open_brackets += 1
        while not self.accept(r"\end"):
            if self.next.kind == "end":
                raise UnreadableError("an environment is not closed")
            if self.accept("\\\\"):
                rows.append(())
            elif not self.accept("&", r"\hline", ",", ";", "."):
                cell = self._parse_cell() if has_cells else self.parse_relation()
                rows[-1] = (*rows[-1], cell)
        self.open_brackets -= 1
        self.open_bars = bars
        return [row for row in rows if row]

    def _parse_cell(self) -> Node:
        if self.next.is_word and self.next.low in CLAUSE_OPENERS:
            if self.advance().low in ("otherwise", "else", "其他"):
                return ("sym", "otherwise")
            self.accept("&")
        return self.parse_relation()

    def parse_big_operator(self, name: str) -> Node:
        r"""Parse an operator such as `\sum_{k=1}^{n} k`, which is never evaluated."""
        limits = [self.raw_text() for _ in range(2) if self.accept("_", "^")]
        body = self.parse_product()
        if limits and limits[0][1:2] == "=":  # a bound variable may have any name
            body = substitute(body, {("sym", limits[0][0]): ("sym", "bound")})
            limits[0] = limits[0][1:]
        return fn(name, body, *(("text", limit) for limit in limits))

    def parse_binomial(self, _: str) -> Node:
        """Parse a binomial coefficient."""
        return fn("binom", self.parse_argument(), self.parse_argument())


_COMMANDS: Mapping[str, Callable[[ExpressionParser, str], Node]] = {
    **dict.fromkeys(ACCENTS, ExpressionParser.parse_accent),
    **dict.fromkeys(SHAPE_COMMANDS, ExpressionParser.parse_shape),
    **dict.fromkeys(FENCES, ExpressionParser.parse_fence),
    **dict.fromkeys(UNEVALUATED_OPERATORS, ExpressionParser.parse_big_operator),
    **{rf"\mathbb{{{letter}}}": ExpressionParser.parse_number_set for letter in "RZNQCPEFKDH"},
    **dict.fromkeys((r"\sqrt", r"\surd"), ExpressionParser.parse_root),
    r"\frac": ExpressionParser.parse_fraction,
    r"\binom": ExpressionParser.parse_binomial,
    r"\mathcal": lambda parser, _: parser.parse_argument(),
    r"\{": ExpressionParser.parse_set,
    r"\begin": ExpressionParser.parse_environment,
}


def _rows_as_cases(rows: list[tuple[Node, ...]]) -> Node:
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


def _leading_name(node: Node) -> str:
    """Return the name at the start of a product or of a power's base; "" without one."""
    first: Node = node[1] if node[0] == "mul" else node
    first = first[1] if first[0] == "pow" else first
    return str(first[1]) if first[0] == "sym" and node[0] in ("mul", "sym", "pow") else ""


def _is_vector(node: Node) -> bool:
    name: str = node[1] if node[0] == "sym" else ""
    return name.startswith("vec ") or name.isupper()


def _transpose(node: Node) -> Node:
    if node[0] == "tuple":
        return ("matrix", *(("row", item) for item in node[1:]))
    if len({len(row) for row in node[1:]}) != 1:
        raise UnreadableError("rows differ in length")
    columns = zip(*(row[1:] for row in node[1:]), strict=True)
    return ("matrix", *(("row", *column) for column in columns))
