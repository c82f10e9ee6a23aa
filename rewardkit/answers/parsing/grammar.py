r"""Tokens -> tree: lists, relations, labels, quantities and clauses, above the arithmetic.

A text is parsed completely or not at all. `equal` compares a text that the grammar does not accept
by its folded tokens.
"""

import re
from collections.abc import Sequence

from rewardkit.answers import doubt
from rewardkit.answers.parsing.expressions import ExpressionParser
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node, mul, neg, num, subtrees, symbols
from rewardkit.answers.parsing.typography import fold, fold_case
from rewardkit.answers.parsing.units import (
    BASE_UNITS,
    CURRENCIES,
    NO_UNIT,
    POWER_SUFFIXES,
    UNITS,
    Unit,
    counting_unit,
    lookup_unit,
    unit_power,
)
from rewardkit.answers.parsing.vocabulary import (
    CLAUSE_OPENERS,
    CLOSING_SIGNS,
    CONJUNCTIONS,
    COPULAS,
    DISJUNCTIONS,
    LEAD_INS,
    LETTER_UNITS,
    MULTIPLIERS,
    NEUTRAL_QUALIFIERS,
    ORDINAL_SUFFIXES,
    PERCENT_WORDS,
    RELATION_SIGNS,
    WORD_VALUES,
    split_words,
)

#: Most words of a unit, of a label, and of an item that consists of words.
MAX_UNIT_WORDS = 6
MAX_LABEL_WORDS = 8
MAX_ITEM_WORDS = 24
_WORD_ENDS = CONJUNCTIONS | DISJUNCTIONS | CLAUSE_OPENERS
#: Digits of Roman numerals: `IV` and `VI` differ, so two capitals are not a product of names.
_ROMAN = frozenset("IVX")
_CLOCK = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]\.?m\.?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/])\d\d?\2\d{2,4}", re.ASCII)
#: Units that have a kind of node of their own, and units of temperatures, also after `degrees`.
_DEGREES = tuple(map(counting_unit, ("degree", "deg", "度")))
_PERCENTS = frozenset(map(counting_unit, PERCENT_WORDS))
_TEMPERATURES = {
    unit.multiply(degree): UNITS[f"°{letter}"]
    for letter in "CF"
    for unit in (UNITS[letter], UNITS[f"°{letter}"])
    for degree in (NO_UNIT, *_DEGREES)
}


def parse(tokens: Sequence[Token], *, letters_are_units: bool = False) -> Node:
    """Return the tree of a text's tokens.

    Raises:
        UnreadableError: the grammar does not accept the text, or the text is over a limit.
    """
    tokens = _without_outer_braces(list(tokens))
    text = "".join(token.text for token in tokens) if tokens[0].kind == "num" else ""
    if _CLOCK.fullmatch(text):
        return ("clock", text.casefold().replace(".", "").removeprefix("0"))
    if _DATE.fullmatch(text):
        return ("text", text)
    try:
        return AnswerParser(tokens, letters_are_units=letters_are_units).parse_whole()
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error


def _without_outer_braces(tokens: list[Token]) -> list[Token]:
    depth = 0
    for index, token in enumerate(tokens):
        depth += token.is_sign("{") - token.is_sign("}")
        if depth == 0:
            is_whole = all(t.kind == "end" or t.is_sign(".", ",") for t in tokens[index + 1 :])
            is_braced = index > 0 and token.is_sign("}") and is_whole
            return [*tokens[1:index], tokens[-1]] if is_braced else tokens
    return tokens


class AnswerParser(ExpressionParser):
    """The levels of the parser above a sum."""

    def parse_whole(self) -> Node:
        """Parse all tokens."""
        value = self.peek(3)
        is_value = value.kind == "num" or value.is_sign("-", r"\frac", r"\sqrt")
        is_labelled = self.peek(1).text in tuple("ABCDE") and self.peek(2).is_sign(")")
        if self.is_next("(") and is_labelled and is_value and value.follows_space:
            self.position += 3  # the letter of an option, as in `\textbf{(B)}\ 12`
        node = self.parse_content()
        while self.accept(".", "!", ",", ";"):
            pass
        if self.next.kind != "end":
            raise UnreadableError(f"unexpected {self.next.text!r} after the answer")
        return node

    # --- lists and clauses

    def parse_items(self) -> Node:
        """Parse `a, b; c or d`: groups separated by `;` and `or`, items by commas and `and`."""
        groups: list[list[Node]] = [[]]
        starts: list[int] = []
        joints: set[str] = set()
        clause: list[Token] = []
        while True:
            starts.append(self.position)
            groups[-1].append(self.parse_relation())
            if clause := self._take_clause():
                break
            joint = self._parse_joint()
            is_last = self.next.kind == "end" or self.next.is_sign(*CLOSING_SIGNS)
            if not joint or is_last or (clause := self._take_clause()):
                break
            joints.add(joint)
            if joint in (";", "or"):
                groups.append([])
        if not clause and not self.open_brackets:
            clause = self._take_memberships(groups, starts)
        node = _share_modulus(_group_items(groups, joints))
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
            elif token.low in CONJUNCTIONS:
                joint = joint if joint in (";", "or") else "and"
            elif token.low in DISJUNCTIONS:
                joint = "or"
            else:
                return joint
            self.position += 1

    def _take_clause(self) -> list[Token]:
        if self.open_brackets:
            return []
        opener = self.peek(1) if self.is_next("(", "[") else self.next
        is_opener = opener.low in CLAUSE_OPENERS
        if not (is_opener or (opener is not self.next and self.opens_condition())):
            return []
        start, self.position = self.position, len(self.tokens) - 1
        return self.tokens[start:-1]

    def _take_memberships(self, groups: list[list[Node]], starts: list[int]) -> list[Token]:
        r"""Remove last items that say where the others hold (`k \in \mathbb{Z}`); return their tokens."""
        start = self.position
        while len(groups[-1]) > 1:
            *others, item = [item for group in groups for item in group]
            if not _is_membership_clause(item, others):
                break
            start = starts[len(others)]
            groups[-1].pop()
        return self.tokens[start : self.position]

    # --- relations and labels

    def parse_relation(self) -> Node:
        r"""Parse `a < b \le c`, `x = 5`, `x \in S`, `Volume: 5` or `x \equiv 3 \pmod 7`."""
        self.descend()
        label = self._parse_label()
        label_sign = self.tokens[self.position - 1].text
        self.accept("=", r"\approx")
        sides, operators = [self._parse_ratio()], []
        while operator := self._parse_operator():
            operators.append(operator)
            sides.append(self._parse_ratio())
        node = ("rel", " ".join(operators), *sides) if operators else sides[0]
        node = self._parse_modulus(node)
        self.depth -= 1
        if not label:
            return node
        if node[0] != "rel":
            return ("rel", "=", ("sym", label), node)
        if label_sign in ("=", r"\approx"):
            return ("rel", f"= {node[1]}", ("sym", label), *node[2:])
        return node  # as in `the answer is x > 3`

    def _parse_operator(self) -> str:
        is_negated = self.is_next(r"\not") and self.peek(1).is_sign("=", r"\in", r"\equiv")
        token = self.peek(is_negated)
        if not token.is_sign(*RELATION_SIGNS):
            return ""
        self.position += 1 + is_negated
        operator = RELATION_SIGNS[token.text]
        return {"=": "!=", "in": "notin"}[operator] if is_negated else operator

    def _parse_label(self) -> str:
        if self.next.low in LEAD_INS:
            self.advance()
            self.accept(",")
        at = self.position
        words: list[str] = []
        while self.tokens[at].is_word and len(words) <= MAX_LABEL_WORDS:
            words.append(self.tokens[at].low)
            at += 1
            if words[-1] in COPULAS or words[-1].endswith(("是", "为")):
                return self._accept_label(at, words)
        sign, letters = self.tokens[at], "".join(words)
        if len(letters) > 2 or (len(letters) > 1 and (len(words) > 1 or self.next.kind == "text")):
            is_name = self.next.text.isupper() and not sign.is_sign(":")
            if sign.is_sign("=", r"\approx", ":") and not is_name:
                return self._accept_label(at + 1, words)
        while self.next.low in NEUTRAL_QUALIFIERS and self.peek(1).kind in (
            "num",
            "cmd",
            "op",
            "word",
        ):
            self.position += 1
        return ""

    def _accept_label(self, at: int, words: list[str]) -> str:
        """Move to the value of a label and return the label."""
        if self.tokens[at].kind == "end":
            return ""
        names = [word for word in words if word not in COPULAS]
        ends = {a for a, b in zip(names, [*names[1:], "of"], strict=False) if b == "of"}
        is_changed = any(part in "".join(words) for part in doubt.CHINESE_LABEL_MODIFIERS)
        if is_changed or ends & doubt.LABEL_OPERATIONS or not doubt.LABEL_DOUBTS.isdisjoint(words):
            raise UnreadableError(f"{' '.join(words)!r} changes what follows")
        is_letter = len(names) == 1 == len(names[0])
        name = self.next.text if is_letter else " ".join(names)
        self.position = at
        self.accept(":")
        return name or "it"

    def _parse_modulus(self, node: Node) -> Node:
        in_bracket = self.opens_modulus()
        if not in_bracket and self.next.text not in (r"\pmod", r"\bmod", "mod"):
            return node
        self.position += 1 + in_bracket
        modulus = self.parse_argument(script=True)
        if in_bracket:
            self.expect(")")
        return ("congruence", node, modulus)

    # --- one side

    def _parse_ratio(self) -> Node:
        parts = [self._parse_union()]
        while not self.open_bars and self.peek(1).kind != "end" and self.accept(":"):
            parts.append(self._parse_union())
        return parts[0] if len(parts) == 1 else ("ratio", *parts)

    def _parse_union(self) -> Node:
        parts = [self._parse_intersection()]
        while self.is_next(r"\cup") or (
            self.next.low == "u" and parts[-1][0] in ("interval", "tuple", "set")
        ):
            self.advance()
            parts.append(self._parse_intersection())
        return parts[0] if len(parts) == 1 else ("union", *parts)

    def _parse_intersection(self) -> Node:
        node = self._parse_quantity()
        while self.is_next(r"\cap", r"\setminus"):
            kind = "meet" if self.advance().text == r"\cap" else "minus"
            node = (kind, node, self._parse_quantity())
        return node

    # --- quantities, money and words

    def _parse_quantity(self) -> Node:
        """Parse a value with its unit, an amount of money, or words."""
        if (node := self._parse_money() or self._parse_words()) is not None:
            return node
        node = self._parse_multipliers(self.parse_sum())
        if node[0] == "quantity":
            return self._parse_compound(node)
        while self.next.text in ORDINAL_SUFFIXES and not self.next.follows_space:
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
        if rate not in (NO_UNIT, unit):
            if any(exponent > 0 for _, exponent in rate.dimension):
                raise UnreadableError("two units of money")
            unit = unit.multiply(rate)  # as in `$5 per pound`
        return ("quantity", neg(node) if is_negative else node, unit)

    def _parse_words(self) -> Node | None:
        at, limit = self.position, self.position + MAX_ITEM_WORDS
        while at < limit and self.tokens[at].is_word and not _ends_words(self.tokens[at]):
            at += 1
        words, after = self.tokens[self.position : at], self.tokens[at]
        is_whole = after.is_sign(",", ";", ".", ")", r"\}", "}", "!") or _ends_words(after)
        if not words or not is_whole:
            return None
        text = "".join(word.text for word in words)
        is_code = len(words) == 1 and text.isupper() and (len(text) > 2 or set(text) <= _ROMAN)
        if is_code or (
            len(words) > 1 and all(w.kind == "text" and len(w.text) == 1 for w in words)
        ):
            self.position = at
            return ("text", text)  # letters whose order counts, as in HTH
        if all(len(word.text) == 1 or self.is_product(word) for word in words):
            return None
        self.position = at
        text = " ".join(fold_case(word.text) for word in words)
        return WORD_VALUES.get(text, ("text", text))

    def _parse_multipliers(self, node: Node) -> Node:
        while self.next.is_word and not lookup_unit(self.next.text):
            word = self.next.low
            sizes = [2, 1] if self.next.kind == "han" else [len(word)]
            size = next((n for n in sizes if word[:n] in MULTIPLIERS), 0)
            if not size:
                break
            factor = MULTIPLIERS[word[:size]]
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
        if len(parts) > 1 and not all(map(_is_measure, parts)):
            raise UnreadableError("counts side by side are not a compound quantity")
        return first if len(parts) == 1 else ("compound", *parts)

    def _continues_compound(self, last: Node) -> bool:
        """Whether a smaller unit of the same dimension follows, as in `2 hours and 30 minutes`."""
        is_joint = self.is_next(",") or self.next.low == "and"
        unit = lookup_unit(self.peek(2).text) if is_joint and self.peek(1).kind == "num" else None
        is_smaller = unit and unit.dimension == last[2].dimension and unit.factor < last[2].factor
        after = self.peek(3)
        return bool(is_smaller) and (after.kind == "end" or after.is_sign(".", ",", "}"))

    # --- units

    def _parse_unit(self) -> Unit:
        """Parse a unit: `cm^2`, `m/s`, `square feet`, `J/(mol K)`, `apples`; `NO_UNIT` without one."""
        if self.opens_unit_fraction():
            self.advance()
            top, bottom = self._parse_braced_unit(), self._parse_braced_unit()
            return top.multiply(bottom, -1)
        unit = self._parse_units(NO_UNIT, is_below=False)
        if unit != NO_UNIT and self.is_next("/") and self.peek(1).is_sign("("):
            self.position += 2
            unit = self._parse_units(unit, is_below=True)
            self.expect(")")
        return unit

    def _parse_braced_unit(self) -> Unit:
        self.expect("{")
        unit = self._parse_unit()
        self.expect("}")
        if unit == NO_UNIT:
            raise UnreadableError("a fraction of units and values")
        return unit

    def _parse_units(self, unit: Unit, *, is_below: bool) -> Unit:
        """Multiply a unit by the units that come next, or divide it by them."""
        words, power, last = int(unit != NO_UNIT), 1, unit
        while words <= MAX_UNIT_WORDS:
            is_divisor = self._parse_unit_joint(words) or is_below
            if not self._is_unit_word(self.next, words):
                break
            token = self.advance()
            if words and token.low in ("a", "an", "of", "the"):
                continue
            if unit_power(token.text):
                power *= unit_power(token.text)
                self.accept(".")
            elif token.low in POWER_SUFFIXES:
                if not words:
                    raise UnreadableError(f"{token.text!r} changes a number")
                unit = unit.multiply(last, POWER_SUFFIXES[token.low] - 1)
            else:
                name = CURRENCIES.get(token.text, token.text)
                last = (lookup_unit(name) or counting_unit(name)).power(-1 if is_divisor else 1)
                unit = unit.multiply(last, self._parse_unit_exponent() * power)
                words, power = words + 1, 1
        if power != 1:
            raise UnreadableError("`square` or `cubic` without a unit")
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
            if self.is_next("(") and self.peek(2).is_sign(")") and _may_be_unit(after):
                self.tokens[self.position : self.position + 3] = [after._replace(kind="text")]
                return is_below
            if not after.is_word:
                return is_below
            if is_per or (self.is_next("/") and (words or lookup_unit(after.text))):
                is_below = True
            elif not (
                self.is_next("-")
                or (words and self.is_next(r"\cdot", "*"))
                or (words and self.is_next(".") and after.follows_space)  # of an abbreviation
            ):
                return is_below
            self.advance()
            if is_below and self.next.text in ("a", "an"):
                self.advance()

    def _is_unit_word(self, token: Token, words: int) -> bool:
        if token.text in CURRENCIES and not token.is_word and not words:
            return True  # 5€
        word = token.low
        if not token.is_word or _ends_words(token) or word in COPULAS:
            return False
        if word in POWER_SUFFIXES or unit_power(word):
            return True
        is_changed = token.kind == "han" and any(
            part in word for part in doubt.CHINESE_NUMBER_MODIFIERS
        )
        if is_changed or word in doubt.NUMBER_MODIFIERS:
            raise UnreadableError(f"{token.text!r} changes a number")
        after = self.peek(1)
        if word == "in" and (after.is_word or after.kind == "num"):
            return False  # as in `200 minutes in 5 days`
        if token.kind == "word" and len(token.text) <= 2:
            is_sure = self.letters_are_units or words or token.text in LETTER_UNITS
            return bool(is_sure) and token.text in UNITS
        return True

    def _parse_unit_exponent(self) -> int:
        exponent = self.parse_argument(script=True) if self.accept("^") else num(1)
        if exponent[0] != "num" or exponent[1].denominator != 1 or abs(exponent[1]) > 9:
            raise UnreadableError("the exponent of a unit is not a small integer")
        return int(exponent[1])


def _ends_words(token: Token) -> bool:
    return token.kind == "end" or token.low in _WORD_ENDS


def _may_be_unit(token: Token) -> bool:
    """Whether a word in brackets after a number may be its unit: `12 (apples)`."""
    return token.is_word and (lookup_unit(token.text) is not None or len(token.text) > 2)


def _is_measure(node: Node) -> bool:
    return node[0] == "quantity" and all(base in BASE_UNITS for base, _ in node[2].dimension)


def _apply_unit(node: Node, unit: Unit) -> Node:
    """Return a value with a unit: a quantity, a percentage, an angle or a temperature."""
    is_angle = node[0] == "degree"
    if unit in _TEMPERATURES and (is_angle or unit not in (UNITS["C"], UNITS["F"])):
        return ("quantity", node[1] if is_angle else node, _TEMPERATURES[unit])
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


def _share_modulus(node: Node) -> Node:
    r"""Apply the modulus at the end to every item: `x \equiv 1, 2 \pmod 5`."""
    if node[0] not in ("list", "or", "and") or node[-1][0] != "congruence":
        return node
    if any(item[0] == "congruence" for item in node[1:-1]):
        return node
    return ("congruence", (*node[:-1], node[-1][1]), node[-1][2])


def _is_membership_clause(item: Node, others: list[Node]) -> bool:
    r"""Whether an item only says what a name of the other items may be: `k \in \mathbb{Z}`."""
    if item[0] != "rel" or len(item) != 4 or item[2][0] != "sym":
        return False
    _, operator, (_, name), right = item
    if not any(name in symbols(other) for other in others):
        return False
    if operator == "in":
        return bool(right[0] == "sym")
    is_counting = operator in (">=", ">") and right in (num(0), num(1)) and name in tuple("ijkmn")
    return is_counting and all(other[0] != "rel" or other[1] == "=" for other in others)


# --- clauses

#: Words, besides names and sets of numbers, of a clause that only declares names.
_NAMING_WORDS = split_words(
    "for all any every each some where with is are be being a an the arbitrary given fixed and"
    " real integer integers number numbers constant constants complex natural positive"
    " nonnegative non-negative nonzero whole rational rationals reals parameter parameters of"
    " integration as denotes both let free variable variables"
    " 其中 对 对于 对任意 对所有 任意 所有 的 是 为 整数 实数 常数 自然数 正整数 任意常数 任意整数"
    " 任意实数 复数 参数 为整数 为常数 为任意常数 为任意整数 为任意实数 为实数 和"
    r" ( ) { } [ ] , . _ ^ + * \forall \in ;"
)
_NUMBER_SETS = {
    name: kind
    for kind, names in {
        "Z": "integer integers 整数 任意整数 为整数 为任意整数 Z",
        "N": "natural 自然数 正整数 N",
        "R": "real reals 实数 任意实数 为任意实数 为实数 R",
        "C": "complex 复数 C",
        "Q": "rational rationals Q",
    }.items()
    for name in names.split()
}
_NUMBER_SET = re.compile(r"\\mathbb\{([A-Z])\}")
#: Scripts of a set of numbers: `\mathbb{Q}_{>0}`, `\mathbb{N}^*`.
_SCRIPT = re.compile(r"(?<=\})(?: [_^] (?:\{[^{}]*\}|\S+))+")
#: `n \ge 1` only declares a counting number.
_COUNTING_BOUND = re.compile(r"\b([ijkmn]) (?:\\ge|>) [01](?!\S)")
_NAME = re.compile(r"[A-Za-z]|\\[A-Za-z]+")


def _read_clause(tokens: Sequence[Token]) -> tuple[str, bool, str, str]:
    r"""Return what a clause says: `for all real $x$`, `where $k \in \mathbb{Z}$`, `当x>0时`.

    Returns:
        The folded tokens; whether the clause says more than the kind of its names, so that it may
        not be left out; the names it binds; their kind, `Z`, `N`, `R`, `C` or `Q`, "" if unknown.
    """
    text = " ".join(fold(tokens))
    words = _COUNTING_BOUND.sub(r"\1 N", _NUMBER_SET.sub(r"\1", _SCRIPT.sub("", text))).split()
    kinds = [
        kind
        for word in words
        if (kind := _NUMBER_SETS.get(word.casefold()) or _NUMBER_SETS.get(word))
    ]
    rest = [w for w in words if w.casefold() not in _NAMING_WORDS and w not in _NUMBER_SETS]
    names = [w for w in words if _NAME.fullmatch(w) and w not in _NUMBER_SETS]
    names = [name for name in names if name not in (r"\forall", r"\in")]
    is_restricting = not all(map(_NAME.fullmatch, rest)) or len(set(kinds)) > 1
    return text, is_restricting, " ".join(names), "".join(kinds[:1])
