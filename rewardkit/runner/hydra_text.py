"""Values as Hydra's override grammar writes them, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewardkit.runner.yaml_text import read_value

#: Lists in lists that are read; what is deeper is text.
MAX_DEPTH = 20

_WORD = re.compile(r"[A-Za-z_]+")
_HYDRA_WORDS = frozenset({"true", "false", "null", "inf", "nan"})
_PLAIN = re.compile(r"[\w./:\-]+", re.ASCII)
_INTERPOLATION = re.compile(r"\$\{[\w.]+\}")


class Raw(str):
    """A value that is kept as it was written, because it is Hydra's own grammar (`{a:1}`)."""

    __slots__ = ()


def written(value: Any) -> str:
    """A Python value as the right side of an override.

    Text is put in quotes where Hydra would take it for something else: `1e-6` given as text, `a b`,
    `a=b`. Interpolations (`${data.max_response_length}`) stay interpolations.
    """
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool) or value is None:
        return {True: "True", False: "False", None: "null"}[value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(written(item) for item in value) + "]"
    return repr(value)


def parsed(text: str, depth: int = 0) -> Any:
    """The right side of an override as a Python value; `Raw` for Hydra's mappings and functions."""
    if text.startswith("{") or re.match(r"[a-z_]+\(", text):
        return Raw(text)
    if text.startswith("[") and text.endswith("]") and depth < MAX_DEPTH:
        return [parsed(item.strip(), depth + 1) for item in _split(text[1:-1])]
    if text == "":
        return ""  # Hydra's empty text; null is written out
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _unquoted(text)
    if text.lower().lstrip("+-") in {"inf", "nan"}:
        return float(text)
    return read_value(text)


def quoted(text: str) -> str:
    """Text in single quotes, where only quotes and the backslashes before them are escaped."""

    def escape(match: re.Match[str]) -> str:
        return match[1] * 2 + ("\\'" if match[2] else "")

    return "'" + re.sub(r"(\\*)('|$)", escape, text) + "'"


def _text(value: str) -> str:
    """Hydra reads `=`, `,`, spaces, braces, quotes and non-ASCII in a bare value as its grammar."""
    if _WORD.fullmatch(value):
        return quoted(value) if value.lower() in _HYDRA_WORDS else value
    if _INTERPOLATION.fullmatch(value):
        return value
    plain = _PLAIN.fullmatch(value) and isinstance(read_value(value), str)
    return value if plain else quoted(value)


def _unquoted(text: str) -> str:
    quote = text[0]
    return re.sub(rf"(\\*)\\{quote}", lambda m: m[1][: len(m[1]) // 2] + quote, text[1:-1])


def _split(text: str) -> list[str]:
    """The items of a list, at commas outside brackets and quotes."""
    items, depth, quote, item = [], 0, "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and not depth:
            items.append(item)
            item = ""
            continue
        item += char
    return [*items, item] if item.strip() or items else []
