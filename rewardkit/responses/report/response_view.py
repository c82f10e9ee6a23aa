"""How one response is read on a report page: what is folded, where its answer stands, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.pages.text import clean
from rewardkit.responses.report.totals import ScoredResponse
from rewardkit.scorers.base import options_for
from rewardkit.scorers.explain import Explanation, explain
from rewardkit.scorers.math import score as math_score

#: Characters of a text that a page holds: half from its start, half from its end.
KEPT = 20_000

#: Characters of an answer, and of what it was read as.
SHORT_KEPT = 1000

#: A response shorter than this is shown whole.
UNFOLDED = 400

#: Marks behind which an answer stands, and how far behind them; the first that has it is right.
MARKS = ("boxed{", "fbox{", "<answer>", "####", "nswer", "答案")
REACH = 2000

#: What may stand between the characters of an answer in the text: `$1,764` was read as `1764`.
_FILLING = frozenset(" \t\n$,，、{}!\\")


@dataclass(frozen=True)
class ResponseView:
    """A response as a page shows it; places are counted in the text of the page.

    Attributes:
        fold: where the reasoning ends; 0 if nothing is folded.
        start: where the answer begins,
        end: and where it ends; both 0 if it is not found.
        why: what the scorer says about its verdict, "" if it says nothing.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    why: str
    fold: int
    start: int
    end: int


def view_response(
    response: ScoredResponse, options: Mapping[str, Any] | None = None
) -> ResponseView:
    """What a page shows of a response; `options` are those of its scorer."""
    text, pred = display_text(response.text), display_text(response.pred, SHORT_KEPT)
    start, end = answer_span(text, pred)
    return ResponseView(
        display_text(response.where),
        display_text(response.prompt),
        text,
        display_text(response.gold, SHORT_KEPT),
        pred,
        why(response, options or {}),
        reasoning_end(text, start if end else len(text)),
        start,
        end,
    )


def display_text(text: str, kept: int = KEPT) -> str:
    """A text fit to be shown (see `page.text.clean`), its middle cut out if it is long."""
    if len(text) > kept:
        left_out = f"\n[… {len(text) - kept:,} characters left out …]\n"
        text = text[: kept // 2] + left_out + text[-(kept // 2) :]
    lines = text.split("\n")  # clean takes a text's short way only if it is printable as a whole
    return "\n".join(line if line.isprintable() else clean(line) for line in lines)


def answer_span(text: str, pred: str) -> tuple[int, int]:
    """Where the answer that was read stands in a text; (0, 0) if it is not found."""
    if not pred:
        return 0, 0
    thought = text.rfind("</think>") + 1
    for mark in MARKS:
        at = text.rfind(mark, thought)
        if at >= 0 and (span := _first(text, pred, at + len(mark), at + REACH)):
            return span
    return _last(text, pred, thought) or _loose(text, pred)


def _first(text: str, pred: str, start: int, end: int) -> tuple[int, int] | None:
    at = text.find(pred, start, end)
    while at >= 0 and not _alone(text, at, at + len(pred)):
        at = text.find(pred, at + 1, end)
    return (at, at + len(pred)) if at >= 0 else None


def _last(text: str, pred: str, start: int) -> tuple[int, int] | None:
    at = text.rfind(pred, start)
    while at >= 0 and not _alone(text, at, at + len(pred)):
        at = text.rfind(pred, start, at + len(pred) - 1)
    return (at, at + len(pred)) if at >= 0 else None


def _alone(text: str, start: int, end: int) -> bool:
    """Whether this is no part of a longer word or number."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    begins = before.isalnum() and text[start].isalnum()
    return not begins and not (after.isalnum() and text[end - 1].isalnum())


def _loose(text: str, pred: str) -> tuple[int, int]:
    """The last place where the answer stands if spaces, commas and the like do not count."""
    begin = max(0, len(text) - REACH)
    places = [i for i in range(begin, len(text)) if text[i] not in _FILLING]
    wanted = "".join(c for c in pred if c not in _FILLING)
    at = "".join(text[i] for i in places).rfind(wanted) if wanted else -1
    if at < 0:
        return 0, 0
    start, end = places[at], places[at + len(wanted) - 1] + 1
    return (start, end) if _alone(text, start, end) else (0, 0)


def reasoning_end(text: str, answer: int) -> int:
    """Where the reasoning ends: at `</think>`, else before the paragraph that has the answer.

    A thought that never ends is all reasoning; a short text has none.
    """
    thought = text.rfind("</think>")
    if thought >= 0 and thought < answer:
        return len(text) - len(text[thought + len("</think>") :].lstrip())
    if "<think>" in text and thought < 0:
        return len(text)
    last = text.rfind("\n\n", 0, min(answer, len(text.rstrip())))
    return last + 2 if last >= 0 and len(text) > UNFOLDED else 0


def why(response: ScoredResponse, options: Mapping[str, Any]) -> str:
    """Which rung decided, of the scorer `math`; nothing if it would judge otherwise today."""
    if not response.is_math:
        return ""
    own = options_for(math_score, options) if options else {}
    found = call_catching(explain, "math", response.text, response.gold, None, **own)
    if isinstance(found, Exception) or found.score.status is not response.status:
        return ""
    return display_text(" · ".join(_said(found)))


def _said(found: Explanation) -> Iterator[str]:
    if found.where:
        yield f"answer found in: {found.where}"
    if found.rungs:
        rung, said = found.rungs[-1]
        yield f"decided by {rung}: {said}"
        if rung == "value":
            trees = (("answer", found.pred_tree), ("gold", found.gold_tree))
            yield from (f"{name} read as {tree[:SHORT_KEPT]}" for name, tree in trees)
