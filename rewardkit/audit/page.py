"""The report of an audit as a page."""

from __future__ import annotations

from rewardkit import __version__
from rewardkit.audit.model import SEVERITIES, AuditReport, Finding
from rewardkit.pages.model import Bars, Page, Section, Table, TableRow


def audit_page(report: AuditReport) -> Page:
    """What the attacks came to, with the pairs that went through."""
    facts = (
        ("scorer", report.scorer),
        *((name, str(value)) for name, value in report.options.items()),
        ("grade", report.grade),
        ("calls", f"{report.calls:,}"),
        ("median time of a call", f"{report.median_ms:.3f} ms"),
        ("longest call", f"{report.worst_ms:,.0f} ms"),
        ("rewardkit", __version__),
    )
    failed = len(report.failed)
    title = (
        f"{report.scorer}: grade {report.grade}, {failed} of {len(report.findings)} attacks through"
    )
    return Page(title, facts, _sections(report))


def _sections(report: AuditReport) -> tuple[Section, ...]:
    counts = tuple((s, sum(f.severity == s for f in report.failed)) for s in SEVERITIES)
    held = tuple(finding for finding in report.findings if not finding.failed)
    return (
        Bars("attacks that went through, by severity", counts),
        _table("attacks that went through", report.failed, "Each with the first pairs that did."),
        _readings(report),
        _table("attacks that the scorer withstood", held, ""),
    )


def _readings(report: AuditReport) -> Table:
    lines = (
        TableRow(
            (
                reading.data_source or "(none)",
                f"{reading.rows:,}",
                reading.form("..."),
                ", ".join(form.name for form in reading.forms),
                f"{reading.right:g}",
                f"{reading.wrong:g}",
            )
        )
        for reading in report.readings
    )
    headers = ("data source", "rows", "its form", "forms it reads", "gold gets", "wrong gets")
    return Table("what it was audited on", headers, tuple(lines))


def _table(title: str, findings: tuple[Finding, ...], note: str) -> Table:
    lines = (
        TableRow(
            (f.attack, f.kind, f.severity, f"{f.tried:,}", f"{f.failed:,}", f.about),
            tuple(pair.text for pair in f.failures),
        )
        for f in findings
    )
    headers = ("attack", "kind", "severity", "tried", "failed", "what it tries")
    return Table(title, headers, tuple(lines), "pairs", note)
