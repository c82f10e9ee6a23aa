"""The report of an audit as a page."""

from __future__ import annotations

from rewardkit.audit.model import SEVERITIES, AttackResult, AuditReport, format_score
from rewardkit.pages.model import Bars, Page, Section, Table, TableRow
from rewardkit.versions import VERSION


def audit_page(report: AuditReport) -> Page:
    """Return the page of an audit: its attacks, and the responses that went through."""
    facts = (
        ("scorer", report.scorer),
        *((name, str(value)) for name, value in report.options.items()),
        ("grade", report.grade),
        ("calls", f"{report.calls:,}"),
        ("median time of a call", f"{report.median_ms:.3f} ms"),
        ("longest call", f"{report.worst_ms:,.0f} ms"),
        ("rewardkit", VERSION),
    )
    failed = len(report.failed)
    title = (
        f"{report.scorer}: grade {report.grade}, {failed} of {len(report.findings)} attacks through"
    )
    return Page(title, facts, _sections(report))


def _sections(report: AuditReport) -> tuple[Section, ...]:
    counts = tuple((s, sum(f.severity == s for f in report.failed)) for s in SEVERITIES)
    withstood = tuple(result for result in report.findings if not result.failed)
    return (
        Bars("attacks that went through, by severity", counts, unit="attacks"),
        _attack_table("attacks that went through", report.failed, "Each with its first failures."),
        _profile_table(report),
        _attack_table("attacks that the scorer withstood", withstood, ""),
    )


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
    headers = ("data source", "rows", "form", "readable forms", "score of gold", "score of wrong")
    return Table("rows of the audit", headers, tuple(rows))


def _attack_table(title: str, results: tuple[AttackResult, ...], note: str) -> Table:
    rows = (
        TableRow(
            (f.attack, f.kind, f.severity, f"{f.tried:,}", f"{f.failed:,}", f.about),
            tuple(failure.text for failure in f.failures),
        )
        for f in results
    )
    headers = ("attack", "kind", "severity", "tried", "went through", "description")
    return Table(title, headers, tuple(rows), "examples", note)
