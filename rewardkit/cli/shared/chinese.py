"""What commands print with `--lang zh`: Chinese for the sentences of `chinese.yaml`.

A sentence is found by its English text, whose values stand in braces. `{name}` stays as it is;
`{name!t}` is a sentence of the file itself, and `{name!l}` a list of them, separated by commas. What
has no Chinese text stays English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer

#: Characters of a text that is translated, and sentences within a sentence.
MAX_CHARACTERS, MAX_DEPTH = 4_000, 4

_VALUE = re.compile(r"\{(\w+)(?:!([tl]))?\}")

_language = ["en"]


class SentencePattern(NamedTuple):
    """A sentence with values: the texts around them, their names and kinds, and the Chinese text."""

    literals: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    chinese: str


def speak(ctx: typer.Context, lang: str) -> None:
    """Print in a language, `en` or `zh`, until the command ends."""
    ctx.call_on_close(lambda: _language.__setitem__(0, "en"))
    _language[0] = lang


def localized(text: str) -> str:
    """Return a text of ours in the language of the command; the text itself if it has no Chinese."""
    if _language[0] == "en" or not text:
        return text
    return "\n".join(_chinese(line) or line for line in text.split("\n"))


def about_rule(rule: str) -> str:
    """Return what a rule of the preflight says, in Chinese; "" in English, or for another rule."""
    return "" if _language[0] == "en" else chinese_texts()["rules"].get(rule, "")


@cache
def chinese_texts() -> Mapping[str, Mapping[str, str]]:
    """Return the parts of `chinese.yaml`: `words`, `sentences` and `rules`."""
    import yaml

    text = Path(__file__).with_name("chinese.yaml").read_text(encoding="utf-8")
    parts: dict[str, Any] = yaml.safe_load(text)
    return parts


@cache
def _sentences() -> Sequence[SentencePattern]:
    """Return the sentences with values: those with a beginning first, then by the length of their text."""
    sentences = []
    for english, chinese in chinese_texts()["sentences"].items():
        literals = _VALUE.split(english)
        if len(literals) > 1:
            names, kinds = tuple(literals[1::3]), tuple(literals[2::3])
            sentences.append(SentencePattern(tuple(literals[::3]), names, kinds, chinese))
    return sorted(sentences, key=lambda one: (not one.literals[0], -sum(map(len, one.literals))))


def _chinese(text: str, depth: int = 0) -> str | None:
    """Return a sentence in Chinese; None if it has no Chinese text."""
    parts = chinese_texts()
    if exact := parts["words"].get(text) or parts["sentences"].get(text):
        return exact
    if len(text) > MAX_CHARACTERS or depth >= MAX_DEPTH:
        return None
    for sentence in _sentences():
        values = _values(sentence.literals, text)
        if values is None:
            continue
        values_in_chinese = [
            _value(value, kind, depth) for value, kind in zip(values, sentence.kinds, strict=True)
        ]
        if all(value is not None for value in values_in_chinese):
            return sentence.chinese.format(
                **dict(zip(sentence.names, values_in_chinese, strict=True))
            )
    return None


def _value(value: str, kind: str | None, depth: int) -> str | None:
    if kind == "t":
        return _chinese(value, depth + 1)
    if kind == "l":
        items = value.split(", ")
        return "、".join(_chinese(item, depth + 1) or item for item in items)
    return value


def _values(literals: Sequence[str], text: str) -> list[str] | None:
    """Return what stands between the literals of a sentence in a text; None if one is not there.

    Each literal is looked for once, so that the time is linear in the text.
    """
    if not text.startswith(literals[0]):
        return None
    values, start, last = [], len(literals[0]), literals[-1]
    for literal in literals[1:-1]:
        end = text.find(literal, start)
        if end < 0:
            return None
        values.append(text[start:end])
        start = end + len(literal)
    end = len(text) - len(last)
    if end < start or not text.endswith(last):
        return None
    return [*values, text[start:end]]
