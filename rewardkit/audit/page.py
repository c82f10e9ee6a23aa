"""The report of an audit as a page."""

from collections.abc import Sequence

from rewardkit.audit.model import (
    GRADE_MEANINGS,
    SEVERITIES,
    AttackResult,
    AuditReport,
    format_score,
)
from rewardkit.pages.model import Page
from rewardkit.table import Badge, Level, Table

#: What a success of each severity means.
SEVERITY_MEANINGS = {
    "high": "The policy needs no knowledge for a reward, ordinary right answers get none, or the run "
    "breaks.",
    "medium": "Rewards are wrong for particular answers or ways to write them.",
    "low": "Rewards are wrong in rare cases, or whether they are wrong is your choice.",
}
_LEVELS: dict[str, Level] = {
    "A": "good",
    "B": "good",
    "C": "warning",
    "D": "error",
    "F": "error",
    "high": "error",
    "medium": "warning",
    "low": "neutral",
}
_KINDS = {
    "hole": "wrong answer rewarded",
    "miss": "right answer not rewarded",
    "conduct": "behaviour",
}


def audit_page(report: AuditReport) -> Page:
    """Return the page of an audit: its grade, its attacks, and the responses that succeeded."""
    failed, grade = report.failed, report.grade
    counts = {each: sum(f.severity == each for f in failed) for each in SEVERITIES}
    facts = (
        *((f"{severity} severity", f"{count:,}") for severity, count in counts.items()),
        ("calls", f"{report.calls:,}"),
        ("median time per call", f"{report.median_ms:.3f} ms"),
        ("longest call", f"{report.worst_ms:,.0f} ms"),
        ("scorer", report.scorer),
        *((name, str(value)) for name, value in report.options.items()),
    )
    name = report.scorer.rpartition("/")[2]
    title = f"{name}: {len(failed)} of {len(report.findings)} attacks succeeded"
    grades = Table(
        ("grade", "meaning"),
        [(Badge(each, _LEVELS[each]), meaning) for each, meaning in GRADE_MEANINGS.items()],
        "What the grade means",
        note=f"The grade of this scorer is {grade}. {report.omissions}".rstrip(),
        bold=[(list(GRADE_MEANINGS).index(grade), 1)],
    )
    meanings = " ".join(f"{s.capitalize()}: {meaning}" for s, meaning in SEVERITY_MEANINGS.items())
    succeeded = _attack_table("Attacks that succeeded", failed, note=meanings)
    withstood = [result for result in report.findings if not result.failed]
    sections = (
        grades,
        *([succeeded] if failed else []),
        _profile_table(report),
        _attack_table("Attacks that the scorer withstood", withstood, fold="List of attacks"),
    )
    return Page(title, facts, sections, badge=Badge(f"grade {grade}", _LEVELS[grade]))


def _profile_table(report: AuditReport) -> Table:
    headers = (
        *("data source", "rows", "form of the responses", "forms that it reads"),
        *("score of the gold", "score of a wrong answer"),
    )
    rows = [
        (
            *(profile.data_source or "(none)", f"{profile.rows:,}", profile.form("...")),
            ", ".join(form.name for form in profile.forms),
            *map(format_score, (profile.right, profile.wrong)),
        )
        for profile in report.readings
    ]
    return Table(headers, rows, "Rows that were attacked")


def _attack_table(
    title: str, results: Sequence[AttackResult], note: str = "", fold: str = ""
) -> Table:
    rows = [
        (
            *(each.attack, Badge(each.severity, _LEVELS[each.severity]), _KINDS[each.kind]),
            *(f"{each.failed:,}", f"{each.tried:,}", each.about),
        )
        for each in results
    ]
    headers = ("attack", "severity", "problem", "failures", "calls", "description")
    details = [[failure.text for failure in each.failures] for each in results]
    return Table(headers, rows, title, note=note, details=details, fold=fold)
