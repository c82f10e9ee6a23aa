r"""GSM8K's `#### N` answers.

verl loads this file directly: `rewardkit path gsm8k --verl` prints the override.

| method | reads | compares |
|---|---|---|
| `strict` (default) | the last `#### N` in the last 300 characters | text, after removing commas |
| `flexible` | the last number in the last 300 characters | text |
| `robust` | the line after the last `####` of the whole response | numbers, exactly |

`strict` and `flexible` give verl's own verdicts (`verl/utils/reward_score/gsm8k.py`, 0.1 to 0.9.1)
with one hole closed: verl pays `#### ,` against an empty gold, which is an error in the data here.
A gold such as `18.0` is an error too: `#### 18` never equals it as text, and verl silently scores
it 0. `robust` accepts correct answers that strict mode is known to reject: `#### $18`,
`#### 18.00`, `#### **18** dollars.`, `####18`, and an answer followed by more than 300 characters.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from rewardkit.answers.extract import last_hash
from rewardkit.answers.number import AMBIGUOUS, read_number
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.options import Range, invalid_value_error

#: Characters at the end of the response that verl's two modes read.
TAIL_CHARS = 300

_STRICT = re.compile(r"#### (-?[0-9.,]+)")
_FLEXIBLE = re.compile(r"-?[0-9.,]+")
#: The format a gold needs so that an answer can equal it. No answer writes 18.0 for 18.
_GOLD = {
    "strict": re.compile(r"(?!.*\.0*\Z)-?[0-9.]+"),
    "flexible": re.compile(r"(?!.*\.0*\Z)-?[0-9.,]+"),
}


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
    *,
    method: Literal["strict", "flexible", "robust"] = "strict",
    format_score: Annotated[float, Range()] = 0.0,
) -> Score:
    """Judge a response by its `####` answer.

    Args:
        response: the model's text.
        ground_truth: the gold number, as text.
        extra_info: unused.
        method: `strict`, `flexible` or `robust`; see the module's table.
        format_score: the score of a wrong answer in the right format, as in verl.

    Returns:
        1.0 if the answer is correct, `format_score` if it is wrong, 0.0 if there is none.
    """
    if type(ground_truth) is not str or not ground_truth.isdecimal():
        ground_truth = accept_gold(ground_truth)
    if method == "strict":
        numbers = _STRICT.findall(response[-TAIL_CHARS:])
        pred = numbers[-1].replace(",", "") if numbers else None
    elif method == "flexible":
        numbers = _FLEXIBLE.findall(response[-TAIL_CHARS:])
        pred = next((n for n in reversed(numbers) if n not in ("", ".")), None)
        pred = numbers[0] if numbers and pred is None else pred
    elif method == "robust":
        return _robust(response, ground_truth, format_score)
    else:
        raise invalid_value_error(score, "method", method)
    if pred and pred == ground_truth:
        return Score.right(pred)
    wrong_score = 0.0 if pred is None else format_score
    if not ground_truth.isdecimal() and not _GOLD[method].fullmatch(ground_truth):
        return Score.wrong(pred or "", Status.BAD_GROUND_TRUTH, wrong_score)
    return Score.wrong(pred or "", Status.NO_ANSWER if pred is None else Status.WRONG, wrong_score)


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return f"#### {answer}"


def explain_gold(gold: str) -> str:
    """Return why a gold cannot be scored, for messages; "" if there is nothing to add."""
    whole, point, rest = gold.partition(".")
    if not point or rest.strip("0"):
        return ""
    return f"answers are compared as text and say {whole}; write {whole}, or set method=robust"


def _robust(response: str, ground_truth: str, format_score: float) -> Score:
    pred = last_hash(response)
    if pred == ground_truth and pred.isdecimal() and pred.isascii():
        return Score.right(pred)
    gold = read_number(ground_truth)
    if gold is None or gold is AMBIGUOUS:
        return Score.wrong(pred or "", Status.BAD_GROUND_TRUTH)
    if not pred:
        return Score.wrong("", Status.NO_ANSWER)
    value = read_number(pred)
    if value is None:
        return Score.wrong(pred, Status.UNPARSED_ANSWER)
    if value is AMBIGUOUS:
        return Score.wrong(pred, Status.AMBIGUOUS_ANSWER)
    if value == gold:
        return Score.right(pred)
    return Score.wrong(pred, Status.WRONG, format_score)


SPEC = ScorerSpec(score, __doc__, respond, explain_gold=explain_gold)

#: What verl calls.
compute_score = SPEC.compute_score
