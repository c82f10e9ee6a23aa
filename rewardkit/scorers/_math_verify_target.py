"""The part of `math_verify` that needs the package Math-Verify: imported in the worker only."""

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
    """What Math-Verify says of `payload["response"]`, called as verl's `math_verify` calls it.

    Args:
        payload: `response` and `gold`, the latter without its box.

    Returns:
        `gold_parsed`: whether the gold says anything; `pred`: what was extracted of the response,
        None if nothing; `correct`: whether any reading of it equals any of the gold.
    """
    gold = _parse(rf"\boxed{{{payload['gold']}}}", _GOLD)
    pred = _parse(payload["response"], _PRED) if gold else []
    # The package's own timeouts are off: they raise the alarm that the worker's wall limit uses.
    correct = any(verify(g, p, timeout_seconds=None) for p in pred for g in gold)
    return {"gold_parsed": bool(gold), "pred": _said(pred), "correct": correct}


def _parse(text: str, targets: tuple[Any, ...]) -> list[Any]:
    readings: list[Any] = parse(text, targets, parsing_timeout=None)
    return readings


def _said(readings: list[Any]) -> str | None:
    """The text that was extracted: the last reading, behind the expression it was parsed to."""
    if not readings:
        return None
    return next((text for text in readings if isinstance(text, str)), "")


# The worker forks from the process that imports this: there the parser's tables and patterns are
# built once, not by every child in its first answer's time.
judge({"gold": r"\frac{1}{2}", "response": r"It is 1/2, so \boxed{\frac{1}{2}}."})
