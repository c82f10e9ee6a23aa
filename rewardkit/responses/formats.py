"""Records of other programs, turned into rows like our own: each program is recognised by its keys.

Sources are the programs' own code: lm-eval's `samples_*.jsonl` (0.4.13, `evaluator.py`), lighteval's
details (0.13.0, `DetailsLogger.Detail`, parquet) and AISBench's predictions (`output_handler/`, 2026).
The batch output is the one that OpenAI documents and vLLM's `run-batch` writes. The formats of lm-eval,
lighteval and AISBench were not tested on files that these programs wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.model_client.completions import parse_choice

#: The keys under which a benchmark's row has its question.
_QUESTION_KEYS = ("question", "problem", "prompt", "query", "input")

#: The field of a row of lm-eval that names the filter: it writes all responses once for each.
FILTER_KEY = "lm_eval_filter"


def as_row(fields: dict[str, Any]) -> dict[str, Any] | str:
    """Return a record as a row of ours, which may have a list of responses, or why it cannot be one.

    A record of none of the programs is returned as it is.
    """
    keys = fields.keys()
    if {"custom_id", "response"} <= keys and not isinstance(fields["response"], (str, list)):
        return _batch_row(fields)
    doc = fields.get("doc")
    if {"resps", "doc_id"} <= keys:
        named = [doc.get(key) for key in _QUESTION_KEYS] if isinstance(doc, dict) else []
        question = next((text for text in named if isinstance(text, str)), None)
        return {
            "response": [text for text in _leaves(fields["resps"]) if isinstance(text, str)],
            "prompt": joined_text(fields.get("arguments")) if question is None else question,
            "ground_truth": str(fields.get("target") or ""),
            FILTER_KEY: str(fields.get("filter") or ""),
        }
    if {"doc", "model_response"} <= keys:
        token_lists = _list_in(fields["model_response"], "output_tokens")
        return {
            "response": _list_in(fields["model_response"], "text"),
            "tokens": [len(tokens) if isinstance(tokens, list) else None for tokens in token_lists],
            "prompt": joined_text(doc.get("query")) if isinstance(doc, dict) else "",
        }
    if {"origin_prompt", "prediction"} <= keys:
        if fields.get("success") is False:
            return "AISBench marks it as failed"
        return {
            "response": fields["prediction"],
            "tokens": fields.get("output_tokens"),
            "prompt": joined_text(fields["origin_prompt"]),
            "ground_truth": str(fields.get("gold") or ""),
        }
    return fields


def _batch_row(fields: Mapping[str, Any]) -> dict[str, Any] | str:
    answer = fields["response"]
    body = answer.get("body") if isinstance(answer, dict) else None
    choices = _list_in(body, "choices")
    parsed = [c for choice in choices if isinstance(choice, dict) and (c := parse_choice(choice))]
    if not parsed:
        reason = " ".join(str(fields.get("error") or answer).split())[:200]
        return f"the request failed: {reason}"
    return {
        "custom_id": str(fields["custom_id"]),
        "response": [choice.text for choice in parsed],
        "finish_reason": [choice.finish_reason for choice in parsed],
    }


def joined_text(value: Any) -> str:
    """Return all the text of a prompt, however it is nested: a chat, or lm-eval's arguments."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [item for name, item in value.items() if name != "role"]
    return "\n".join(filter(None, map(joined_text, value))) if isinstance(value, list) else ""


def _list_in(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _leaves(value: Any) -> list[Any]:
    """Return the items of nested lists, in order."""
    return [x for item in value for x in _leaves(item)] if isinstance(value, list) else [value]
