"""An index of the rows of a training file by everything that may identify a row in a response.

verl's dumps have only the prompt, in the form that the chat template gave it, with the messages
somewhere inside. So each message is indexed by a short window of it that is rare among the messages,
and every window of an input is looked up. The work for an input grows with its length and does not
depend on the number of rows, whatever their messages have in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, TypeVar

from rewardkit.errors import DataError
from rewardkit.preprocess.foreign_rows import is_blank
from rewardkit.responses.matching.evidence import WINDOW_CHARACTERS, gold_keys, squeeze
from rewardkit.row import Row
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold

#: Characters of a text that an error message quotes.
QUOTED_CHARACTERS = 60

#: Placeholders that the processor of a multimodal model replaces.
_MEDIA = re.compile(r"<(?:image|video|audio)>")

K = TypeVar("K")

#: Places in `TrainIndex.prompts` by a key; the inner dictionary is an ordered set.
Places: TypeAlias = dict[K, dict[int, None]]


@dataclass(frozen=True)
class TrainPrompt:
    """The prompt and gold that equal rows share. Texts are squeezed (see `evidence.squeeze`).

    Attributes:
        row: number of the first of these rows.
        pieces: the texts that an input made from the prompt contains.
        main: the longest piece of the last message; "" if that has no text.
        question: `extra_info.question`; "" without one.
        message: the message as the model gets it, if `main` is not part of it.
        source_id: the source's id; "" without one.
        gold: the gold answer, unchanged.
        head: the beginning of the question, for error messages.
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
    """The way a response matches a row, and the place of its prompt in `TrainIndex.prompts`."""

    way: str
    place: int


class Mismatch(NamedTuple):
    """Why a response cannot be matched: it contradicts its row, or matches several rows."""

    reason: str
    contradicts: bool


class ContainedPrompts(NamedTuple):
    """The places of the prompts that an input contains, and their distinct messages."""

    places: dict[int, None]
    mains: tuple[str, ...]


@dataclass
class TrainIndex:
    """The rows of a training file by everything that may identify a row in a response.

    Attributes:
        name: the file, for error messages.
        rows: the place in `prompts` of each row's prompt. Rows that are equal up to white space
            have the same.
        prompts: the distinct prompts.
        places: prompts by data_source, split and index; also without the data_source.
        sources: prompts by data_source and source_id; also without the data_source.
        golds: prompts by the keys of their gold.
        pieces: prompts by the piece that they are indexed by.
        windows: offsets of a window in its pieces and the pieces' lengths, by the window, by the
            window's length.
        hits: results of `find_contained` by input: a prompt has many responses.
        outcomes: results of `try_match_row` by everything that the response says of its row.
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
    """Build the index of training rows.

    Args:
        rows: verl rows. A row may have a `message`, which the model gets, beside a `prompt` that is
            the question alone.
        name: the file, for error messages.

    Raises:
        DataError: a row has no prompt.
    """
    index = TrainIndex(name)
    prompt_places: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        messages = [(role, squeeze(text)) for role, text in messages_of(row.get("prompt"))]
        key = digest(repr((messages, row.get("images"), gold_of(row))))
        if key not in prompt_places:
            prompt_places[key] = len(index.prompts)
            index.prompts.append(_train_prompt(row, number, name))
        place = prompt_places[key]
        index.rows.append(place)
        for source in dict.fromkeys((text_of(row.get("data_source")), "")):
            if place_key := place_of(row, source):
                index.places.setdefault(place_key, {})[place] = None
            if source_id := source_id_of(row, source):
                index.sources.setdefault(source_id, {})[place] = None
    for place, prompt in enumerate(index.prompts):
        for gold in gold_keys(prompt.gold):
            index.golds.setdefault(gold, {})[place] = None
    _index_windows(index)
    return index


def find_contained(index: TrainIndex, text: str) -> ContainedPrompts:
    """Find the prompts whose messages a text contains, without those inside another's message."""
    key = digest(text)
    if key not in index.hits:
        index.hits[key] = _find_contained(index, text)
    return index.hits[key]


def _find_contained(index: TrainIndex, text: str) -> ContainedPrompts:
    pieces: dict[str, None] = {}
    for length, windows in index.windows.items():
        for at in range(len(text) - length + 1):
            for offset, size in windows.get(text[at : at + length], ()):
                piece = text[at - offset : at - offset + size] if at >= offset else ""
                if piece in index.pieces:
                    pieces[piece] = None
    mains: dict[str, list[int]] = {}
    for piece in pieces:
        for place in index.pieces[piece]:
            prompt = index.prompts[place]
            if all(part in text for part in prompt.pieces):
                mains.setdefault(prompt.main, []).append(place)
    whole = [main for main in mains if not any(main != other and main in other for other in mains)]
    return ContainedPrompts({place: None for main in whole for place in mains[main]}, tuple(whole))


def _index_windows(index: TrainIndex) -> None:
    """Index every prompt by the rarest window of its pieces: many prompts share the other windows.

    The offset of the window in its piece and the piece's length are stored with it. So of the
    pieces with the same window, the one in a text is looked up as a whole, and not all are tried.
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
    """Return windows of a text with their offsets. All texts together have only a few lengths."""
    width = min(WINDOW_CHARACTERS, 1 << (len(text).bit_length() - 1))
    last = len(text) - width
    return {text[start : start + width]: start for start in (*range(0, last, width), last)}


def _train_prompt(row: Row, number: int, name: str) -> TrainPrompt:
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
    message = squeeze_without_media(as_text(row.get("message")))
    return TrainPrompt(
        row=number,
        pieces=tuple(filter(None, pieces)),
        main=main,
        question=squeeze_without_media(question),
        message="" if main in message else message,
        source_id="".join(source_id_of(row, "")[1:]),
        gold=gold_of(row),
        head=(question or last)[: QUOTED_CHARACTERS + 1],
    )


def messages_of(prompt: Any) -> list[tuple[str, str]]:
    """Return the messages of a chat, or a plain text as one message, as (role, text)."""
    if isinstance(prompt, str):
        return [("user", prompt)]
    messages = prompt if isinstance(prompt, list) else []
    return [
        (as_text(m.get("role")), _content(m.get("content")))
        for m in messages
        if isinstance(m, Mapping)
    ]


def _content(content: Any) -> str:
    """Return the text of a message, which may be in parts beside pictures."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(as_text(part.get("text")) for part in content if isinstance(part, Mapping))


def input_of(fields: Mapping[str, Any]) -> str:
    """Return the policy's input as text, from a text as in verl's dumps or from a chat."""
    prompt = fields.get("input") or fields.get("prompt")
    return "\n".join(content for _, content in messages_of(prompt))


def place_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """Return the data_source, split and index of a row or response; empty without an index."""
    info = row.get("extra_info") or {}
    index = info.get("index")
    if is_blank(index):
        return ()
    if isinstance(index, float) and index.is_integer():  # pandas makes floats of gaps
        index = int(index)
    return data_source, text_of(info.get("split")), str(index)


def source_id_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """Return the data_source and the source's id of a row or response; empty without an id."""
    source_id = (row.get("extra_info") or {}).get("source_id") or row.get("source_id")
    return () if is_blank(source_id) else (data_source, str(source_id))


def gold_of(row: Mapping[str, Any]) -> str:
    """Return the ground truth of a verl row, as text."""
    return unwrap_gold((row.get("reward_model") or {}).get("ground_truth"))


def text_of(value: Any) -> str:
    """Return a value as text; "" for an empty value such as pandas' NaN."""
    return "" if is_blank(value) else as_text(value)


def squeeze_without_media(text: str) -> str:
    """Squeeze a text without its placeholders of pictures."""
    return squeeze(_MEDIA.sub("", text))


def digest(text: str) -> bytes:
    """Return a digest of a text, of 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
