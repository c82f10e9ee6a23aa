r"""Final answers of any kind, compared by their meaning.

The answer is the first of these that is present: the last `\boxed{}`, `<answer>`, the text after
`the answer is` or `Answer:`, the text after `####`, the statement of the last line or sentence. It
is compared with the gold as numbers, expressions, equations, sets, intervals, matrices, quantities,
choices or words: docs/answers.md has the rules. If the row has its question
(`extra_info["question"]`), an answer that only copies one of its formulas is not paid. If it has
options (`extra_info["options"]`) and the gold is a letter, the text or value of the gold's option
counts, too.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from rewardkit.answers.choices import AMBIGUOUS, final_choice, option_texts, read_gold, read_letters
from rewardkit.answers.equal import Outcome, compare
from rewardkit.answers.extract import (
    ExtractedAnswer,
    boxes,
    final_answer,
    gold_answer,
    text_after_thought,
)
from rewardkit.answers.scalar import STRICT, Policy
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import accept_gold
from rewardkit.scorers.options import Range


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    significant_digits: Annotated[int, Range(0, 15)] = 0,
    convert_units: bool = False,
) -> Score:
    """Judge a response by its final answer: 1.0 if correct, 0.0 if not.

    Args:
        response: the model's text.
        ground_truth: the gold answer, or a whole solution with a boxed answer.
        extra_info: `question` is the text of the question, whose formulas are not answers;
            `options` marks a multiple choice.
        significant_digits: accept the gold correctly rounded to at least this many digits, for
            measured quantities; 3 is usual. 0 is the strict rule of docs/answers.md.
        convert_units: accept equal quantities in different units of one dimension.
    """
    gold = gold_answer(accept_gold(ground_truth))
    answer = final_answer(response, gold)
    pred = gold if response == gold else answer.text if answer else ""
    if not gold:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    if len(gold) < 20 and (letters := gold_letters(gold)) is not None:
        options = option_texts(extra_info.get("options")) if extra_info else None
        if options and (verdict := _choice_among(options, response, letters)):
            return verdict
        return _choice(response, gold, letters, answer)
    policy = (
        Policy(significant_digits, convert_units) if significant_digits or convert_units else STRICT
    )
    question = question_of(extra_info)
    outcome = compare(pred, gold, question, policy).outcome if pred else "different"
    is_run = (
        outcome != "equal" and answer and answer.mark == "box" and ("," in pred or " or " in pred)
    )
    if is_run and (box := _last_of_equal_boxes(response, gold)):
        return _score("equal", box)
    return _score(outcome, pred)


def question_of(extra_info: Mapping[str, Any] | None) -> str:
    """Return the question of a row; "" if there is none, or if the row lists options."""
    if not extra_info or option_texts(extra_info.get("options")):
        return ""
    question = extra_info.get("question")
    return question if isinstance(question, str) else ""


def _last_of_equal_boxes(response: str, gold: str) -> str:
    r"""Return the last of several boxes if each equals the gold: `\boxed{28}, \boxed{28_9}`."""
    run = boxes(text_after_thought(response))
    are_equal = len(run) > 1 and all(compare(box, gold).outcome == "equal" for box in run)
    return run[-1] if are_equal else ""


def _choice_among(
    options: Mapping[str, str], response: str, letters: frozenset[str]
) -> Score | None:
    """Judge a choice as `mcq` does: an option's letter, text or value picks it.

    Returns None if the response picks none of the options, or if the gold is not among them.
    """
    if not letters <= options.keys():
        return None
    _, picked = final_choice(response, frozenset(options), options, final_letter=True)
    if not isinstance(picked, frozenset):
        return None
    return _score("equal" if picked == letters else "different", "".join(sorted(picked)))


def _choice(
    response: str, gold: str, letters: frozenset[str], stated: ExtractedAnswer | None
) -> Score:
    """Compare the letters that a response picks with a gold that is a choice.

    Every form that `mcq` reads counts, except formulas and small letters after `d`, because `e` and
    `i` are names of numbers.
    """
    answer, mark = (stated.text, stated.mark) if stated else ("", "")
    if _FORMULA.search(answer.replace("**", "")):
        return _score(compare(answer, gold).outcome, answer)
    pred, picked = final_choice(response, LETTERS, final_letter=mark not in ("box", "tag"))
    if picked is None:
        picked = read_letters(answer, LETTERS) if len(boxes(response)) < 2 else AMBIGUOUS
    if isinstance(picked, frozenset) and (picked <= SMALL or picked <= set(pred or answer)):
        return _score("equal" if picked == letters else "different", "".join(sorted(picked)))
    if _LABELLED.match(gold) and compare(answer, gold).outcome == "equal":
        return _score("equal", answer)
    return _score("ambiguous" if picked is not None else "different", pred or answer)


def gold_letters(gold: str) -> frozenset[str] | None:
    """Return the letters of a gold that is a choice (`C`, `(C)`, `AC`, `C. its text`), else None."""
    letters = None if _FORMULA.search(gold) else read_gold(gold, LETTERS)
    if letters is not None:
        run = gold.strip()
        return None if run.isalpha() and run != "".join(sorted(run)) else letters
    labelled = _LABELLED.match(gold)
    return frozenset(labelled[1]) if labelled else None


def _score(outcome: Outcome, pred: str) -> Score:
    if outcome == "equal" and pred:
        return Score.right(pred)
    return Score.wrong(pred, _STATUS[outcome] if pred else Status.NO_ANSWER)


#: The letters a choice may have.
LETTERS = frozenset("ABCDEFGHIJ")
#: The letters that may be small.
SMALL = frozenset("ABCD")
#: The signs of a formula, which is not a choice.
_FORMULA = re.compile(
    r"[*+=^_<>'/-]|[A-J] ?[.:|(\[] ?[A-J]|\\(?:overline|bar|vec|cup|cap|cdot|times|to|hat|dot)\b"
)
_LABELLED = re.compile(r"\(?([A-J])[).:]\s*\S")

_STATUS = {
    "different": Status.WRONG,
    "ambiguous": Status.AMBIGUOUS_ANSWER,
    "unreadable": Status.UNPARSED_ANSWER,
}


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return rf"\boxed{{{answer}}}"


SPEC = ScorerSpec(score, __doc__, respond)

#: What verl calls.
compute_score = SPEC.compute_score
