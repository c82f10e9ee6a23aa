"""`audit`: all attacks on a scorer, and what came of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardkit.audit.behaviour_checks import Journal, check_conduct, findings_of, growth
from rewardkit.audit.false_negatives import MISSES
from rewardkit.audit.false_positives import HOLES, HOSTILE
from rewardkit.audit.model import (
    EXAMPLES,
    Attack,
    AuditReport,
    Case,
    Failure,
    Finding,
    Reading,
    Target,
    clipped,
)
from rewardkit.audit.process import Process
from rewardkit.audit.rows import cases_of, packaged
from rewardkit.audit.scorer_profile import judges, read_scorer

#: Seconds a call may take before the scorer counts as hung.
CALL_SECONDS = 5.0


def audit(
    scorer: str,
    *,
    data: Path | str | Iterable[Mapping[str, Any]] | None = None,
    rows: int = 64,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    seconds: float = CALL_SECONDS,
    progress: Callable[[int], object] = lambda _: None,
) -> AuditReport:
    """Attack a scorer as a policy would.

    Args:
        scorer: a built-in name, or `my_reward.py:function`.
        data: a verl parquet, or rows in its schema; None for packaged rows that fit the scorer.
        rows: how many of them are drawn.
        seed: of the draw.
        options: of the scorer.
        seconds: a call may take before it counts as hung.
        progress: called with 1 after every attack on a row.

    Raises:
        UsageError: the scorer does not load, or has no such option.
        DataError: the data cannot be read, or has no rows.
    """
    cases = packaged(scorer, rows, seed) if data is None else cases_of(data, rows, seed)
    with Process(scorer, options or {}, seconds) as process:
        asked = Journal(process)
        readings, left_out = _readings(asked, cases, keep_all=data is not None)
        sources = {reading.data_source for reading in readings}
        first_calls = [call for call in asked.repeatable if call[0].data_source in sources]
        journal = Journal(process, repeatable=first_calls)
        targets = _targets(cases, readings)
        tried = [_tried(attack, journal, targets, progress) for attack in (*HOLES, *MISSES)]
        ordinary = statistics.median(journal.seconds)
        own = [target for target, _, _ in targets]
        check_conduct(journal, own, 2 * len(readings))
        tried.append(_tried(HOSTILE, journal, targets, progress))
        growth(journal, own[0])
    findings = [finding for finding in tried if finding.tried] + findings_of(journal)
    return AuditReport(
        scorer=scorer,
        options=dict(options or {}),
        readings=tuple(readings),
        findings=tuple(findings),
        calls=journal.calls,
        median_ms=ordinary * 1000,
        worst_ms=max(journal.seconds) * 1000,
        left_out=tuple(left_out),
    )


def conduct(
    scorer: str,
    data: Path | str | Iterable[Mapping[str, Any]],
    *,
    rows: int = 16,
    options: Mapping[str, Any] | None = None,
    seconds: float = CALL_SECONDS,
) -> tuple[list[Reading], list[Finding], tuple[str, ...]]:
    """How a scorer pays the golds of rows, and how it behaves; no other attack is made.

    Args:
        scorer: a built-in name, or `my_reward.py:function`.
        data: a verl parquet, or rows in its schema.
        rows: how many of them are drawn.
        options: of the scorer.
        seconds: a call may take before it counts as hung.

    Returns:
        A reading for each data source, a finding for each check of conduct, and the keys of what
        the scorer returns (none of a number).

    Raises:
        UsageError: the scorer does not load, or has no such option.
        DataError: the data cannot be read, or has no rows.
    """
    cases = cases_of(data, rows, seed=0)
    with Process(scorer, options or {}, seconds) as process:
        journal = Journal(process)
        readings = read_scorer(journal, cases)
        targets = [target for target, _, _ in _targets(cases, readings)]
        check_conduct(journal, targets, 2 * len(readings))
        growth(journal, targets[0])
    return readings, findings_of(journal), journal.keys or ()


def _readings(
    asked: Journal, cases: list[Case], *, keep_all: bool
) -> tuple[list[Reading], list[str]]:
    """The readings of the data sources that the scorer judges, and the names of the others.

    The user's own rows all count; packaged ones of another kind say nothing about a scorer.
    """
    readings = read_scorer(asked, cases)
    judged = [reading for reading in readings if keep_all or judges(reading)]
    kept = judged or readings
    return kept, [r.data_source for r in readings if r not in kept]


#: A row in the scorer's own form, in another that it reads, and what it pays.
_Row = tuple[Target, Target | None, Reading]


def _targets(cases: list[Case], readings: list[Reading]) -> list[_Row]:
    """Every row in the own form, and in one of the others that are read, each in turn."""
    of_source = {reading.data_source: reading for reading in readings}
    rows: list[_Row] = []
    for index, case in enumerate(cases):
        reading = of_source.get(case.data_source)
        if reading is None:
            continue
        others = [form for form in reading.forms[1:] if form.name != "bare"]
        other = Target(case, others[index % len(others)]) if others else None
        rows.append((Target(case, reading.form), other, reading))
    return rows


def _tried(
    attack: Attack, journal: Journal, rows: list[_Row], progress: Callable[[int], object]
) -> Finding:
    """An attack on all rows that it is meant for."""
    tried, failures = 0, []
    for target, reading in _meant(attack, rows):
        for case in _cases(attack, target):
            for response in dict.fromkeys(attack.responses(target)):
                failure, made = _try(attack, journal, case, response, reading)
                tried += made
                failures += [failure] if failure else []
        progress(1)
    return Finding(
        attack.name,
        attack.kind,
        attack.severity,
        attack.about,
        tried,
        len(failures),
        tuple(failures[:EXAMPLES]),
    )


def _meant(attack: Attack, rows: list[_Row]) -> Iterator[tuple[Target, Reading]]:
    """The rows of an attack: holes are also looked for in the other forms."""
    seen: dict[str, int] = {}
    for own, other, reading in rows:
        place = seen[reading.data_source] = seen.get(reading.data_source, 0) + 1
        if attack.first and place > attack.first:
            continue
        yield own, reading
        if other is not None and attack.kind == "hole":
            yield other, reading


def _cases(attack: Attack, target: Target) -> list[Case]:
    """The row itself, or with each of the golds that the attack is tried against."""
    if not attack.golds:
        return [target.case]
    return [replace(target.case, gold=gold) for gold in attack.golds]


def _try(
    attack: Attack, journal: Journal, case: Case, response: str, reading: Reading
) -> tuple[Failure | None, int]:
    """The failure of one call, if it is one, and how many calls were made."""
    outcome = journal.call(case, response)
    if outcome is None:
        return None, 0
    paid = outcome.score is not None and outcome.score > reading.threshold
    if paid == (attack.kind == "miss"):
        return None, 1
    return Failure(clipped(response), clipped(case.gold), clipped(outcome.said)), 1
