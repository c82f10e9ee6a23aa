r"""DAPO-Math's `Answer: ...` lines, with verl's verdicts: +1.0 if right, -1.0 if not.

verl loads this file as it stands: `rewardkit path math_dapo --verl` prints the override.

| setting | reads | compares |
|---|---|---|
| default | the last `Answer:` line in the last 300 characters | text, both sides normalised |
| `boxed_fallback` (on) | without such a line, the last `\boxed{}` in the last 100 | text, as it stands |
| `strict_box=True` | only the last `\boxed{}` in the last 100 characters | text, as it stands |
| `mode="robust"` | what the scorer `math` reads | mathematics: the verdicts of `math` |

But for `robust`, score, verdict and `pred` are verl's own (`verl/utils/reward_score/math_dapo.py`
of 0.9.1; `boxed_fallback=False` gives 0.5.0's), down to `pred` being "[INVALID]" where no answer
was found, so that maj@k agrees. verl's normalisation takes minutes on a hostile 100 KB gold; this
one is linear. A gold that is a list of one answer counts as that answer. Four holes are closed on
purpose, and reported as `bad_ground_truth`:

* a gold that is a missing value, such as `nan`, `None`, `null` and `[]`: verl pays who repeats it.
* a gold that is blank, or of which normalisation leaves nothing ("units", "$$"): verl pays an
  empty `Answer:` line for it. A box that repeats such a gold letter by letter is still right.
* a gold of more than 10,000 characters: no answer is as long.
* the gold "[INVALID]": verl pays every response without an answer for it.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from rewardkit.scorers import math
from rewardkit.scorers.base import Score, Status, verl_result
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.options import invalid_value_error

RIGHT_SCORE = 1.0
WRONG_SCORE = -1.0

#: What verl puts in place of an answer that is not there.
INVALID = "[INVALID]"

#: Characters at the end of the response that are looked at, and of those for a box.
TAIL_CHARS = 300
BOX_CHARS = 100
#: Longest gold, in characters, that is compared: no answer in the tail can be as long.
MAX_GOLD_CHARS = 10_000

_ANSWER = re.compile(r"Answer\s*:\s*([^\n]+)", re.IGNORECASE)
_BOX = r"\boxed{"
_BRACE = re.compile(r"[{}]")

# Minerva's normalisation deletes and replaces these one after the other; the order is part of the
# verdict: "an apple" loses its article only before all blanks go, and `\text{}` is made and then
# deleted. `_REPLACED` gives the few that are not simply deleted.
_STEPS = (
    *("an ", "a ", ".$", r"\$", r"\ ", " ", "mbox", r",\text{and}", r"\text{and}", r"\text{m}"),
    *("square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", r"\ldots"),
    *("sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds"),
    *("meters", "meals", "edges", "students", "childrentickets", "multiples", r"\text{s}"),
    *(r"\text{.}", "\\text{\ns}", r"\text{}^2", r"\text{}^3", "\\text{\n}", r"\text{}"),
    *(r"\mathrm{th}", r"^\circ", r"^{\circ}", r"\;", r",\!", "{,}", '"', r"\dots"),
)
_REPLACED = {
    ".$": "$",
    "mbox": "text",
    r",\text{and}": ",",
    r"\text{and}": ",",
    r"\text{m}": r"\text{}",
}
_TABLE = tuple((step, _REPLACED.get(step, "")) for step in _STEPS)
# No step puts a backslash where none was, so text without one skips half of the table.
_TABLE_WITHOUT_TEX = tuple(row for row in _TABLE if "\\" not in row[0])

# Text of none of these passes through everything but the removal of blanks and the last step.
_NEEDS_THE_TABLE = re.compile(r'[A-Za-z\\${"]')
_WRAPPERS = (r"\text{", r"\textbf{", r"\overline{")
_BARE_FRACTION = re.compile(r"frac([^{])(.)")
_BARE_ROOT = re.compile(r"sqrt([^{])")


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    strict_box: bool = False,
    boxed_fallback: bool = True,
    mode: Literal["verl", "robust"] = "verl",
) -> Score:
    r"""Judge a response by its `Answer:` line, as verl does.

    Args:
        response: the model's text.
        ground_truth: the gold answer.
        extra_info: the row's other fields; only `robust` passes them on.
        strict_box: read a `\boxed{}` and nothing else, as verl's `strict_box_verify`.
        boxed_fallback: read a `\boxed{}` if there is no `Answer:` line; False as in verl 0.5.0.
        mode: `verl` or `robust`; see the module's table.

    Returns:
        1.0 if right, -1.0 if not.
    """
    if mode == "robust":
        result = math.score(response, ground_truth, extra_info)
        return result._replace(score=RIGHT_SCORE if result.correct else WRONG_SCORE)
    if mode != "verl":
        raise invalid_value_error(score, "mode", mode)
    ground_truth = accept_gold(ground_truth)
    if len(ground_truth) > MAX_GOLD_CHARS:
        return Score.wrong("", Status.BAD_GROUND_TRUTH, WRONG_SCORE)
    tail = response[-TAIL_CHARS:]
    if strict_box:
        return _judged(_last_box(tail), ground_truth, ground_truth.strip())
    gold = normalize(ground_truth)
    pred = _answer_line(tail)
    if pred != INVALID:
        return _judged(pred, gold, gold)
    box = _last_box(tail) if boxed_fallback else None
    return _judged(pred if box is None else box, ground_truth, gold)


def compute_score(
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any = None,
    **kwargs: Any,
) -> dict[str, float | str]:
    """The function verl calls: `score` as the dictionary verl logs."""
    return verl_result(score, data_source, solution_str, ground_truth, extra_info, kwargs)


def respond(answer: str) -> str:
    """The shortest well-formed response that gives `answer`."""
    return f"Answer: {answer}"


def normalize(text: str) -> str:
    """Minerva's normal form of an answer, as verl has it; in linear time."""
    # Golds and answers recur in every group of rollouts; a long one is not worth its memory.
    return _cached(text) if len(text) <= TAIL_CHARS else _normalized(text)


def _judged(pred: str | None, gold: str, normal_gold: str) -> Score:
    """The score of `pred` against `gold`, which counts for nothing if its normal form is none."""
    payable = normal_gold != INVALID and bool(gold.strip())
    if payable and pred == gold:
        return Score.right(pred, RIGHT_SCORE)
    if not payable or not normal_gold:
        return Score.wrong(pred or "", Status.BAD_GROUND_TRUTH, WRONG_SCORE)
    missing = not pred or pred == INVALID
    return Score.wrong(pred or "", Status.NO_ANSWER if missing else Status.WRONG, WRONG_SCORE)


def _answer_line(tail: str) -> str:
    """The last `Answer:` line in normal form, or INVALID."""
    # Looking for the colon first costs next to nothing, and many responses have none.
    lines = _ANSWER.findall(tail) if ":" in tail else ()
    return normalize(lines[-1]) if lines else INVALID


def _last_box(tail: str) -> str | None:
    r"""What the last `\boxed{` holds, or None: it is absent or never closed."""
    text = tail[-BOX_CHARS:]
    start = text.rfind(_BOX)
    depth = 0
    for brace in _BRACE.finditer(text, start) if start >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start + len(_BOX) : brace.start()]
    return None


def _normalized(text: str) -> str:
    text = text.rpartition("=")[2]
    if _NEEDS_THE_TABLE.search(text):
        text = _without_tex(_through_table(text))
    else:
        text = text.replace(" ", "")
    digits = text.replace(",", "")
    return (digits if digits.isdigit() else text).strip()


_cached = lru_cache(maxsize=8192)(_normalized)


def _through_table(text: str) -> str:
    for before, after in _TABLE if "\\" in text else _TABLE_WITHOUT_TEX:
        text = text.replace(before, after)
    return text


def _without_tex(text: str) -> str:
    r"""Take formulas and words out of their TeX and give bare `\frac12` and `\sqrt2` braces."""
    if "$" in text:
        text = _on_lines(text, _first_formula)
    if "\\" in text:
        text = _on_lines(text, _unwrapped)
    text = _BARE_FRACTION.sub(r"frac{\1}{\2}", text)
    text = _BARE_ROOT.sub(r"sqrt{\1}", text)
    return text.replace("$", "")


def _on_lines(text: str, change: Callable[[str], str]) -> str:
    # verl's patterns do not cross line ends. Line by line, an opening that never closes is met
    # once, where a pattern would look for its end again and again.
    return "\n".join(map(change, text.split("\n")))


def _first_formula(line: str) -> str:
    """The first `$...$` of a line in place of the line, if it has one."""
    _, _, rest = line.partition("$")
    formula, closed, _ = rest.partition("$")
    return f"${formula}$" if closed else line


def _unwrapped(line: str) -> str:
    r"""A line without `\text{}` and its like, and without one `\boxed{}`, the widest."""
    for opening in _WRAPPERS:
        if opening in line:
            line = _opened(line, opening)
    before, boxed, rest = line.partition(_BOX)
    inside, closed, after = rest.rpartition("}")
    return before + inside + after if boxed and closed else line


def _opened(line: str, opening: str) -> str:
    """A line in which each `opening` and the next `}` after it are gone."""
    parts: list[str] = []
    at = 0
    while (start := line.find(opening, at)) >= 0:
        inside = start + len(opening)
        end = line.find("}", inside)
        if end < 0:
            break
        parts += line[at:start], line[inside:end]
        at = end + 1
    return "".join(parts) + line[at:]
