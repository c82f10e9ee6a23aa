"""How a scorer reads and pays: found by asking it, before anything is attacked."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from rewardkit.audit.behaviour_checks import Journal
from rewardkit.audit.model import FORMS, Case, Form, Reading, Target


def read_scorer(journal: Journal, cases: Iterable[Case]) -> list[Reading]:
    """A reading for each data source of the cases, in their order."""
    sources: dict[str, list[Case]] = {}
    for case in cases:
        sources.setdefault(case.data_source, []).append(case)
    return [_reading(journal, source, found) for source, found in sources.items()]


def _reading(journal: Journal, source: str, cases: list[Case]) -> Reading:
    declared = journal.process.form
    forms = (declared, *(f for f in FORMS if f("") != declared(""))) if declared else FORMS
    right = {form: _scores(journal, cases, form, right=True) for form in forms}
    wrong = {form: _scores(journal, cases, form, right=False) for form in forms}
    best = max(forms, key=lambda form: _fit(form, right[form], wrong[form], cases))
    if declared and sum(right[declared]) > sum(wrong[declared]):
        best = declared  # else an option may ask for another form than `respond` has
    found = Reading(
        source,
        len(cases),
        best,
        (best,),
        statistics.median(right[best]),
        statistics.median(wrong[best]),
        best == declared,
    )
    read = tuple(f for f in forms if f != best and _share(right[f], found.threshold) >= 0.5)
    return replace(found, forms=(best, *read))


def _scores(journal: Journal, cases: list[Case], form: Form, *, right: bool) -> list[float]:
    """What the golds, or wrong answers, get in a form; no score counts as the least there is."""
    targets = [Target(case, form) for case in cases]
    outcomes = [journal.call(t.case, t.say(t.gold if right else t.wrong)) for t in targets]
    return [-1.0 if o is None or o.score is None else o.score for o in outcomes]


def _fit(
    form: Form, right: list[float], wrong: list[float], cases: list[Case]
) -> tuple[float, int, float]:
    """How well a form is paid; of equal ones, the one that prompts ask for, then the stricter."""
    paid = sum(r > w for r, w in zip(right, wrong, strict=True))
    mark = form.before.strip().split("{", maxsplit=1)[0]
    asked = sum(bool(mark) and mark in case.prompt for case in cases)
    return paid, asked, statistics.mean(right) - statistics.mean(wrong)


def _share(scores: list[float], threshold: float) -> float:
    return sum(score > threshold for score in scores) / len(scores)


def judges(reading: Reading) -> bool:
    """Whether the scorer pays for this data source's golds at all, and for nothing less."""
    return reading.right > reading.wrong
