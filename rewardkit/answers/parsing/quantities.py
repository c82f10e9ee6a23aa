"""Values with a unit, money, multipliers such as `million`, and items that are words."""

from __future__ import annotations

from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.arithmetic import LETTER_UNITS, ArithmeticParser
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node, mul, neg, num, subtrees
from rewardkit.answers.parsing.typography import fold_case
from rewardkit.answers.parsing.units import (
    BASE_UNITS,
    COUNT_PREFIX,
    CURRENCIES,
    NO_UNIT,
    POWER_SUFFIXES,
    UNITS,
    Unit,
    counting_unit,
    lookup_unit,
    unit_power,
)

#: Kinds of tokens that are words.
WORD_KINDS = frozenset({"word", "text", "han"})
#: Most words of a unit.
MAX_UNIT_WORDS = 6
#: Most words of an item that consists of words; a longer one is a sentence.
MAX_ITEM_WORDS = 24
#: Digits of Roman numerals: `IV` and `VI` differ, so two capitals are not a product of names.
_ROMAN = frozenset("IVX")
_ITEM_ENDS = (",", ";", ".", ")", r"\}", "}", "!")
#: Units that have a kind of node of their own.
_DEGREE_WORDS = frozenset({"degree", "deg", "度"})
_TEMPERATURES = {"celsius": "°C", "°C": "°C", "C": "°C", "fahrenheit": "°F", "°F": "°F", "F": "°F"}


class QuantityParser(ArithmeticParser):
    """The level of the parser for one value: a number with its unit, or words."""

    def parse_quantity(self) -> Node:
        """Parse a value with its unit, an amount of money, or words."""
        if (money := self._parse_money()) is not None:
            return money
        words = self._parse_words()
        if words is not None:
            return words
        node = self._parse_multipliers(self.parse_sum())
        if node[0] == "quantity":
            return self._parse_compound(node)
        while (
            self.next.kind == "word"
            and self.next.text in vocabulary.ORDINAL_SUFFIXES
            and not self.next.follows_space
        ):
            self.advance()
        has_number = any(part[0] in ("num", "const", "base") for part in subtrees(node))
        has_text_unit = (
            self.next.kind in ("text", "han") and lookup_unit(self.next.text) is not None
        )
        unit = self.parse_unit() if has_number or has_text_unit else None
        return node if unit is None else self._parse_compound(_apply_unit(node, unit))

    def _parse_money(self) -> Node | None:
        r"""Parse `\$5`, `-\$5` or `¥5 million`; None if no amount of money comes next."""
        minus = self.is_next("-") and self.peek(1).text in CURRENCIES
        sign, after = self.peek(minus), self.peek(minus + 1)
        if sign.text not in CURRENCIES or after.kind not in ("num", "cmd", "op"):
            return None
        self.position += 1 + minus
        unit = UNITS[CURRENCIES[sign.text]]
        node = self._parse_multipliers(self.parse_sum())
        rate = self.parse_unit()
        if rate is not None and rate != unit:
            if any(exponent > 0 for _, exponent in rate.dimension):
                raise UnreadableError("two units of money")
            unit = unit.multiply(rate)  # as in `$5 per pound`
        return ("quantity", neg(node) if minus else node, unit)

    def _parse_words(self) -> Node | None:
        """Parse words that are a whole item, up to a comma, a conjunction or the end."""
        at, limit = self.position, self.position + MAX_ITEM_WORDS
        while (
            at < limit
            and self.tokens[at].kind in WORD_KINDS
            and not _ends_item_words(self.tokens[at])
        ):
            at += 1
        words = self.tokens[self.position : at]
        after = self.tokens[at]
        if not words or not (
            after.kind == "end" or after.is_sign(*_ITEM_ENDS) or _ends_item_words(after)
        ):
            return None
        capitals = len(words) == 1 and words[0].text.isupper()
        capitals = capitals and (len(words[0].text) > 2 or set(words[0].text) <= _ROMAN)
        are_single_letters = len(words) > 1 and all(
            w.kind == "text" and len(w.text) == 1 for w in words
        )
        if capitals or are_single_letters:  # letters whose order counts, as in HTH
            self.position = at
            return ("text", "".join(word.text for word in words))
        if all(len(word.text) == 1 or self.is_product(word) for word in words):
            return None
        self.position = at
        text = " ".join(fold_case(word.text) for word in words)
        return vocabulary.WORD_VALUES.get(text, ("text", text))

    def _parse_multipliers(self, node: Node) -> Node:
        """Parse the multipliers after a value: `3 million`, `3万`, `1.2亿元`."""
        while self.next.kind in WORD_KINDS and not lookup_unit(self.next.text):
            word = self.next.text.casefold()
            sizes = [len(word)] if self.next.kind != "han" else [2, 1]
            size = next((n for n in sizes if word[:n] in vocabulary.MULTIPLIERS), 0)
            if not size:
                break
            factor = vocabulary.MULTIPLIERS[word[:size]]
            if word[size:]:
                self.tokens[self.position] = self.next._replace(text=word[size:])
            else:
                self.advance()
            node = num(node[1] * factor) if node[0] == "num" else mul(num(factor), node)
        return node

    # --- units

    def parse_unit(self) -> Unit | None:
        """Parse a unit: `cm^2`, `m/s`, `square feet`, `J/(mol K)`, `apples`; None without one."""
        if self.opens_unit_fraction():
            return self._parse_unit_fraction()
        unit = self._parse_units(NO_UNIT, below=False)
        if unit != NO_UNIT and self.is_next("/") and self.peek(1).is_sign("("):
            self.position += 2
            unit = self._parse_units(unit, below=True)
            self.expect(")")
        return None if unit == NO_UNIT else unit

    def _parse_units(self, unit: Unit, *, below: bool) -> Unit:
        """Multiply a unit by the units that come next, or divide it by them."""
        words, power, last = int(unit != NO_UNIT), 1, unit
        while words <= MAX_UNIT_WORDS:
            is_divisor = self._parse_unit_joint(words) or below
            token = self.next
            if not self._is_unit_word(token, words):
                break
            self.advance()
            word = token.text.casefold()
            if word in ("a", "an", "of", "the") and words:
                continue
            if unit_power(token.text):
                power *= unit_power(token.text)
                self.accept(".")
            elif word in POWER_SUFFIXES:
                if not words:
                    raise UnreadableError(f"{word!r} changes a number")
                unit = unit.multiply(last, POWER_SUFFIXES[word] - 1)
            else:
                last = (_lookup_token_unit(token) or counting_unit(token.text)).power(
                    -1 if is_divisor else 1
                )
                unit = unit.multiply(last, self._parse_exponent() * power)
                words, power = words + 1, 1
        if power != 1:
            raise UnreadableError("`square` or `cubic` without a unit")
        return unit

    def _parse_unit_fraction(self) -> Unit:
        r"""Parse `\frac{m}{s}` after a number."""
        parts = []
        self.advance()
        for _ in range(2):
            self.expect("{")
            parts.append(self.parse_unit())
            self.expect("}")
        if parts[0] is None or parts[1] is None:
            raise UnreadableError("a fraction of units and values")
        return parts[0].multiply(parts[1], -1)

    def _parse_unit_joint(self, words: int) -> bool:
        r"""Parse `/`, `per` or `\cdot` between units; return whether the next one is a divisor."""
        before = self.tokens[self.position - 1]
        below = bool(before.is_sign("/"))
        while self.next.kind != "end":
            after = self.peek(1)
            if self.next.text in ("per", "每") and after.text == "cent":
                self.tokens[self.position : self.position + 2] = [after._replace(text="percent")]
                break
            if (self.next.text in ("per", "每") and after.kind in WORD_KINDS) or (
                self.is_next("/")
                and after.kind in WORD_KINDS
                and (words or lookup_unit(after.text))
            ):
                below = True
            elif (
                (words or self.is_next("-"))
                and self.is_next(r"\cdot", "-", "*")
                and (after.kind in WORD_KINDS)
            ):
                pass
            elif self.is_next("(") and _may_be_bracketed_unit(after) and self.peek(2).is_sign(")"):
                self.tokens[self.position : self.position + 3] = [after._replace(kind="text")]
                break
            elif words and self.is_next(".") and after.kind in WORD_KINDS and after.follows_space:
                pass  # the full stop of an abbreviation
            else:
                break
            self.advance()
            if below and self.next.text in ("a", "an"):
                self.advance()
        return below

    def _is_unit_word(self, token: Token, words: int) -> bool:
        if token.text in CURRENCIES and token.kind in ("op", "cmd") and not words:
            return True  # 5€
        if token.kind not in WORD_KINDS:
            return False
        word = token.text.casefold()
        if _is_joint(token) or word in vocabulary.CLAUSE_OPENERS or word in vocabulary.COPULAS:
            return False
        if word in POWER_SUFFIXES or unit_power(word):
            return True
        is_modifier = token.kind == "han" and any(
            part in word for part in vocabulary.CHINESE_NUMBER_MODIFIERS
        )
        if word in vocabulary.NUMBER_MODIFIERS or is_modifier:
            raise UnreadableError(f"{token.text!r} changes a number")
        if word == "in" and self.peek(1).kind in ("num", *WORD_KINDS):
            return False  # as in `200 minutes in 5 days`
        if token.kind == "word" and len(token.text) <= 2:
            is_sure = self.letters_are_units or words or token.text in LETTER_UNITS
            return bool(is_sure) and token.text in UNITS
        return True

    def _continues_compound(self, last: Node) -> bool:
        """Whether a smaller unit of the same dimension follows, as in `2 hours and 30 minutes`."""
        joins = self.is_next(",") or self.next.text.casefold() == "and"
        unit = lookup_unit(self.peek(2).text) if joins and self.peek(1).kind == "num" else None
        return (
            unit is not None
            and unit.dimension == last[2].dimension
            and unit.factor < last[2].factor
            and (self.peek(3).kind == "end" or self.peek(3).is_sign(".", ",", "}"))
        )

    def _skip_joint(self) -> None:
        if self.next.kind != "num":
            self.advance()

    def _parse_exponent(self) -> int:
        if not self.accept("^"):
            return 1
        exponent = self.parse_argument(script=True)
        if exponent[0] != "num" or exponent[1].denominator != 1 or abs(exponent[1]) > 9:
            raise UnreadableError("the exponent of a unit is not a small integer")
        return int(exponent[1])

    def _parse_compound(self, first: Node) -> Node:
        """Parse the further quantities of `5 feet 6 inches`, `2小时30分钟` or `2024年3月5日`."""
        parts = [first]
        while first[0] == "quantity" and (
            self.next.kind == "num" or self._continues_compound(parts[-1])
        ):
            self._skip_joint()
            value = self.parse_power()
            unit = self.parse_unit()
            if unit is None:
                raise UnreadableError("a number after a quantity")
            parts.append(_apply_unit(value, unit))
        if len(parts) > 1 and not all(map(_is_measure, parts)):
            raise UnreadableError("counts side by side are not a compound quantity")
        return first if len(parts) == 1 else ("compound", *parts)


def _is_measure(node: Node) -> bool:
    return node[0] == "quantity" and all(base in BASE_UNITS for base, _ in node[2].dimension)


def _lookup_token_unit(token: Token) -> Unit | None:
    return lookup_unit(CURRENCIES.get(token.text, token.text))


def _may_be_bracketed_unit(token: Token) -> bool:
    """Whether a word in brackets after a number may be its unit: `12 (apples)`."""
    return token.kind in WORD_KINDS and (lookup_unit(token.text) is not None or len(token.text) > 2)


def _ends_item_words(token: Token) -> bool:
    return _is_joint(token) or token.text.casefold() in vocabulary.CLAUSE_OPENERS


def _is_joint(token: Token) -> bool:
    word = token.text.casefold()
    return token.kind != "num" and (
        word in vocabulary.CONJUNCTIONS or word in vocabulary.DISJUNCTIONS
    )


def _apply_unit(node: Node, unit: Unit) -> Node:
    """Return a value with a unit: a quantity, a percentage, an angle or a temperature."""
    words = {name.removeprefix(COUNT_PREFIX) for name, _ in unit.name}
    temperature = next((_TEMPERATURES[word] for word in words if word in _TEMPERATURES), "")
    if temperature and (node[0] == "degree" or words & _DEGREE_WORDS):
        return ("quantity", node[1] if node[0] == "degree" else node, UNITS[temperature])
    if words <= _DEGREE_WORDS:
        return ("degree", node)
    if words <= vocabulary.PERCENT_WORDS:
        return ("percent", node)
    return ("quantity", node, unit)
