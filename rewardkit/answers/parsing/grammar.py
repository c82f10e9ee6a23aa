r"""Tokens -> tree: lists, relations, labels, quantities and conditions, above the arithmetic.

A text is parsed completely or not at all. `equal` compares a text that the grammar does not accept
by its folded tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewardkit.answers.parsing import vocabulary
from rewardkit.answers.parsing.clauses import read_clause
from rewardkit.answers.parsing.quantities import WORD_KINDS, QuantityParser
from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node, divide, num, symbols

_CLOCK = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]\.?m\.?)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/])\d\d?\2\d{2,4}", re.ASCII)


def parse(tokens: Sequence[Token], *, letters_are_units: bool = False) -> Node:
    """Return the tree of a text's tokens.

    Raises:
        UnreadableError: the grammar does not accept the text, or the text is over a limit.
    """
    tokens = _without_outer_braces(list(tokens))
    if (text := _plain_text(tokens)) is not None:
        return text
    try:
        return AnswerParser(tokens, letters_are_units=letters_are_units).parse_whole()
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error


def _without_outer_braces(tokens: list[Token]) -> list[Token]:
    """Return the tokens without braces around everything."""
    depth = 0
    for place, token in enumerate(tokens[:-1]):
        depth += token.is_sign("{") - token.is_sign("}")
        if depth == 0:
            after = tokens[place + 1 :]
            if (
                place
                and token.is_sign("}")
                and all(t.kind == "end" or t.is_sign(".", ",") for t in after)
            ):
                return [*tokens[1:place], tokens[-1]]
            return tokens
    return tokens


def _plain_text(tokens: list[Token]) -> Node | None:
    """Return a date or a time of day as a node; None for any other text."""
    if len(tokens) > 12 or tokens[0].kind not in ("num", *WORD_KINDS):
        return None
    text_of_tokens = "".join(token.text for token in tokens)
    if tokens[0].kind == "num":
        if _CLOCK.fullmatch(text_of_tokens):
            return ("clock", text_of_tokens.casefold().replace(".", "").removeprefix("0"))
        return ("text", text_of_tokens) if _DATE.fullmatch(text_of_tokens) else None
    return None


class AnswerParser(QuantityParser):
    """The top level of the parser: lists, relations, labels and clauses."""

    def parse_whole(self) -> Node:
        """Parse all tokens."""
        if self._is_option_label():
            self.position += 3
        node = self.parse_items()
        if self.accept(r"\over"):
            node = divide(node, self.parse_items())
        while self.accept(".", "!", ",", ";"):
            pass
        if self.next.kind != "end":
            raise UnreadableError(f"unexpected {self.next.text!r} after the answer")
        return node

    def _is_option_label(self) -> bool:
        r"""Whether an option's letter stands before its value, as in `\textbf{(B)}\ 12`."""
        letter, value = self.peek(1), self.peek(3)
        return (
            self.is_next("(")
            and letter.text in tuple("ABCDE")
            and self.peek(2).is_sign(")")
            and value.follows_space
            and (value.kind == "num" or value.is_sign("-", r"\frac", r"\sqrt"))
        )

    # --- lists

    def parse_items(self) -> Node:
        """Parse `a, b; c or d`: groups separated by `;` and `or`, items by commas and `and`."""
        groups: list[list[Node]] = [[]]
        spans: list[tuple[int, int]] = []
        joints: set[str] = set()
        while True:
            start = self.position
            groups[-1].append(self.parse_relation())
            spans.append((start, self.position))
            if self._starts_clause():
                return self._restrict(_group_items(groups, joints), self._take_clause())
            joint = self._parse_joint()
            if not joint:
                break
            if self.next.kind == "end" or self._is_closing():
                break
            if self._starts_clause():
                return self._restrict(_group_items(groups, joints), self._take_clause())
            joints.add(joint)
            if joint in (";", "or"):
                groups.append([])
        return self._move_memberships(groups, spans, joints)

    def _parse_joint(self) -> str:
        """Parse what joins two items and return it: `,`, `;`, `and`, `or`; "" if nothing does."""
        kind = ""
        while True:
            token = self.next
            word = token.text.casefold()
            if token.is_sign(","):
                kind = kind or ","
            elif token.is_sign(";", r"\\"):
                kind = ";"
            elif token.kind not in ("num", "end") and word in vocabulary.CONJUNCTIONS:
                kind = "and" if kind in ("", ",") else kind
            elif token.kind not in ("num", "end") and word in vocabulary.DISJUNCTIONS:
                kind = "or"
            else:
                return kind
            self.position += 1

    def _is_closing(self) -> bool:
        return self.next.kind in ("op", "cmd") and self.next.text in vocabulary.CLOSING_SIGNS

    # --- conditions

    def _starts_clause(self) -> bool:
        token = self.next
        bracket = token.is_sign("(", "[") and not self.open_brackets
        token = self.peek(1) if bracket else token
        if token.kind not in (*WORD_KINDS, "cmd"):
            return False
        is_opener = token.text.casefold() in vocabulary.CLAUSE_OPENERS
        if bracket and not is_opener:
            return self.opens_condition()
        return is_opener and not self.open_brackets

    def _take_clause(self) -> list[Token]:
        clause = [token for token in self.tokens[self.position :] if token.kind != "end"]
        self.position = len(self.tokens) - 1
        return clause

    def _restrict(self, node: Node, clause: list[Token]) -> Node:
        return ("where", node, *read_clause(clause))

    def _move_memberships(
        self, groups: list[list[Node]], spans: list[tuple[int, int]], joints: set[str]
    ) -> Node:
        r"""Turn last items into a clause if they say where the others hold: `k \in \mathbb{Z}`."""
        if self.open_brackets:
            return _share_modulus(_group_items(groups, joints))
        last = groups[-1]
        flat = [item for group in groups for item in group]
        clause: list[Token] = []
        while (
            len(flat) > 1
            and len(last) > (len(groups) > 1)
            and _is_membership_clause(flat[-1], flat[:-1])
        ):
            start, end = spans[len(flat) - 1]
            clause = self.tokens[start:end] + clause
            flat.pop()
            last.pop()
        node = _share_modulus(_group_items([group for group in groups if group], joints))
        return self._restrict(node, clause) if clause else node

    # --- relations and labels

    def parse_relation(self) -> Node:
        r"""Parse `a < b \le c`, `x = 5`, `x \in S`, `Volume: 5` or `x \equiv 3 \pmod 7`."""
        self.descend()
        label = self._parse_label()
        label_sign = self.tokens[self.position - 1].text
        self.accept("=", r"\approx")
        sides, operators = [self.parse_ratio()], []
        while (operator := self._parse_operator()) is not None:
            operators.append(operator)
            sides.append(self.parse_ratio())
        node = sides[0] if not operators else ("rel", " ".join(operators), *sides)
        node = self._parse_congruence(node)
        self.depth -= 1
        if label is None:
            return node
        if node[0] != "rel":
            return ("rel", "=", ("sym", label), node)
        if label_sign in ("=", r"\approx"):
            return ("rel", "= " + node[1], ("sym", label), *node[2:])
        return node  # as in `the answer is x > 3`

    def _parse_operator(self) -> str | None:
        is_negated = self.is_next(r"\not") and self.peek(1).is_sign("=", r"\in", r"\equiv")
        token = self.peek(1) if is_negated else self.next
        if token.kind in ("op", "cmd") and token.text in vocabulary.RELATION_SIGNS:
            self.position += 1 + is_negated
            operator = vocabulary.RELATION_SIGNS[token.text]
            return {"=": "!=", "in": "notin"}.get(operator, operator) if is_negated else operator
        return None

    def _parse_label(self) -> str | None:
        """Parse a label, words before a colon, `is` or `=`: `Volume =`, `the area is`, `答案：`."""
        if self.next.text.casefold() in vocabulary.LEAD_INS:
            self.advance()
            self.accept(",")
        at = self.position
        words: list[str] = []
        while self.tokens[at].kind in WORD_KINDS and len(words) <= 8:
            token = self.tokens[at]
            words.append(token.text.casefold())
            at += 1
            if words[-1] in vocabulary.COPULAS or (
                token.kind == "han" and words[-1][-1:] in "是为"
            ):
                return self._accept_label(at, words)
        sign, letters = self.tokens[at], "".join(words)
        if sign.is_sign(":") and self.tokens[at + 1].kind in ("end", "num") and letters.isupper():
            return None
        is_long = len(words) > 1 or len(letters) > 2 or self.next.kind == "text"
        is_name = sign.text != ":" and self.next.text.isupper()
        if is_long and len(letters) > 1 and not is_name and sign.is_sign("=", r"\approx", ":"):
            return self._accept_label(at + 1, words)
        while (
            self.next.kind in WORD_KINDS
            and self.next.text.casefold() in vocabulary.NEUTRAL_QUALIFIERS
        ):
            self.position += 1
            if self.next.kind not in ("num", "cmd", "op", "word"):
                self.position -= 1
                break
        return None

    def _accept_label(self, at: int, words: list[str]) -> str | None:
        """Move to the value of a label and return the label.

        Raises:
            UnreadableError: the label denies, bounds or changes the value that follows.
        """
        if self.tokens[at].kind == "end":
            return None
        label_words = [word for word in words if word not in vocabulary.COPULAS]
        after = [*label_words[1:], "of"]
        ends = {
            word for word, next_word in zip(label_words, after, strict=False) if next_word == "of"
        }
        is_operation = not vocabulary.LABEL_OPERATIONS.isdisjoint(ends)
        if (
            is_operation
            or not vocabulary.DOUBT_WORDS.isdisjoint(words)
            or vocabulary.changes_label_value("".join(words))
        ):
            raise UnreadableError(f"{' '.join(words)!r} changes what follows")
        name = (
            self.next.text
            if len(label_words) == 1 and len(label_words[0]) == 1
            else " ".join(label_words)
        )
        self.position = at
        self.accept(":")
        return name or "it"

    def _parse_congruence(self, node: Node) -> Node:
        r"""Parse the modulus of `x \equiv 3 \pmod 7` or `3 (mod 7)`, if there is one."""
        in_bracket = self.opens_modulus()
        if in_bracket:
            self.advance()
        if not (self.is_next(r"\pmod", r"\bmod") or self.next.text == "mod"):
            return node
        self.advance()
        modulus = self.parse_argument(script=True)
        if in_bracket:
            self.expect(")")
        return ("congruence", node, modulus)

    # --- one side

    def parse_ratio(self) -> Node:
        """Parse parts with `:` between them."""
        parts = [self.parse_union()]
        while not self.open_bars and self.is_next(":") and self.peek(1).kind != "end":
            self.advance()
            parts.append(self.parse_union())
        return parts[0] if len(parts) == 1 else ("ratio", *parts)

    def parse_union(self) -> Node:
        r"""Parse `A \cup B`; a lone `U` between brackets means `\cup`."""
        parts = [self.parse_intersection()]
        while self.is_next(r"\cup") or (self.next.text in ("U", "u") and _is_set(parts[-1])):
            self.advance()
            parts.append(self.parse_intersection())
        return parts[0] if len(parts) == 1 else ("union", *parts)

    def parse_intersection(self) -> Node:
        r"""Parse `A \cap B` and `A \setminus B`."""
        node = self.parse_quantity()
        while self.is_next(r"\cap", r"\setminus"):
            kind = "meet" if self.advance().text == r"\cap" else "minus"
            node = (kind, node, self.parse_quantity())
        return node


def _is_set(node: Node) -> bool:
    return node[0] in ("interval", "tuple", "set", "union")


def _group_items(groups: list[list[Node]], joints: set[str]) -> Node:
    """Return groups of equal size as items of several parts, anything else as one list."""
    sizes = {len(group) for group in groups}
    if len(groups) > 1 and len(sizes) == 1 and sizes != {1}:
        return ("list", *(("list", *group) for group in groups))
    flat = [item for group in groups for item in group]
    if len(flat) == 1:
        return flat[0]
    return ("or" if "or" in joints else "and" if "and" in joints else "list", *flat)


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
    is_membership = item[1] == "in" and item[3][0] == "sym"
    is_counting = (
        item[1] in (">=", ">") and item[2][1] in tuple("ijkmn") and item[3] in _COUNTING_STARTS
    )
    are_plain = all(other[0] != "rel" or other[1] == "=" for other in others)
    return (is_membership or (is_counting and are_plain)) and any(
        item[2][1] in symbols(other) for other in others
    )


#: Numbers at which counting starts.
_COUNTING_STARTS = (num(0), num(1))
