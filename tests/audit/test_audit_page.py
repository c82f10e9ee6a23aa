"""The page of an audit leads with the grade and says in words what colours say."""

import pytest

from rewardkit.audit.model import GRADE_MEANINGS, SEVERITIES, AttackResult, AuditReport, Failure
from rewardkit.audit.page import SEVERITY_MEANINGS, audit_page
from rewardkit.pages.html import to_html
from rewardkit.table import Badge


def report(*severities):
    """Return a report in which an attack of each severity succeeded, and one did not."""
    failure, own = Failure("<b>response</b>", "1", "got 1.0"), {"about": "About it.", "tried": 3}
    results = [
        AttackResult(attack="x", kind="hole", severity=each, failed=1, failures=(failure,), **own)
        for each in severities
    ]
    harmless = AttackResult(attack="y", kind="miss", severity="high", failed=0, **own)
    own = {"options": {"strict": True}, "readings": (), "calls": 12}
    times = {"median_ms": 0.1, "worst_ms": 2.0}
    return AuditReport(scorer="a/my.py:f", findings=(*results, harmless), **own, **times)


@pytest.mark.parametrize(
    ("severities", "badge"),
    [((), Badge("grade A", "good")), (SEVERITIES, Badge("grade D", "error"))],
)
def test_the_page_starts_with_the_grade_and_explains_all_grades_and_severities(severities, badge):
    page, n = audit_page(report(*severities)), len(severities)
    assert page.title == f"my.py:f: {n} of {n + 1} attacks succeeded"
    assert page.badge == badge
    grades = page.sections[0]
    assert [row[0].text for row in grades.rows] == list(GRADE_MEANINGS) == [*"ABCDF"]
    assert [grades.rows[row][0].text for row, _ in grades.bold] == [badge.text[-1]]
    attacks = [each for each in page.sections if each.title == "Attacks that succeeded"]
    assert len(attacks) == bool(severities)
    assert page.sections[-1].fold == "List of attacks"
    if severities:
        badges = [row[1] for row in attacks[0].rows]
        assert [each.text for each in badges] == list(SEVERITIES) == list(SEVERITY_MEANINGS)
        assert len({each.level for each in badges}) == 3
        assert all(meaning in attacks[0].note for meaning in SEVERITY_MEANINGS.values())
    assert "<b>response" not in to_html(page)
