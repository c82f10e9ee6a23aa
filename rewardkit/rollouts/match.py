"""Which row of a training file a response answers.

A response names its row by place (data_source, split and index), by the prompt it was given, or
by the source's id. verl's dumps have only the prompt, and that as the chat template left it: it
holds the messages somewhere. So each row is filed under a piece of its question that few others
have, and every stretch of an input is looked up: the work grows with the texts, not with their
number squared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

from rewardkit.errors import DataError
from rewardkit.preprocess.conform import is_blank
from rewardkit.preprocess.duplicates import gold_key
from rewardkit.rollouts.read import Sample
from rewardkit.row import Row
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold

#: Characters of the piece that a prompt is filed under.
WINDOW = 32

#: The ways to join, in the order they are tried.
PLACE, PROMPT, SOURCE_ID = "data_source, split and index", "prompt", "source_id"

#: What the processor of a model with pictures puts something else in the place of.
_MEDIA = re.compile(r"<(?:image|video|audio)>")

K = TypeVar("K")

#: Places in `TrainIndex.prompts` by what leads to them; the inner dictionary is an ordered set.
Places: TypeAlias = dict[K, dict[int, None]]


@dataclass(frozen=True)
class Prompt:
    """What rows that are the same ask.

    Attributes:
        row: the first of them.
        pieces: what an input made of it contains.
        main: the longest piece of the last message; "" if that says nothing.
        gold: the answer.
        question: a digest of `extra_info.question`, empty without one.
    """

    row: int
    pieces: tuple[str, ...]
    main: str
    gold: str
    question: bytes


@dataclass
class TrainIndex:
    """The rows of a training file by all that a response may name.

    Attributes:
        rows: each row's prompt, as its place in `prompts`; equal rows have one.
        prompts: the different prompts.
        places: prompts by data_source, split and index.
        sources: prompts by data_source, if the response has one, and source_id.
        windows: prompts by a piece of their text, by the length of the piece.
        seen: inputs that were looked up before: a prompt has many responses.
    """

    rows: list[int] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)
    places: Places[tuple[str, ...]] = field(default_factory=dict)
    sources: Places[tuple[str, ...]] = field(default_factory=dict)
    windows: dict[int, Places[str]] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)


def index_rows(rows: Iterable[Row]) -> TrainIndex:
    """An index of training rows.

    Raises:
        DataError: a row has no prompt.
    """
    index = TrainIndex()
    known: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        key = _digest(repr((row.get("prompt"), row.get("images"), _gold(row))))
        if key not in known:
            known[key] = len(index.prompts)
            index.prompts.append(_prompt(row, number))
        index.rows.append(known[key])
        if place := _place(row, row.get("data_source")):
            index.places.setdefault(place, {})[known[key]] = None
        for source in (row.get("data_source"), ""):
            if source_id := _source_id(row, source):
                index.sources.setdefault(source_id, {})[known[key]] = None
    _file_windows(index)
    return index


def join(index: TrainIndex, sample: Sample) -> tuple[str, int] | None:
    """How a response joins, and its place in `index.prompts`; None if it joins no row.

    Raises:
        DataError: it joins several rows that differ, or its index and its question disagree.
    """
    for way, found in _ways(index, sample):
        if found:
            place = _only(index, found, way, sample)
            _refuse_other_question(index.prompts[place], way, sample)
            return way, place
    return None


def _ways(index: TrainIndex, sample: Sample) -> Iterator[tuple[str, list[int]]]:
    """Each way to join, and the prompts it leads to."""
    row = {**sample.fields, "extra_info": sample.extra_info}
    source = sample.extra_info.get("data_source")
    yield PLACE, list(index.places.get(_place(row, source), ()))
    if text := _input(sample.fields):
        if text not in index.seen:
            index.seen[text] = _contained(index, text)
        yield PROMPT, index.seen[text]
    yield SOURCE_ID, list(index.sources.get(_source_id(row, source), ()))


def _only(index: TrainIndex, found: list[int], way: str, sample: Sample) -> int:
    """The one prompt that is found; of several, the one with the response's gold."""
    if len(found) > 1:
        gold = gold_key(sample.ground_truth)
        found = [i for i in found if gold_key(index.prompts[i].gold) == gold] or found
    if len(found) > 1:
        rows = " and ".join(f"row {index.prompts[i].row}" for i in found[:3])
        raise DataError(
            f"{sample.where} joins {rows} of the training file, which differ, by {way}. Score "
            "responses that keep the extra_info of their row, with an index of its own for each."
        )
    return found[0]


def _refuse_other_question(prompt: Prompt, way: str, sample: Sample) -> None:
    """An index means nothing once a file was shuffled or prepared anew: the question tells."""
    question = _question(sample.extra_info)
    if way != PROMPT and question and prompt.question and question != prompt.question:
        raise DataError(
            f"{sample.where} joins row {prompt.row} of the training file by {way}, yet its "
            "extra_info.question is another. Give the file that the responses were made from."
        )


def _contained(index: TrainIndex, text: str) -> list[int]:
    """The prompts whose messages the text contains, without those that are part of another."""
    near: dict[int, None] = {}
    for length, windows in index.windows.items():
        for start in range(len(text) - length + 1):
            near.update(windows.get(text[start : start + length], {}))
    found = [i for i in near if all(piece in text for piece in index.prompts[i].pieces)]
    mains = {index.prompts[i].main for i in found}
    parts = {a for a in mains for b in mains if a != b and a in b}
    return [i for i in found if index.prompts[i].main not in parts]


def _file_windows(index: TrainIndex) -> None:
    """File every prompt under its rarest window: templates give many prompts the same words."""
    counts = Counter(window for prompt in index.prompts for window in _windows(prompt.main))
    for place, prompt in enumerate(index.prompts):
        if prompt.main:
            window = min(_windows(prompt.main), key=counts.__getitem__)
            index.windows.setdefault(len(window), {}).setdefault(window, {})[place] = None


def _windows(text: str) -> set[str]:
    if len(text) <= WINDOW:
        return {text}
    last = len(text) - WINDOW
    return {text[start : start + WINDOW] for start in (*range(0, last, WINDOW), last)}


def _prompt(row: Row, number: int) -> Prompt:
    messages = _messages(row.get("prompt"))
    if not messages:
        raise DataError(f"row {number} of the training file has no prompt: not a verl parquet.")
    pieces = [
        piece.strip()
        for role, content in messages
        if role in ("system", "user")  # templates leave out parts of what an assistant said
        for piece in _MEDIA.split(content)
    ]
    main = max(_MEDIA.split(messages[-1][1]), key=len).strip()
    gold, question = _gold(row), _question(row.get("extra_info"))
    return Prompt(number, tuple(filter(None, pieces)), main, gold, question)


def _messages(prompt: Any) -> list[tuple[str, str]]:
    if isinstance(prompt, str):
        return [("user", prompt)]
    messages = prompt if isinstance(prompt, list) else []
    return [
        (as_text(m.get("role")), as_text(m.get("content")))
        for m in messages
        if isinstance(m, Mapping)
    ]


def _input(fields: Mapping[str, Any]) -> str:
    """What the policy was given: text as in verl's dumps, or a chat."""
    given = fields.get("input") or fields.get("prompt")
    return "\n".join(content for _, content in _messages(given))


def _place(row: Mapping[str, Any], data_source: Any) -> tuple[str, ...]:
    info = row.get("extra_info") or {}
    index = info.get("index")
    if is_blank(index):
        return ()
    if isinstance(index, float) and index.is_integer():  # pandas makes floats of gaps
        index = int(index)
    return as_text(data_source), as_text(info.get("split")), str(index)


def _source_id(row: Mapping[str, Any], data_source: Any) -> tuple[str, ...]:
    source_id = (row.get("extra_info") or {}).get("source_id") or row.get("source_id")
    return () if is_blank(source_id) else (as_text(data_source), str(source_id))


def _gold(row: Mapping[str, Any]) -> str:
    return unwrap_gold((row.get("reward_model") or {}).get("ground_truth"))


def _question(info: Mapping[str, Any] | None) -> bytes:
    question = "".join(as_text((info or {}).get("question")).split())
    return _digest(question) if question else b""


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
