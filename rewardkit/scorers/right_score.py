"""Learn from a reward itself which of its scores is right, by the answers of a few golds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import call_catching
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.gold import alternatives, another_answer
from rewardkit.scorers.score import LITERAL, TOLERANCE, RightRule, Score, Scorer, Status

#: Maximum number of different golds that are tried: of one data source, and in all; the first gold of
#: each data source is tried up to a maximum of its own.
MAX_GOLDS_OF_SOURCE, MAX_GOLDS, MAX_SOURCES = 2, 6, 32

#: Fraction of what a right answer gains by which a score may be above that of any gold that was tried.
MARGIN = 0.05

#: Rows in which they are looked for.
MAX_ROWS = 2000

#: A gold and the `extra_info` of its row.
GoldRow: TypeAlias = tuple[str, Mapping[str, Any]]

#: Scores responses to golds: `(response, gold, extra_info)` each.
ScoreAll: TypeAlias = Callable[
    [Sequence[tuple[str, str, Mapping[str, Any]]]], Iterable[Score | Exception]
]


@dataclass(frozen=True)
class AnswerForm:
    """A way to state an answer: the text before and after it, and what opens the reasoning."""

    name: str
    before: str
    after: str = ""
    opening: str = ""

    def __call__(self, answer: str, reasoning: str = "") -> str:
        """Return a response that states the answer, perhaps after reasoning."""
        lines = reasoning if self.opening or not reasoning else f"{reasoning}.\n"
        return f"{self.opening}{lines}{self.before}{answer}{self.after}"


#: The common forms without reasoning of their own. The first is the answer alone.
PLAIN_FORMS = (
    AnswerForm("bare", ""),
    AnswerForm("hash", "#### "),
    AnswerForm("box", "\\boxed{", "}"),
    AnswerForm("answer", "Answer: "),
    AnswerForm("says", "The answer is ", "."),
)
_FORMS = (
    *PLAIN_FORMS,
    AnswerForm("tag", "</think> <answer>", "</answer>", "<think>"),
    AnswerForm("tag box", "</think> <answer>\\boxed{", "}</answer>", "<think>"),
    AnswerForm("open-r1", "\n</think>\n<answer>\n", "\n</answer>", "<think>\n"),
    AnswerForm("think box", "\n</think>\n\n\\boxed{", "}", "<think>\n"),
    AnswerForm("reasoning", "\n</reasoning>\n<answer>\n", "\n</answer>\n", "<reasoning>\n"),
)

#: The answer with which `respond` is called to learn its form.
_MARK = "@ANSWER@"

_WORDS = (
    "after all also angle another back because before both case change check clear condition each "
    "equal find first follow form from give hold into keep known later length line look many matter "
    "middle name need next other part place point reason relation remain rest same second see side "
    "simple small still sum take term then total true value way whole with work write"
).split()

#: Reasoning without a number or a mark, and hardly a phrase twice, of some 30, 6,000 and 20,000
#: characters: a reward may pay for the length, or take off for it or for repetition.
_LENGTHS = (6, 1100, 3600)
_SHORT, *_LONG = (" ".join(Random(0).choices(_WORDS, k=count)) for count in _LENGTHS)  # noqa: S311


class _GoldTrial(NamedTuple):
    """What one gold gets.

    Attributes:
        rights: the scores of its answer in forms and lengths that the reward reads; empty if it
            gets no more than a wrong answer.
        wrongs: the scores of a wrong answer, in all forms.
        states: whether each result states its verdict, and at least one is not just its score.
        forms: the forms that the reward reads.
    """

    rights: tuple[float, ...]
    wrongs: tuple[float, ...]
    states: bool
    forms: tuple[AnswerForm, ...]


def own_form(scorer: Scorer) -> AnswerForm | None:
    """Return the form that `respond` of a scorer's module writes; None without one."""
    respond = spec_of(scorer).respond
    text = call_catching(respond, _MARK) if respond else None
    before, mark, after = text.partition(_MARK) if isinstance(text, str) else ("", "", "")
    return AnswerForm("its own", before, after) if mark else None


def learn_right(
    score_all: ScoreAll, rows: Iterable[GoldRow], form: AnswerForm | None = None
) -> RightRule:
    """Return which results of a reward are right, from what the golds of the first rows get.

    The answer of a gold, and a wrong one, are scored in the usual forms, after short reasoning and in
    the forms that the reward reads after long reasoning. The reward reads a form if the gold's answer
    gains more than half of what it gains at most over the wrong one. The lowest score of the gold's
    answer is right, provided that no wrong answer of any row gets it.

    Raises:
        NeverAnswersError: the reward runs in a process of its own and fails on every call.
    """
    all_forms: tuple[AnswerForm, ...] = (*_FORMS, form) if form else _FORMS
    forms, trials, sources = all_forms, [], set()
    for gold, info in _distinct_golds(rows):
        trial = _try_gold(score_all, forms, gold, info)
        if trial is not None and not trial.rights and forms != all_forms:
            trial = _try_gold(score_all, all_forms, gold, info)
        if trial is None:
            continue
        trials.append(trial)
        sources.add(str(info.get("data_source") or ""))
        forms = trial.forms or forms
        if all(trial.states for trial in trials):
            break
    if not trials:
        return RightRule(None, True, "the reward scored none of the first golds")
    if all(trial.states for trial in trials):
        return LITERAL
    rights = [score for trial in trials for score in trial.rights]
    wrong = max(score for trial in trials for score in trial.wrongs)
    if not rights:
        reason = (
            f"in none of the forms that were tried the gold gets more than a wrong answer ({wrong:g}), "
            "and a function `respond` beside the reward would name its form"
        )
        return RightRule(None, False, reason)
    least = min(rights)
    if least <= wrong + TOLERANCE:
        reason = f"the gold gets {least:g} in one form or length, and a wrong answer {wrong:g}"
        return RightRule(None, False, reason)
    return RightRule(
        least,
        takes_verdict=False,
        reason=f"what the gold gets, where a wrong answer gets at most {wrong:g}",
        most=max(rights) + MARGIN * (max(rights) - wrong),
        sources=frozenset(sources),
    )


def _distinct_golds(rows: Iterable[GoldRow]) -> Iterator[GoldRow]:
    """Yield rows with different golds, some of each data source."""
    golds: set[tuple[str, str]] = set()
    counts: Counter[str] = Counter()
    for gold, info in islice(rows, MAX_ROWS):
        source = str(info.get("data_source") or "")
        is_first = source not in counts and len(counts) < MAX_SOURCES
        has_room = counts[source] < MAX_GOLDS_OF_SOURCE and len(golds) < MAX_GOLDS
        if gold.strip() and (source, gold) not in golds and (is_first or has_room):
            golds.add((source, gold))
            counts[source] += 1
            yield gold, info


def _try_gold(
    score_all: ScoreAll, forms: Sequence[AnswerForm], gold: str, info: Mapping[str, Any]
) -> _GoldTrial | None:
    """Score the answer of a gold and a wrong one; None if the reward scores neither."""
    golds = alternatives(gold) or (gold,)
    right, wrong = golds[0], another_answer(*golds)

    def call(responses: Sequence[str]) -> list[Score | None]:
        """Return the scores that the reward meant; None where it failed."""
        failures = (Status.FAILED, Status.TIMEOUT)
        return [
            None if isinstance(result, Exception) or result.status in failures else result
            for result in score_all([(response, gold, info) for response in responses])
        ]

    short = [
        form(answer, _SHORT if form.opening else "") for answer in (right, wrong) for form in forms
    ]
    results = call([*short, ""])
    of_wrong = results[len(forms) :]
    wrongs = [result.score for result in of_wrong if result]
    pairs = [
        (ours.score, ours.score - other.score, form)
        for form, ours, other in zip(forms, results, of_wrong, strict=False)
        if ours and other
    ]
    if not pairs:
        return None
    most = max(gain for _, gain, _ in pairs)
    read = [pair for pair in pairs if most > TOLERANCE and pair[1] > most / 2 + TOLERANCE]
    rights = [ours for ours, _, _ in read]
    for reasoning in _LONG if read else ():
        answers = [*((form, right) for _, _, form in read), (read[-1][2], wrong)]
        long = call([form(answer, reasoning) for form, answer in answers])
        results += long
        wrongs += [result.score for result in long[-1:] if result]
        known = [result.score for result in long[:-1] if result]
        higher = [score for score in known if score > max(wrongs) + TOLERANCE]
        # Without one the reward takes no answer of this length, unless the answer gets even less.
        is_less = bool(known) and max(known) < max(wrongs) - TOLERANCE
        rights += higher or ([max(known)] if is_less else [])
    scores = [result for result in results if result]
    has_own = any(score.status is not Status.SCORED for score in scores)
    states = has_own and all(score.correct is not None for score in scores)
    return _GoldTrial(tuple(rights), tuple(wrongs), states, tuple(form for _, _, form in read))
