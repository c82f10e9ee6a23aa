"""The report of `select` as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit.pages.model import Bars, Histogram, Page, Section, Steps
from rewardkit.pages.text import row_count, sentence, share
from rewardkit.preprocess.dropped_rows import dropped_path
from rewardkit.responses.select.report import SelectReport, SftReport


def select_page(report: SelectReport) -> Page:
    """Return the page of a selection."""
    condition = report.wanted
    facts = (
        ("training file", str(report.train)),
        ("scored responses", str(report.scored)),
        ("written", str(report.out)),
        ("pass rate kept", f"{condition.low:g} to {condition.high:g}"),
        ("responses at least", f"{condition.min_samples:,}"),
        ("rows with fewer", "kept" if condition.unseen else "dropped"),
    )
    title = f"{report.out.name}: {report.written:,} of {row_count(report.rows)} kept"
    return Page(title, facts, tuple(_sections(report)))


def match_sentence(report: SelectReport | SftReport) -> str:
    """Return a sentence with the number of responses by the way they match a row."""
    ways = [f"{n:,} by {way}" for way, n in report.responses.most_common()]
    return f"responses matched to rows: {', '.join(ways)}; matched to none: {report.unjoined:,}"


def groups_sentence(report: SelectReport) -> str:
    """Return a sentence with the number of groups without a gradient, as `report` counts them."""
    groups = report.groups
    return (
        f"groups without a gradient: {groups.without_gradient:,} of {groups.n:,} "
        f"({share(groups.without_gradient, groups.n)}); a group is the responses to one prompt at one "
        "step, two or more"
    )


def _sections(report: SelectReport) -> Iterator[Section]:
    note = f"{dropped_path(report.out)} has the dropped rows with their pass rates."
    yield Steps("Rows left after each step", tuple(_steps(report)), note)
    note = f"{sentence(groups_sentence(report))} Rows with too few responses are not counted below."
    yield Bars("Rows by pass rate over all steps", tuple(report.bands().items()), note)
    yield Histogram("Pass rates in percent", report.percents, "percent correct")
    yield Bars(
        "Responses matched to rows",
        _responses_by_match(report),
        sentence(match_sentence(report)),
        "responses",
    )


def _steps(report: SelectReport) -> Iterator[tuple[str, int]]:
    n_left = report.rows
    yield "training rows", n_left
    for reason, n in report.dropped.items():
        n_left -= n
        yield f"dropped: {reason}", n_left


def _responses_by_match(report: SelectReport) -> tuple[tuple[str, int], ...]:
    ways = tuple((f"matched by {way}", n) for way, n in report.responses.most_common())
    return *ways, ("matched to no row", report.unjoined), ("not read", report.unread)
