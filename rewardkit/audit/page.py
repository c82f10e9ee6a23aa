"""The report of an audit as a page."""

from __future__ import annotations

from rewardkit.audit.model import (
    GRADE_MEANINGS,
    SEVERITIES,
    STOPPED_EARLY,
    AttackResult,
    AuditReport,
    format_score,
)
from rewardkit.pages.model import Badge, Level, Page, Section, Table, TableRow

#: What a success of each severity means.
SEVERITY_MEANINGS = {
    "high": "The policy needs no knowledge for a reward, ordinary right answers get none, or the run "
    "breaks.",
    "medium": "Rewards are wrong for particular answers or ways to write them.",
    "low": "Rewards are wrong in rare cases, or whether they are wrong is your choice.",
}
_GRADE_LEVELS: dict[str, Level] = {
    "A": "good", "B": "good", "C": "warning", "D": "error", "F": "error"
}  # fmt: skip
_SEVERITY_LEVELS: dict[str, Level] = {"high": "error", "medium": "warning", "low": "neutral"}
_KINDS = {
    "hole": "wrong answer rewarded",
    "miss": "right answer not rewarded",
    "conduct": "behaviour",
}


def audit_page(report: AuditReport) -> Page:
    """Return the page of an audit: its grade, its attacks, and the responses that succeeded."""
    by_severity = ((s, sum(f.severity == s for f in report.failed)) for s in SEVERITIES)
    facts = (
        *((f"{severity} severity", f"{n:,}") for severity, n in by_severity),
        ("calls", f"{report.calls:,}"),
        ("median time per call", f"{report.median_ms:.3f} ms"),
        ("longest call", f"{report.worst_ms:,.0f} ms"),
        ("scorer", report.scorer),
        *((name, str(value)) for name, value in report.options.items()),
    )
    name = report.scorer.rpartition("/")[2]
    title = f"{name}: {len(report.failed)} of {len(report.findings)} attacks succeeded"
    badge = Badge(f"grade {report.grade}", _GRADE_LEVELS[report.grade])
    return Page(title, facts, _sections(report), badge=badge)


def _sections(report: AuditReport) -> tuple[Section, ...]:
    withstood = tuple(result for result in report.findings if not result.failed)
    return (
        _grade_table(report),
        *_failed_sections(report),
        _profile_table(report),
        _attack_table("Attacks that the scorer withstood", withstood, fold="List of attacks"),
    )


def _grade_table(report: AuditReport) -> Table:
    rows = (
        TableRow(
            (Badge(name, _GRADE_LEVELS[name]), meaning), bold=(1,) if name == report.grade else ()
        )
        for name, meaning in GRADE_MEANINGS.items()
    )
    note = f"The grade of this scorer is {report.grade}."
    if report.is_stopped:
        note += f" {STOPPED_EARLY}"
    return Table("What the grade means", ("grade", "meaning"), tuple(rows), note=note)


def _failed_sections(report: AuditReport) -> tuple[Section, ...]:
    if not report.failed:
        return ()
    meanings = (f"{name.capitalize()}: {meaning}" for name, meaning in SEVERITY_MEANINGS.items())
    return (_attack_table("Attacks that succeeded", report.failed, " ".join(meanings)),)


def _profile_table(report: AuditReport) -> Table:
    rows = (
        TableRow(
            (
                profile.data_source or "(none)",
                f"{profile.rows:,}",
                profile.form("..."),
                ", ".join(form.name for form in profile.forms),
                format_score(profile.right),
                format_score(profile.wrong),
            )
        )
        for profile in report.readings
    )
    headers = (
        "data source",
        "rows",
        "form of the responses",
        "forms that it reads",
        "score of the gold",
        "score of a wrong answer",
    )
    return Table("Rows that were attacked", headers, tuple(rows))


def _attack_table(
    title: str, results: tuple[AttackResult, ...], note: str = "", fold: str = ""
) -> Table:
    rows = (
        TableRow(
            (
                f.attack,
                Badge(f.severity, _SEVERITY_LEVELS[f.severity]),
                _KINDS[f.kind],
                f"{f.failed:,}",
                f"{f.tried:,}",
                f.about,
            ),
            tuple(failure.text for failure in f.failures),
        )
        for f in results
    )
    headers = ("attack", "severity", "problem", "failures", "calls", "description")
    return Table(title, headers, tuple(rows), "examples", note, fold)
