r"""Clauses that say where an answer holds: `for all real $x$`, `where $k \in \mathbb{Z}$`, `当x>0时`.

A clause that only says which names are numbers of which kind may be left out; every other clause
is a part of the answer. What counts as such a clause is a closed list of words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.answers.reading.tokens import Token
from rewardkit.answers.reading.typography import fold


class Clause(NamedTuple):
    """What a clause says.

    `restricts`: whether it says more than what its names are. `names`: the names it binds, with
    blanks between. `kind`: of which kind they are, `Z`, `N`, `R`, `C`, or "" where it is not said.
    """

    text: str
    restricts: bool
    names: str
    kind: str


#: Words of a clause that only names: what it may consist of, beside names and sets of numbers.
_NAMING = frozenset(
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
_KINDS = {
    **dict.fromkeys(("integer", "integers", "整数", "任意整数", "为整数", "为任意整数", "Z"), "Z"),
    **dict.fromkeys(("natural", "自然数", "正整数", "N"), "N"),
    **dict.fromkeys(("real", "reals", "实数", "任意实数", "为任意实数", "为实数", "R"), "R"),
    **dict.fromkeys(("complex", "复数", "C"), "C"),
    **dict.fromkeys(("rational", "rationals", "Q"), "Q"),
}
_SET = re.compile(r"\\mathbb\{([A-Z])\}")
#: What is written at a set of numbers: `\mathbb{Q}_{>0}`, `\mathbb{N}^*`.
_SCRIPT = re.compile(r"(?<=\})(?: [_^] (?:\{[^{}]*\}|\S+))+")
#: `n \ge 1` only says that `n` counts.
_COUNTS = re.compile(r"\b([ijkmn]) (?:\\ge|>) [01](?!\S)")


def read_clause(tokens: Sequence[Token]) -> Clause:
    """What a clause says, from its tokens."""
    text = " ".join(fold(tokens))
    words = _COUNTS.sub(r"\1 N", _SET.sub(r"\1", _SCRIPT.sub("", text))).split()
    kinds = [kind for word in words if (kind := _KINDS.get(word.casefold(), _KINDS.get(word, "")))]
    names = [word for word in words if _is_name(word)]
    restricts = not all(
        word.casefold() in _NAMING or word in _SIGNS or word in _KINDS or _is_name(word)
        for word in words
    )
    return Clause(text, restricts or len(set(kinds)) > 1, " ".join(names), "".join(kinds[:1]))


def _is_name(word: str) -> bool:
    greek = word[:1] == "\\" and word[1:].isalpha() and word not in _SIGNS
    return (len(word) == 1 and word.isalpha() and word.isascii() and word not in _KINDS) or greek
