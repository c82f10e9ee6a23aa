r"""Tokens -> tree: one parser, by recursive descent.

A text is parsed completely or not at all. `equal` compares a text that the grammar does not accept
by its folded tokens.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from rewardkit.answers import doubt
from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.tokens import END_TOKEN, Token, UnreadableError, fold, fold_case
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
    subtrees,
)
from rewardkit.answers.parsing.units import (
    CURRENCIES,
    NO_UNIT,
    POWER_SUFFIXES,
    UNITS,
    Unit,
    counting_unit,
    lookup_unit,
    unit_power,
)

#: Deepest nesting that is parsed.
MAX_DEPTH = 64

_CONSTANTS: Mapping[str, Node] = {
    "e": ("const", "e"), "i": ("const", "i"), r"\pi": PI, r"\infty": INF, r"\emptyset": ("set",),
    r"\R": ("sym", "R"), r"\dots": ("sym", "..."),
}  # fmt: skip
_LETTERS = (_CONSTANTS["e"], _CONSTANTS["i"])
#: Repetition at the end of the digits before an ellipsis: one digit three times, or several twice.
_PERIOD = re.compile(r"(?:(\d{2,10}?)\1|(\d)\2\2+)\Z")
_VOWELS = frozenset("aeiouy")
_SIGNS_BEFORE_NAMES = ("{", "+", "-", "*", r"\cdot")
_SETS = ("set", "interval", "union", "builder")
_REGION_SIGNS = vocabulary.pairs(r"\cup union U union \cap meet \setminus minus")
_MODULUS_WORDS = (r"\bmod", r"\pmod", "mod")
_WORD_ENDS = vocabulary.CONJUNCTIONS | vocabulary.DISJUNCTIONS | vocabulary.CLAUSE_OPENERS
_NON_NAME_WORDS = _WORD_ENDS | vocabulary.COPULAS

#: Most words of a unit and of a label.
MAX_UNIT_WORDS = 6
MAX_LABEL_WORDS = 8
#: Digits of Roman numerals: `IV` and `VI` differ, so two capitals are not a product of names.
_ROMAN = frozenset("IVX")
#: The name before the scripts of a number of choices: `C_{10}`, `A_n`, `C_{2n}`.
_SELECTION = re.compile(r"[CA]_(?=\w)(\d{1,4})?([a-z])?", re.ASCII)
#: Rows of a matrix in brackets, and the bracket that ends it.
_ROWS = re.compile(r"(?:\[[^\[\]]*\],)*\[[^\[\]]*\]\]")
_CLOCK = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]\.?m\.?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/])\d\d?\2\d{2,4}", re.ASCII)
#: Words of angles and temperatures, which have a kind of node of their own.
_DEGREE_WORDS = ("degree", "degrees", "deg", "度")
_TEMPERATURES = vocabulary.pairs("c °C celsius °C f °F fahrenheit °F")
_DEGREES = tuple(map(counting_unit, _DEGREE_WORDS))
_PERCENTS = frozenset(map(counting_unit, vocabulary.PERCENT_WORDS))


def parse(tokens: Sequence[Token], *, letters_are_units: bool | None = None) -> Node:
    """Return the tree of a text's tokens.

    Args:
        tokens: the tokens of a text, the end token last.
        letters_are_units: whether letters after a number are a unit (`5 m`) or names (`2mg`); None
            if the letters decide.

    Raises:
        UnreadableError: the grammar does not accept the text, or the text is over a limit.
    """
    text = "".join(token.text for token in tokens) if tokens[0].kind == "num" else ""
    if _CLOCK.fullmatch(text):
        return ("clock", text.casefold().replace(".", "").removeprefix("0"))
    if _DATE.fullmatch(text):
        return ("text", text)
    try:
        tokens = _join_tokens(tokens, letters_are_units=letters_are_units)
        return _Parser(tokens, letters_are_units=letters_are_units).parse_whole()
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error


def _join_tokens(tokens: Sequence[Token], *, letters_are_units: bool | None) -> list[Token]:
    r"""Return the tokens with words that belong together as one: `\mu\text{m}`, `degrees Celsius`."""
    joined: list[Token] = []
    for token, after in pairwise([*tokens, END_TOKEN]):
        last = joined[-1] if joined else END_TOKEN
        prefix = "μ" if last.text == r"\mu" else last.text
        name = "Ω" if token.text == r"\Omega" else token.text
        is_sure = letters_are_units or "text" in (last.kind, token.kind)
        if last.text == "US" and token.text in (r"\$", "$", "dollar", "dollars"):
            joined[-1] = token
        elif last.low in _DEGREE_WORDS and token.low in _TEMPERATURES:
            joined[-1] = Token("text", _TEMPERATURES[token.low], last.follows_space)
        elif is_sure and prefix and (prefix == "μ" or name == "Ω") and prefix + name in UNITS:
            joined[-1] = Token("text", prefix + name, last.follows_space)
        elif letters_are_units and name == "Ω" and last.kind == "num":
            joined.append(Token("text", name, token.follows_space))
        elif token.text in ("to", "比") and last.kind == after.kind == "num":
            joined.append(Token("op", ":" if token.text == "比" else "to"))
        else:
            joined.append(token)
    return joined


class _Parser:
    """One pass over the tokens by recursive descent."""

    def __init__(self, tokens: list[Token], *, letters_are_units: bool | None = None) -> None:
        self.tokens = tokens
        self.letters_are_units = letters_are_units
        self.position = 0
        self.depth = 0
        self.open_bars = 0
        self.open_brackets = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def peek(self, steps: int) -> Token:
        """Return the token `steps` further on; the end token beyond the end."""
        return self.tokens[min(self.position + steps, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.position]
        self.position += token.kind != "end"
        return token

    def is_next(self, *signs: str) -> bool:
        token = self.tokens[self.position]
        return token.text in signs and token.kind in ("op", "cmd")

    def accept(self, *signs: str) -> bool:
        """Consume the next token if it is one of these signs; return whether it was."""
        is_next = self.is_next(*signs)
        self.position += is_next
        return is_next

    def expect(self, sign: str) -> None:
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

    # --- the whole text

    def parse_whole(self) -> Node:
        is_option = self.peek(1).text in tuple("ABCDE") and self.peek(2).is_sign(")")
        if self.is_next("(") and is_option and self.peek(3).follows_space:
            self.position += 3  # as in `\textbf{(B)}\ 12`
        node = self.parse_content()
        while self.accept(".", "!", ",", ";"):
            pass
        if self.next.kind != "end":
            raise UnreadableError(f"unexpected {self.next.text!r} after the answer")
        return node

    def parse_items(self) -> Node:
        """Parse `a, b; c or d`: groups separated by `;` and `or`, items by commas and `and`."""
        groups: list[list[Node]] = [[]]
        joints: set[str] = set()
        clause: list[Token] = []
        while True:
            groups[-1].append(self.parse_relation())
            if clause := self._take_clause():
                break
            joint = self._parse_joint()
            is_last = self.next.kind == "end" or self.next.is_sign(*vocabulary.CLOSING_SIGNS)
            if not joint or is_last or (clause := self._take_clause()):
                break
            joints.add(joint)
            if joint in (";", "or"):
                groups.append([])
        node = _group_items(groups, joints)
        return ("where", node, *_read_clause(clause)) if clause else node

    def _parse_joint(self) -> str:
        """Parse what joins two items and return it: `,`, `;`, `and`, `or`; "" if nothing does."""
        joint = ""
        while True:
            token = self.next
            if token.is_sign(","):
                joint = joint or ","
            elif token.is_sign(";", r"\\"):
                joint = ";"
            elif token.low in vocabulary.CONJUNCTIONS:
                joint = joint if joint in (";", "or") else "and"
            elif token.low in vocabulary.DISJUNCTIONS:
                joint = "or"
            else:
                return joint
            self.position += 1

    def _take_clause(self) -> list[Token]:
        if self.open_brackets:
            return []
        if not (
            self.next.low in vocabulary.CLAUSE_OPENERS
            or self.opens_condition()
            or self._opens_membership()
        ):
            return []
        start, self.position = self.position, len(self.tokens) - 1
        return self.tokens[start:-1]

    def _opens_membership(self) -> bool:
        r"""Whether an item only says what a name before it may be: `k \in \mathbb{Z}`, `n \ge 1`."""
        name, sign, right = self.next, self.peek(1), self.peek(2)
        is_set = sign.is_sign(r"\in") and right.text.startswith((r"\mathbb", *"ZNRCQ"))
        is_count = sign.is_sign(r"\ge", ">") and right.text in ("0", "1") and name.text in "ijkmn"
        is_whole = self.peek(3).kind == "end" or self.peek(3).is_sign(",", ".")
        is_item = self.tokens[self.position - 1].is_sign(",")
        if not (is_item and (is_set or (is_count and is_whole))):
            return False
        return any(token.text == name.text for token in self.tokens[: self.position])

    # --- relations and labels

    def parse_relation(self) -> Node:
        r"""Parse `a < b \le c`, `x = 5`, `x \in S`, `Volume: 5` or `x \equiv 3 \pmod 7`."""
        label = self._parse_label()
        is_chain = self.tokens[self.position - 1].is_sign("=", r"\approx")
        self.accept("=", r"\approx")
        sides, operators = [self._parse_ratio()], []
        while self.is_next(*vocabulary.RELATION_SIGNS):
            operators.append(vocabulary.RELATION_SIGNS[self.advance().text])
            sides.append(self._parse_ratio())
        if steps := self._steps_to_rounding():
            in_bracket = self.is_next("(")
            self.position += steps
            operators.append("~")
            sides.append(self._parse_ratio())
            if in_bracket:
                self.expect(")")
        if operators and sides[0] in _LETTERS and sides[0] not in sides[1:]:
            sides[0] = ("sym", sides[0][1])  # the eccentricity e, the current i
        node = ("rel", " ".join(operators), *sides) if operators else sides[0]
        node = self._parse_modulus(node)
        if label and node[0] != "rel":
            return ("rel", "=", ("sym", label), node)
        is_chain = is_chain and bool(label)  # not as in `the answer is x > 3`
        return ("rel", f"= {node[1]}", ("sym", label), *node[2:]) if is_chain else node

    def _steps_to_rounding(self) -> int:
        r"""Return the tokens before a rounding of the value: `(\approx 2.24)`, `or about 2.24`; else 0."""
        steps = int(self.is_next(",", "("))
        steps += not self.is_next("(") and self.peek(steps).low in vocabulary.DISJUNCTIONS
        sign = self.peek(steps)
        is_rounded = sign.is_sign(r"\approx") or sign.low in vocabulary.APPROXIMATION_WORDS
        return steps + 1 if steps and is_rounded else 0

    def _parse_label(self) -> str:
        at = self.position
        words: list[str] = []
        while (token := self.tokens[at]).is_word or token.is_sign(r"\max", r"\min"):
            words.append(token.low.lstrip("\\"))
            at += 1
            if len(words) > MAX_LABEL_WORDS:
                break
            if words[-1] in vocabulary.COPULAS or words[-1].endswith(("是", "为")):
                return self._accept_label(at, words)
        sign, letters = self.tokens[at], "".join(words)
        is_sure = letters in vocabulary.LABELS_WITHOUT_SIGN
        is_name = self.next.text.isupper() and not sign.is_sign(":")
        has_sign = sign.is_sign("=", r"\approx", ":")
        if has_sign and (is_sure or len(letters) > 2) and not is_name:
            return self._accept_label(at + 1, words)
        if is_sure and (sign.kind == "num" or sign.is_sign("-")):
            return self._accept_label(at, words)
        while self.next.low in vocabulary.NEUTRAL_QUALIFIERS and self.peek(1).kind != "end":
            self.advance()
        return ""

    def _accept_label(self, at: int, words: list[str]) -> str:
        names = [word for word in words if word not in vocabulary.COPULAS]
        ends = {a for a, b in zip(names, [*names[1:], "of"], strict=False) if b == "of"}
        is_changed = any(part in "".join(words) for part in doubt.CHINESE_LABEL_MODIFIERS)
        if is_changed or ends & doubt.LABEL_OPERATIONS or not doubt.LABEL_DOUBTS.isdisjoint(words):
            raise UnreadableError(f"{' '.join(words)!r} changes what follows")
        is_letter = len(names) == 1 == len(names[0])
        name = self.next.text if is_letter else " ".join(names).rstrip("为是")
        self.position = at
        self.accept(":")
        return name or "it"

    def _parse_modulus(self, node: Node) -> Node:
        in_bracket = self.is_next("(")
        if self.peek(in_bracket).text not in _MODULUS_WORDS:
            return node
        self.position += 1 + in_bracket
        modulus = self.parse_argument(script=True)
        if in_bracket:
            self.expect(")")
        return ("congruence", node, modulus)

    def _parse_ratio(self) -> Node:
        parts = [self._parse_region()]
        sign = self.next.text
        while not self.open_bars and self.peek(1).kind != "end" and self.accept(":", "to"):
            parts.append(self._parse_region())
        return parts[0] if len(parts) == 1 else ("to" if sign == "to" else "ratio", *parts)

    def _parse_region(self) -> Node:
        r"""Parse quantities with `\cup`, `U`, `\cap` or `\setminus` between, from left to right."""
        node = self._parse_quantity()
        while self.next.text in _REGION_SIGNS and (self.next.text != "U" or self.is_union(node)):
            kind = _REGION_SIGNS[self.advance().text]
            part = self._parse_quantity()
            node = (*node, part) if node[0] == kind == "union" else (kind, node, part)
        return node

    # --- quantities, money and words

    def _parse_quantity(self) -> Node:
        """Parse a value with its unit, an amount of money, or words."""
        if (node := self._parse_money() or self._parse_words()) is not None:
            return node
        node = self._parse_multipliers(self.parse_sum())
        while self.next.text in vocabulary.ORDINAL_SUFFIXES and not self.next.follows_space:
            self.advance()
        has_number = any(part[0] in ("num", "const", "base") for part in subtrees(node))
        is_unit = self.next.kind in ("text", "han") and lookup_unit(self.next.text) is not None
        unit = self._parse_unit() if has_number or is_unit else NO_UNIT
        return node if unit == NO_UNIT else self._parse_compound(_apply_unit(node, unit))

    def _parse_money(self) -> Node | None:
        is_negative = self.is_next("-")
        sign, after = self.peek(is_negative), self.peek(is_negative + 1)
        if sign.text not in CURRENCIES or after.kind not in ("num", "cmd", "op"):
            return None
        self.position += 1 + is_negative
        unit = UNITS[CURRENCIES[sign.text]]
        node = self._parse_multipliers(self.parse_sum())
        rate = self._parse_unit()
        if rate != unit and any(exponent > 0 for _, exponent in rate.dimension):
            raise UnreadableError("two units of money")
        unit = unit if rate == unit else unit.multiply(rate)  # as in `$5 per pound`
        return ("quantity", neg(node) if is_negative else node, unit)

    def _parse_words(self) -> Node | None:
        at = self.position
        while self.tokens[at].is_word and not _ends_words(self.tokens[at]):
            at += 1
        words, after = self.tokens[self.position : at], self.tokens[at]
        if not (
            words and (after.is_sign(",", ";", ".", "!", ")", "}", r"\}") or _ends_words(after))
        ):
            return None
        text = "".join(word.text for word in words)
        is_pair = len(text) == 2 and not set(text) <= _ROMAN
        is_code = len(words) == 1 < len(text) and text.isupper() and not is_pair
        are_letters = len(words) > 1 and all(w.kind == "text" and len(w.text) == 1 for w in words)
        if not (is_code or are_letters):  # letters whose order counts, as in HTH
            if all(len(word.text) == 1 or self.is_product(word) for word in words):
                return None
            text = " ".join(fold_case(word.text) for word in words)
        self.position = at
        return vocabulary.WORD_VALUES.get(text, ("text", text))

    def _parse_multipliers(self, node: Node) -> Node:
        while self.next.is_word and not lookup_unit(self.next.text):
            word = self.next.low
            size = 1 if self.next.kind == "han" else len(word)
            factor = vocabulary.MULTIPLIERS.get(word[:size])
            if factor is None:
                break
            if word[size:]:
                self.tokens[self.position] = self.next._replace(text=word[size:])
            else:
                self.advance()
            node = num(node[1] * factor) if node[0] == "num" else mul(num(factor), node)
        return node

    def _parse_compound(self, first: Node) -> Node:
        parts = [first]
        while first[0] == "quantity" and (
            self.next.kind == "num" or self._continues_compound(parts[-1])
        ):
            self.position += self.next.kind != "num"
            value = self.parse_power()
            unit = self._parse_unit()
            if unit == NO_UNIT:
                raise UnreadableError("a number after a quantity")
            parts.append(_apply_unit(value, unit))
        if len(parts) > 1 and "counted" in str(parts):
            raise UnreadableError("counts side by side are not a compound quantity")
        return first if len(parts) == 1 else ("compound", *parts)

    def _continues_compound(self, last: Node) -> bool:
        """Whether a smaller unit of the same dimension follows, as in `2 hours and 30 minutes`."""
        is_joint = self.is_next(",") or self.next.low == "and"
        unit = lookup_unit(self.peek(2).text) if is_joint and self.peek(1).kind == "num" else None
        is_smaller = unit and unit.dimension == last[2].dimension and unit.factor < last[2].factor
        return bool(is_smaller)

    def _parse_unit(self) -> Unit:
        """Parse a unit: `cm^2`, `m/s`, `square feet`, `apples`; `NO_UNIT` without one."""
        unit = last = NO_UNIT
        words, power, is_divisor = 0, 1, False
        while words <= MAX_UNIT_WORDS:
            is_divisor = self._parse_unit_joint(words) or (is_divisor and power != 1)
            sign = -1 if is_divisor else 1
            if not self._is_unit_word(self.next, words):
                break
            name = self.advance().text
            if unit_power(name):
                power *= unit_power(name)
                self.accept(".")
                continue
            if (suffix := POWER_SUFFIXES.get(name.lower())) is not None:
                unit = unit.multiply(last, suffix - 1)
                continue
            name = CURRENCIES.get(name, name)
            last = (lookup_unit(name) or counting_unit(name)).power(sign)
            unit = unit.multiply(last, self._parse_unit_exponent() * power)
            words, power = words + 1, 1
        return unit

    def _parse_unit_joint(self, words: int) -> bool:
        r"""Parse `/`, `per` or `\cdot` between units; return whether the next one is a divisor."""
        is_below = self.tokens[self.position - 1].is_sign("/")
        while True:
            token, after = self.next, self.peek(1)
            is_per = token.text in ("per", "每")
            if is_per and after.text == "cent":
                self.tokens[self.position : self.position + 2] = [after._replace(text="percent")]
                return is_below
            if not after.is_word:
                return is_below
            if is_per or (self.is_next("/") and (words or lookup_unit(after.text))):
                is_below = True
            elif not (self.is_next("-") or (words and self.is_next(r"\cdot", "*"))):
                return is_below
            self.advance()

    def _is_unit_word(self, token: Token, words: int) -> bool:
        word = token.low
        if not token.is_word:
            return token.text in CURRENCIES and not words  # 5€
        if _ends_words(token) or word in vocabulary.COPULAS:
            return False
        if unit_power(word) or (words and word in POWER_SUFFIXES):
            return True
        is_changed = not word.isascii() and any(
            part in word for part in doubt.CHINESE_NUMBER_MODIFIERS
        )
        if is_changed or word in doubt.NUMBER_MODIFIERS:
            raise UnreadableError(f"{token.text!r} changes a number")
        after = self.peek(1)
        if word == "in" and (after.is_word or after.kind == "num"):
            return False  # as in `200 minutes in 5 days`
        if token.kind != "word" or len(token.text) > 2:
            return True
        is_sure = self.letters_are_units or bool(words) or self._is_letter_unit(token.text)
        return is_sure and token.text in UNITS

    def _parse_unit_exponent(self) -> int:
        exponent = self.parse_argument(script=True) if self.accept("^") else num(1)
        if exponent[0] != "num" or exponent[1].denominator != 1 or abs(exponent[1]) > 9:
            raise UnreadableError("the exponent of a unit is not a small integer")
        return int(exponent[1])

    def opens_condition(self) -> bool:
        r"""Whether a bracket opens a condition on a name: `(k \in Z)`, `(n \ge 1)`, `(k为整数)`."""
        is_name = self.is_next("(") and len(self.peek(1).text) == 1
        sign = self.peek(2)
        is_sign = sign.is_sign(r"\in", r"\ge", r"\le", r"\ne", "<", ">", "=")
        return is_name and (is_sign or (sign.kind == "han" and sign.text.endswith("整数")))

    # --- sums and products

    def parse_sum(self) -> Node:
        r"""Parse terms with `+`, `-` and `\pm` between them."""
        terms = [self._parse_term()]
        while self.is_next(r"\pm", r"\mp", "-") or (
            self.is_next("+") and self.peek(1).kind != "end"
        ):
            terms.append(self._parse_term())
        if len(terms) == 2 and terms[1][:2] == ("mul", MINUS_ONE) and terms[1][2][0] in _SETS:
            return ("minus", terms[0], terms[1][2])
        return add(*terms)

    def _parse_term(self) -> Node:
        r"""Parse a product with signs before it; `\mp` is minus where `\pm` is plus."""
        is_negative = self._accept_signs()
        is_double = self.is_next(r"\pm", r"\mp")
        is_negative ^= is_double and self.advance().text == r"\mp"
        node = self.parse_product()
        node = neg(node) if is_negative else node
        return ("pm", node) if is_double else node

    def _accept_signs(self) -> bool:
        is_negative = False
        while self.is_next("+", "-"):
            is_negative ^= self.advance().text == "-"
        return is_negative

    def parse_product(self) -> Node:
        """Parse factors from left to right, with or without signs between them."""
        node = self.parse_power()
        while True:
            if self.is_next(r"\cdot", r"\times", "*"):
                sign, factor = self.advance().text, self.parse_factor()
                is_cross = sign == r"\times" and _is_vector(node) and _is_vector(factor)
                node = fn("cross", node, factor) if is_cross else multiply(node, factor)
            elif self.is_next("/", r"\div"):
                unit = self.peek(1)
                if (unit.kind != "word" or len(unit.text) > 1) and lookup_unit(unit.text):
                    return node  # as in `$5/lb`
                self.advance()
                node = divide(node, self.parse_factor())
            elif self.starts_factor() and not (self._is_unit_of(node) or self.is_union(node)):
                node = self._parse_adjacent_factor(node)
            else:
                return node

    def is_union(self, node: Node) -> bool:
        """Whether the next token is the `U` of a union."""
        return self.next.text == "U" and node[0] in ("interval", "tuple", "set")

    def _is_letter_unit(self, text: str) -> bool:
        return self.letters_are_units is not False and text in vocabulary.LETTER_UNITS

    def _is_unit_of(self, node: Node) -> bool:
        word = self.next
        is_unit = (word.kind == "text" and word.text in UNITS) or self._is_letter_unit(word.text)
        return is_unit and not any(part[0] == "sym" for part in subtrees(node))

    def parse_factor(self) -> Node:
        is_negative = self._accept_signs()
        node = self.parse_power()
        return neg(node) if is_negative else node

    def _parse_adjacent_factor(self, node: Node) -> Node:
        """Parse a factor without a sign before it, or the fraction of a mixed number."""
        is_inline = self._is_inline_fraction()
        is_whole = node[0] == "num" and self.tokens[self.position - 1].text.isdecimal()
        if not (is_whole and node[1].denominator == 1 and (is_inline or self.is_next(r"\frac"))):
            return mul(node, self.parse_power())
        part = self.parse_atom()
        if is_inline and self.accept("/"):
            part = divide(part, self.parse_atom())
        if part[0] == "num" and 0 < part[1] < 1:
            return self._parse_suffixes(num(node[1] + part[1]))
        return mul(node, self._parse_suffixes(part))

    def _is_inline_fraction(self) -> bool:
        slash, bottom = self.peek(1), self.peek(2)
        is_fraction = self.next.kind == bottom.kind == "num" and slash.is_sign("/")
        return is_fraction and self.next.follows_space

    def starts_factor(self) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""
        token, last = self.next, self.tokens[self.position - 1]
        if token.kind in ("num", "rep"):
            return self.peek(1).is_sign("^") or self._is_inline_fraction()
        if token.kind in ("word", "letter", "text"):
            return self._is_name(token, last)
        if token.kind == "cmd":
            return "/" in token.text or (token.text in _COMMANDS and token.text != r"\dots")
        if token.text == "|":
            return self.open_bars == 0
        is_open = token.kind == "op" and token.text in "({"
        is_modulus = self.peek(1).text in _MODULUS_WORDS
        return is_open and not (is_modulus or self.opens_condition() or self._steps_to_rounding())

    def _is_name(self, token: Token, last: Token) -> bool:
        """Whether letters are names that multiply, and not a unit, a word or a conjunction."""
        text = token.text
        if len(text) == 1:
            if last.kind == "num" and not text.isascii() and not self.peek(1).is_word:
                return False  # a counter or a unit of another script, as in `12개`
            return token.kind == "letter" or not (self.letters_are_units and text in UNITS)
        if token.kind == "text" or token.low in _NON_NAME_WORDS:
            return False
        return self.is_product(token)

    def parse_power(self) -> Node:
        """Parse an atom with scripts, primes, factorials, percent and degree signs."""
        self.descend()
        node = self._parse_suffixes(self.parse_atom())
        self.depth -= 1
        return _selection_of(node)

    def _parse_suffixes(self, node: Node) -> Node:
        depth = self.depth
        while (parse := _SUFFIXES.get(self.next.text)) and self.next.kind in ("op", "cmd"):
            self.advance()
            node = parse(self, node)
            self.descend()  # because every sign nests the node one level deeper
        self.depth = depth
        return node

    def parse_superscript(self, node: Node) -> Node:
        r"""Parse what follows `^`: an exponent, `\circ`, a prime, `(n)`, `-1` or `T`."""
        is_group = self.is_next("{")
        inside = self.peek(is_group)
        if inside.is_sign(r"\circ", r"\degree") and not (is_group and self.peek(2).text != "}"):
            self.raw_text()
            return self.parse_degrees(node)
        if inside.is_sign("'") and node[0] == "sym":
            return self._parse_application(("sym", node[1] + self.raw_text()))
        if node[0] == "num" and inside.text in vocabulary.ORDINAL_SUFFIXES:
            self.raw_text()
            return node
        if is_group and inside.is_sign("(") and node[0] == "sym":
            return self._parse_application(("sym", f"{node[1]}^{self.raw_text()}"))  # f^{(n)}(0)
        exponent = self.parse_argument(script=True)
        if exponent == MINUS_ONE and node[0] == "sym" and node[1] in "fghFGH" and self.is_next("("):
            return self._parse_application(("sym", f"{node[1]}^-1"))
        if node[0] in ("tuple", "matrix") and exponent in (("sym", "T"), ("sym", "top")):
            return _transpose(node)
        return ("pow", node, exponent)

    def parse_degrees(self, node: Node) -> Node:
        if self.next.is_word and self.next.low in _TEMPERATURES:
            return ("quantity", node, UNITS[_TEMPERATURES[self.advance().low]])
        return ("degree", node)

    def parse_subscript(self, node: Node) -> Node:
        """Parse the index of a name, or the base of a numeral."""
        index = self.raw_text()
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
        if not script and len(token.text) > 1 and token.text.isdecimal():
            self.tokens[self.position] = Token("num", token.text[1:])
            return num(int(token.text[0]))
        return self.parse_atom()

    def _parse_number(self, text: str) -> Node:
        """Parse a plain number, one in scientific notation, or a decimal that repeats."""
        places = text.partition(".")[2]
        if len(places) >= 3 and self.is_next(r"\dots") and (period := _PERIOD.search(places)):
            self.advance()  # 0.333... and 0.1666...
            return _repeating_decimal(
                text[: len(text) - len(places) + period.start()], period[1] or period[2]
            )
        mantissa, _, exponent = text.lower().partition("e")
        if exponent:
            return num(Fraction(text), len(mantissa.partition(".")[2]) - int(exponent))
        return num(Fraction(text), len(places) or None)

    def _parse_word(self, token: Token) -> Node:
        text = token.text
        if len(text) == 1 and text.isascii():
            return self._parse_application(_CONSTANTS.get(text, ("sym", text)))
        if self.is_product(token):
            self.tokens[self.position - 1 : self.position] = [Token("letter", c) for c in text]
            return _CONSTANTS.get(text[0], ("sym", text[0]))
        return ("sym", token.low)

    def is_product(self, token: Token) -> bool:
        """Whether letters in a row are a product of names: `xy`, `nRT`, but not `cm` or `even`.

        Three or four letters are names if mathematics is on both sides, or if no word is spelled
        like that: without a vowel after the first letter or with a capital inside. A plural after
        a number and a blank is a word: `18 eggs`.
        """
        text = token.text
        if token.kind != "word" or not 2 <= len(text) <= 4 or text in vocabulary.SHORT_WORDS:
            return False
        if text in vocabulary.PERCENT_WORDS or (len(text) > 2 and lookup_unit(text)):
            return False
        if len(text) == 2 or text.isupper():
            return True
        at = self.position if self.tokens[self.position] is token else self.position - 1
        before = self.tokens[at - 1] if at else token
        is_plural = before.kind == "num" and text[0] in "aeiou" and text[-1] == "s"
        is_vowelless = not _VOWELS & set(text[text[0] in "aeiou" :]) and not is_plural
        if is_vowelless or not text[1:].islower():
            return True
        return before.is_sign(*_SIGNS_BEFORE_NAMES)

    def _parse_application(self, name: Node) -> Node:
        """Parse the application of a name, as in `f(x)`, if a bracket follows right after it."""
        if name[0] != "sym":
            return name
        text: str = name[1]
        while self.accept("'"):
            text += "'"
        is_event = text in ("P", "Pr")
        is_usual = text[0] in "fghFGH" or self._is_single_argument(text)
        is_function = is_event or text == "E" if self.is_next("[") else is_event or is_usual
        if not (is_function and self.is_next("[", "(")):
            return ("sym", text)
        closing = "]" if self.advance().text == "[" else ")"
        inside = self.parse_group(closing)
        return fn(text, *(inside[1:] if inside[0] == "list" else (inside,)))

    def _is_single_argument(self, name: str) -> bool:
        """Whether a bracket holds one name or number, as in `T(10)` but not `p(1-p)`, or a point."""
        inside = self.peek(1)
        is_simple = inside.kind == "num" or (
            inside.kind in ("word", "letter") and len(inside.text) == 1
        )
        is_usual = (
            name[0].isupper() or name[0] in "pqruvwy" or inside.text in ("t", "0")
        ) or name in vocabulary.ARITHMETIC_FUNCTIONS
        return is_simple and is_usual and self.peek(2).is_sign(")", ",")

    def parse_group(self, closing: str) -> Node:
        node = self._parse_inside()
        self.expect(closing)
        return node

    def _parse_inside(self, bars: int = 0) -> Node:
        """Parse the content of a bracket, with a number of bars that are open in it."""
        bars, self.open_bars = self.open_bars, bars
        self.open_brackets += 1
        node = self.parse_content()
        self.open_brackets -= 1
        self.open_bars = bars
        return node

    def parse_content(self) -> Node:
        r"""Parse a list, or the two sides of `\over`."""
        node = self.parse_items()
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
        start = self.position
        inside = self._parse_inside()
        closing = self.advance()
        if sign == "[" and closing.is_sign("]") and _ROWS.fullmatch(self._raw_span(start)):
            return _matrix_of(inside)
        if not closing.is_sign(")", "]", "["):
            raise UnreadableError("a bracket is not closed")
        items = inside[1:] if inside[0] == "list" else (inside,)
        if len(items) == 1:
            return inside
        if len(items) == 2 and not (is_open and closing.text == ")"):
            return ("interval", *items, is_open, closing.text != "]")
        return ("tuple", *items)

    def _parse_command(self, name: str) -> Node:
        if match := _DERIVATIVE.fullmatch(name):
            return _derivative(match)
        if name not in _COMMANDS:
            raise UnreadableError(f"unknown command {name}")
        return _COMMANDS[name](self, name)

    def parse_letter(self, name: str) -> Node:
        r"""Parse a Greek letter; `\Delta x` is one name."""
        after = self.next
        if name == r"\Delta" and after.kind in ("word", "letter") and len(after.text) == 1:
            name += f" {self.advance().text}"
        return self._parse_application(("sym", name[1:]))

    def parse_accent(self, name: str) -> Node:
        r"""Parse an accented name: `\overline{z}` differs from `z`, the vector `AB` from `BA`."""
        start = self.position
        inside = self.parse_argument()
        if name == r"\overrightarrow":
            return ("sym", f"vec {self._raw_span(start)}")
        return fn(name[1:], inside)

    def parse_shape(self, name: str) -> Node:
        r"""Parse a shape: `\angle ABC` is `\angle CBA`."""
        letters = self.raw_text()
        return fn(name[1:], ("sym", min(letters, letters[::-1])))

    def parse_number_set(self, name: str) -> Node:
        r"""Parse `\mathbb{R}`, with `^+` or `^*` after it."""
        letter = name[-2:-1] + (self.raw_text() if self.accept("^") else "")
        return ("sym", letter if letter == "R" else f"set {letter}")

    def parse_fraction(self, _: str) -> Node:
        """Parse a fraction, or a derivative such as `dy/dx`."""
        start = self.position
        top = self.parse_argument()
        above, middle = self._raw_span(start), self.position
        bottom = self.parse_argument()
        match = _DERIVATIVE.fullmatch(f"{above}/{self._raw_span(middle)}")
        return _derivative(match) if match else divide(top, bottom)

    def parse_function(self, name: str) -> Node:
        r"""Parse `\sin x`, `\sin^2 x`, `\sin^{-1} x` or `\log_2 8`."""
        name = vocabulary.FUNCTION_COMMANDS[name]
        base = exponent = None
        if name == "log" and self.accept("_"):
            operand = self.peek(1)  # the base is 2 in `\log_28`, 10 in `\log_10 100`
            is_all = operand.kind not in ("op", "end") or operand.is_sign("(", "{", "^")
            base = self.parse_argument(script=is_all)
        if self.accept("^"):
            exponent = self.parse_argument(script=True)
        inside = self._parse_operand()
        if exponent == MINUS_ONE and name in vocabulary.INVERSE_FUNCTIONS:
            return fn(f"arc{name}", inside)
        if name == "cis":
            return add(fn("cos", inside), mul(("const", "i"), fn("sin", inside)))
        node = fn("ln" if name == "log" else name, inside)
        node = node if base is None else divide(node, fn("ln", base))
        return node if exponent is None else ("pow", node, exponent)

    def _parse_operand(self) -> Node:
        if self.is_next("(", "{"):
            return self.parse_atom()  # because a power after it belongs to the function
        node = self.parse_factor()
        while self.next.kind in ("num", "word", "letter", "cmd") and self.starts_factor():
            if self.next.kind == "cmd" and self.next.text in vocabulary.FUNCTION_COMMANDS:
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
        function, closing = vocabulary.FENCES[name]
        inside = self._parse_inside()
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
        kind = self.raw_text()
        if kind not in vocabulary.MATRIX_ENVIRONMENTS and kind not in vocabulary.ROW_ENVIRONMENTS:
            raise UnreadableError(f"unknown environment {kind}")
        if kind == "array" and self.is_next("{"):
            self.raw_text()
        rows = self._parse_rows()
        self.raw_text()
        if kind in vocabulary.ROW_ENVIRONMENTS:
            return _rows_as_cases(rows)
        node: Node = ("matrix", *(("row", *row) for row in rows))
        return fn("det", node) if kind in ("vmatrix", "Vmatrix") else node

    def _parse_rows(self) -> list[tuple[Node, ...]]:
        rows: list[tuple[Node, ...]] = [()]
        bars, self.open_bars = self.open_bars, 0
        self.open_brackets += 1
        while not self.accept(r"\end"):
            if self.next.kind == "end":
                raise UnreadableError("an environment is not closed")
            if self.accept("\\\\"):
                rows.append(())
            elif not self.accept("&", r"\hline", ",", ";", "."):
                rows[-1] = (*rows[-1], self._parse_cell())
        self.open_brackets -= 1
        self.open_bars = bars
        return [row for row in rows if row]

    def _parse_cell(self) -> Node:
        if self.next.is_word and self.next.low in vocabulary.CLAUSE_OPENERS:
            if self.advance().low in ("otherwise", "else", "其他"):
                return ("sym", "otherwise")
            self.accept("&")
        return self.parse_relation()

    def parse_big_operator(self, name: str) -> Node:
        r"""Parse an operator such as `\sum_{k=1}^{n} k`, which is never evaluated."""
        limits = [self.raw_text() for _ in range(2) if self.accept("_", "^")]
        return fn(name, self.parse_product(), *(("text", limit) for limit in limits))


_SUFFIXES: Mapping[str, Callable[[_Parser, Node], Node]] = {
    "^": _Parser.parse_superscript,
    "_": _Parser.parse_subscript,
    "!": lambda _, node: fn("fact", node),
    "%": lambda _, node: ("percent", node),
    r"\permille": lambda _, node: divide(node, num(1000)),
    r"\degree": _Parser.parse_degrees,
}
_COMMANDS: Mapping[str, Callable[[_Parser, str], Node]] = {
    **dict.fromkeys(vocabulary.LETTER_COMMANDS, _Parser.parse_letter),
    **dict.fromkeys(_CONSTANTS, lambda _, name: _CONSTANTS[name]),
    **dict.fromkeys(vocabulary.FUNCTION_COMMANDS, _Parser.parse_function),
    **dict.fromkeys(vocabulary.ACCENTS, _Parser.parse_accent),
    **dict.fromkeys(vocabulary.SHAPE_COMMANDS, _Parser.parse_shape),
    **dict.fromkeys(vocabulary.FENCES, _Parser.parse_fence),
    **dict.fromkeys(vocabulary.UNEVALUATED_OPERATORS, _Parser.parse_big_operator),
    **{rf"\mathbb{{{letter}}}": _Parser.parse_number_set for letter in "RZNQCPEFKDH"},
    **dict.fromkeys((r"\sqrt", r"\surd"), _Parser.parse_root),
    r"\frac": _Parser.parse_fraction,
    r"\binom": lambda parser, _: fn("binom", parser.parse_argument(), parser.parse_argument()),
    r"\mathcal": lambda parser, _: parser.parse_argument(),
    r"\{": _Parser.parse_set,
    r"\begin": _Parser.parse_environment,
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


#: A derivative by one name, of any order.
_DERIVATIVE = re.compile(r"d(?:\^(\d))?([A-Za-z])/d([A-Za-z])(?:\^\1)?")


def _is_vector(node: Node) -> bool:
    r"""Whether a name is of a vector, so that `\times` beside it does not commute."""
    name: str = node[1] if node[0] == "sym" else ""
    return name.startswith("vec ") or name.isupper() or name == "nabla"


def _derivative(match: re.Match[str]) -> Node:
    """Return the value of a derivative: `dy/dx` is `y'(x)`, `d^2f/dx^2` is `f''(x)`."""
    order, name, variable = match.groups()
    return fn(name + "'" * int(order or 1), ("sym", variable))


def _transpose(node: Node) -> Node:
    rows = (node,) if node[0] == "tuple" else node[1:]
    if len({len(row) for row in rows}) != 1:
        raise UnreadableError("rows of different lengths")
    columns = zip(*(row[1:] for row in rows), strict=True)
    return ("matrix", *(("row", *column) for column in columns))


def _matrix_of(inside: Node) -> Node:
    rows = inside[1:] if inside[0] == "list" else (inside,)
    entries = [
        row[1:3] if row[0] == "interval" else row[1:] if row[0] == "tuple" else (row,)
        for row in rows
    ]
    return ("matrix", *(("row", *row) for row in entries))


def _selection_of(node: Node) -> Node:
    """Return `C_{10}^3` as 3 of 10, and `A_5^2` as the ways to order them; others unchanged."""
    base: Node = node[1] if node[0] == "pow" else ("",)
    match = _SELECTION.fullmatch(base[1]) if base[0] == "sym" else None
    if match is None:
        return node
    total = mul(*(num(int(p)) if p.isdecimal() else ("sym", p) for p in match.groups() if p))
    chosen = node[2]
    if base[1][0] == "C":
        return fn("binom", total, chosen)
    return divide(fn("fact", total), fn("fact", add(total, neg(chosen))))


def _ends_words(token: Token) -> bool:
    return token.kind == "end" or token.low in _WORD_ENDS


def _apply_unit(node: Node, unit: Unit) -> Node:
    """Return a value with a unit: a quantity, a percentage or an angle."""
    if unit in _DEGREES:
        return ("degree", node)
    return ("percent", node) if unit in _PERCENTS else ("quantity", node, unit)


def _group_items(groups: list[list[Node]], joints: set[str]) -> Node:
    """Return groups of equal size as items of several parts, anything else as one list."""
    if len(groups) > 1 and {len(group) for group in groups} == {len(groups[0])} != {1}:
        return ("list", *(("list", *group) for group in groups))
    items = [item for group in groups for item in group]
    if len(items) == 1:
        return items[0]
    return ("or" if "or" in joints else "and" if "and" in joints else "list", *items)


# --- clauses

#: Words, besides names and sets of numbers, of a clause that only declares names.
_NAMING_WORDS = vocabulary.split_words(
    "for all any every each some where with is are be being a an the arbitrary given fixed and number"
    " numbers constant constants positive nonnegative non-negative nonzero whole parameter parameters"
    " of integration as denotes both let free variable variables 常数 参数"
    r" ( ) { } [ ] , . _ ^ + * \forall \in ;"
)
_CHINESE_NAMING_WORDS = re.compile("其中|对于?|任意|所有|[的是为和]")
_NUMBER_SETS = vocabulary.pairs(
    "integer Z integers Z 整数 Z Z Z natural N 自然数 N 正整数 N N N real R reals R 实数 R R R complex C"
    " 复数 C C C rational Q rationals Q Q Q"
)
_NUMBER_SET = re.compile(r"\\mathbb\{([A-Z])\}")
#: `n \ge 1` only declares a counting number.
_COUNTING_BOUND = re.compile(r"\b([ijkmn]) (?:\\ge|>) [01](?!\S)")
#: Scripts of a set of numbers: `\mathbb{Q}_{>0}`, `\mathbb{N}^*`.
_SCRIPT = re.compile(r"(?<=\})(?: [_^] (?:\{[^{}]*\}|\S+))+")
_NAME = re.compile(r"[A-Za-z]|\\[A-Za-z]+")


def _read_clause(tokens: Sequence[Token]) -> tuple[str, bool, str, str]:
    r"""Return the folded tokens of a clause such as `where $k \in \mathbb{Z}$`, and what it says.

    That is whether it says more than the kind of its names, so that it may not be left out; the names
    it binds; and their kind: `Z`, `N`, `R`, `C` or `Q`, "" if unknown.
    """
    text = " ".join(fold(tokens))
    bare = _CHINESE_NAMING_WORDS.sub(" ", _NUMBER_SET.sub(r"\1", _SCRIPT.sub("", text)))
    words = [
        word if word in _NUMBER_SETS or len(word) == 1 else word.casefold()
        for word in _COUNTING_BOUND.sub(r"\1 N", bare).split()
    ]
    kinds = [_NUMBER_SETS[word] for word in words if word in _NUMBER_SETS]
    rest = [word for word in words if word not in _NUMBER_SETS]
    names = [w for w in rest if _NAME.fullmatch(w) and w not in (r"\forall", r"\in")]
    is_restricting = len(set(kinds)) > 1 or not all(
        word in _NAMING_WORDS or _NAME.fullmatch(word) for word in rest
    )
    return text, is_restricting, " ".join(names), "".join(kinds[:1])
