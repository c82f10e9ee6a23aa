"""Find the row of a training file that a response answers.

A response identifies its row by place (data_source, split and index), by its prompt, or by the
source's id. Everything else that both have (prompt, question, id, gold) must agree: after the
file was prepared again, a place may belong to another row.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from rewardkit.answers.equal import compare
from rewardkit.answers.extract import gold_answer, last_hash
from rewardkit.errors import DataError
from rewardkit.preprocess.duplicates import gold_key
from rewardkit.preprocess.foreign_rows import is_blank
from rewardkit.responses.samples import Sample, SkippedRow
from rewardkit.row import Row, open_parquet, read_rows
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold

#: Characters that two texts must share where one of them may have been cut.
WINDOW_CHARACTERS = 32

#: Longest gold whose other spellings are tried, in characters.
MAX_RESPELLED_CHARACTERS = 1_000

#: Other spellings of a gold: a list of one item, and choices with separators.
_LIST_OF_ONE = re.compile(r"""\s*\[\s*(['"]?)([^'"]*)\1\s*\]\s*""")
_CHOICES = re.compile(r"[A-Z](?:[\s,、;]+[A-Z])+")

#: A tokenizer decodes half a character to this.
_BROKEN_CHARACTER = "\ufffd"


def squeeze(text: str) -> str:
    """Return a text without white space, in Unicode's composed form.

    Tokenizers compose characters and drop spaces before punctuation; templates strip messages.
    """
    return "".join(unicodedata.normalize("NFC", text).split())


def prompt_agrees(
    text: str, main: str, others: Iterable[str], rivals: Iterable[str]
) -> bool | None:
    """Whether a response was given a row's prompt.

    Args:
        text: the prompt that the response carries, squeezed, as are all texts here.
        main: the row's message.
        others: other texts of the row, such as its question, each as good as the message.
        rivals: messages of other rows whose prompts the text contains in full.
    """
    if not text or not main:
        return None
    own = next((other for other in (main, *others) if other and other in text), "")
    if own:
        return not any(own in rival for rival in rivals)
    if any(rival not in main for rival in rivals):
        return False
    return None if _may_be_cut(text, main) else False


def question_agrees(response_question: str, question: str, main: str) -> bool | None:
    """Whether the question that a response carries is the row's, or is part of its message."""
    if not response_question or not (question or main):
        return None
    if not question:
        return response_question in main or main in response_question
    if response_question == question:
        return True
    is_part = response_question in main or question in response_question
    return None if is_part else False


def gold_agrees(response_gold: str, row_gold: str) -> bool | None:
    """Whether the golds of a response and a row are one value, as `18.0`, `['18']`, `#### 18` are."""
    if not response_gold.strip() or not row_gold.strip():
        return None
    if gold_keys(response_gold) & gold_keys(row_gold):
        return True
    a, b = _only_item(response_gold), _only_item(row_gold)
    outcome = compare(gold_answer(a), gold_answer(b)).outcome
    if outcome in ("equal", "different"):
        return outcome == "equal"
    a, b = squeeze(a).casefold(), squeeze(b).casefold()
    return None if outcome == "ambiguous" or a in b or b in a else False


def gold_keys(gold: str) -> frozenset[str]:
    """Return the keys to look up a gold: those of its spellings, and of its `####` line."""
    spellings = [gold, _only_item(gold)]
    if len(gold) <= MAX_RESPELLED_CHARACTERS and _CHOICES.fullmatch(gold):
        spellings.append("".join(filter(str.isalpha, gold)))
    elif gold.lstrip().startswith("{"):  # Python's quotes, or JSON's
        spellings.append(gold.replace("'", '"'))
    elif end := last_hash(gold):
        spellings.append(end)
    return frozenset(map(gold_key, spellings))


def _only_item(gold: str) -> str:
    match = _LIST_OF_ONE.fullmatch(gold) if len(gold) <= MAX_RESPELLED_CHARACTERS else None
    return match[2] if match else gold


def _may_be_cut(text: str, main: str) -> bool:
    """Whether a text may be a message that a limit on the prompt's length cut.

    verl cuts on the left, on the right or in the middle (`data.truncation`).
    """
    text = text.strip(_BROKEN_CHARACTER)
    if text in main:
        return True
    end = main.find(text[:WINDOW_CHARACTERS])
    if end >= 0 and text.startswith(main[end:]):
        return True
    begin = main.rfind(text[-WINDOW_CHARACTERS:])
    if begin >= 0 and text.endswith(main[: begin + WINDOW_CHARACTERS]):
        return True
    start = text.find(main[:WINDOW_CHARACTERS])
    if start < 0:
        return False
    rest = text[start:]
    pairs = enumerate(zip(rest, main, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), 0)
    rest = rest[same:].lstrip(_BROKEN_CHARACTER)
    end = main.find(rest[:WINDOW_CHARACTERS], same + WINDOW_CHARACTERS)
    return end >= 0 and rest.startswith(main[end:])


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


#: The ways to match, in the order they are tried.
PLACE, PROMPT, SOURCE_ID = "data_source, split and index", "prompt", "source_id"

#: A match by place that no other value confirms.
PLACE_ALONE = f"{PLACE} alone"


class _RowEvidence(NamedTuple):
    """The values in a response that identify its row; texts are squeezed."""

    place: tuple[str, ...]
    source_id: tuple[str, ...]
    input: str
    question: str
    question_head: str
    gold: str


def match_row(index: TrainIndex, sample: Sample) -> Match | None:
    """Match a response to a row; None if it matches none.

    Raises:
        DataError: it contradicts the row that it matches, or matches several rows.
    """
    match = try_match_row(index, sample)
    if isinstance(match, Mismatch):
        raise DataError(f"{sample.where} {match.reason}")
    return match


def try_match_row(index: TrainIndex, sample: Sample) -> Match | Mismatch | None:
    """Match a response to a row as `match_row` does, but return an error as a `Mismatch`."""
    evidence = _row_evidence(sample)
    key = digest(repr(evidence))
    if key not in index.outcomes:
        index.outcomes[key] = _find_match(index, evidence)
    return index.outcomes[key]


def _find_match(index: TrainIndex, evidence: _RowEvidence) -> Match | Mismatch | None:
    hits = find_contained(index, evidence.input)
    ways: dict[str, Mapping[int, None]] = {
        PLACE: index.places.get(evidence.place, {}),
        PROMPT: hits.places,
        SOURCE_ID: index.sources.get(evidence.source_id, {}),
    }
    way = next((way for way, places in ways.items() if places), None)
    if way is None:
        return None
    places: AbstractSet[int] = ways[way].keys()
    for others in ways.values():
        places = others.keys() & places or places
    if len(places) > 1:
        places = _with_gold(index, evidence.gold) & places or places
    if len(places) > 1:
        rows = " and ".join(f"row {index.prompts[i].row}" for i in sorted(islice(places, 3)))
        reason = (
            f"matches {rows} of {index.name}, which differ, by {way}. Score responses that keep "
            "the extra_info of their row, with an index of its own for each."
        )
        return Mismatch(reason, contradicts=False)
    (place,) = places
    return _confirm(index, evidence, hits, Match(way, place))


def _with_gold(index: TrainIndex, gold: str) -> AbstractSet[int]:
    """Return the prompts with that gold."""
    places = [index.golds[key] for key in gold_keys(gold) if key in index.golds]
    # As a rule one spelling has prompts: its keys are not copied.
    return places[0].keys() if len(places) == 1 else {place for one in places for place in one}


def _confirm(
    index: TrainIndex, evidence: _RowEvidence, hits: ContainedPrompts, match: Match
) -> Match | Mismatch:
    """Return the match, unless the response contradicts the row."""
    prompt = index.prompts[match.place]
    others = (prompt.question, prompt.message)
    agrees = {
        "prompt": match.place in hits.places
        or prompt_agrees(evidence.input, prompt.main, others, hits.mains),
        "question": question_agrees(evidence.question, prompt.question, prompt.main),
        "gold": gold_agrees(evidence.gold, prompt.gold),
    }
    same_text = True in (agrees["prompt"], agrees["question"])
    agrees["source_id"] = _source_id_agrees(index, evidence, match.place, same_text=same_text)
    if False in agrees.values():
        differences = "; ".join(
            _difference(index, evidence, prompt, hits, name)
            for name, same in agrees.items()
            if same is False
        )
        other_way = (
            ", or remove index from their extra_info to match them by prompt"
            if match.way == PLACE and hits.places
            else ""
        )
        reason = (
            f"matches row {prompt.row} of {index.name} by {match.way}, but contradicts it: {differences}. "
            f"Give the parquet that the responses were made from{other_way}."
        )
        return Mismatch(reason, contradicts=True)
    is_unconfirmed = match.way == PLACE and True not in agrees.values()
    return match._replace(way=PLACE_ALONE) if is_unconfirmed else match


def _source_id_agrees(
    index: TrainIndex, evidence: _RowEvidence, place: int, *, same_text: bool
) -> bool | None:
    """Whether the ids agree.

    Copies of a dataset have different ids for the same problem: where the text is the same, only
    the id of another row is a contradiction.
    """
    if not evidence.source_id:
        return None
    places = index.sources.get(evidence.source_id, {})
    if place in places:
        return True
    return False if places or (index.prompts[place].source_id and not same_text) else None


def _difference(
    index: TrainIndex,
    evidence: _RowEvidence,
    prompt: TrainPrompt,
    hits: ContainedPrompts,
    name: str,
) -> str:
    if name == "prompt":
        other = next(iter(hits.places), None)
        if other is not None:
            return f"its prompt is that of row {index.prompts[other].row}"
        return f"its prompt does not contain {_quoted(prompt.head)}"
    value, row_value = {
        "question": (evidence.question_head, prompt.head),
        "gold": (evidence.gold, prompt.gold),
        "source_id": (evidence.source_id[-1:], prompt.source_id),
    }[name]
    return f"its {name} is {_quoted(''.join(value))}, the row's {_quoted(row_value)}"


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 3] + "...")


def _row_evidence(sample: Sample) -> _RowEvidence:
    info, fields = sample.extra_info, sample.fields
    row = {**fields, "extra_info": info}
    source = text_of(info.get("data_source"))
    questions = (info.get("question"), fields.get("question"), fields.get("problem"))
    question = next(filter(None, map(text_of, questions)), "")
    return _RowEvidence(
        place_of(row, source),
        source_id_of(row, source),
        squeeze(input_of(fields)),
        squeeze_without_media(question),
        question[: QUOTED_CHARACTERS + 1],
        sample.ground_truth,
    )


def look_up_row(sample: Sample, train: str) -> Sample | SkippedRow:
    """Add the `data_source` and `extra_info` of a sample's row in a training parquet.

    A sample with a `data_source` is returned unchanged. verl's dumps have none, but their `input`
    has the row's prompt. A sample that contradicts its row, matches several rows or none, or
    matches by its place alone, is returned as a `SkippedRow` with the reason.
    """
    if not is_blank(sample.extra_info.get("data_source")):
        return sample
    index, infos = _training_rows(train)
    match = try_match_row(index, sample)
    if match is None:
        reason = f"it answers no row of {train}: no row has its prompt, place or id"
        return SkippedRow(sample.where, reason)
    if isinstance(match, Mismatch):
        return SkippedRow(sample.where, f"it {match.reason}")
    if match.way == PLACE_ALONE:
        return SkippedRow(sample.where, f"only its split and index match a row of {train}")
    own = {name: value for name, value in sample.extra_info.items() if not is_blank(value)}
    info = {**infos[index.prompts[match.place].row], **own}
    place = {name: info.get(name) for name in ("index", "split", "source_id")}
    fields = {**sample.fields, "data_source": info["data_source"]}
    fields.setdefault("extra_info", place)
    return Sample(sample.where, sample.response, sample.ground_truth, info, fields)


def require_train_parquet(train: Path) -> None:
    """Raise `DataError` unless a file is a parquet with the columns by which rows are looked up."""
    with open_parquet(train) as file:
        missing = {"prompt", "data_source"} - set(file.schema_arrow.names)
    if missing:
        names = " and no ".join(map(repr, sorted(missing)))
        raise DataError(f"{train}: has no {names}: not a verl parquet.")


@cache
def _training_rows(train: str) -> tuple[TrainIndex, list[dict[str, Any]]]:
    """Return the index of the rows, and the `extra_info` and `data_source` of each."""
    rows = list(read_rows(Path(train)))
    infos = [{**(r.get("extra_info") or {}), "data_source": r["data_source"]} for r in rows]
    return index_rows(rows, train), infos
