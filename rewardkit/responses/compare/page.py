"""The report of `compare` as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit import __version__
from rewardkit.pages.model import Bars, Page, Section, Table, TableRow
from rewardkit.pages.text import share
from rewardkit.responses.compare.comparison import CompareReport, DisagreementExample
from rewardkit.statistics import wilson_interval


def compare_page(report: CompareReport) -> Page:
    """What two scorers say of the same responses."""
    facts = (
        ("file", report.name),
        ("A", report.a.name),
        ("B", report.b.name),
        ("judged by both", f"{report.judged:,}"),
        ("lines that hold no sample", f"{report.unread:,}"),
        ("rewardkit", __version__),
    )
    title = f"{report.short_name}: {share(report.agreed, report.judged)} agreement"
    return Page(title, facts, tuple(_sections(report)))


def agreement(report: CompareReport) -> str:
    """How far two scorers agree, and whether one of them is laxer, in a sentence."""
    low, high = wilson_interval(report.agreed, report.judged)
    return (
        f"agreement {share(report.agreed, report.judged)} (95% interval {low:.1%} to {high:.1%}); "
        f"McNemar's exact test: {p_text(report.p_value)}"
    )


def p_text(p: float) -> str:
    """`p = 0.0012`."""
    return f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"


def verdicts(report: CompareReport) -> tuple[tuple[str, int], ...]:
    """The confusion table, cell by cell."""
    return (
        ("both right", report.right[True, True]),
        ("only A right", report.right[True, False]),
        ("only B right", report.right[False, True]),
        ("neither right", report.right[False, False]),
    )


def scorer_rows(report: CompareReport) -> Iterator[tuple[str, ...]]:
    """The scorers side by side, in the columns `SCORERS`."""
    for letter, side, place in (("A", report.a, 0), ("B", report.b, 1)):
        right, speed = report.right_of(place), side.speed()
        yield (
            f"{letter}: {side.name}",
            f"{right:,} ({share(right, report.judged)})",
            f"{side.score_sum / max(report.judged, 1):.4f}",
            f"{speed['median_us']:,.1f}",
            f"{speed['p99_us']:,.1f}",
            f"{speed['calls_per_second']:,.0f}",
            f"{side.raised.total():,}",
        )


#: Headers of `scorer_rows` and `cause_rows`.
SCORERS = ("scorer", "right", "mean score", "median µs", "p99 µs", "calls/s", "raised")
CAUSES = ("samples", "status of A", "status of B", "gold", "preds")


def cause_rows(
    report: CompareReport,
) -> Iterator[tuple[tuple[str, ...], list[DisagreementExample]]]:
    """The disagreements by cause, in the columns `CAUSES`, with their examples."""
    for why, group in report.worst():
        cells = (f"{group.count:,}", why.status_a, why.status_b, why.gold_kind, why.preds)
        yield cells, group.examples


def _sections(report: CompareReport) -> Iterator[Section]:
    yield Bars("verdicts", verdicts(report), note=f"{agreement(report)}.")
    note = "Right and mean score: of the samples that both judged. First calls are not timed."
    yield Table("scorers", SCORERS, tuple(map(TableRow, scorer_rows(report))), note=note)
    if report.groups:
        lines = (
            TableRow(cells, tuple(map(_folded, examples))) for cells, examples in cause_rows(report)
        )
        yield Table("disagreements", CAUSES, tuple(lines), note="The most frequent first.")
    if raised := tuple(_raised(report)):
        yield Table("exceptions", ("scorer", "what", "times", "first"), raised)


def _folded(it: DisagreementExample) -> str:
    return f"{it.where}: gold {it.gold!r}, A read {it.pred_a!r}, B read {it.pred_b!r}\n…{it.ending}"


def _raised(report: CompareReport) -> Iterator[TableRow]:
    for side in (report.a, report.b):
        for name, times in side.raised.most_common():
            yield TableRow((side.name, name, f"{times:,}", side.first[name]))
