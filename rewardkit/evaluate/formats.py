"""Responses in the files of other programs: each format is known by its keys.

Read from the programs' own source: verl's dumps (0.9.1, `RayPPOTrainer._write_generations`),
lm-eval's `samples_*.jsonl` (0.4.13, `evaluator.py`), lighteval's details (0.13.0,
`DetailsLogger.Detail`, parquet) and AISBench's predictions (`output_handler/`, 2026). The batch
output is OpenAI's documented one, which vLLM's `run-batch` writes. Of lm-eval, lighteval and
AISBench no file that the program itself wrote was at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.evaluate.completions import choice_of, tokens_of
from rewardkit.responses.files import Unit, units
from rewardkit.responses.read import GOLD_KEYS, RESPONSE_KEYS, Unread, first_of

#: Where a benchmark's row has its question.
_QUESTIONS = ("question", "problem", "prompt", "query", "input")

#: Where lighteval has the tokens of each response.
_TOKENS = "output_tokens"


class Text(NamedTuple):
    """A response; why it ended ("" if unknown) and its tokens, if they are known."""

    response: str
    finish_reason: str = ""
    tokens: int | None = None


class Given(NamedTuple):
    """The responses of one record, and what says which row they answer.

    Attributes:
        where: file:line.
        texts: the responses.
        asked: what was asked, as text; "" if the record does not say.
        gold: the answer, where the record has it.
        fields: of the record, for rows that are named by `extra_info` or, as ours, by number.
        custom_id: of a batch.
        copy: which of several records of the same response this is, as lm-eval's `filter`.
    """

    where: str
    texts: tuple[Text, ...]
    asked: str = ""
    gold: str = ""
    fields: Mapping[str, Any] = {}
    custom_id: str = ""
    copy: str = ""


def given(files: Sequence[str]) -> Iterator[Given | Unread]:
    """What files of responses hold, record by record; what cannot be read is told.

    Raises:
        DataError: a file cannot be read.
    """
    for unit in units(files):
        for where, record in _records(unit):
            yield Unread(where, record) if isinstance(record, str) else _given(where, record)


def _records(unit: Unit) -> Iterator[tuple[str, dict[str, Any] | str]]:
    for number, row in enumerate(unit.rows, unit.first):
        yield f"{unit.path} row {number}", row
    for number, line in enumerate(unit.text.split(b"\n"), unit.first):
        if line.strip():
            yield f"{unit.path}:{number}", _object(line)
    if unit.cut:
        yield unit.path, unit.cut


def _object(line: bytes) -> dict[str, Any] | str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({error})"
    return record if isinstance(record, dict) else f"a {type(record).__name__}, not an object"


def _given(where: str, record: dict[str, Any]) -> Given | Unread:
    try:
        return _known(where, record)
    except RecursionError:
        return Unread(where, "nested too deeply")


def _known(where: str, record: dict[str, Any]) -> Given | Unread:
    for keys, read in _FORMATS:
        if keys <= record.keys():
            found = read(where, record)
            if isinstance(found, Given) and not found.texts:
                return Unread(where, "no response that is text")
            return found
    known = "verl, a batch, AISBench, lm-eval, lighteval, or this command's own"
    return Unread(where, f"none of the formats known by their keys: {known}")


def _batch(where: str, record: dict[str, Any]) -> Given | Unread:
    answer = record["response"]
    body = answer.get("body") if isinstance(answer, dict) else None
    listed = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(listed, list):
        return Unread(where, f"the request failed: {_short(record.get('error') or answer)}")
    choices = [c for each in listed if isinstance(each, dict) and (c := choice_of(each))]
    texts = tuple(Text(choice.text, choice.finish_reason) for choice in choices)
    return Given(where, texts, custom_id=str(record["custom_id"]))


def _aisbench(where: str, record: dict[str, Any]) -> Given | Unread:
    if record.get("success") is False:
        return Unread(where, "AISBench marks it as failed")
    tokens = record.get("output_tokens")
    texts = _texts([record["prediction"]], [tokens])
    return Given(where, texts, _flat(record["origin_prompt"]), str(record.get("gold") or ""))


def _lm_eval(where: str, record: dict[str, Any]) -> Given:
    doc = record.get("doc")
    question = first_of(doc, _QUESTIONS)[1] if isinstance(doc, dict) else None
    asked = question if isinstance(question, str) else _flat(record.get("arguments"))
    texts = _texts(_leaves(record["resps"]))
    gold, copy = str(record.get("target") or ""), str(record.get("filter") or "")
    return Given(where, texts, asked, gold, copy=copy)


def _lighteval(where: str, record: dict[str, Any]) -> Given:
    answer = record["model_response"]
    tokens = [len(each) if isinstance(each, list) else None for each in _listed(answer, _TOKENS)]
    asked = record["doc"].get("query") if isinstance(record["doc"], dict) else None
    return Given(where, _texts(_listed(answer, "text"), tokens), _flat(asked))


def _listed(answer: Any, name: str) -> list[Any]:
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, list) else []


def _row(where: str, record: dict[str, Any]) -> Given | Unread:
    """A row of verl's dumps, or one like them: a response with its prompt, or with its `extra_info`."""
    response = first_of(record, RESPONSE_KEYS)[1]
    if response is None:
        return Unread(where, f"no response: none of {', '.join(RESPONSE_KEYS)}")
    finish, tokens = record.get("finish_reason"), record.get("tokens")
    texts = _texts(response if isinstance(response, list) else [response], [tokens], finish)
    asked = record.get("input") or record.get("prompt")
    gold = first_of(record, GOLD_KEYS)[1]
    return Given(where, texts, _flat(asked), "" if gold is None else str(gold), record)


_FORMATS: tuple[tuple[frozenset[str], Callable[[str, dict[str, Any]], Given | Unread]], ...] = (
    (frozenset({"custom_id", "response"}), _batch),
    (frozenset({"resps", "doc_id"}), _lm_eval),
    (frozenset({"doc", "model_response"}), _lighteval),
    (frozenset({"origin_prompt", "prediction"}), _aisbench),
    *((frozenset({key}), _row) for key in RESPONSE_KEYS),
)


def _texts(
    responses: Iterable[Any], tokens: Sequence[Any] = (), finish: Any = None
) -> tuple[Text, ...]:
    known = [*map(tokens_of, tokens)]
    ended = finish if isinstance(finish, str) else ""
    return tuple(
        Text(response, ended, known[place] if place < len(known) else None)
        for place, response in enumerate(responses)
        if isinstance(response, str)
    )


def _leaves(value: Any) -> list[Any]:
    """The items of nested lists, in order."""
    return (
        [leaf for each in value for leaf in _leaves(each)] if isinstance(value, list) else [value]
    )


def _flat(value: Any) -> str:
    """All the text of a prompt, however it is nested: a chat, or lm-eval's arguments."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [each for name, each in value.items() if name != "role"]
    return "\n".join(filter(None, map(_flat, value))) if isinstance(value, list) else ""


def _short(value: Any) -> str:
    return " ".join(str(value).split())[:200]
