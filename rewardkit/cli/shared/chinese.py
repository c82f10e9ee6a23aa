"""What commands print with `--lang zh`: Chinese for the sentences of `chinese.yaml`.

A sentence is found by its English text, whose values stand in braces. `{name}` stays as it is, and
`{name!s}` is a list of such values; `{name!t}` is a sentence of the file itself, and `{name!l}` a list
of them. `{n}` and `{m}` are numbers. What has no Chinese text stays English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

#: Characters of a text that is translated, and sentences within a sentence.
MAX_CHARACTERS, MAX_DEPTH = 4_000, 6

_VALUE = re.compile(r"\{(\w+)(?:!([tls]))?\}")
_NUMBER = re.compile(r"-?\d[\d,.]*")
_WORD, _SEPARATOR = re.compile(r"\w+"), re.compile(", | and | or ")

#: Names of values that are numbers.
_NUMBERS = frozenset({"n", "m"})

_language = ["en"]


class SentencePattern(NamedTuple):
    """A sentence with values: the texts around them, their names and kinds, and the Chinese text."""

    literals: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    chinese: str


def speak(lang: str) -> None:
    """Print in a language, `en` or `zh`, from here on; also the error that ends the process."""
    _language[0] = lang


def localized(text: str) -> str:
    """Return a text of ours in the language of the command; the text itself if it has no Chinese."""
    if _language[0] == "en" or not text:
        return text
    return "\n".join(_chinese(line) or line for line in text.split("\n"))


@cache
def chinese_texts() -> Mapping[str, Mapping[str, str]]:
    """Return the parts of `chinese.yaml`: `words`, `names`, `sentences` and `rules`."""
    import yaml

    text = Path(__file__).with_name("chinese.yaml").read_text(encoding="utf-8")
    parts: dict[str, Any] = yaml.safe_load(text)
    return parts


@cache
def _sentences() -> Sequence[SentencePattern]:
    """Return the sentences with values, in the order in which a text is compared with them.

    Those come first that begin with a sentence, as in "... Did you mean ...?", then those with a text
    at their beginning, then those with a sentence in them; and of these the longest.
    """
    sentences = []
    for english, chinese in chinese_texts()["sentences"].items():
        literals = _VALUE.split(english)
        if len(literals) > 1:
            names, kinds = tuple(literals[1::3]), tuple(literals[2::3])
            sentences.append(SentencePattern(tuple(literals[::3]), names, kinds, chinese))

    def rank(one: SentencePattern) -> tuple[bool, bool, bool, int]:
        is_bare = not one.literals[0]
        size = sum(map(len, one.literals))
        return not (is_bare and one.kinds[0] == "t"), is_bare, "t" not in one.kinds, -size

    return sorted(sentences, key=rank)


@cache
def _indexes_by_word() -> Mapping[str, Sequence[int]]:
    """Return the indexes of the sentences by their longest word; "" for those without a word.

    A text is compared with the sentences whose word it has, because a command may print many lines.
    """
    indexes: dict[str, list[int]] = {}
    for i, sentence in enumerate(_sentences()):
        # A NUL for each value: a word beside one may be a part of a longer word.
        words = re.findall(r"(?<![\w\0])\w+(?![\w\0])", "\0".join(sentence.literals))
        indexes.setdefault(max(words, key=len, default=""), []).append(i)
    return indexes


def _candidates(text: str) -> Iterator[SentencePattern]:
    """Yield the sentences that a text may be, in their order."""
    indexes = _indexes_by_word()
    words = {"", *_WORD.findall(text)} & indexes.keys()
    for i in sorted(i for word in words for i in indexes[word]):
        yield _sentences()[i]


def _chinese(text: str, depth: int = 0) -> str | None:
    """Return a sentence in Chinese; None if it has no Chinese text."""
    parts = chinese_texts()
    if exact := parts["words"].get(text) or parts["sentences"].get(text):
        return exact
    if depth and (name := parts["names"].get(text)):
        return name
    if len(text) > MAX_CHARACTERS or depth >= MAX_DEPTH:
        return None
    for sentence in _candidates(text):
        values = _values(sentence.literals, text)
        if values is None:
            continue
        values_in_chinese = [
            _value(value, kind, depth) if name not in _NUMBERS or _NUMBER.fullmatch(value) else None
            for value, kind, name in zip(values, sentence.kinds, sentence.names, strict=True)
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
        items = re.split(r", (?![^()]*\))", value)  # not within a note in parentheses
        return "、".join(_chinese(item, depth + 1) or item for item in items)
    if kind == "s":
        return "、".join(_SEPARATOR.split(value))
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
