"""The part of `math_verify` that needs the package Math-Verify; only the worker imports it."""

from __future__ import annotations

from typing import Any

from math_verify.grader import verify  # type: ignore[import-not-found,import-untyped,unused-ignore]
from math_verify.parser import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    ExprExtractionConfig,
    LatexExtractionConfig,
    parse,
)

_GOLD = (LatexExtractionConfig(),)
_PRED = (ExprExtractionConfig(), LatexExtractionConfig())


def judge(payload: dict[str, str]) -> dict[str, Any]:
    """Return Math-Verify's verdict, with the same calls as verl's `math_verify`.

    Args:
        payload: `response` and `gold`, the latter without its box.

    Returns:
        `gold_parsed`: whether the gold can be read; `pred`: the text extracted from the response,
        or None; `correct`: whether any reading of it equals any reading of the gold.
    """
    gold = _parse(rf"\boxed{{{payload['gold']}}}", _GOLD)
    pred = _parse(payload["response"], _PRED) if gold else []
    # The package's own timeouts are off, because they use the same alarm as the worker's wall limit.
    correct = any(verify(g, p, timeout_seconds=None) for p in pred for g in gold)
    return {"gold_parsed": bool(gold), "pred": _extracted_text(pred), "correct": correct}


def _parse(text: str, targets: tuple[Any, ...]) -> list[Any]:
    readings: list[Any] = parse(text, targets, parsing_timeout=None)
    return readings


def _extracted_text(readings: list[Any]) -> str | None:
    """Return the text that was extracted: the last reading, after the expression it is parsed to."""
    if not readings:
        return None
    return next((text for text in readings if isinstance(text, str)), "")


# The worker forks from the process that imports this module, so the parser's tables and patterns are
# built once and not in the time of each child's first answer.
judge({"gold": r"\frac{1}{2}", "response": r"It is 1/2, so \boxed{\frac{1}{2}}."})
