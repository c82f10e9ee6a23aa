"""Responses in the files of other programs: each format is recognised by its keys.

Sources are the programs' own code: verl's dumps (0.9.1, `RayPPOTrainer._write_generations`),
lm-eval's `samples_*.jsonl` (0.4.13, `evaluator.py`), lighteval's details (0.13.0,
`DetailsLogger.Detail`, parquet) and AISBench's predictions (`output_handler/`, 2026). The batch
output is the one that OpenAI documents and vLLM's `run-batch` writes. The formats of lm-eval,
lighteval and AISBench were not tested on files that these programs wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rewardkit.model_client.completions import parse_choice, parse_token_count
from rewardkit.responses.chunks import read_chunks
from rewardkit.responses.samples import (
    GOLD_KEYS,
    RESPONSE_KEYS,
    Record,
    SkippedRow,
    first_value,
    read_records,
)

#: The keys under which a benchmark's row has its question.
_QUESTION_KEYS = ("question", "problem", "prompt", "query", "input")


class GeneratedText(NamedTuple):
    """A response; why it ended ("" if unknown) and its number of tokens, if known."""

    response: str
    finish_reason: str = ""
    tokens: int | None = None


class ResponseRecord(NamedTuple):
    """The responses of one record, and the values that identify their row.

    Attributes:
        where: file:line.
        texts: the responses.
        prompt: the prompt as text; "" if the record does not have it.
        gold: the gold answer; "" if the record does not have it.
        fields: fields of the record, which may name the row by `extra_info` or by number.
        custom_id: the request's name in a batch.
        variant: lm-eval's `filter`; it writes the same responses once for each.
    """

    where: str
    texts: tuple[GeneratedText, ...]
    prompt: str = ""
    gold: str = ""
    fields: Mapping[str, Any] = {}
    custom_id: str = ""
    variant: str = ""


_Parsed: TypeAlias = ResponseRecord | SkippedRow


def read_response_records(files: Sequence[str]) -> Iterator[ResponseRecord | SkippedRow]:
    """Yield the records of files of responses in order, and those that cannot be used.

    Raises:
        DataError: a file cannot be read.
    """
    for chunk in read_chunks(files):
        for record in read_records(chunk):
            yield record if isinstance(record, SkippedRow) else parse_record(record)


def parse_record(record: Record) -> ResponseRecord | SkippedRow:
    """Return the responses of a record of any known format, or why it cannot be used."""
    try:
        return _parse(*record)
    except RecursionError:
        return SkippedRow(record.where, "nested too deeply")


def _parse(where: str, fields: dict[str, Any]) -> _Parsed:
    for keys, parse in _FORMATS:
        if keys <= fields.keys():
            record = parse(where, fields)
            if isinstance(record, ResponseRecord) and not record.texts:
                return SkippedRow(where, "no response that is text")
            return record
    known = "verl, a batch, AISBench, lm-eval, lighteval, or this command's own"
    return SkippedRow(where, f"none of the formats known by their keys: {known}")


def _parse_batch(where: str, fields: dict[str, Any]) -> _Parsed:
    answer = fields["response"]
    choices = _list_of(answer.get("body") if isinstance(answer, dict) else None, "choices")
    if choices is None:
        return SkippedRow(where, f"the request failed: {_excerpt(fields.get('error') or answer)}")
    parsed = [c for choice in choices if isinstance(choice, dict) and (c := parse_choice(choice))]
    texts = tuple(GeneratedText(choice.text, choice.finish_reason) for choice in parsed)
    return ResponseRecord(where, texts, custom_id=str(fields["custom_id"]))


def _parse_aisbench(where: str, fields: dict[str, Any]) -> _Parsed:
    if fields.get("success") is False:
        return SkippedRow(where, "AISBench marks it as failed")
    texts = _generated_texts([fields["prediction"]], [fields.get("output_tokens")])
    prompt, gold = _joined_text(fields["origin_prompt"]), str(fields.get("gold") or "")
    return ResponseRecord(where, texts, prompt, gold)


def _parse_lm_eval(where: str, fields: dict[str, Any]) -> _Parsed:
    doc = fields.get("doc")
    question = first_value(doc, _QUESTION_KEYS)[1] if isinstance(doc, dict) else None
    prompt = question if isinstance(question, str) else _joined_text(fields.get("arguments"))
    gold, variant = str(fields.get("target") or ""), str(fields.get("filter") or "")
    return ResponseRecord(
        where, _generated_texts(_leaves(fields["resps"])), prompt, gold, variant=variant
    )


def _parse_lighteval(where: str, fields: dict[str, Any]) -> _Parsed:
    answer, doc = fields["model_response"], fields["doc"]
    token_lists = _list_of(answer, "output_tokens") or []
    counts = [len(tokens) if isinstance(tokens, list) else None for tokens in token_lists]
    prompt = _joined_text(doc.get("query")) if isinstance(doc, dict) else ""
    return ResponseRecord(where, _generated_texts(_list_of(answer, "text") or [], counts), prompt)


def _parse_row(where: str, fields: dict[str, Any]) -> _Parsed:
    """Parse a row of verl's dumps, or one like it: a response with its prompt or `extra_info`."""
    response = first_value(fields, RESPONSE_KEYS)[1]
    if response is None:
        return SkippedRow(where, f"no response: none of {', '.join(RESPONSE_KEYS)}")
    finish_reason, tokens = fields.get("finish_reason"), fields.get("tokens")
    responses = response if isinstance(response, list) else [response]
    texts = _generated_texts(responses, [tokens], finish_reason)
    prompt = _joined_text(fields.get("input") or fields.get("prompt"))
    gold = first_value(fields, GOLD_KEYS)[1]
    return ResponseRecord(where, texts, prompt, "" if gold is None else str(gold), fields)


_FORMATS: tuple[tuple[frozenset[str], Callable[[str, dict[str, Any]], _Parsed]], ...] = (
    (frozenset({"custom_id", "response"}), _parse_batch),
    (frozenset({"resps", "doc_id"}), _parse_lm_eval),
    (frozenset({"doc", "model_response"}), _parse_lighteval),
    (frozenset({"origin_prompt", "prediction"}), _parse_aisbench),
    *((frozenset({key}), _parse_row) for key in RESPONSE_KEYS),
)


def _generated_texts(
    responses: Iterable[Any], tokens: Sequence[Any] = (), finish_reason: Any = None
) -> tuple[GeneratedText, ...]:
    counts = [*map(parse_token_count, tokens)]
    reason = finish_reason if isinstance(finish_reason, str) else ""
    return tuple(
        GeneratedText(response, reason, counts[place] if place < len(counts) else None)
        for place, response in enumerate(responses)
        if isinstance(response, str)
    )


def _list_of(value: Any, key: str) -> list[Any] | None:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else None


def _leaves(value: Any) -> list[Any]:
    """Return the items of nested lists, in order."""
    return (
        [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]
    )


def _joined_text(value: Any) -> str:
    """Return all the text of a prompt, however it is nested: a chat, or lm-eval's arguments."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [item for name, item in value.items() if name != "role"]
    return "\n".join(filter(None, map(_joined_text, value))) if isinstance(value, list) else ""


def _excerpt(value: Any) -> str:
    return " ".join(str(value).split())[:200]
