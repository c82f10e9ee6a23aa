"""Parse and format values of Hydra's override grammar."""

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.errors import UsageError

#: Depth of nested lists; a deeper list is read as text.
MAX_DEPTH = 20

_WORD = re.compile(r"[A-Za-z_]+")
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_HYDRA_WORDS = frozenset({*_CONSTANTS, "inf", "nan"})
_NOT_FINITE = re.compile(r"[+-]?(?:inf|nan)", re.IGNORECASE)
_PLAIN = re.compile(r"[\w./:\-]+", re.ASCII)
_INTERPOLATION = re.compile(r"\$\{[\w.]+\}")

#: Numbers of Hydra's grammar: digits may be joined by underscores (`1_000`), `010` is text.
_DIGITS, _WHOLE = r"\d(?:_?\d)*", r"(?:0|[1-9](?:_?\d)*)"
_NUMBER = re.compile(
    rf"[+-]?(?:{_WHOLE}|(?:{_WHOLE}\.?|{_WHOLE}?\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)", re.ASCII
)
#: Digits of a number; a longer one is text.
MAX_NUMBER_CHARACTERS = 1000

#: Characters that Hydra interprets unless a backslash precedes them.
_ESCAPE = re.compile(r"\\([\\()\[\]{}:=, \t])")
_SPECIAL = re.compile(r"([\\()\[\]{}:=, \t])")

#: A key of a mapping, which Hydra accepts only without quotes.
_MAPPING_KEY = re.compile(r"[\w/\-\\+.$%*@?|()\[\]{}:=, \t]+", re.ASCII)

#: A quote after one of these begins a quoted text; inside a word it is an ordinary character.
_BEFORE_QUOTE = "[{(,:="


class Raw(str):
    """A value that stays as it was written: a mapping or a function of Hydra's (`{a:1}`)."""

    __slots__ = ()


def format_value(value: Any) -> str:
    """Write a Python value as the right side of an override.

    Text is quoted where Hydra would read something else: the text `1e-6`, `a b`, `a=b`.
    Interpolations (`${data.max_response_length}`) stay interpolations.
    """
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool) or value is None:
        return {True: "True", False: "False", None: "null"}[value]
    if isinstance(value, str):
        if _WORD.fullmatch(value):
            return quote_text(value) if value.lower() in _HYDRA_WORDS else value
        is_plain = _PLAIN.fullmatch(value) and not _is_number(value)
        return value if is_plain or _INTERPOLATION.fullmatch(value) else quote_text(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_format_key(k)}:{format_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(format_value(item) for item in value) + "]"
    return repr(value)


def parse_value(text: str, depth: int = 0) -> Any:
    """Read the right side of an override; Hydra's mappings and functions become `Raw`."""
    if text.startswith("{") or re.match(r"[a-z_]+\(", text):
        return Raw(text)
    if text.startswith("[") and text.endswith("]") and depth < MAX_DEPTH:
        return [parse_value(_trim_blanks(item), depth + 1) for item in _split_items(text[1:-1])]
    if text == "":
        return ""  # Hydra's empty text; null is written out
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _unquote(text)
    if _is_number(text):
        return float(text) if re.search("[.eEnN]", text) else int(text)
    word = text.lower()
    return _CONSTANTS[word] if word in _CONSTANTS else _ESCAPE.sub(r"\1", text)


def quote_text(text: str) -> str:
    """Put text in single quotes; only quotes and the backslashes before them are escaped."""

    def escape(match: re.Match[str]) -> str:
        return match[1] * 2 + ("\\'" if match[2] else "")

    return "'" + re.sub(r"(\\*)('|\Z)", escape, text) + "'"


def _is_number(text: str) -> bool:
    return bool(
        _NOT_FINITE.fullmatch(text)
        or (len(text) <= MAX_NUMBER_CHARACTERS and _NUMBER.fullmatch(text))
    )


def _format_key(key: Any) -> str:
    """Write a key of a mapping. Hydra has no quotes there, so the text `true` cannot be a key."""
    if not isinstance(key, str):
        return format_value(key)
    reads_as_other = key.lower() in _HYDRA_WORDS or _is_number(key)
    if reads_as_other or not _MAPPING_KEY.fullmatch(key):
        raise UsageError(f"Hydra cannot read {key!r} as the key of a mapping; choose another key.")
    return _SPECIAL.sub(r"\\\1", key)


def _unquote(text: str) -> str:
    """Read a quoted text; backslashes before a quote and at the end are doubled there."""
    quote = text[0]
    doubled = rf"(\\*)({quote}|\Z)"
    return re.sub(doubled, lambda match: match[1][: len(match[1]) // 2] + match[2], text[1:-1])


def _trim_blanks(item: str) -> str:
    """Remove the blanks around an item, except one that a backslash escapes."""
    item = item.lstrip()
    text = item.rstrip()
    escapes = (len(text) - len(text.rstrip("\\"))) % 2 == 1
    return item[: len(text) + 1] if escapes else text


def _split_items(text: str) -> list[str]:
    """Split the items of a list at commas outside brackets and quotes."""
    items, depth, quote, item = [], 0, "", ""
    for char in re.findall(r"\\?.|\\", text, re.DOTALL):  # a backslash escapes the next character
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and item.rstrip()[-1:] in _BEFORE_QUOTE:
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        if char == "," and not depth and not quote:
            items.append(item)
            item = ""
        else:
            item += char
    return [*items, item] if item.strip() or items else []
