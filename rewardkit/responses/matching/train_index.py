"""The rows of a training file, filed under all that a response may name.

verl's dumps have only the prompt, and that as the chat template left it: it holds the messages
somewhere. So each message is filed under a piece of it that few others have, and every stretch of
an input is looked up. The work for an input grows with its own length, and does not depend on the
number of rows, whatever their messages have in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, TypeVar

from rewardkit.errors import DataError
from rewardkit.preprocess.conform import is_blank
from rewardkit.responses.matching.evidence import WINDOW, golds, squeeze
from rewardkit.row import Row
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold

#: Characters of a text that a message quotes.
QUOTED = 60

#: What the processor of a model with pictures puts something else in the place of.
_MEDIA = re.compile(r"<(?:image|video|audio)>")

K = TypeVar("K")

#: Places in `TrainIndex.prompts` by what leads to them; the inner dictionary is an ordered set.
Places: TypeAlias = dict[K, dict[int, None]]


@dataclass(frozen=True)
class TrainPrompt:
    """What rows that are the same ask. Texts are squeezed (see `evidence.squeeze`).

    Attributes:
        row: the first of them.
        pieces: what an input made of it contains.
        main: the longest piece of the last message; "" if that says nothing.
        question: `extra_info.question`; "" without one.
        message: the message as the model gets it, if `main` is not part of it.
        source_id: the source's id; "" without one.
        gold: the answer, as it is.
        head: the beginning of the question, to be quoted.
    """

    row: int
    pieces: tuple[str, ...]
    main: str
    question: str
    message: str
    source_id: str
    gold: str
    head: str


class Match(NamedTuple):
    """How a response joins, and its place in `TrainIndex.prompts`."""

    way: str
    place: int


class Mismatch(NamedTuple):
    """Why a response must not join: it contradicts its row, or fits several rows that differ."""

    reason: str
    contradicts: bool


class ContainedPrompts(NamedTuple):
    """Prompts that an input contains, and their different messages."""

    places: dict[int, None]
    mains: tuple[str, ...]


@dataclass
class TrainIndex:
    """The rows of a training file by all that a response may name.

    Attributes:
        name: the file, for messages.
        rows: each row's prompt, as its place in `prompts`. Rows that are equal up to white space
            have one.
        prompts: the different prompts.
        places: prompts by data_source, if the response has one, split and index.
        sources: prompts by data_source, if the response has one, and source_id.
        golds: prompts by the keys of their gold.
        pieces: prompts by the piece of their text that they are filed under.
        windows: where a window stands in a piece, and how long the piece is: by the window, by
            its length.
        hits: prompts by inputs that were looked up before: a prompt has many responses.
        outcomes: what came of all that a response says, for the next one that says the same.
    """

    name: str
    rows: list[int] = field(default_factory=list)
    prompts: list[TrainPrompt] = field(default_factory=list)
    places: Places[tuple[str, ...]] = field(default_factory=dict)
    sources: Places[tuple[str, ...]] = field(default_factory=dict)
    golds: Places[str] = field(default_factory=dict)
    pieces: Places[str] = field(default_factory=dict)
    windows: dict[int, dict[str, set[tuple[int, int]]]] = field(default_factory=dict)
    hits: dict[bytes, ContainedPrompts] = field(default_factory=dict)
    outcomes: dict[bytes, Match | Mismatch | None] = field(default_factory=dict)


def index_rows(rows: Iterable[Row], name: str = "the training file") -> TrainIndex:
    """An index of training rows.

    Args:
        rows: verl rows. A row may have `message`, what the model gets, beside a `prompt` that is
            the bare question.
        name: the file, for messages.

    Raises:
        DataError: a row has no prompt.
    """
    index = TrainIndex(name)
    known: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        messages = [(role, squeeze(text)) for role, text in messages_of(row.get("prompt"))]
        key = digest(repr((messages, row.get("images"), gold_of(row))))
        if key not in known:
            known[key] = len(index.prompts)
            index.prompts.append(_prompt(row, number, name))
        index.rows.append(known[key])
        for source in dict.fromkeys((text_of(row.get("data_source")), "")):
            if where := place_of(row, source):
                index.places.setdefault(where, {})[known[key]] = None
            if source_id := source_id_of(row, source):
                index.sources.setdefault(source_id, {})[known[key]] = None
    for place, prompt in enumerate(index.prompts):
        for gold in golds(prompt.gold):
            index.golds.setdefault(gold, {})[place] = None
    _file_windows(index)
    return index


def find_contained(index: TrainIndex, text: str) -> ContainedPrompts:
    """The prompts whose messages a text contains, without those that are part of another's."""
    key = digest(text)
    if key not in index.hits:
        index.hits[key] = _find_contained(index, text)
    return index.hits[key]


def _find_contained(index: TrainIndex, text: str) -> ContainedPrompts:
    filed: dict[str, None] = {}
    for length, windows in index.windows.items():
        for at in range(len(text) - length + 1):
            for offset, size in windows.get(text[at : at + length], ()):
                piece = text[at - offset : at - offset + size] if at >= offset else ""
                if piece in index.pieces:
                    filed[piece] = None
    mains: dict[str, list[int]] = {}
    for piece in filed:
        for place in index.pieces[piece]:
            prompt = index.prompts[place]
            if all(each in text for each in prompt.pieces):
                mains.setdefault(prompt.main, []).append(place)
    whole = [main for main in mains if not any(main != other and main in other for other in mains)]
    return ContainedPrompts({place: None for main in whole for place in mains[main]}, tuple(whole))


def _file_windows(index: TrainIndex) -> None:
    """File every prompt under the rarest window of its pieces: many prompts share the others.

    With the window is kept where it stands in its piece and how long that is: of pieces that have
    the window in common, the one in a text is then looked up by all of its words, and not found
    by trying each.
    """
    counts = Counter(
        window
        for prompt in index.prompts
        for piece in dict.fromkeys(prompt.pieces)
        for window in _windows(piece)
    )
    for place, prompt in enumerate(index.prompts):
        windows = {
            window: (piece, offset)
            for piece in reversed(prompt.pieces)
            for window, offset in _windows(piece).items()
        }
        if windows:
            window = min(windows, key=counts.__getitem__)
            piece, offset = windows[window]
            index.pieces.setdefault(piece, {})[place] = None
            shapes = index.windows.setdefault(len(window), {}).setdefault(window, set())
            shapes.add((offset, len(piece)))


def _windows(text: str) -> dict[str, int]:
    """Stretches of a text and where they stand. A few lengths serve texts of every length."""
    width = min(WINDOW, 1 << (len(text).bit_length() - 1))
    last = len(text) - width
    return {text[start : start + width]: start for start in (*range(0, last, width), last)}


def _prompt(row: Row, number: int, name: str) -> TrainPrompt:
    messages = messages_of(row.get("prompt"))
    if not messages:
        raise DataError(f"row {number} of {name} has no prompt: not a verl parquet.")
    pieces = [
        squeeze(piece)
        for role, content in messages
        if role in ("system", "user")  # templates leave out parts of what an assistant said
        for piece in _MEDIA.split(content)
    ]
    info = row.get("extra_info") or {}
    question = text_of(info.get("question"))
    last = messages[-1][1]
    main = max(map(squeeze, _MEDIA.split(last)), key=len)
    message = bare(as_text(row.get("message")))
    return TrainPrompt(
        row=number,
        pieces=tuple(filter(None, pieces)),
        main=main,
        question=bare(question),
        message="" if main in message else message,
        source_id="".join(source_id_of(row, "")[1:]),
        gold=gold_of(row),
        head=(question or last)[: QUOTED + 1],
    )


def messages_of(prompt: Any) -> list[tuple[str, str]]:
    """The messages of a chat, or of a bare text, as (role, text)."""
    if isinstance(prompt, str):
        return [("user", prompt)]
    messages = prompt if isinstance(prompt, list) else []
    return [
        (as_text(m.get("role")), _content(m.get("content")))
        for m in messages
        if isinstance(m, Mapping)
    ]


def _content(content: Any) -> str:
    """The text of a message, which may be in parts beside pictures."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(as_text(part.get("text")) for part in content if isinstance(part, Mapping))


def input_of(fields: Mapping[str, Any]) -> str:
    """What the policy was given: text as in verl's dumps, or a chat."""
    given = fields.get("input") or fields.get("prompt")
    return "\n".join(content for _, content in messages_of(given))


def place_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """The data_source, split and index of a row or response; empty without an index."""
    info = row.get("extra_info") or {}
    index = info.get("index")
    if is_blank(index):
        return ()
    if isinstance(index, float) and index.is_integer():  # pandas makes floats of gaps
        index = int(index)
    return data_source, text_of(info.get("split")), str(index)


def source_id_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """The data_source and the source's id of a row or response; empty without an id."""
    source_id = (row.get("extra_info") or {}).get("source_id") or row.get("source_id")
    return () if is_blank(source_id) else (data_source, str(source_id))


def gold_of(row: Mapping[str, Any]) -> str:
    """The ground truth of a verl row, as text."""
    return unwrap_gold((row.get("reward_model") or {}).get("ground_truth"))


def text_of(value: Any) -> str:
    """A value as text; "" if it says nothing, as pandas' NaN."""
    return "" if is_blank(value) else as_text(value)


def bare(text: str) -> str:
    """A squeezed text without what stands for pictures."""
    return squeeze(_MEDIA.sub("", text))


def digest(text: str) -> bytes:
    """Sixteen bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
