"""A response on a report page: the folded reasoning, the place of the answer, and the explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.pages.text import clean
from rewardkit.responses.report.scored_responses import ScoredResponse
from rewardkit.scorers.base import options_for
from rewardkit.scorers.explain import Explanation, explain
from rewardkit.scorers.math import score as math_score

#: Characters of a text on a page: half from its start, half from its end.
MAX_TEXT_CHARACTERS = 20_000

#: Characters of an answer, and of the tree that it was parsed to.
MAX_ANSWER_CHARACTERS = 1000

#: Length of a response from which its reasoning is folded.
MIN_FOLDED_CHARACTERS = 400

#: Marks that precede an answer, in the order they are tried, and the characters searched after them.
ANSWER_MARKS = ("boxed{", "fbox{", "<answer>", "####", "nswer", "答案")
MARK_REACH_CHARACTERS = 2000

#: Characters that may stand inside an answer in the text: `$1,764` was read as `1764`.
_IGNORED = frozenset(" \t\n$,，、{}!\\")


@dataclass(frozen=True, kw_only=True)
class ResponseView:
    """The texts of a response on a page, and places in its `text`, in characters.

    Attributes:
        where: file:line.
        prompt: the prompt.
        text: the response.
        gold: the gold answer.
        pred: the answer that the scorer read.
        why: the scorer's explanation of its score; "" without one.
        fold: the end of the reasoning; 0 if nothing is folded.
        start: the start of the answer in the text.
        end: the end of the answer; `start` and `end` are 0 if it is not found.
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
    """Return the view of a response; `options` are those of its scorer."""
    text, pred = display_text(response.text), display_text(response.pred, MAX_ANSWER_CHARACTERS)
    start, end = answer_span(text, pred)
    return ResponseView(
        where=display_text(response.where),
        prompt=display_text(response.prompt),
        text=text,
        gold=display_text(response.gold, MAX_ANSWER_CHARACTERS),
        pred=pred,
        why=explain_score(response, options or {}),
        fold=reasoning_end(text, start if end else len(text)),
        start=start,
        end=end,
    )


def display_text(text: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text without control characters (see `clean`); a long one without its middle."""
    if len(text) > max_characters:
        half = max_characters // 2
        gap = f"\n[… {len(text) - max_characters:,} characters left out …]\n"
        text = text[:half] + gap + text[-half:]
    lines = text.split("\n")  # `clean` is fast on a text that is printable as a whole
    return "\n".join(line if line.isprintable() else clean(line) for line in lines)


def answer_span(text: str, pred: str) -> tuple[int, int]:
    """Return the start and end of the answer in a text; (0, 0) if it is not found."""
    if not pred:
        return 0, 0
    think_end = text.rfind("</think>") + 1
    for mark in ANSWER_MARKS:
        at = text.rfind(mark, think_end)
        if at >= 0 and (
            span := _find_first(text, pred, at + len(mark), at + MARK_REACH_CHARACTERS)
        ):
            return span
    return _find_last(text, pred, think_end) or _find_ignoring_marks(text, pred)


def _find_first(text: str, pred: str, start: int, end: int) -> tuple[int, int] | None:
    at = text.find(pred, start, end)
    while at >= 0 and not _is_whole_word(text, at, at + len(pred)):
        at = text.find(pred, at + 1, end)
    return (at, at + len(pred)) if at >= 0 else None


def _find_last(text: str, pred: str, start: int) -> tuple[int, int] | None:
    at = text.rfind(pred, start)
    while at >= 0 and not _is_whole_word(text, at, at + len(pred)):
        at = text.rfind(pred, start, at + len(pred) - 1)
    return (at, at + len(pred)) if at >= 0 else None


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether a span of a text is not inside a longer word or number."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    begins = before.isalnum() and text[start].isalnum()
    return not begins and not (after.isalnum() and text[end - 1].isalnum())


def _find_ignoring_marks(text: str, pred: str) -> tuple[int, int]:
    """Return the last place of the answer if spaces, commas and similar characters are ignored."""
    begin = max(0, len(text) - MARK_REACH_CHARACTERS)
    places = [i for i in range(begin, len(text)) if text[i] not in _IGNORED]
    answer = "".join(c for c in pred if c not in _IGNORED)
    at = "".join(text[i] for i in places).rfind(answer) if answer else -1
    if at < 0:
        return 0, 0
    start, end = places[at], places[at + len(answer) - 1] + 1
    return (start, end) if _is_whole_word(text, start, end) else (0, 0)


def reasoning_end(text: str, answer: int) -> int:
    """Return the end of the reasoning: `</think>`, else the start of the answer's paragraph.

    All of a text with an open `<think>` is reasoning; a short text has none.
    """
    think_end = text.rfind("</think>")
    if 0 <= think_end < answer:
        return len(text) - len(text[think_end + len("</think>") :].lstrip())
    if "<think>" in text and think_end < 0:
        return len(text)
    last = text.rfind("\n\n", 0, min(answer, len(text.rstrip())))
    return last + 2 if last >= 0 and len(text) > MIN_FOLDED_CHARACTERS else 0


def explain_score(response: ScoredResponse, options: Mapping[str, Any]) -> str:
    """Return which rung of `math` decided; "" if its status differs from that in the row."""
    if not response.is_math:
        return ""
    math_options = options_for(math_score, options) if options else {}
    explanation = call_catching(explain, "math", response.text, response.gold, None, **math_options)
    if isinstance(explanation, Exception) or explanation.score.status is not response.status:
        return ""
    return display_text(" · ".join(_sentences(explanation)))


def _sentences(explanation: Explanation) -> Iterator[str]:
    if explanation.where:
        yield f"answer found in: {explanation.where}"
    if explanation.rungs:
        rung, outcome = explanation.rungs[-1]
        yield f"decided by {rung}: {outcome}"
        if rung == "value":
            trees = (("answer", explanation.pred_tree), ("gold", explanation.gold_tree))
            yield from (f"{name} read as {tree[:MAX_ANSWER_CHARACTERS]}" for name, tree in trees)
