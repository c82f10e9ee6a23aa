"""Measure how a scorer reads and rewards golds and wrong answers, before the attacks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace

from rewardkit.audit.behaviour_checks import CallRecorder
from rewardkit.audit.model import FORMS, AnswerForm, AuditRow, ScorerProfile, Target
from rewardkit.audit.scorer_process import ScorerProcess

#: The score of a call that returned none: less than any score.
_NO_SCORE = -math.inf


def profile_scorer(recorder: CallRecorder, rows: Iterable[AuditRow]) -> list[ScorerProfile]:
    """Return a profile for each data source of the rows, in their order."""
    sources: dict[str, list[AuditRow]] = {}
    for row in rows:
        sources.setdefault(row.data_source, []).append(row)
    return [_profile(recorder, source, of_source) for source, of_source in sources.items()]


def _profile(recorder: CallRecorder, source: str, rows: list[AuditRow]) -> ScorerProfile:
    own = recorder.process.form
    forms = profile_forms(recorder.process)
    gold_scores = {form: _scores(recorder, rows, form, use_gold=True) for form in forms}
    wrong_scores = {form: _scores(recorder, rows, form, use_gold=False) for form in forms}
    best = max(forms, key=lambda form: _fit(form, gold_scores[form], wrong_scores[form], rows))
    if own and _lead(gold_scores[own], wrong_scores[own]) > 0:
        best = own  # otherwise an option may ask for another form than that of `respond`
    profile = ScorerProfile(
        data_source=source,
        rows=len(rows),
        form=best,
        forms=(best,),
        right=_median(gold_scores[best]),
        wrong=_median(wrong_scores[best]),
        declared=best == own,
    )
    others = [f for f in forms if f != best and _share(gold_scores[f], profile.threshold) >= 0.5]
    medians = ((_median(gold_scores[f]), _median(wrong_scores[f])) for f in others)
    known = tuple((r, w) for r, w in medians if r is not None and w is not None)
    return replace(profile, forms=(best, *others), others=known)


def profile_forms(process: ScorerProcess) -> tuple[AnswerForm, ...]:
    """Return the forms in which golds are tried: only its own one if the scorer asks a server."""
    own = process.form
    if own and process.asks_server:
        return (own,)
    return (own, *(form for form in FORMS if form("") != own(""))) if own else FORMS


def _scores(
    recorder: CallRecorder, rows: list[AuditRow], form: AnswerForm, *, use_gold: bool
) -> list[float]:
    """Return the scores of the golds, or of wrong answers, in a form; -inf if a call has no score."""
    targets = [Target(row, form) for row in rows]
    calls = [(t.row, t.respond(t.gold if use_gold else t.wrong)) for t in targets]
    outcomes = recorder.call_all(calls)
    return [_NO_SCORE if o is None or o.score is None else o.score for o in outcomes]


def _fit(
    form: AnswerForm, gold_scores: list[float], wrong_scores: list[float], rows: list[AuditRow]
) -> tuple[float, int, float]:
    """Return how well a form is rewarded, how many prompts ask for it, and how strict it is."""
    rewarded = sum(r > w for r, w in zip(gold_scores, wrong_scores, strict=True))
    mark = form.before.strip().split("{", maxsplit=1)[0]
    prompts = sum(bool(mark) and mark in row.prompt for row in rows)
    return rewarded, prompts, _margin(gold_scores, wrong_scores)


def _median(scores: list[float]) -> float | None:
    """Return the median score; None if half of the calls or more have no score."""
    median = statistics.median(scores)
    return None if median == _NO_SCORE else median


def _lead(gold_scores: list[float], wrong_scores: list[float]) -> int:
    """Return on how many rows more the gold gets more than the wrong answer, than the reverse."""
    return sum((r > w) - (r < w) for r, w in zip(gold_scores, wrong_scores, strict=True))


def _margin(gold_scores: list[float], wrong_scores: list[float]) -> float:
    """Return the mean difference of the rows on which both have a score; 0 if there is none."""
    pairs = zip(gold_scores, wrong_scores, strict=True)
    differences = [r - w for r, w in pairs if _NO_SCORE not in {r, w}]
    return statistics.mean(differences) if differences else 0.0


def _share(scores: list[float], threshold: float) -> float:
    return sum(score > threshold for score in scores) / len(scores)
