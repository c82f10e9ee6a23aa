"""Find the row of a parquet that a response answers.

A response identifies its row by index (with data_source and split), by its prompt, or by the
source's id. Everything else that both have (prompt, question, id, gold) must agree: after the
file was prepared again, an index may belong to another row. Texts are compared without white space.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.answers.equal import compare
from rewardkit.answers.extract import gold_answer, last_hash
from rewardkit.checks.duplicates import gold_key
from rewardkit.errors import DataError
from rewardkit.preprocess.foreign_rows import is_blank
from rewardkit.responses.files import SkippedRow
from rewardkit.responses.samples import Sample
from rewardkit.row import BATCH_ROWS, Row, open_parquet, question_of
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold

#: The ways to match, in the order they are tried, and a match by index that nothing else confirms.
INDEX, PROMPT, SOURCE_ID = "data_source, split and index", "prompt", "source_id"
INDEX_ALONE = f"{INDEX} alone"

#: Characters that two texts must share where one of them may have been cut.
WINDOW_CHARACTERS = 32

#: Longest gold whose other spellings are tried, in characters.
MAX_RESPELLED_CHARACTERS = 1_000

#: Characters of a text that an error message quotes.
QUOTED_CHARACTERS = 60

#: Other spellings of a gold: a list of one item, and choices with separators.
_LIST_OF_ONE = re.compile(r"""\s*\[\s*(['"]?)([^'"]*)\1\s*\]\s*""")
_CHOICES = re.compile(r"[A-Z](?:[\s,、;]+[A-Z])+")

#: A tokenizer decodes half a character to this.
_BROKEN_CHARACTER = "\ufffd"

#: Placeholders that the processor of a multimodal model replaces.
_MEDIA = re.compile(r"<(?:image|video|audio)>")


def squeeze(text: str) -> str:
    """Return a text without white space, in Unicode's composed form.

    Tokenizers compose characters and drop spaces before punctuation; templates strip messages.
    """
    return "".join(unicodedata.normalize("NFC", text).split())


def gold_agrees(response_gold: str, row_gold: str) -> bool | None:
    """Whether two golds are one value, as `18.0`, `['18']` and `#### 18` are; None if unknown."""
    a, b = _plain_gold(response_gold), _plain_gold(row_gold)
    if not a.strip() or not b.strip():
        return None
    if gold_key(a) == gold_key(b):
        return True
    outcome = compare(gold_answer(a), gold_answer(b)).outcome
    if outcome in ("equal", "different"):
        return outcome == "equal"
    a, b = squeeze(a).casefold(), squeeze(b).casefold()
    return None if outcome == "ambiguous" or a in b or b in a else False


def _plain_gold(gold: str) -> str:
    """Return a gold without a list around it, or before its `####`, with usual quotes."""
    if len(gold) <= MAX_RESPELLED_CHARACTERS and (match := _LIST_OF_ONE.fullmatch(gold)):
        return match[2]
    if len(gold) <= MAX_RESPELLED_CHARACTERS and _CHOICES.fullmatch(gold):
        return "".join(filter(str.isalpha, gold))
    return gold.replace("'", '"') if gold.lstrip().startswith("{") else last_hash(gold) or gold


def _gold_key(gold: str) -> str:
    return gold_key(_plain_gold(gold))


def _may_be_cut(text: str, main: str) -> bool:
    """Whether a text may be a message that a limit on the prompt's length cut.

    verl cuts on the left or on the right, or in the middle, which is not recognised here
    (`data.truncation`).
    """
    text = text.strip(_BROKEN_CHARACTER)
    if text in main:
        return True
    end = main.find(text[:WINDOW_CHARACTERS])
    if end >= 0 and text.startswith(main[end:]):
        return True
    begin = main.rfind(text[-WINDOW_CHARACTERS:])
    return begin >= 0 and text.endswith(main[: begin + WINDOW_CHARACTERS])


class TrainPrompt(NamedTuple):
    """The prompt and gold that equal rows share; texts are squeezed, but for `gold` and `head`.

    `row` is the first of these rows. An input made from the prompt contains the `pieces`; `main` is the
    longest of the last message. `question` is `extra_info.question`, `message` the message as the model
    gets it, if it is not part of `main`; each is "" without one. `head` is for error messages.
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
    """The way a response matches a row, and the index of its prompt in `TrainIndex.prompts`."""

    way: str
    prompt: int


class Mismatch(NamedTuple):
    """Why a response cannot be matched: it contradicts its row, or matches several rows."""

    reason: str
    contradicts: bool


class _Evidence(NamedTuple):
    """What a response says of its row; texts are squeezed; `row_index` and `source_id` are keys of the index."""

    row_index: tuple[str, ...]
    source_id: tuple[str, ...]
    input: str
    question: str
    question_head: str
    gold: str


class TrainIndex:
    """The rows of a parquet by everything that may identify a row in a response.

    `prompts` are the distinct prompts, and `rows` the index in it of each row's prompt; rows that are
    equal up to white space have the same.
    """

    def __init__(
        self, rows: Iterable[Row], name: str = "the training file", *, by_question: bool = False
    ) -> None:
        """Index verl rows of a file, whose name is for error messages.

        `by_question` says whether a response may have the question in any prompt, as those of other
        programs do.
        """
        self.name = name
        self.rows: list[int] = []
        self.prompts: list[TrainPrompt] = []
        # Indices of prompts, as ordered sets, by a piece of the prompt, by the row's index, source_id and gold.
        # Indices and ids also have a key without the data_source.
        self._indices: dict[tuple[str, ...], dict[int, None]] = {}
        # Offsets in pieces, and lengths of these, by the window and its length.
        self._windows: dict[int, dict[str, set[tuple[int, int]]]] = {}
        # A prompt has many responses, and many rows may have the same prompt.
        self._outcomes: dict[bytes, Match | Mismatch | None] = {}
        self._hits: dict[bytes, tuple[dict[int, None], list[str]]] = {}
        indices: dict[bytes, int] = {}
        for number, row in enumerate(rows):
            messages = messages_of(row.get("prompt"))
            if not messages:
                raise DataError(f"row {number} of {name} has no prompt: not a verl parquet.")
            message, gold = messages[-1][1], _gold_of(row)
            if by_question:
                messages = [("user", question_of(row) or message)]
            squeezed = [(role, squeeze(text)) for role, text in messages]
            key = _digest(repr((squeezed, row.get("images"), gold)))
            index = indices.setdefault(key, len(self.prompts))
            if index == len(self.prompts):
                self.prompts.append(_train_prompt(row, number, messages, message))
                self._add(("gold", _gold_key(gold)), index)
            self.rows.append(index)
            for source in (_text(row.get("data_source")), ""):
                self._add(_row_index_of(row, source), index)
                self._add(_source_id_of(row, source), index)
        self._index_windows()

    def _add(self, key: tuple[str, ...], index: int) -> None:
        if key:
            self._indices.setdefault(key, {})[index] = None

    def match(self, sample: Sample) -> Match | None:
        """Match a response to a row; None if it matches none. Raise `DataError` for a `Mismatch`."""
        match = self.try_match(sample)
        if isinstance(match, Mismatch):
            raise DataError(f"{sample.where} {match.reason}")
        return match

    def try_match(self, sample: Sample) -> Match | Mismatch | None:
        """Match a response to a row as `match` does, but return an error as a `Mismatch`."""
        evidence = _evidence_of(sample)
        key = _digest(repr(evidence))
        if key not in self._outcomes:
            self._outcomes[key] = self._find(evidence)
        return self._outcomes[key]

    def _find(self, evidence: _Evidence) -> Match | Mismatch | None:
        key = _digest(evidence.input)
        if key not in self._hits:
            self._hits[key] = self._find_contained(evidence.input)
        hits, mains = self._hits[key]
        ways = {
            INDEX: self._indices.get(evidence.row_index, {}),
            PROMPT: hits,
            SOURCE_ID: self._indices.get(evidence.source_id, {}),
        }
        way = next((way for way, indices in ways.items() if indices), None)
        if way is None:
            return None
        golds = self._indices.get(("gold", _gold_key(evidence.gold)), {})
        matches = set(ways[way])
        for others in (*ways.values(), golds):
            matches = matches & others.keys() or matches
        if len(matches) == 1:
            return self._confirm(evidence, hits, mains, way, *matches)
        rows = " and ".join(f"row {self.prompts[i].row}" for i in sorted(matches)[:3])
        reason = (
            f"matches {rows} of {self.name}, which differ, by {way}. Score responses that keep "
            "the extra_info of their row, with an index of its own for each."
        )
        return Mismatch(reason, contradicts=False)

    def _confirm(
        self, evidence: _Evidence, hits: Mapping[int, None], mains: list[str], way: str, index: int
    ) -> Match | Mismatch:
        """Return the match, unless the response contradicts the row."""
        prompt = self.prompts[index]
        agrees = {
            "prompt": index in hits or _prompt_agrees(evidence.input, prompt, mains),
            "question": _question_agrees(evidence.question, prompt),
            "gold": gold_agrees(evidence.gold, prompt.gold),
        }
        same_text = True in (agrees["prompt"], agrees["question"])
        agrees["source_id"] = self._source_id_agrees(evidence, index, same_text=same_text)
        if False not in agrees.values():
            is_alone = way == INDEX and True not in agrees.values()
            return Match(INDEX_ALONE if is_alone else way, index)
        other = next(iter(hits), None)
        prompts = f"does not contain {_quoted(prompt.head)}"
        if other is not None:
            prompts = f"is that of row {self.prompts[other].row}"
        values = {
            "question": (evidence.question_head, prompt.head),
            "gold": (evidence.gold, prompt.gold),
            "source_id": ("".join(evidence.source_id[-1:]), prompt.source_id),
        }
        differences = [f"its prompt {prompts}"] if agrees["prompt"] is False else []
        differences += [
            f"its {name} is {_quoted(value)}, the row's {_quoted(own)}"
            for name, (value, own) in values.items()
            if agrees[name] is False
        ]
        remedy = ", or remove index from their extra_info to match them by prompt"
        reason = (
            f"matches row {prompt.row} of {self.name} by {way}, but contradicts it: "
            f"{'; '.join(differences)}. Give the parquet that the responses were made from"
            f"{remedy if way == INDEX and hits else ''}."
        )
        return Mismatch(reason, contradicts=True)

    def _source_id_agrees(self, evidence: _Evidence, index: int, *, same_text: bool) -> bool | None:
        """Whether the ids agree.

        Copies of a dataset have different ids for the same problem: where the text is the same, only
        the id of another row is a contradiction.
        """
        if not evidence.source_id:
            return None
        indices = self._indices.get(evidence.source_id, {})
        if index in indices:
            return True
        return False if indices or (self.prompts[index].source_id and not same_text) else None

    def _find_contained(self, text: str) -> tuple[dict[int, None], list[str]]:
        """Return the prompts whose messages a text contains, and the distinct messages.

        A message inside another that the text contains does not count.
        """
        keys: dict[tuple[str, str], None] = {}
        for length, windows in self._windows.items():
            for start in range(len(text) - length + 1):
                for offset, size in windows.get(text[start : start + length], ()):
                    piece = text[start - offset : start - offset + size] if start >= offset else ""
                    if ("piece", piece) in self._indices:
                        keys["piece", piece] = None
        mains: dict[str, list[int]] = {}
        for key in keys:
            for index in self._indices[key]:
                prompt = self.prompts[index]
                if all(part in text for part in prompt.pieces):
                    mains.setdefault(prompt.main, []).append(index)
        whole = [main for main in mains if not any(main != m and main in m for m in mains)]
        return {index: None for main in whole for index in mains[main]}, whole

    def _index_windows(self) -> None:
        """Index every prompt by the rarest window of its pieces: many prompts share the others.

        With the window its offset in the piece and the length of the piece are stored: of the pieces
        with the same window, only the one in a text is looked up, as a whole.
        """
        counts = Counter(
            window
            for prompt in self.prompts
            for piece in dict.fromkeys(prompt.pieces)
            for window in _windows(piece)
        )
        for index, prompt in enumerate(self.prompts):
            windows = {
                window: (piece, offset)
                for piece in reversed(prompt.pieces)
                for window, offset in _windows(piece).items()
            }
            if windows:
                window = min(windows, key=counts.__getitem__)
                piece, offset = windows[window]
                self._add(("piece", piece), index)
                shapes = self._windows.setdefault(len(window), {}).setdefault(window, set())
                shapes.add((offset, len(piece)))


def _windows(text: str) -> dict[str, int]:
    """Return windows of a text with their offsets. All texts together have only a few lengths."""
    width = min(WINDOW_CHARACTERS, 1 << (len(text).bit_length() - 1))
    last = len(text) - width
    return {text[start : start + width]: start for start in (*range(0, last, width), last)}


def _train_prompt(
    row: Row, number: int, messages: list[tuple[str, str]], message: str
) -> TrainPrompt:
    pieces = [
        squeeze(piece)
        for role, content in messages
        if role in ("system", "user")  # templates leave out parts of what an assistant said
        for piece in _MEDIA.split(content)
    ]
    question = _text((row.get("extra_info") or {}).get("question"))
    main = max(map(squeeze, _MEDIA.split(messages[-1][1])), key=len)
    message = _squeeze_without_media(message)
    return TrainPrompt(
        row=number,
        pieces=tuple(filter(None, pieces)),
        main=main,
        question=_squeeze_without_media(question),
        message="" if main in message else message,
        source_id="".join(_source_id_of(row, "")[-1:]),
        gold=_gold_of(row),
        head=(question or messages[-1][1])[: QUOTED_CHARACTERS + 1],
    )


def _prompt_agrees(text: str, prompt: TrainPrompt, rivals: list[str]) -> bool | None:
    """Whether a response with an input was given a row's prompt.

    `rivals` are the messages of other rows whose prompts the input contains in full.
    """
    if not text or not prompt.main:
        return None
    names = (prompt.main, prompt.question, prompt.message)
    own = next((name for name in names if name and name in text), "")
    if own:
        return not any(own in rival for rival in rivals)
    if any(rival not in prompt.main for rival in rivals):
        return False
    return None if _may_be_cut(text, prompt.main) else False


def _question_agrees(question: str, prompt: TrainPrompt) -> bool | None:
    """Whether the question that a response has is the row's, or is part of its message."""
    if not question or not (prompt.question or prompt.main):
        return None
    if not prompt.question:
        return question in prompt.main or prompt.main in question
    if question == prompt.question:
        return True
    return None if question in prompt.main or prompt.question in question else False


def messages_of(prompt: Any) -> list[tuple[str, str]]:
    """Return the messages of a chat, or a plain text as one message, as (role, text)."""
    if isinstance(prompt, str):
        return [("user", prompt)]
    messages = prompt if isinstance(prompt, list) else []
    return [
        (as_text(m.get("role")), _content(m.get("content", m.get("prompt"))))  # prompt: AISBench's
        for m in messages
        if isinstance(m, Mapping)
    ]


def _content(content: Any) -> str:
    """Return the text of a message, which may be in parts beside images."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(as_text(part.get("text")) for part in content if isinstance(part, Mapping))


def _row_index_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """Return the data_source, split and index of a row or response; empty without an index."""
    info = row.get("extra_info") or {}
    index = info.get("index")
    if is_blank(index):
        return ()
    if isinstance(index, float) and index.is_integer():  # pandas makes floats of gaps
        index = int(index)
    return "index", data_source, _text(info.get("split")), str(index)


def _source_id_of(row: Mapping[str, Any], data_source: str) -> tuple[str, ...]:
    """Return the data_source and the source's id of a row or response; empty without an id."""
    own_id = (row.get("extra_info") or {}).get("source_id")
    source_id = own_id or row.get("source_id") or row.get("custom_id")
    return () if is_blank(source_id) else ("source_id", data_source, str(source_id))


def _gold_of(row: Mapping[str, Any]) -> str:
    return unwrap_gold((row.get("reward_model") or {}).get("ground_truth"))


def _text(value: Any) -> str:
    """Return a value as text; "" for an empty value such as pandas' NaN."""
    return "" if is_blank(value) else as_text(value)


def _squeeze_without_media(text: str) -> str:
    return squeeze(_MEDIA.sub("", text))


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 3] + "...")


def _evidence_of(sample: Sample) -> _Evidence:
    info, fields = sample.extra_info, sample.fields
    row = {**fields, "extra_info": info}
    source = _text(info.get("data_source"))
    questions = (info.get("question"), fields.get("question"), fields.get("problem"))
    question = next(filter(None, map(_text, questions)), "")
    prompts = (fields.get("input"), fields.get("prompt"), fields.get("origin_prompt"))
    messages = messages_of(next(filter(None, prompts), None))
    return _Evidence(
        _row_index_of(row, source),
        _source_id_of(row, source),
        squeeze("\n".join(content for _, content in messages)),
        _squeeze_without_media(question),
        question[: QUOTED_CHARACTERS + 1],
        sample.ground_truth,
    )


#: The columns by which responses match rows.
_MATCH_COLUMNS = ("data_source", "prompt", "reward_model", "extra_info", "images")


def _read_rows(path: Path, *required: str) -> Iterator[Row]:
    with open_parquet(path) as file:
        columns = [name for name in file.schema_arrow.names if name in _MATCH_COLUMNS]
        if missing := [name for name in required if name not in columns]:
            names = " and no ".join(map(repr, missing))
            raise DataError(f"{path}: has no {names}: not a verl parquet.")
        for batch in file.iter_batches(BATCH_ROWS, columns=columns):
            yield from batch.to_pylist()


def index_parquet(path: Path, *, by_question: bool = False) -> TrainIndex:
    """Return the index of a verl parquet's rows; see `TrainIndex`."""
    return TrainIndex(_read_rows(path, "prompt"), str(path), by_question=by_question)


def look_up_row(sample: Sample, train: Path) -> Sample | SkippedRow:
    """Add the `data_source` and `extra_info` of a sample's row in a training parquet.

    A sample with a `data_source` is returned unchanged. verl's dumps have none, but their `input`
    has the row's prompt. A sample that contradicts its row, matches several rows or none, or
    matches by its index alone, is returned as a `SkippedRow` with the reason.
    """
    if not is_blank(sample.extra_info.get("data_source")):
        return sample
    index, infos = training_rows(train)
    match = index.try_match(sample)
    if match is None:
        reason = f"it answers no row of {train}: no row has its prompt, index or id"
        return SkippedRow(sample.where, reason)
    if isinstance(match, Mismatch):
        return SkippedRow(sample.where, f"it {match.reason}")
    if match.way == INDEX_ALONE:
        return SkippedRow(sample.where, f"only its split and index match a row of {train}")
    own = {name: value for name, value in sample.extra_info.items() if not is_blank(value)}
    info = {**infos[index.prompts[match.prompt].row], **own}
    identity = {name: info.get(name) for name in ("index", "split", "source_id")}
    fields = {**sample.fields, "data_source": info["data_source"]}
    fields.setdefault("extra_info", identity)
    return sample._replace(extra_info=info, fields=fields)


@cache
def training_rows(train: Path) -> tuple[TrainIndex, list[dict[str, Any]]]:
    """Return the index of a verl parquet's rows, and the `extra_info` and `data_source` of each."""
    rows = list(_read_rows(train, "data_source", "prompt"))
    infos = [{**(r.get("extra_info") or {}), "data_source": r["data_source"]} for r in rows]
    return TrainIndex(rows, str(train)), infos
