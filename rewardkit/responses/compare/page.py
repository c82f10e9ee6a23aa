"""The report of `compare` as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit.pages.model import Bars, Page, Section, Table, TableRow
from rewardkit.pages.text import sentence, share
from rewardkit.responses.compare.comparison import CompareReport, DisagreementExample
from rewardkit.statistics import wilson_interval


def compare_page(report: CompareReport) -> Page:
    """Return the page of a comparison."""
    facts = (
        ("file", report.name),
        ("A", report.a.name),
        ("B", report.b.name),
        *((name, f"{n:,}") for name, n in verdicts(report) if name.startswith("only")),
        ("judged by both", f"{report.judged:,}"),
        ("rows without a usable response", f"{report.unread:,}"),
    )
    title = (
        f"{report.short_name}: A and B agree on {share(report.agreed, report.judged)} "
        f"of {report.judged:,} samples"
    )
    return Page(title, facts, tuple(_sections(report)))


def agreement(report: CompareReport) -> str:
    """Return a sentence with the agreement of two scorers, and the test whether one is laxer."""
    low, high = wilson_interval(report.agreed, report.judged)
    return (
        f"agreement {share(report.agreed, report.judged)} (95% interval {low:.1%} to {high:.1%}); "
        f"McNemar's exact test: {p_text(report.p_value)}"
    )


def p_text(p: float) -> str:
    """Return a p-value as `p = 0.0012`."""
    return f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"


def verdicts(report: CompareReport) -> tuple[tuple[str, int], ...]:
    """Return the cells of the confusion table."""
    return (
        ("both correct", report.outcomes[True, True]),
        ("only A correct", report.outcomes[True, False]),
        ("only B correct", report.outcomes[False, True]),
        ("neither correct", report.outcomes[False, False]),
    )


def scorer_rows(report: CompareReport) -> Iterator[tuple[str, ...]]:
    """Yield a row for each scorer, in the columns `SCORER_COLUMNS`."""
    for letter, calls, place in (("A", report.a, 0), ("B", report.b, 1)):
        accepted, speed = report.accepted_by(place), calls.speed()
        yield (
            f"{letter}: {calls.name}",
            f"{accepted:,} ({share(accepted, report.judged)})",
            f"{calls.score_sum / max(report.judged, 1):.4f}",
            f"{speed['median_us']:,.1f}",
            f"{speed['p99_us']:,.1f}",
            f"{speed['calls_per_second']:,.0f}",
            f"{calls.raised.total():,}",
        )


#: Headers of `scorer_rows` and `cause_rows`.
SCORER_COLUMNS = ("scorer", "correct", "mean score", "median µs", "p99 µs", "calls/s", "raised")
CAUSE_COLUMNS = ("samples", "status of A", "status of B", "gold", "preds")


def cause_rows(
    report: CompareReport,
) -> Iterator[tuple[tuple[str, ...], list[DisagreementExample]]]:
    """Yield the disagreements by cause, in the columns `CAUSE_COLUMNS`, with their examples."""
    for cause, group in report.worst():
        kind, preds = cause.gold_kind, cause.preds
        cells = (f"{group.count:,}", cause.status_a, cause.status_b, kind, preds)
        yield cells, group.examples


def _sections(report: CompareReport) -> Iterator[Section]:
    yield Bars("Verdicts", verdicts(report), note=sentence(agreement(report)), unit="samples")
    note = "Correct and mean score count the samples that both judged. First calls are not timed."
    yield Table("Scorers", SCORER_COLUMNS, tuple(map(TableRow, scorer_rows(report))), note=note)
    if report.groups:
        lines = (
            TableRow(cells, tuple(map(_example_text, examples)))
            for cells, examples in cause_rows(report)
        )
        yield Table(
            "Disagreements by cause",
            CAUSE_COLUMNS,
            tuple(lines),
            formulas=True,
            note="The most frequent first.",
        )
    if raised := tuple(_raised(report)):
        yield Table("Exceptions", ("scorer", "exception", "times", "first"), raised)


def _example_text(example: DisagreementExample) -> str:
    preds = f"A read '{example.pred_a}', B read '{example.pred_b}'"
    return f"{example.where}: gold '{example.gold}', {preds}\n…{example.ending}"


def _raised(report: CompareReport) -> Iterator[TableRow]:
    for calls in (report.a, report.b):
        for name, times in calls.raised.most_common():
            yield TableRow((calls.name, name, f"{times:,}", calls.first[name]))
