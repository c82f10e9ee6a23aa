r"""Multiple choice: one letter or several, as in CFLUE (DianJin-R1), GAOKAO and MMLU-Pro.

verl loads this file directly: `rewardkit path mcq --verl` prints the override.

| mode | reads | compares |
|---|---|---|
| `strict` (default) | the last balanced `\boxed{}`, or `<answer>` | sets of letters |
| `dianjin` | the last `\boxed{...}` of the only `<answer>`, beside only one `<think>` | A-G in it |
| `letters` | the last `\boxed{...}` anywhere | A-G in it |

`strict` reads letters with any markup and separator (`A+C` too, which the scorer `math` reads as a
sum). If the row has its options (`extra_info["options"]`, a list of texts, a mapping from letters
to texts, or lines such as `A. its text`), it also reads the text of an option, and only the letters of the options are valid;
otherwise A to J are. Short mathematics picks the only option with its value: `\frac12` picks the
option `1/2`. A negated letter (`not B`, `~B`, `(B) is wrong`) picks nothing, nor does a box that is denied,
supposed or taken back (`the answer is not \boxed{B}`).
`rewardkit.answers.choices` defines what is ambiguous.

`final_letter` also reads the response's own words if no box and no `<answer>` has a choice:
`The answer is (B)`, `Solution: Choice_B`, `it must be (D)`, `Option B is correct`, `答案：AC`,
`本题选B`, `B项正确`, `the clock shows (C) 5:30`. `rewardkit.answers.choices` defines their order.

`dianjin` is DianJin-R1's own reward (`reward_score_cflue.py`), and `letters` is the same without the
tags, as scripts made from it have it, for comparison with runs that use them. Both have the holes of
that rule: every letter A-G in the box counts wherever it stands, so `Apple` is A, `None of the Above`
is A, `A or B` is AB and `A. ETF基金` is AEF; the box ends at the first brace, so `\boxed{\text{B}, C}`
is B; small letters, full-width letters and letters from H on are ignored. One hole is closed: the
original pays any box without such a letter for a gold without one, which is an error in the data here.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from rewardkit.answers.choices import (
    AMBIGUOUS,
    DEFAULT_LETTERS,
    MAX_GAP,
    final_choice,
    option_texts,
    read_gold,
)
from rewardkit.answers.extract import texts_between
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.options import invalid_value_error

#: Signs around a box, and words before one that neither deny nor doubt it.
_SIGNS = " \n$*_.。:：\\()[]"
_PLAIN_LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:the |my )?(?:final |correct |best )*(?:answer|option|choice)"
    r"(?: is| must be| should be)?)?|(?:故|因此|所以|综上)?[,，]?(?:本题)?(?:正确|最终)?(?:应?选择?|答案)?[是为]?",
    re.IGNORECASE,
)
_ORDER = "".join(sorted(DEFAULT_LETTERS))

#: The letters that DianJin's rule reads.
DIANJIN_LETTERS = "ABCDEFG"


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    partial: bool = False,
    final_letter: bool = False,
    mode: Literal["strict", "dianjin", "letters"] = "strict",
) -> Score:
    """Judge a response by the set of letters it picks.

    Args:
        response: the model's text.
        ground_truth: the gold letters, in upper case: `B`, `AC`, `A,C`, `A、C`.
        extra_info: `options` has the texts of the options, if present.
        partial: pay a part of the gold: `|picked| / |gold|` if every picked letter is in the gold,
            otherwise 0. A wrong letter never pays, so picking all letters does not.
        final_letter: also read the response's own words, such as `The answer is (B)` and `答案：AC`,
            if no box and no `<answer>` has a choice.
        mode: `strict`, `dianjin` or `letters`; the other options apply only to `strict`.

    Returns:
        1.0 if correct, otherwise 0.0 or the part that `partial` pays. `pred` has the letters in
        order, or the text that is not a choice.
    """
    if type(ground_truth) is not str or len(ground_truth) > 1:
        ground_truth = accept_gold(ground_truth, several=True)
    if mode != "strict":
        return _score_dianjin(response, ground_truth, mode)
    row_options = extra_info.get("options") if extra_info else None
    if letter := _unambiguous_box(response, row_options):
        if letter == ground_truth:
            return Score.right(letter)
        if _is_option_letter(ground_truth, row_options):
            return Score.wrong(letter)
    options = option_texts(row_options)
    legal = frozenset(options) if options else DEFAULT_LETTERS
    text, letters = final_choice(response, legal, options, final_letter=final_letter)
    gold = read_gold(ground_truth, legal)
    pred = "".join(sorted(letters)) if isinstance(letters, frozenset) else text
    if not gold:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    if isinstance(letters, frozenset):
        if letters == gold:
            return Score.right(pred)
        part = len(letters) / len(gold) if partial and letters < gold else 0.0
        return Score.wrong(pred, Status.WRONG, part)
    if not text:
        return Score.wrong("", Status.NO_ANSWER)
    is_ambiguous = letters is AMBIGUOUS
    return Score.wrong(text, Status.AMBIGUOUS_ANSWER if is_ambiguous else Status.UNPARSED_ANSWER)


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return rf"\boxed{{{answer}}}"


def _unambiguous_box(response: str, options: Any) -> str:
    r"""Return the letter of a last `\boxed{B}` that is certainly the answer, otherwise "".

    Most responses end like this, and this check takes a third of the time of the full one.
    """
    start = response.rfind("\\boxed{")
    if start < 0 or response[start + 8 : start + 9] != "}":
        return ""
    letter = response[start + 7]
    if not _is_option_letter(letter, options):
        return ""
    if response.rfind("box", max(0, start - MAX_GAP), start) >= 0:
        return ""
    if response[start + 9 :].strip(_SIGNS) or "<answer>" in response:
        return ""
    sentence = response[max(0, start - MAX_GAP) : start].rpartition("\n")[2].rpartition(". ")[2]
    return letter if _PLAIN_LEAD.fullmatch(sentence.strip(_SIGNS)) else ""


def _is_option_letter(letter: str, options: Any) -> bool:
    if len(letter) != 1 or (index := _ORDER.find(letter)) < 0:
        return False
    return options is None or (
        type(options) is list and index < len(options) and None not in options
    )


def _score_dianjin(response: str, ground_truth: str, mode: str) -> Score:
    """Judge a response by DianJin's rule, whose box ends at the first brace."""
    if mode not in ("dianjin", "letters"):
        raise invalid_value_error(score, "mode", mode)
    if mode == "dianjin":
        answers = texts_between(response, "<answer>", "</answer>")
        is_tagged = len(answers) == 1 == len(texts_between(response, "<think>", "</think>"))
        response = answers[0] if is_tagged else ""
    boxes = texts_between(response, "\\boxed{", "}")
    gold, pred = _dianjin_letters(ground_truth), _dianjin_letters(boxes[-1] if boxes else "")
    if not gold:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    if not boxes:
        return Score.wrong("", Status.NO_ANSWER)
    if pred == gold:
        return Score.right(pred)
    return Score.wrong(pred or boxes[-1], Status.WRONG if pred else Status.UNPARSED_ANSWER)


def _dianjin_letters(text: str) -> str:
    return "".join(letter for letter in DIANJIN_LETTERS if letter in text)


SPEC = ScorerSpec(score, __doc__, respond)

#: What verl calls.
compute_score = SPEC.compute_score
