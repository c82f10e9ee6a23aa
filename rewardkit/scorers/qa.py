r"""Open questions, judged as people judge them: NQ, TriviaQA, HotpotQA and Search-R1's other sets.

verl loads this file directly: `rewardkit path qa --verl` prints the override.

| method | reads | compares |
|---|---|---|
| `robust` (default) | the last `<answer>`, or else the last `\boxed{}`, `####` or `Answer:` line, or else the whole short response | as people do |
| `f1` | the same | F1 of the words with the best gold, as SQuAD |
| `exact` | the last `<answer>` | text without case, punctuation and articles: verl's `search_r1_like_qa_em` |

The gold is one text or several alternatives: a list, verl's `{"target": [...]}`, or one of these as
JSON. `extra_info["question"]` is read if present: its words are no evidence, and it tells whether a
person, a place, a number or several things are asked for.

`robust` ignores case, accents, punctuation, articles, plurals and titles; reads numbers in words,
ordinals, Roman numerals, dates in any order, units and acronyms; and accepts a name without its
middle names. It reads sentences, and a gold counts only if a sentence states it: not in `not Paris`,
`Lyon, near Paris`, `a suburb of Paris`, not as one of several guesses (`Paris or London`), not after
another answer, and not in more than 160 words. `rewardkit.answers.open_answers` has the rules.

`exact` returns verl's scores: `format_score` for a wrong answer in tags, 0.0 without tags, and a
quarter of 1.0 if one of the tags stands more than 10 times. One hole is closed: a gold that is
missing, or that has only punctuation and articles, is `bad_ground_truth`; verl pays an empty answer
for it.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from rewardkit.answers.extract import boxes, text_after_thought, texts_between
from rewardkit.answers.open_answers.squad import f1, normalize
from rewardkit.answers.open_answers.verdict import MAX_ANSWER_CHARS, MAX_GOLDS, Outcome, judge
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import alternatives
from rewardkit.scorers.options import Range, invalid_value_error

#: From this number of tags of one kind on, verl pays a quarter.
MANY_TAGS = 11

_OPEN, _CLOSE = "<answer>", "</answer>"
_ANSWER_LINE = re.compile(
    r"(?:^|\n)[ \t>*_#]{0,10}(?:final )?answer[*_]{0,3}[:：][*_]{0,3}", re.IGNORECASE
)
_PHRASE = re.compile(r"\banswer(?: is\b|[:：]) ?", re.IGNORECASE)
_STATUS = {
    Outcome.EMPTY: Status.NO_ANSWER,
    Outcome.GUESSES: Status.AMBIGUOUS_ANSWER,
    Outcome.TOO_LONG: Status.UNPARSED_ANSWER,
}


def score(
    response: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    method: Literal["robust", "f1", "exact"] = "robust",
    threshold: Annotated[float, Range(0.01, 1)] = 0.5,
    format_score: Annotated[float, Range(0, 1)] = 0.0,
) -> Score:
    """Judge an answer to an open question.

    Args:
        response: the model's text.
        ground_truth: one gold, or alternatives: a list, `{"target": [...]}`, or JSON text of these.
        extra_info: `question` has the question, if present; only `robust` uses it.
        method: `robust`, `f1` or `exact`.
        threshold: the least F1 of a correct answer; only `f1` uses it.
        format_score: the score of a wrong answer in tags; only `exact` uses it.

    Returns:
        1.0 if correct, otherwise 0.0, with the exceptions of `exact`. `pred` has the answer.
    """
    golds = alternatives(ground_truth)
    if method == "exact":
        return _score_exact(response, golds, format_score)
    if method not in ("robust", "f1"):
        raise invalid_value_error(score, "method", method)
    answer = read_answer(response)
    pred = answer[:MAX_ANSWER_CHARS]
    if not golds:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    if not answer:
        return Score.wrong("", Status.NO_ANSWER)
    if method == "f1":
        best = max(f1(pred, gold) for gold in golds[:MAX_GOLDS])
        is_right = best >= threshold and len(answer) <= MAX_ANSWER_CHARS
        return Score.right(pred) if is_right else Score.wrong(pred)
    question = extra_info.get("question") if extra_info else None
    outcome = judge(answer, golds, question if isinstance(question, str) else "")
    if outcome is Outcome.RIGHT:
        return Score.right(pred)
    return Score.wrong(pred, _STATUS.get(outcome, Status.WRONG))


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return f"{_OPEN}{answer}{_CLOSE}"


def read_answer(response: str) -> str:
    """Return the answer of a response: in the last tags, box, `####` or `Answer:` line, or all.

    Thoughts do not count. Tags or a box without an end hold no answer.
    """
    text = text_after_thought(response)
    if _OPEN in text or _CLOSE in text:
        answers = texts_between(text, _OPEN, _CLOSE)
        text = answers[-1] if answers else ""
    if run := boxes(text):
        return " or ".join(run)
    if "\\boxed" in text:
        return ""
    if "####" in text:
        return _first_line(text.rpartition("####")[2])
    *_, line = (None, *_ANSWER_LINE.finditer(text))
    text = _first_line(text[line.end() :]) if line else text
    phrases = list(_PHRASE.finditer(text))  # of several, the last one counts
    is_repeated = len(phrases) > (0 if line else 1)
    return (text[phrases[-1].end() :] if is_repeated else text).strip()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _score_exact(response: str, golds: tuple[str, ...], format_score: float) -> Score:
    answers = texts_between(response, _OPEN, _CLOSE)
    pred = answers[-1].strip() if answers else ""
    normalized = {normalize(gold) for gold in golds} - {""}
    if not normalized:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    if not answers:
        return Score.wrong("", Status.NO_ANSWER)
    if normalize(pred) not in normalized:
        return Score.wrong(pred, score=format_score)
    is_spam = max(response.count(_OPEN), response.count(_CLOSE)) >= MANY_TAGS
    return Score.right(pred, 0.25 if is_spam else 1.0)


SPEC = ScorerSpec(score, __doc__, respond, several_golds=True)

#: What verl calls.
compute_score = SPEC.compute_score
