"""The page of an audit leads with the grade and says in words what colours say."""

import pytest

from rewardkit.audit.model import (
    GRADE_MEANINGS,
    SEVERITIES,
    AttackResult,
    AuditReport,
    Failure,
)
from rewardkit.audit.page import SEVERITY_MEANINGS, audit_page
from rewardkit.pages.html import to_html
from rewardkit.pages.model import Badge


def report(*severities):
    """Return a report in which an attack of each severity succeeded, and one did not."""
    failure, own = Failure("<b>response</b>", "1", "got 1.0"), {"about": "About it.", "tried": 3}
    results = [
        AttackResult(attack="x", kind="hole", severity=each, failed=1, failures=(failure,), **own)
        for each in severities
    ]
    harmless = AttackResult(attack="y", kind="miss", severity="high", failed=0, **own)
    return AuditReport(
        scorer="folder/my.py:compute_score",
        options={"strict": True},
        readings=(),
        findings=(*results, harmless),
        calls=12,
        median_ms=0.1,
        worst_ms=2.0,
    )


@pytest.mark.parametrize(
    ("severities", "badge"),
    [
        ((), Badge("grade A", "good")),
        (("medium",), Badge("grade B", "good")),
        (("medium",) * 4, Badge("grade C", "warning")),
        (("high", "low"), Badge("grade D", "error")),
        (("high",) * 4, Badge("grade F", "error")),
    ],
)
def test_the_page_starts_with_the_grade_and_explains_all_grades(severities, badge):
    page = audit_page(report(*severities))
    n = len(severities)
    assert page.title == f"my.py:compute_score: {n} of {n + 1} attacks succeeded"
    assert page.badge == badge
    grades = page.sections[0]
    assert [row.cells[0].text for row in grades.rows] == list(GRADE_MEANINGS) == [*"ABCDF"]
    assert [row.cells[0].text for row in grades.rows if row.bold] == [badge.text[-1]]


def test_every_severity_is_a_word_in_a_colour_of_its_own():
    page = audit_page(report(*SEVERITIES))
    (attacks,) = [section for section in page.sections if section.title == "Attacks that succeeded"]
    badges = [row.cells[1] for row in attacks.rows]
    assert [badge.text for badge in badges] == list(SEVERITIES) == list(SEVERITY_MEANINGS)
    assert len({badge.level for badge in badges}) == 3
    assert all(meaning in attacks.note for meaning in SEVERITY_MEANINGS.values())
    html = to_html(page)
    assert "wrong answer rewarded" in html
    assert "<b>response" not in html


def test_a_scorer_without_failures_has_no_table_of_them():
    page = audit_page(report())
    assert "Attacks that succeeded" not in [section.title for section in page.sections]
    assert page.sections[-1].fold == "List of attacks"
