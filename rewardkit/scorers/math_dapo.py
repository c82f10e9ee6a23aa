r"""DAPO-Math's `Answer: ...` lines, with verl's verdicts: +1.0 if correct, -1.0 if not.

verl loads this file directly: `rewardkit path math_dapo --verl` prints the override.

| setting | reads | compares |
|---|---|---|
| default | the last `Answer:` line in the last 300 characters, or else the last `\boxed{}` in the last 100 | text; a line is normalised, a box is not |
| `strict_box=True` | only the last `\boxed{}` in the last 100 characters | text, unchanged |
| `mode="robust"` | the answer that the scorer `math` reads | as `math` does |

Except in `robust` mode, the score, the verdict and `pred` are verl's own
(`verl/utils/reward_score/math_dapo.py` of 0.9.1).
`pred` is "[INVALID]" without an answer, so that maj@k agrees with verl. verl's normalisation takes
minutes on a hostile 100 KB gold; this one is linear. A gold that is a list of one answer counts as
that answer. Four holes are closed on purpose and reported as `bad_ground_truth`:

* a gold that is a missing value, such as `nan`, `None`, `null` and `[]`: verl pays a response that
  repeats it.
* a gold that is blank, or that normalisation empties ("units", "$$"): verl pays an empty `Answer:`
  line for it. A box that repeats such a gold exactly is still correct.
* a gold of more than 10,000 characters, which is longer than any answer.
* the gold "[INVALID]": verl pays every response without an answer for it.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from rewardkit.scorers import math
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.minerva_form import normalize
from rewardkit.scorers.options import invalid_value_error

CORRECT_SCORE = 1.0
WRONG_SCORE = -1.0

#: verl's text for a missing answer.
INVALID = "[INVALID]"

#: Characters at the end of the response that are read, and those that are read for a box.
TAIL_CHARS = 300
BOX_CHARS = 100
#: Longest gold, in characters: no answer in the tail can be as long.
MAX_GOLD_CHARS = 10_000

_ANSWER = re.compile(r"Answer\s*:\s*([^\n]+)", re.IGNORECASE)
_BOX = r"\boxed{"
_BRACE = re.compile(r"[{}]")


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    strict_box: bool = False,
    mode: Literal["verl", "robust"] = "verl",
) -> Score:
    r"""Judge a response by its `Answer:` line, as verl does.

    Args:
        response: the model's text.
        ground_truth: the gold answer.
        extra_info: the row's other fields, which only `robust` uses.
        strict_box: read only a `\boxed{}`, as verl's `strict_box_verify` does.
        mode: `verl` or `robust`; see the module's table.

    Returns:
        1.0 if correct, -1.0 if not.
    """
    if mode == "robust":
        result = math.score(response, ground_truth, extra_info)
        return result._replace(score=CORRECT_SCORE if result.correct else WRONG_SCORE)
    if mode != "verl":
        raise invalid_value_error(score, "mode", mode)
    ground_truth = accept_gold(ground_truth)
    if len(ground_truth) > MAX_GOLD_CHARS:
        return Score.wrong("", Status.BAD_GROUND_TRUTH, WRONG_SCORE)
    tail = response[-TAIL_CHARS:]
    if strict_box:
        return _compare(_last_box(tail), ground_truth, ground_truth.strip())
    gold = normalize(ground_truth)
    # The search for the colon costs little, and many responses have none.
    lines = _ANSWER.findall(tail) if ":" in tail else ()
    pred = normalize(lines[-1]) if lines else INVALID
    if pred != INVALID:
        return _compare(pred, gold, gold)
    box = _last_box(tail)
    return _compare(pred if box is None else box, ground_truth, gold)


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return f"Answer: {answer}"


def _compare(pred: str | None, gold: str, normal_gold: str) -> Score:
    """Return the score of an answer against a gold, which is not payable if it has no normal form."""
    is_payable = normal_gold != INVALID and bool(gold.strip())
    if is_payable and pred == gold:
        return Score.right(pred, CORRECT_SCORE)
    if not is_payable or not normal_gold:
        return Score.wrong(pred or "", Status.BAD_GROUND_TRUTH, WRONG_SCORE)
    is_missing = not pred or pred == INVALID
    return Score.wrong(pred or "", Status.NO_ANSWER if is_missing else Status.WRONG, WRONG_SCORE)


def _last_box(tail: str) -> str | None:
    r"""Return the content of the last `\boxed{`, or None if it is absent or never closed."""
    text = tail[-BOX_CHARS:]
    start = text.rfind(_BOX)
    depth = 0
    for brace in _BRACE.finditer(text, start) if start >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start + len(_BOX) : brace.start()]
    return None


SPEC = ScorerSpec(score, __doc__, respond, WRONG_SCORE)

#: What verl calls.
compute_score = SPEC.compute_score
