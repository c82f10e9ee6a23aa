"""What stands behind a value, or before it: units, money, multipliers, words of their own."""

from __future__ import annotations

from rewardkit.answers.reading import names
from rewardkit.answers.reading.arithmetic import PLAIN_UNITS, Arithmetic
from rewardkit.answers.reading.tokens import Token, UnreadableError
from rewardkit.answers.reading.tree import Node, mul, neg, num, walk
from rewardkit.answers.reading.typography import cased
from rewardkit.answers.reading.units import (
    BASES,
    COUNTED,
    CURRENCIES,
    NO_UNIT,
    POWERS_BEHIND,
    TABLE,
    Unit,
    counted,
    known,
    power_word,
)

#: The kinds of tokens that are words.
WORDS = frozenset({"word", "text", "han"})
#: Most words that one unit has.
MAX_UNIT_WORDS = 6
#: Most words of an item that is nothing but words: what is longer is a sentence.
MAX_OWN_WORDS = 24
#: Digits of Roman numerals, whose order counts in two letters too.
_ROMAN = frozenset("IVX")
_ENDS = (",", ";", ".", ")", r"\}", "}", "!")
#: Units that are kinds of value of their own, by their name.
_DEGREES = frozenset({"degree", "deg", "度"})
_TEMPERATURES = {"celsius": "°C", "°C": "°C", "C": "°C", "fahrenheit": "°F", "°F": "°F", "F": "°F"}


class Quantities(Arithmetic):
    """The part of the parser that reads one whole value: its number, its unit, or its words."""

    def quantity(self) -> Node:
        """A value with what is counted or measured behind it, or money before it."""
        if (money := self._money()) is not None:
            return money
        words = self._own_words()
        if words is not None:
            return words
        node = self._multiplied(self.sum())
        if node[0] == "quantity":
            return self._compound(node)
        while self.next.kind == "word" and self.next.text in names.ORDINALS and not self.next.gap:
            self.take()
        a_number = any(part[0] in ("num", "const", "base") for part in walk(node))
        a_unit = self.next.kind in ("text", "han") and known(self.next.text) is not None
        unit = self.unit() if a_number or a_unit else None
        return node if unit is None else self._compound(_measured(node, unit))

    def _money(self) -> Node | None:
        r"""`\$5`, `-\$5`, `¥5 million`."""
        minus = self.is_next("-") and self.ahead(1).text in CURRENCIES
        sign, behind = self.ahead(minus), self.ahead(minus + 1)
        if sign.text not in CURRENCIES or behind.kind not in ("num", "cmd", "op"):
            return None
        self.at += 1 + minus
        unit = TABLE[CURRENCIES[sign.text]]
        node = self._multiplied(self.sum())
        rate = self.unit()
        if rate is not None and rate != unit:
            if any(exponent > 0 for _, exponent in rate.dimension):
                raise UnreadableError("two units of money")
            unit = unit.times(rate)  # per pound
        return ("quantity", neg(node) if minus else node, unit)

    def _own_words(self) -> Node | None:
        """Words that are an item of their own, up to a comma, a joint or the end."""
        at, limit = self.at, self.at + MAX_OWN_WORDS
        while at < limit and self.tokens[at].kind in WORDS and not _ends_words(self.tokens[at]):
            at += 1
        words = self.tokens[self.at : at]
        behind = self.tokens[at]
        if not words or not (behind.kind == "end" or behind.is_sign(*_ENDS) or _ends_words(behind)):
            return None
        capitals = len(words) == 1 and words[0].text.isupper()
        capitals = capitals and (len(words[0].text) > 2 or set(words[0].text) <= _ROMAN)
        spelled = len(words) > 1 and all(w.kind == "text" and len(w.text) == 1 for w in words)
        if capitals or spelled:  # letters in their order, HTH
            self.at = at
            return ("text", "".join(word.text for word in words))
        if all(len(word.text) == 1 or self.is_product(word) for word in words):
            return None
        self.at = at
        text = " ".join(cased(word.text) for word in words)
        return names.WORD_VALUES.get(text, ("text", text))

    def _multiplied(self, node: Node) -> Node:
        """`3 million`, `3万`, `1.2亿元`."""
        while self.next.kind in WORDS and not known(self.next.text):
            word = self.next.text.casefold()
            sizes = [len(word)] if self.next.kind != "han" else [2, 1]
            size = next((n for n in sizes if word[:n] in names.MULTIPLIERS), 0)
            if not size:
                break
            factor = names.MULTIPLIERS[word[:size]]
            if word[size:]:
                self.tokens[self.at] = self.next._replace(text=word[size:])
            else:
                self.take()
            node = num(node[1] * factor) if node[0] == "num" else mul(num(factor), node)
        return node

    # --- units

    def unit(self) -> Unit | None:
        """The unit at this place: `cm^2`, `m/s`, `square feet`, `J/(mol K)`, `apples`."""
        if self.opens_unit_fraction():
            return self._unit_fraction()
        unit = self._units(NO_UNIT, below=False)
        if unit != NO_UNIT and self.is_next("/") and self.ahead(1).is_sign("("):
            self.at += 2
            unit = self._units(unit, below=True)
            self.expect(")")
        return None if unit == NO_UNIT else unit

    def _units(self, unit: Unit, *, below: bool) -> Unit:
        """A unit times those that stand at this place, or divided by them."""
        words, power, last = int(unit != NO_UNIT), 1, unit
        while words <= MAX_UNIT_WORDS:
            divides = self._joins_units(words) or below
            token = self.next
            if not self._is_unit_word(token, words):
                break
            self.take()
            word = token.text.casefold()
            if word in ("a", "an", "of", "the") and words:
                continue
            if power_word(token.text):
                power *= power_word(token.text)
                self.accept(".")
            elif word in POWERS_BEHIND:
                if not words:
                    raise UnreadableError(f"{word!r} changes a number")
                unit = unit.times(last, POWERS_BEHIND[word] - 1)
            else:
                last = (_known(token) or counted(token.text)).to_the(-1 if divides else 1)
                unit = unit.times(last, self._exponent() * power)
                words, power = words + 1, 1
        if power != 1:
            raise UnreadableError("a power of nothing")
        return unit

    def _unit_fraction(self) -> Unit:
        r"""`\frac{m}{s}` behind a number."""
        parts = []
        self.take()
        for _ in range(2):
            self.expect("{")
            parts.append(self.unit())
            self.expect("}")
        if parts[0] is None or parts[1] is None:
            raise UnreadableError("a fraction of units and values")
        return parts[0].times(parts[1], -1)

    def _joins_units(self, words: int) -> bool:
        r"""Read `/`, `per` or `\cdot` between units; whether the next one stands below the stroke."""
        before = self.tokens[self.at - 1]
        below = bool(before.is_sign("/"))
        while self.next.kind != "end":
            behind = self.ahead(1)
            if self.next.text in ("per", "每") and behind.text == "cent":
                self.tokens[self.at : self.at + 2] = [behind._replace(text="percent")]
                break
            if (self.next.text in ("per", "每") and behind.kind in WORDS) or (
                self.is_next("/") and behind.kind in WORDS and (words or known(behind.text))
            ):
                below = True
            elif (
                (words or self.is_next("-"))
                and self.is_next(r"\cdot", "-", "*")
                and (behind.kind in WORDS)
            ):
                pass
            elif self.is_next("(") and _is_comment(behind) and self.ahead(2).is_sign(")"):
                self.tokens[self.at : self.at + 3] = [behind._replace(kind="text")]
                break
            elif words and self.is_next(".") and behind.kind in WORDS and behind.gap:
                pass  # an abbreviation's stop
            else:
                break
            self.take()
            if below and self.next.text in ("a", "an"):
                self.take()
        return below

    def _is_unit_word(self, token: Token, words: int) -> bool:
        if token.text in CURRENCIES and token.kind in ("op", "cmd") and not words:
            return True  # 5€
        if token.kind not in WORDS:
            return False
        word = token.text.casefold()
        if _is_joint(token) or word in names.SCOPE or word in names.IS:
            return False
        if word in POWERS_BEHIND or power_word(word):
            return True
        denies = token.kind == "han" and any(part in word for part in names.DENYING)
        if word in names.CHANGING or denies:
            raise UnreadableError(f"{token.text!r} changes a number")
        if word == "in" and self.ahead(1).kind in ("num", *WORDS):
            return False  # 200 minutes in 5 days
        if token.kind == "word" and len(token.text) <= 2:
            sure = self.letters_are_units or words or token.text in PLAIN_UNITS
            return bool(sure) and token.text in TABLE
        return True

    def _goes_on(self, last: Node) -> bool:
        """Whether `and 30 minutes` goes on with a smaller unit of the same dimension."""
        joins = self.is_next(",") or self.next.text.casefold() == "and"
        unit = known(self.ahead(2).text) if joins and self.ahead(1).kind == "num" else None
        return (
            unit is not None
            and unit.dimension == last[2].dimension
            and unit.factor < last[2].factor
            and (self.ahead(3).kind == "end" or self.ahead(3).is_sign(".", ",", "}"))
        )

    def _joins_parts(self) -> None:
        if self.next.kind != "num":
            self.take()

    def _exponent(self) -> int:
        if not self.accept("^"):
            return 1
        exponent = self.argument(script=True)
        if exponent[0] != "num" or exponent[1].denominator != 1 or abs(exponent[1]) > 9:
            raise UnreadableError("no power of a unit")
        return int(exponent[1])

    def _compound(self, first: Node) -> Node:
        """`5 feet 6 inches`, `2小时30分钟`, `2024年3月5日`: quantities side by side."""
        parts = [first]
        while first[0] == "quantity" and (self.next.kind == "num" or self._goes_on(parts[-1])):
            self._joins_parts()
            value = self.power()
            unit = self.unit()
            if unit is None:
                raise UnreadableError("a number behind a quantity")
            parts.append(_measured(value, unit))
        if len(parts) > 1 and not all(map(_is_measure, parts)):
            raise UnreadableError("numbers of things that are no measures")
        return first if len(parts) == 1 else ("compound", *parts)


def _is_measure(node: Node) -> bool:
    return node[0] == "quantity" and all(base in BASES for base, _ in node[2].dimension)


def _known(token: Token) -> Unit | None:
    return known(CURRENCIES.get(token.text, token.text))


def _is_comment(token: Token) -> bool:
    """Whether a word in brackets behind a number may be its unit: `12 (apples)`."""
    return token.kind in WORDS and (known(token.text) is not None or len(token.text) > 2)


def _ends_words(token: Token) -> bool:
    return _is_joint(token) or token.text.casefold() in names.SCOPE


def _is_joint(token: Token) -> bool:
    word = token.text.casefold()
    return token.kind != "num" and (word in names.AND or word in names.OR)


def _measured(node: Node, unit: Unit) -> Node:
    """A quantity; percent and degrees are no unit, and degrees may be a temperature."""
    words = {name.removeprefix(COUNTED) for name, _ in unit.name}
    temperature = next((_TEMPERATURES[word] for word in words if word in _TEMPERATURES), "")
    if temperature and (node[0] == "degree" or words & _DEGREES):
        return ("quantity", node[1] if node[0] == "degree" else node, TABLE[temperature])
    if words <= _DEGREES:
        return ("degree", node)
    if words <= names.PERCENT:
        return ("percent", node)
    return ("quantity", node, unit)
