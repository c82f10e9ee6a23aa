r"""Tokens -> tree: lists, relations, labels, quantities and conditions, above the arithmetic.

Where the grammar does not understand a text, the text is not read in part: `read` gives its folded
tokens as words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewardkit.answers.reading import names
from rewardkit.answers.reading.arithmetic import PLAIN_UNITS, Arithmetic
from rewardkit.answers.reading.tokens import Token, UnreadableError
from rewardkit.answers.reading.tree import INF, Node, mul, num, symbols, walk
from rewardkit.answers.reading.typography import fold
from rewardkit.answers.reading.units import (
    CURRENCIES,
    NO_UNIT,
    POWERS_BEHIND,
    TABLE,
    Unit,
    counted,
    known,
    power_word,
)

_WORDS = frozenset({"word", "text", "han"})
_CLOCK = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]\.?m\.?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/])\d\d?\2\d{2,4}", re.ASCII)
#: Most words that one unit has.
MAX_UNIT_WORDS = 6


def parse(tokens: Sequence[Token], *, letters_are_units: bool = False) -> Node:
    """The tree of a text's tokens.

    Raises:
        UnreadableError: it is nothing that the grammar knows, or is over a limit.
    """
    tokens = list(tokens)
    if (text := _plain_text(tokens)) is not None:
        return text
    try:
        return Parser(tokens, letters_are_units=letters_are_units).whole()
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error


def _plain_text(tokens: list[Token]) -> Node | None:
    """A date, a time of day, or words, which no grammar reads."""
    if len(tokens) > 12 or tokens[0].kind not in ("num", *_WORDS):
        return None
    joined = "".join(token.text for token in tokens)
    if tokens[0].kind == "num":
        if _CLOCK.fullmatch(joined):
            return ("clock", joined.casefold().replace(".", "").removeprefix("0"))
        return ("text", joined) if _DATE.fullmatch(joined) else None
    return None


class Parser(Arithmetic):
    """Lists, relations, labels, and what stands behind a whole answer."""

    def whole(self) -> Node:
        """The tree of all tokens."""
        node = self.items()
        while self.accept(".", "!", ",", ";"):
            pass
        if self.next.kind != "end":
            raise UnreadableError(f"{self.next.text!r} left over")
        return node

    # --- lists

    def items(self) -> Node:
        """`a, b; c or d`: groups by `;` and `or`, items by commas and `and`; one item is itself."""
        groups: list[list[Node]] = [[]]
        spans: list[tuple[int, int]] = []
        joints: set[str] = set()
        while True:
            start = self.at
            groups[-1].append(self.relation())
            spans.append((start, self.at))
            if self._clause_begins():
                return self._restricted(_grouped(groups, joints), self._clause())
            joint = self._joint()
            if not joint:
                break
            if self.next.kind == "end" or self._closes():
                break
            if self._clause_begins():
                return self._restricted(_grouped(groups, joints), self._clause())
            joints.add(joint)
            if joint in (";", "or"):
                groups.append([])
        return self._without_memberships(groups, spans, joints)

    def _joint(self) -> str:
        """What joins two items: `,`, `;`, `and`, `or`; "" where nothing does."""
        kind = ""
        while True:
            token = self.next
            word = token.text.casefold()
            if token.is_sign(","):
                kind = kind or ","
            elif token.is_sign(";", r"\\"):
                kind = ";"
            elif token.kind != "num" and token.kind != "end" and word in names.AND:
                kind = "and" if kind in ("", ",") else kind
            elif token.kind != "num" and token.kind != "end" and word in names.OR:
                kind = "or"
            else:
                return kind
            self.at += 1

    def _closes(self) -> bool:
        return self.next.kind in ("op", "cmd") and self.next.text in names.CLOSING

    # --- conditions

    def _clause_begins(self) -> bool:
        token = self.next
        bracket = token.is_sign("(", "[") and not self.brackets
        token = self.ahead(1) if bracket else token
        if token.kind not in (*_WORDS, "cmd"):
            return False
        begins = token.text.casefold() in names.SCOPE
        if bracket and not begins:  # (k ∈ Z)
            return token.kind != "cmd" and self.ahead(2).is_sign(r"\in")
        return begins and not self.brackets

    def _clause(self) -> list[Token]:
        clause = [token for token in self.tokens[self.at :] if token.kind != "end"]
        self.at = len(self.tokens) - 1
        return clause

    def _restricted(self, node: Node, clause: list[Token]) -> Node:
        return ("where", node, " ".join(fold(clause)), _restricts(clause), _bound_names(clause))

    def _without_memberships(
        self, groups: list[list[Node]], spans: list[tuple[int, int]], joints: set[str]
    ) -> Node:
        r"""`x = k\pi, k \in \mathbb{Z}`: a last item that says where the others hold."""
        last = groups[-1]
        flat = [item for group in groups for item in group]
        clause: list[Token] = []
        while len(flat) > 1 and len(last) > (len(groups) > 1) and _says_where(flat[-1], flat[:-1]):
            start, end = spans[len(flat) - 1]
            clause = self.tokens[start:end] + clause
            flat.pop()
            last.pop()
        node = _grouped([group for group in groups if group], joints)
        return self._restricted(node, clause) if clause else node

    # --- relations and labels

    def relation(self) -> Node:
        r"""`a < b \le c`, `x = 5`, `x \in S`, `Volume: 5`, `x \equiv 3 \pmod 7`."""
        self.descend()
        label = self._label()
        self.accept("=", r"\approx")
        sides, operators = [self.ratio()], []
        while (operator := self._operator()) is not None:
            operators.append(operator)
            sides.append(self.ratio())
        node = sides[0] if not operators else ("rel", " ".join(operators), *sides)
        node = self._congruence(node)
        self.depth -= 1
        if label is None:
            return node
        if node[0] == "rel":
            return ("rel", "= " + node[1], ("sym", label), *node[2:])
        return ("rel", "=", ("sym", label), node)

    def _operator(self) -> str | None:
        negated = self.is_next(r"\not", "!") and self.ahead(1).is_sign("=", r"\in", r"\equiv")
        token = self.ahead(1) if negated else self.next
        if token.kind in ("op", "cmd") and token.text in names.RELATIONS:
            self.at += 1 + negated
            operator = names.RELATIONS[token.text]
            return {"=": "!=", "in": "notin"}.get(operator, operator) if negated else operator
        return None

    def _label(self) -> str | None:
        """Words before a colon, `is` or `=`: `Volume =`, `the area is`, `答案：`."""
        at = self.at
        words: list[str] = []
        while self.tokens[at].kind in _WORDS and len(words) <= 8:
            word = self.tokens[at].text.casefold()
            if self.tokens[at].kind == "han" and any(part in word for part in names.DENYING):
                return None
            if word in names.IS or (self.tokens[at].kind == "han" and word[-1:] in "是为"):
                return self._take_label(at + 1, [*words, word])
            if word in names.CHANGING or word in names.SCOPE:
                return None
            words.append(word)
            at += 1
        sign = self.tokens[at]
        if words and sign.is_sign(":"):
            after = self.tokens[at + 1].kind not in ("end", "num") or not words[0].isupper()
            return self._take_label(at + 1, words) if after and (len("".join(words)) > 1) else None
        wordy = words and (len(words) > 1 or len(words[0]) > 2 or self.next.kind == "text")
        if wordy and sign.is_sign("=", r"\approx") and not self.next.text.isupper():
            return self._take_label(at + 1, words) if len("".join(words)) > 1 else None
        while self.next.kind in _WORDS and self.next.text.casefold() in names.ABOUT:
            self.at += 1
            if self.next.kind not in ("num", "cmd", "op", "word"):
                self.at -= 1
                break
        return None

    def _take_label(self, at: int, words: list[str]) -> str | None:
        if self.tokens[at].kind == "end":
            return None
        self.at = at
        self.accept(":")
        return " ".join(words)

    def _congruence(self, node: Node) -> Node:
        r"""`x \equiv 3 \pmod 7`, `3 (mod 7)`."""
        in_bracket = self.is_next("(") and self.ahead(1).text in (r"\bmod", "mod")
        if in_bracket:
            self.take()
        if not (self.is_next(r"\pmod", r"\bmod") or self.next.text == "mod"):
            return node
        self.take()
        modulus = self.argument(script=True)
        if in_bracket:
            self.expect(")")
        return ("congruence", node, modulus)

    # --- one side

    def ratio(self) -> Node:
        """Parts with `:` between."""
        parts = [self.union()]
        while not self.bars and self.is_next(":") and self.ahead(1).kind != "end":
            self.take()
            parts.append(self.union())
        return parts[0] if len(parts) == 1 else ("ratio", *parts)

    def union(self) -> Node:
        r"""`A \cup B`; a lone `U` between brackets is the sign."""
        parts = [self.meet()]
        while self.is_next(r"\cup") or (self.next.text in ("U", "u") and _is_set(parts[-1])):
            self.take()
            parts.append(self.meet())
        return parts[0] if len(parts) == 1 else ("union", *parts)

    def meet(self) -> Node:
        r"""`A \cap B`, `A \setminus B`."""
        node = self.quantity()
        while self.is_next(r"\cap", r"\setminus"):
            kind = "meet" if self.take().text == r"\cap" else "minus"
            node = (kind, node, self.quantity())
        return node

    def quantity(self) -> Node:
        """A value with what is counted or measured behind it, or money before it."""
        currency = CURRENCIES.get(self.next.text) if self.next.kind != "end" else None
        minus = self.is_next("-") and self.ahead(1).text in CURRENCIES
        if minus or (currency and self.ahead(1).kind in ("num", "cmd", "op") and self.at + 1 < len(self.tokens)):
            self.at += minus
            unit = TABLE[CURRENCIES[self.take().text]]
            node = self._multiplied(self.sum())
            behind = self._unit()
            if behind not in (None, unit):
                raise UnreadableError("two units of money")
            return ("quantity", mul(num(-1), node) if minus else node, unit)
        node = self._word_or_sum()
        if node[0] in ("quantity", "text"):
            return self._compound(node) if node[0] == "quantity" else node
        node = self._multiplied(node)
        while self.next.kind == "word" and self.next.text in names.ORDINALS and not self.next.gap:
            self.take()
        if not any(part[0] in ("num", "const", "base") for part in walk(node)) and not self._unit_text():
            return node
        unit = self._unit()
        return node if unit is None else self._compound(_measured(node, unit))

    def _word_or_sum(self) -> Node:
        """Words that are an item of their own, or an expression."""
        at = self.at
        words = []
        while self.tokens[at].kind in _WORDS and not self._is_joint(self.tokens[at]):
            words.append(self.tokens[at])
            at += 1
        names_only = all(len(word.text) == 1 or self.is_product(word) for word in words)
        ends = self.tokens[at].kind == "end" or self.tokens[at].is_sign(",", ";", ".", ")", r"\}", "}", "!")
        if words and not names_only and (ends or self._is_joint(self.tokens[at])):
            self.at = at
            text = " ".join(token.text.casefold() for token in words)
            return INF if text in names.INFINITE else ("text", text)
        return self.sum()

    @staticmethod
    def _is_joint(token: Token) -> bool:
        word = token.text.casefold()
        return word in names.AND or word in names.OR

    def _multiplied(self, node: Node) -> Node:
        """`3 million`, `3万`."""
        while self.next.kind in _WORDS:
            word = self.next.text.casefold()
            if known(self.next.text):
                break
            factor = names.MULTIPLIERS.get(word)
            if factor is None and self.next.kind == "han":
                longest = word[:2] if word[:2] in names.MULTIPLIERS else word[:1]
                factor = names.MULTIPLIERS.get(longest)
                if factor:
                    self.tokens[self.at] = self.next._replace(text=word[len(longest) :])
                    self.at -= 1
            if factor is None:
                break
            self.at += 1
            node = mul(num(factor), node) if node[0] != "num" else num(node[1] * factor)
        return node

    # --- units

    def _unit_text(self) -> bool:
        return self.next.kind in ("text", "han") and known(self.next.text) is not None

    def _unit(self) -> Unit | None:
        """The unit at this place: `cm^2`, `m/s`, `square feet`, `km per hour`, `apples`."""
        unit, exponent, power, words = NO_UNIT, 1, 1, 0
        while words <= MAX_UNIT_WORDS:
            token = self.next
            word = token.text.casefold()
            if words and token.is_sign("/", r"\cdot", "-", "*") and self._is_unit_word(self.ahead(1), words):
                exponent = -1 if token.text == "/" else exponent if token.text == "-" else 1
                self.take()
                continue
            if token.is_sign("/") and known(self.ahead(1).text) and self.ahead(1).kind in _WORDS:
                self.take()
                exponent = -1
                continue
            if token.is_sign("(") and known(self.ahead(1).text) and self.ahead(2).is_sign(")"):
                self.tokens[self.at : self.at + 3] = [self.ahead(1)._replace(kind="text")]
                continue
            if not self._is_unit_word(token, words):
                break
            self.take()
            if word in ("per", "每"):
                exponent = -1
            elif word in ("a", "an", "of", "the") and words:
                continue
            elif power_word(token.text):
                power = power_word(token.text)
            elif word in POWERS_BEHIND:
                if not words:
                    raise UnreadableError(f"{word!r} changes a number")
                unit = unit.times(last, (POWERS_BEHIND[word] - 1) * exponent)
            else:
                last = _unit_of(token)
                raised = self._exponent() * power
                unit, words, power = unit.times(last, raised * exponent), words + 1, 1
            if words and exponent < 0 and not self.is_next("/", r"\cdot"):
                exponent = 1 if not self._is_unit_word(self.next, words) else exponent
        return unit if words else None

    def _is_unit_word(self, token: Token, words: int) -> bool:
        if token.kind not in _WORDS:
            return False
        word = token.text.casefold()
        if self._is_joint(token) or word in names.SCOPE or word in names.IS:
            return False
        if word in POWERS_BEHIND:
            return True
        if word in names.CHANGING or (
            token.kind == "han" and any(part in word for part in names.DENYING)
        ):
            raise UnreadableError(f"{token.text!r} changes a number")
        if token.kind == "word" and len(token.text) <= 2:
            sure = self.letters_are_units or words or token.text in PLAIN_UNITS
            return bool(sure) and token.text in TABLE
        return True

    def _exponent(self) -> int:
        if not self.is_next("^"):
            return 1
        self.take()
        exponent = self.argument(script=True)
        if exponent[0] != "num" or exponent[1].denominator != 1 or abs(exponent[1]) > 9:
            raise UnreadableError("no power of a unit")
        return int(exponent[1])

    def _compound(self, first: Node) -> Node:
        """`5 feet 6 inches`, `2小时30分钟`, `2024年3月5日`: quantities side by side."""
        parts = [first]
        while self.next.kind == "num" and first[0] == "quantity":
            value = self.power()
            unit = self._unit()
            if unit is None:
                raise UnreadableError("a number behind a quantity")
            parts.append(_measured(value, unit))
        return first if len(parts) == 1 else ("compound", *parts)


def _measured(node: Node, unit: Unit) -> Node:
    """A quantity; degrees, percent and radians are no unit."""
    if len(unit.name) == 1 and unit.name[0][1] == 1:
        word = unit.name[0][0]
        if word in ("degree", "deg", "度"):
            return ("degree", node)
        if word in ("percent", "percentage", "pct"):
            return ("percent", node)
        if word in ("radian", "rad"):
            return node
    if ("degree", 1) in unit.name:
        for word, symbol in (("celsiu", "°C"), ("celsius", "°C"), ("fahrenheit", "°F"), ("°C", "°C"), ("°F", "°F")):
            if (word, 1) in unit.name:
                return ("quantity", node, TABLE[symbol])
    if node[0] == "degree" and unit.name[0][0] in ("°C", "°F", "C", "F"):
        return ("quantity", node[1], TABLE["°" + unit.name[0][0].removeprefix("°")])
    return ("quantity", node, unit)


def _unit_of(token: Token) -> Unit:
    return known(token.text) or counted(token.text)


def _is_set(node: Node) -> bool:
    return node[0] in ("interval", "tuple", "set", "union")


def _grouped(groups: list[list[Node]], joints: set[str]) -> Node:
    """Groups of equal size are items of several parts; all else is one list."""
    sizes = {len(group) for group in groups}
    if len(groups) > 1 and len(sizes) == 1 and sizes != {1}:
        return ("list", *(("list", *group) for group in groups))
    flat = [item for group in groups for item in group]
    if len(flat) == 1:
        return flat[0]
    return ("or" if "or" in joints else "and" if "and" in joints else "list", *flat)


def _says_where(item: Node, others: list[Node]) -> bool:
    r"""Whether an item only says what a name of the others may be: `k \in \mathbb{Z}`."""
    if item[0] != "rel" or len(item) != 4 or item[1] != "in" or item[2][0] != "sym":
        return False
    return item[3][0] == "sym" and any(item[2][1] in symbols(other) for other in others)


_RESTRICTING = frozenset({"<", ">", r"\le", r"\ge", r"\ne", "=", "|", r"\mid", "not", r"\notin"})
_PARAMETER_SETS = frozenset({"Z", "N", r"\mathbb{Z}", r"\mathbb{N}", r"\mathbb{R}", r"\mathbb{C}"})


def _restricts(clause: list[Token]) -> bool:
    """Whether a clause says more than which names are numbers of which kind."""
    signs: list[Token] = []
    for token in clause:  # the scripts of a number set say which set it is: \mathbb{Q}_{>0}
        depth_of_set = signs and signs[-1].text.startswith("\\mathbb") and token.is_sign("_", "^")
        if depth_of_set or (signs and signs[-1].text == "script"):
            signs = [*signs[:-1], Token("cmd", "script")] if not token.is_sign("}") else signs[:-1]
        else:
            signs.append(token)
    words = {token.text.casefold() for token in signs}
    return any(token.kind == "num" for token in signs) or bool(
        words & (_RESTRICTING | {"even", "odd", "prime", "otherwise", "only"})
    )


def _bound_names(clause: list[Token]) -> str:
    """The single letters of a clause, the names that it may bind."""
    letters = [t.text for t in clause if t.kind in ("word", "text") and len(t.text) == 1]
    return " ".join(letter for letter in letters if letter not in _PARAMETER_SETS)
