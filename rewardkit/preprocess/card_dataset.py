"""The dataset of a card that says what each column holds: its rows need no code."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import Any

from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.chats import messages_in
from rewardkit.preprocess.column_map import (
    ColumnMap,
    Field,
    UnreadableValueError,
    as_plain_text,
    letter_of_option,
)
from rewardkit.preprocess.value_path import value_at_path

#: The position of a picture in a question, as verl reads it.
MARK = "<image>"

#: A mark as the datasets write it, numbered or not.
_MARK = re.compile(r"<image ?([0-9]{0,2})>")

#: A gold of several letters, as the datasets write it: `ACD`, `A C D`.
_SEVERAL_LETTERS = re.compile(r"[A-Z](?: ?[A-Z])+")


def dataset_of_card(card: Card, options_seed: int = 0) -> Dataset:
    """Return the dataset that a card describes.

    Args:
        card: a card whose `columns` say what they hold.
        options_seed: random seed of the order of options, if the card shuffles them.
    """
    return Dataset(
        card.name,
        partial(read_problem, card=card, options_seed=options_seed),
        repeats=card.repeats,
        dedup=card.dedup,
        card=card,
    )


def read_problem(raw: Mapping[str, Any], *, card: Card, options_seed: int = 0) -> Problem | Dropped:
    """Return the problem in a raw row, or the reason to drop it.

    Raises:
        TypeError: a value has an unexpected type.
    """
    try:
        return _problem(raw, _layout(raw, card.maps), card, options_seed)
    except UnreadableValueError as error:
        return Dropped(str(error))


def _layout(raw: Mapping[str, Any], maps: Sequence[ColumnMap]) -> ColumnMap:
    """Return the first layout whose columns the row has, as the files are read."""
    if len(maps) == 1:
        return maps[0]
    return next((each for each in maps if raw.keys() >= set(each.columns)), maps[-1])


def _problem(raw: Mapping[str, Any], layout: ColumnMap, card: Card, options_seed: int) -> Problem:
    for condition in layout.where:
        if not condition.holds(raw):
            raise UnreadableValueError(f"not {condition}")
    if len(layout.question) == 1:
        question = _question(layout.question[0].value(raw))
    else:
        texts = [_question(field.value(raw)) for field in layout.question]
        question = "\n\n".join(filter(None, texts))
    options = _options(raw, layout.options)
    if shuffles := card.shuffle_options and bool(options):
        # the order depends on the question, not on the row's place in the file
        random.Random(f"{options_seed}:{question}").shuffle(options)  # noqa: S311 - not a secret
    gold = _gold(layout.gold[0], raw, options)
    images = _images(layout.images[0].value(raw)) if layout.images else None
    question = _with_options(question, options)
    return Problem(
        question if images is None else _with_marks(question, len(images)),
        gold,
        answer=_text(layout.solution, raw),
        source_id=_text(layout.id, raw),
        subject=_text(layout.subject, raw),
        level=_text(layout.level, raw),
        kind=_text(layout.kind, raw) if layout.kind else _kind(gold, options),
        options=tuple(options),
        images=images,
        columns={"options_seed": options_seed} if shuffles else {},
    )


def _text(part: Sequence[Field], raw: Mapping[str, Any]) -> str:
    """Return the text of a part that a row may lack; several texts are joined."""
    if not part:
        return ""
    value = part[0].value(raw)
    if type(value) is str:
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_plain_text, value))
    return as_plain_text(value)


def _question(value: Any) -> str:
    """Return the text, or the user message of a chat."""
    if type(value) is str:
        return value
    if isinstance(value, list):
        texts = [content for role, content in messages_in(value) if role == "user"]
        if len(texts) > 1:
            raise UnreadableValueError(f"the question is a chat with {len(texts)} user messages")
        texts = value if len(value) == 1 and isinstance(value[0], str) else texts
        value = texts[0] if texts else None
    if value is not None and not isinstance(value, str):
        raise TypeError(f"the question is {type(value).__name__}, neither text nor a chat")
    return value or ""


def has_system_message(raw: Mapping[str, Any], card: Card) -> bool:
    """Return whether a question is a chat with a system message, which rows do not get."""
    fields = _layout(raw, card.maps).question if card.maps else ()
    chats = (messages_in(value_at_path(raw, field.column)) for field in fields)
    return any(role == "system" for chat in chats for role, _ in chat)


def _gold(field: Field, raw: Mapping[str, Any], options: Sequence[str]) -> str:
    """Return the gold; several alternatives are the text of a JSON list."""
    value = field.value(raw)
    if isinstance(value, (list, tuple)):
        texts = [as_plain_text(item).strip() for item in value]
        gold = texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)
        value = gold if any(texts) else ""
    gold = (value if type(value) is str else as_plain_text(value)).strip()
    if not gold:
        raise UnreadableValueError("no gold answer")
    return letter_of_option(gold, options) if field.names_option else gold


def _kind(gold: str, options: Sequence[str]) -> str:
    """Return the kind of a choice question: `multiple` if its gold has several letters."""
    if not options:
        return ""
    return "multiple" if _SEVERAL_LETTERS.fullmatch(gold) else "single"


def _options(raw: Mapping[str, Any], part: Sequence[Field]) -> list[str]:
    """Return the texts of the options, A first; a struct has them by letter."""
    if not part:
        return []
    value = part[0].value(raw) if len(part) == 1 else [field.value(raw) for field in part]
    if isinstance(value, Mapping):
        letters = [letter for letter in sorted(value) if value[letter] is not None]
        if letters != list(ascii_uppercase[: len(letters)]):
            raise UnreadableValueError("the options are not A, B, C, ...")
        value = [value[letter] for letter in letters]
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"the options are {type(value).__name__}, not a list")
    if len(value) > len(ascii_uppercase):
        raise UnreadableValueError("more options than letters")
    return [as_plain_text(option).strip() for option in value]


def _with_options(question: str, options: Sequence[str]) -> str:
    """Return the question with its options on lines of their own.

    Options that only repeat their letters are in the picture, so the question does not list them.
    """
    if not options or all(map(str.__eq__, options, ascii_uppercase)):
        return question
    lines = (f"{letter}. {text}" for letter, text in zip(ascii_uppercase, options, strict=False))
    return "\n".join([question, *lines])


def _images(value: Any) -> tuple[bytes, ...]:
    """Return the contents of the pictures in a value: one, or a list of them."""
    values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    contents = []
    for each in values:
        content = each.get("bytes") if isinstance(each, Mapping) else each
        if not content:
            raise UnreadableValueError("an image is not in the file")
        if not isinstance(content, bytes):
            raise TypeError("a picture is neither bytes nor a struct of bytes and path")
        contents.append(content)
    return tuple(contents)


def _with_marks(text: str, images: int) -> str:
    """Return a question and its options with one `<image>` for each picture.

    A text without marks begins with them. Numbered marks name the pictures in order. If there are
    several and one picture, it shows all figures, each under its own mark `<image2>`, as MATH-V's
    do: then the text begins with the picture and keeps the marks, which name its parts.
    """
    numbers = [match[1] for match in _MARK.finditer(text)]
    if not numbers or (images == 1 < len(numbers) and all(numbers)):
        return MARK * images + text
    if len(numbers) != images:
        raise UnreadableValueError("marks and images differ in number")
    if any(number and int(number) != place for place, number in enumerate(numbers, 1)):
        raise UnreadableValueError("the marks are not in the order of the images")
    return _MARK.sub(MARK, text)
