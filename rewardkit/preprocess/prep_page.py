"""The page of the report of `prep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardkit.checks.check_page import first_rows_sections, stats_sections
from rewardkit.dropped_rows import dropped_path
from rewardkit.pages.model import Page, Section, Steps
from rewardkit.table import Table
from rewardkit.text import percentage, row_count

if TYPE_CHECKING:
    from rewardkit.preprocess.prep import PrepReport, SplitReport


def prep_page(report: PrepReport) -> Page:
    """Return the page of `prep`, with the sections of each split."""
    facts = [
        ("dataset", report.dataset),
        ("data_source", report.data_source),
        ("template", report.template),
        ("scorer", report.scorer),
    ]
    sections: list[Section] = []
    for split in report.splits:
        written = f"{row_count(split.written)} in {split.out}"
        facts.append((f"{split.split}, from {split.origin}", written))
        suffix = f" ({split.split})" if len(report.splits) > 1 else ""
        sections.append(Steps(f"Rows left after each step{suffix}", tuple(split.steps())))
        if split.dropped:
            sections.append(_dropped(split, suffix))
        sections += first_rows_sections(split.out, suffix)
        sections += stats_sections(split.stats, suffix)
    rows = row_count(sum(split.written for split in report.splits))
    dropped = sum(split.dropped.total() for split in report.splits)
    title = f"{report.dataset}: {rows} written, {dropped:,} dropped"
    return Page(title, tuple(facts), tuple(sections))


def _dropped(split: SplitReport, suffix: str) -> Table:
    reasons = split.dropped.most_common()
    return Table(
        ("reason", "rows", "share"),
        [(reason, f"{n:,}", percentage(n, split.distinct)) for reason, n in reasons],
        f"Dropped rows{suffix}",
        note=f"{dropped_path(split.out)} has all of them, each with its reason.",
        details=[
            [
                f"row {index}: {what}" if what else f"row {index}"
                for why, index, what in split.examples
                if why == reason
            ]
            for reason, _ in reasons
        ],
    )
