r"""Cleaned text -> tokens, with static limits: the parser never sees more than `MAX_TOKENS`.

A token is `(kind, text)`: `num`, `cmd` (`\frac`), `word` (letters in a row), `text` (the content of
`\text{...}`), `op` (any other character), and one `end` at the end.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Token: TypeAlias = tuple[str, str]

#: Longest answer, in characters, and the most tokens that are read.
MAX_CHARS: Final = 2000
MAX_TOKENS: Final = 600
#: Longest run of digits that is read.
MAX_DIGITS: Final = 256
#: Largest power of ten in scientific notation.
MAX_EXPONENT: Final = 300


class UnreadableError(ValueError):
    """The text is not an expression the parser knows, or is over a limit. Internal to answers."""


_TEXT = r"\\(?:text(?:bf|it|rm|normal|tt)?|mbox|mathrm|mathbf|mathit|mathsf|operatorname\*?)\s*\{([^{}]*)\}"
_TOKEN = re.compile(
    rf"""
    \s*(?:
      (?P<num>\d{{1,3}}(?:,\d{{3}}){{1,20}}(?!,?\d)(?:\.\d+)?|\d+(?:\.\d+)?[eE][-+]?\d{{1,4}}(?![\dA-Za-z])|\d+(?:\.\d*)?|\.\d+)
    | {_TEXT}
    | (?P<cmd>\\[A-Za-z]+|\\[{{}}|%])
    | (?P<word>[A-Za-z]+|[\u4e00-\u9fff]+)
    | (?P<op>\\\\|<=|>=|!=|==|[^\s])
    )
    """,
    re.VERBOSE,
)
_OPEN, _CLOSE = frozenset({"(", "[", "{", r"\{"}), frozenset({")", "]", "}", r"\}"})
_RELATIONS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "==": "="}


def tokenize(text: str, *, commas_group: bool = True) -> list[Token]:
    """The tokens of a cleaned text.

    Args:
        text: see `normalize.clean`.
        commas_group: whether `1,234` outside brackets is one number, not a list of two.

    Raises:
        UnreadableError: the text is over a limit.
    """
    if len(text) > MAX_CHARS:
        raise UnreadableError("too long")
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:  # the content of \text{...} is the only unnamed group
            found.extend(_text_tokens(match[2]))
        elif kind == "num":
            found.extend(_number(match["num"], group=commas_group and depth == 0))
        else:
            sign = match[kind]
            depth += (sign in _OPEN) - (sign in _CLOSE)
            found.append((kind, _RELATIONS.get(sign, sign)))
    if len(found) > MAX_TOKENS:
        raise UnreadableError("too many tokens")
    return [*found, ("end", "")]


def _text_tokens(content: str) -> list[Token]:
    r"""A number alone in \text{} is a number; a joint at its end stands by itself."""
    content = content.strip()
    if any(map(str.isdigit, content)) and not any(map(str.isalpha, content)):
        return tokenize(content)[:-1]
    if joint := re.fullmatch(r"(.*\S)[\s,]+(and|or)", content, re.IGNORECASE):
        return [("text", joint[1]), ("text", joint[2])]
    return [("text", content)]


def _number(text: str, *, group: bool) -> list[Token]:
    if len(text) > MAX_DIGITS:
        raise UnreadableError("too many digits")
    if abs(int(text.lower().partition("e")[2] or 0)) > MAX_EXPONENT:
        raise UnreadableError("too large an exponent")
    if "," not in text:
        return [("num", text)]
    if group:
        return [("num", text.replace(",", ""))]
    tokens: list[Token] = []
    for part in text.split(","):
        tokens += [("op", ","), ("num", part)]
    return tokens[1:]
