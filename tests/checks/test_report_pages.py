"""The pages of `prep` and `check` show what the reports contain."""

import rewardkit
from rewardkit.checks.check import CheckReport
from rewardkit.checks.check_page import check_page, overlaps_section
from rewardkit.checks.overlap import Overlap
from rewardkit.checks.row_checks import RULES, DataFinding
from rewardkit.pages.html import to_html
from rewardkit.pages.model import Steps
from rewardkit.preprocess.prep_page import prep_page
from rewardkit.table import Badge, Table
from tests.preprocess.rows import jsonl


def sections(page, kind):
    return [section for section in page.sections if isinstance(section, kind)]


def test_a_prep_page_accounts_for_every_row(tmp_path):
    solved = "so\n#### 1"
    rows = {"one?": solved, "": solved, "<script>": "nothing", "two?": solved}
    source = jsonl(tmp_path / "in.jsonl", *({"question": q, "answer": a} for q, a in rows.items()))
    report = rewardkit.prep("gsm8k", tmp_path / "out.parquet", split="train", source=source)
    page = prep_page(report)
    assert page.title == "gsm8k: 2 rows written, 2 dropped"
    (steps,) = sections(page, Steps)
    (table,) = sections(page, Table)
    assert [left for _, left, _ in steps.losses()] == [4, 3, 2]
    assert sorted(cell[1:] for cell in table.rows) == [("1", "25.0%"), ("1", "25.0%")]
    assert "out.parquet.dropped.jsonl" in table.note
    assert sorted(own[0].partition(":")[0] for own in table.details) == ["row 1", "row 2"]
    assert "<script>" not in to_html(page)


def test_a_check_page_lists_the_findings_and_what_to_do(tmp_path):
    report = CheckReport(tmp_path / "a.parquet", rows=2, bad_rows=1)
    report.add(DataFinding(0, "conflicting_gold", "another"), DataFinding(0, "empty_gold", "empty"))
    report.checked, report.not_checked = ("schema",), ("golds",)
    page = check_page(report)
    rules, examples, checked = sections(page, Table)
    assert page.badge == Badge("2 findings", "error")
    assert [badge.text for badge, _ in checked.rows] == ["checked", "not checked"]
    assert page.title == "a.parquet: 1 of 2 rows is bad"
    found = ("empty_gold", "conflicting_gold")
    assert rules.rows == [(rule, "1", RULES[rule]) for rule in found]
    assert [row[:2] for row in examples.rows] == [("row 0", rule) for rule in found]


def test_overlaps_are_counted_by_item_and_row_the_most_complete_first():
    overlaps = [
        Overlap(3, "AIME", "I-1", 0.6, "item", "row"),
        Overlap(3, "AIME", "I-2", 1.0, "other", "row"),
        Overlap(4, "MATH-500", "7", 0.8, "third", "row 4"),
    ]
    section = overlaps_section(overlaps, 1508)
    assert section.note.startswith(
        "Of the first 3 of 1,508 findings: Evaluation items in 2 rows: 2 of AIME, 1 of MATH-500."
    )
    assert section.pairs[0].caption == "row 3 has 100% of AIME I-2"
    assert section.pairs[0].texts == ("other", "row")
