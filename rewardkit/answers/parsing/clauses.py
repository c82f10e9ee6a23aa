r"""Clauses that say where an answer holds: `for all real $x$`, `where $k \in \mathbb{Z}$`, `当x>0时`.

A clause that only declares the kind of its names may be left out of an answer; every other clause
is a part of the answer. A closed list of words defines which clauses only declare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.answers.parsing.tokens import Token
from rewardkit.answers.parsing.typography import fold


class Clause(NamedTuple):
    """A clause of an answer.

    Attributes:
        text: the folded tokens, separated by blanks.
        is_restricting: whether the clause says more than the kind of its names.
        names: the names it binds, separated by blanks.
        kind: the kind of the names, `Z`, `N`, `R`, `C` or `Q`; "" if the clause does not say it.
    """

    text: str
    is_restricting: bool
    names: str
    kind: str


#: Words, besides names and sets of numbers, of a clause that only declares names.
_NAMING_WORDS = frozenset(
    (
        "for all any every each some where with is are be being a an the arbitrary given fixed and"
        " real integer integers number numbers constant constants complex natural positive"
        " nonnegative non-negative nonzero whole rational rationals reals parameter parameters of"
        " integration as denotes both let free variable variables"
        " 其中 对 对于 对任意 对所有 任意 所有 的 是 为 整数 实数 常数 自然数 正整数 任意常数 任意整数"
        " 任意实数 复数 参数 为整数 为常数 为任意常数 为任意整数 为任意实数 为实数 和"
    ).split()
)
_SIGNS = frozenset(
    {"(", ")", "{", "}", "[", "]", ",", ".", "_", "^", "+", "*", r"\forall", r"\in", ";"}
)
_NUMBER_SETS = {
    **dict.fromkeys(("integer", "integers", "整数", "任意整数", "为整数", "为任意整数", "Z"), "Z"),
    **dict.fromkeys(("natural", "自然数", "正整数", "N"), "N"),
    **dict.fromkeys(("real", "reals", "实数", "任意实数", "为任意实数", "为实数", "R"), "R"),
    **dict.fromkeys(("complex", "复数", "C"), "C"),
    **dict.fromkeys(("rational", "rationals", "Q"), "Q"),
}
_NUMBER_SET = re.compile(r"\\mathbb\{([A-Z])\}")
#: Scripts of a set of numbers: `\mathbb{Q}_{>0}`, `\mathbb{N}^*`.
_SCRIPT = re.compile(r"(?<=\})(?: [_^] (?:\{[^{}]*\}|\S+))+")
#: `n \ge 1` only declares a counting number.
_COUNTING_BOUND = re.compile(r"\b([ijkmn]) (?:\\ge|>) [01](?!\S)")


def read_clause(tokens: Sequence[Token]) -> Clause:
    """Return the clause that tokens spell."""
    text = " ".join(fold(tokens))
    words = _COUNTING_BOUND.sub(r"\1 N", _NUMBER_SET.sub(r"\1", _SCRIPT.sub("", text))).split()
    kinds = [
        kind
        for word in words
        if (kind := _NUMBER_SETS.get(word.casefold(), _NUMBER_SETS.get(word, "")))
    ]
    names = [word for word in words if _is_name(word)]
    is_restricting = not all(
        word.casefold() in _NAMING_WORDS or word in _SIGNS or word in _NUMBER_SETS or _is_name(word)
        for word in words
    )
    return Clause(text, is_restricting or len(set(kinds)) > 1, " ".join(names), "".join(kinds[:1]))


def _is_name(word: str) -> bool:
    greek = word[:1] == "\\" and word[1:].isalpha() and word not in _SIGNS
    return (
        len(word) == 1 and word.isalpha() and word.isascii() and word not in _NUMBER_SETS
    ) or greek
