"""Learn from a reward itself which of its scores is right, by the answers of a few golds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import call_catching
from rewardkit.scorers.gold import alternatives, another_answer
from rewardkit.scorers.load import respond_of
from rewardkit.scorers.reward_result import TOLERANCE, RightRule
from rewardkit.scorers.score import Score, Scorer, Status

#: Rows whose golds are tried.
TRIED_ROWS = 3

#: A gold and the `extra_info` of its row.
GoldRow: TypeAlias = tuple[str, Mapping[str, Any]]

#: Scores responses to golds: `(response, gold, extra_info)` each.
ScoreAll: TypeAlias = Callable[
    [Sequence[tuple[str, str, Mapping[str, Any]]]], Sequence[Score | Exception]
]

#: A form of an answer: the text before the reasoning, before the answer, and after it.
AnswerForm: TypeAlias = tuple[str, str, str]

_FORMS: tuple[AnswerForm, ...] = (
    ("", "", ""),
    ("", "#### ", ""),
    ("", "\\boxed{", "}"),
    ("", "Answer: ", ""),
    ("", "The answer is ", "."),
    ("<think>", "</think> <answer>", "</answer>"),
    ("<think>", "</think> <answer>\\boxed{", "}</answer>"),
)

#: The answer with which `respond` is called to learn its form.
_MARK = "@ANSWER@"

_WORDS = (
    "after all also angle another back because before both case change check clear condition each "
    "equal find first follow form from give hold into keep known later length line look many matter "
    "middle name need next other part place point reason relation remain rest same second see side "
    "simple small still sum take term then total true value way whole with work write"
).split()

#: Reasoning of some 6,000 characters, without a number or a mark, and hardly a phrase twice: a reward
#: may pay for its length, or take off for repetition.
_REASONING = f"{' '.join(Random(0).choices(_WORDS, k=1100))}.\n"  # noqa: S311


class _GoldTrial(NamedTuple):
    """What one gold gets: the lowest score of its answer, None if it is not told from a wrong one."""

    least: float | None
    best_wrong: float
    has_verdicts: bool


def own_form(scorer: Scorer) -> AnswerForm | None:
    """Return the form that `respond` of a scorer's module writes; None without one."""
    respond = respond_of(scorer)
    text = call_catching(respond, _MARK) if respond else None
    before, mark, after = text.partition(_MARK) if isinstance(text, str) else ("", "", "")
    return ("", before, after) if mark else None


def learn_right(
    score_all: ScoreAll, rows: Iterable[GoldRow], form: AnswerForm | None = None
) -> RightRule:
    """Return which results of a reward are right, from what the golds of the first rows get.

    The answer of a gold, and a wrong one, are scored in the usual forms, and in the best
    form after long reasoning. The reward reads the forms in which the gold's answer gains more than half
    of what it gains at most over the wrong one. The lowest score of the gold's answer in these forms is
    right, provided that no wrong answer of any row gets it.

    Args:
        score_all: scores responses with the untried reward.
        rows: golds with the `extra_info` of their rows; the first ones are taken.
        form: the reward's own form, beside the usual ones.

    Raises:
        NeverAnswersError: the reward runs in a process of its own and fails on every call.
    """
    trials: list[_GoldTrial] = []
    for gold, info in islice((row for row in rows if row[0].strip()), TRIED_ROWS):
        forms = (*_FORMS, form) if form else _FORMS
        trial = _try_gold(score_all, forms, gold, info)
        if trial is None:
            continue
        trials.append(trial)
        if trial.has_verdicts:
            break
    if not trials:
        return RightRule(None, True, "the reward scored none of the first golds")
    if all(trial.has_verdicts for trial in trials):
        return RightRule()
    best_wrong = max(trial.best_wrong for trial in trials)
    least = min((trial.least for trial in trials if trial.least is not None), default=None)
    if least is None or least <= best_wrong + TOLERANCE:
        return RightRule(
            None,
            False,
            f"the answers of the first golds do not get more than a wrong one ({best_wrong:g})",
        )
    return RightRule(least, False, "what the gold gets")


def _try_gold(
    score_all: ScoreAll, forms: Sequence[AnswerForm], gold: str, info: Mapping[str, Any]
) -> _GoldTrial | None:
    """Score the answer of a gold and a wrong one; None if the reward scores neither."""
    golds = alternatives(gold) or (gold,)
    right, wrong = golds[0], another_answer(*golds)

    def call(responses: Sequence[str]) -> list[Score | None]:
        results = score_all([(response, gold, info) for response in responses])
        return [_verdict_or_none(result) for result in results]

    short = [_response(form, "", answer) for answer in (right, wrong) for form in forms]
    results = call([*short, ""])
    pairs = [
        (ours.score, other.score, form)
        for form, ours, other in zip(forms, results, results[len(forms) :], strict=False)
        if ours is not None and other is not None
    ]
    if not pairs:
        return None
    most = max(ours - other for ours, other, _ in pairs)
    best = max(pairs, key=lambda pair: pair[0])[2]
    long = call([_response(best, _REASONING, answer) for answer in (right, wrong)])
    rights = [ours for ours, other, _ in pairs if ours - other > most / 2 + TOLERANCE]
    wrongs = [each.score for each in (*results[len(forms) :], *long[1:]) if each is not None]
    if long[0] is not None and abs(long[0].score - max(wrongs)) > TOLERANCE:
        rights.append(long[0].score)  # otherwise the reward takes no answer of this length
    is_told = most > TOLERANCE and min(rights) > max(wrongs) + TOLERANCE
    return _GoldTrial(
        min(rights) if is_told else None,
        max(wrongs),
        all(each.correct is not None for each in (*results, *long) if each is not None),
    )


def _response(form: AnswerForm, reasoning: str, answer: str) -> str:
    before, mark, after = form
    return f"{before}{reasoning}{mark}{answer}{after}"


def _verdict_or_none(result: Score | Exception) -> Score | None:
    """Return a score that the reward meant; None where it failed."""
    if isinstance(result, Exception) or result.status in (Status.FAILED, Status.TIMEOUT):
        return None
    return result
