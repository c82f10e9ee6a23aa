"""How a scorer reads and rewards answers: measured with golds and wrong answers, before attacks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from rewardkit.audit.behaviour_checks import CallRecorder
from rewardkit.audit.model import FORMS, AnswerForm, AuditRow, ScorerProfile, Target


def profile_scorer(recorder: CallRecorder, rows: Iterable[AuditRow]) -> list[ScorerProfile]:
    """Return a profile for each data source of the rows, in their order."""
    sources: dict[str, list[AuditRow]] = {}
    for row in rows:
        sources.setdefault(row.data_source, []).append(row)
    return [_profile(recorder, source, its_rows) for source, its_rows in sources.items()]


def _profile(recorder: CallRecorder, source: str, rows: list[AuditRow]) -> ScorerProfile:
    own = recorder.process.form
    forms = (own, *(f for f in FORMS if f("") != own(""))) if own else FORMS
    right = {form: _scores(recorder, rows, form, use_gold=True) for form in forms}
    wrong = {form: _scores(recorder, rows, form, use_gold=False) for form in forms}
    best = max(forms, key=lambda form: _fit(form, right[form], wrong[form], rows))
    if own and sum(right[own]) > sum(wrong[own]):
        best = own  # else an option may ask for another form than `respond` has
    profile = ScorerProfile(
        data_source=source,
        rows=len(rows),
        form=best,
        forms=(best,),
        right=statistics.median(right[best]),
        wrong=statistics.median(wrong[best]),
        declared=best == own,
    )
    others = (f for f in forms if f != best and _share(right[f], profile.threshold) >= 0.5)
    return replace(profile, forms=(best, *others))


def _scores(
    recorder: CallRecorder, rows: list[AuditRow], form: AnswerForm, *, use_gold: bool
) -> list[float]:
    """The scores of the golds, or of wrong answers, in a form; -1 where there is no score."""
    targets = [Target(row, form) for row in rows]
    outcomes = [recorder.call(t.row, t.respond(t.gold if use_gold else t.wrong)) for t in targets]
    return [-1.0 if o is None or o.score is None else o.score for o in outcomes]


def _fit(
    form: AnswerForm, right: list[float], wrong: list[float], rows: list[AuditRow]
) -> tuple[float, int, float]:
    """How well a form is rewarded; of equal ones, the one that prompts ask for, then the stricter."""
    rewards = sum(r > w for r, w in zip(right, wrong, strict=True))
    mark = form.before.strip().split("{", maxsplit=1)[0]
    prompts = sum(bool(mark) and mark in row.prompt for row in rows)
    return rewards, prompts, statistics.mean(right) - statistics.mean(wrong)


def _share(scores: list[float], threshold: float) -> float:
    return sum(score > threshold for score in scores) / len(scores)
