"""A leaderboard as text, Markdown and an HTML page. Names are escaped in the last two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.evaluate.leaderboard import Leaderboard, LeaderboardRow
from rewardkit.output import require_absent
from rewardkit.pages.html import write_html
from rewardkit.pages.model import Page, Section, ShareBar, Table, TableRow
from rewardkit.pages.text import clean
from rewardkit.statistics import Interval

_MARKS = {"best": "*", "near": "~", "": ""}


def leaderboard_title(leaderboard: Leaderboard) -> str:
    """Return the metric of the cells with its interval: `pass@8 [95 %]`."""
    return f"{leaderboard.metric} [95 %]"


def column_names(leaderboard: Leaderboard) -> list[str]:
    """Return the names of the columns after the run's."""
    average = ["average"] if len(leaderboard.columns) > 1 else []
    return [*average, *(source or "(none)" for source in leaderboard.columns)]


def row_cells(leaderboard: Leaderboard, row: LeaderboardRow) -> list[str]:
    """Return a row's cells, such as `61.2* [58.0, 64.3]`; with several, the average comes first."""
    return [_format_value(*value) if value else "" for value in _row_values(leaderboard, row)]


def _row_values(
    leaderboard: Leaderboard, row: LeaderboardRow
) -> Iterator[tuple[float, Interval, str] | None]:
    """Yield value, interval and mark of a row's cells; None for an empty cell."""
    if len(leaderboard.columns) > 1:
        yield (*row.average, "") if row.average else None
    for source in leaderboard.columns:
        cell = row.cells.get(source)
        yield (cell.value, cell.interval, _MARKS[cell.mark]) if cell else None


def _format_value(value: float, interval: Interval, mark: str = "") -> str:
    low, high = interval
    return f"{100 * value:.1f}{mark} [{100 * low:.1f}, {100 * high:.1f}]"


def to_markdown(leaderboard: Leaderboard) -> str:
    """Return the leaderboard as a Markdown table followed by its notes."""
    names = ["run", *column_names(leaderboard)]
    lines = [[row.run.name, *row_cells(leaderboard, row)] for row in leaderboard.rows]
    table = [names, ["---"] * len(names), *lines]
    legend = (
        f"{leaderboard_title(leaderboard)} over questions; *: best, ~: the difference to the best "
        "may be chance."
    )
    return "\n".join(
        [
            *("| " + " | ".join(map(_escape_markdown, line)) + " |" for line in table),
            "",
            _escape_markdown(legend),
            *(f"- {_escape_markdown(note)}" for note in leaderboard.notes),
        ]
    )


def _escape_markdown(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if line == "---" else re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", line)


def require_new_page(out: Path, *, overwrite: bool) -> None:
    """Raise before the work if the page cannot be written.

    Raises:
        OutputError: it exists and `overwrite` is False.
        UsageError: its name does not end in .html.
    """
    if out.suffix != ".html":
        raise UsageError(f"--html {out}: the name must end in .html.")
    require_absent(out, overwrite=overwrite)


def write_leaderboard_page(leaderboard: Leaderboard, out: Path, *, overwrite: bool) -> None:
    """Write the leaderboard as an HTML page.

    Raises:
        OutputError: the page exists and `overwrite` is False, or it cannot be written.
    """
    require_new_page(out, overwrite=overwrite)
    sections = (_score_table(leaderboard), _rate_table(leaderboard), _model_table(leaderboard))
    page = Page(_verdict(leaderboard), tuple(_facts(leaderboard)), sections, leaderboard.notes)
    write_html(page, out, overwrite=overwrite)


def _verdict(leaderboard: Leaderboard) -> str:
    """Return the first run with its metric in a sentence."""
    first = leaderboard.rows[0]
    value = next(_row_values(leaderboard, first))
    if not value:  # no run has all data sources
        return f"{len(leaderboard.rows)} runs by {leaderboard_title(leaderboard)}"
    several = len(leaderboard.columns) > 1
    where = "on average" if several else f"on {leaderboard.columns[0] or '(none)'}"
    leads = " leads" if len(leaderboard.rows) > 1 else ""
    low, high = value[1]
    return (
        f"{first.run.name}{leads}: {leaderboard.metric} of {value[0]:.1%} {where} "
        f"({100 * low:.1f} to {high:.1%})"
    )


def _facts(leaderboard: Leaderboard) -> Iterator[tuple[str, str]]:
    yield "metric", leaderboard.metric
    yield "runs", f"{len(leaderboard.rows):,}"
    yield "data sources", f"{len(leaderboard.columns):,}"
    for source in leaderboard.columns:
        marks = leaderboard.marks(source)
        near = list(marks.values()).count("near")
        if best := [name for name, mark in marks.items() if mark == "best"]:
            others = f" ({near} other{'s' * (near > 1)} within chance)" if near else ""
            yield f"best on {source or '(none)'}", f"{best[0]}{others}"


def _score_table(leaderboard: Leaderboard) -> Section:
    rows = []
    for row in leaderboard.rows:
        values = list(_row_values(leaderboard, row))
        cells = (
            ShareBar(_format_value(*value), value[0], *value[1]) if value else ""
            for value in values
        )
        bold = tuple(i for i, value in enumerate(values, start=1) if value and value[2] == "*")
        rows.append(TableRow((row.run.name, *cells), bold=bold))
    note = (
        "Percent, with the 95% interval over questions in brackets and as a line on the bar. "
        "*: best of its column. ~: the difference to the best, question by question, may be chance "
        "(paired t-test, p of 0.05 or more, not corrected for the number of runs). The average "
        "weights every data source equally."
    )
    return Table("Scores", ("run", *column_names(leaderboard)), tuple(rows), note=note)


def _rate_table(leaderboard: Leaderboard) -> Section:
    headers = ("run", "data source", "questions", "n", "truncated", "no answer", "mean tokens")
    rows = (
        TableRow((row.run.name, source or "(none)", *_rate_cells(cell.rates)))
        for row in leaderboard.rows
        for source, cell in row.cells.items()
    )
    return Table("Questions and responses", headers, tuple(rows))


def _rate_cells(rates: Mapping[str, Any]) -> tuple[str, ...]:
    (fewest, most), tokens, truncated = rates["n"], rates["mean_tokens"], rates["truncated"]
    return (
        f"{rates['questions']:,}",
        f"{fewest}" if fewest == most else f"{fewest} to {most}",
        "unknown" if truncated is None else f"{truncated:.1%}",
        f"{rates['no_answer']:.1%}",
        "unknown" if tokens is None else f"{tokens:,.0f}",
    )


def _model_table(leaderboard: Leaderboard) -> Section:
    rows = []
    for row in leaderboard.rows:
        for origin in row.run.origins():
            sampling = ", ".join(f"{name} {v}" for name, v in (origin["sampling"] or {}).items())
            cells = row.run.name, str(origin["model"] or ""), sampling, f"{origin['responses']:,}"
            rows.append(TableRow(cells))
    headers = ("run", "model", "sampling", "responses")
    return Table("Models and sampling", headers, tuple(rows))
