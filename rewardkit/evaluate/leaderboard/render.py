"""A leaderboard as text, Markdown and an HTML page. Names are escaped in the last two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.evaluate.leaderboard.leaderboard import Leaderboard, LeaderboardRow
from rewardkit.output import require_absent
from rewardkit.pages.html import write_html
from rewardkit.pages.model import Page, Section, Table, TableRow
from rewardkit.pages.text import clean

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
    average = []
    if len(leaderboard.columns) > 1:
        average = [_format_value(*row.average) if row.average else ""]
    cells = (row.cells.get(source) for source in leaderboard.columns)
    return [
        *average,
        *(
            _format_value(cell.value, cell.interval, _MARKS[cell.mark]) if cell else ""
            for cell in cells
        ),
    ]


def _format_value(value: float, interval: tuple[float, float], mark: str = "") -> str:
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
    title = f"Leaderboard: {leaderboard_title(leaderboard)}"
    write_html(Page(title, (), sections, leaderboard.notes), out, overwrite=overwrite)


def _score_table(leaderboard: Leaderboard) -> Section:
    rows = []
    for row in leaderboard.rows:
        texts = (row.run.name, *row_cells(leaderboard, row))
        bold = tuple(i for i, cell in enumerate(texts) if i and "*" in cell)
        rows.append(TableRow(texts, bold=bold))
    note = (
        "In brackets: the 95% interval over questions. *: best of its column. ~: the difference to "
        "the best, question by question, may be chance (paired t-test, p of 0.05 or more, not "
        "corrected for the number of runs). The average weights every data source equally."
    )
    return Table("scores", ("run", *column_names(leaderboard)), tuple(rows), note=note)


def _rate_table(leaderboard: Leaderboard) -> Section:
    headers = ("run", "data source", "questions", "n", "truncated", "no answer", "mean tokens")
    rows = (
        TableRow((row.run.name, source or "(none)", *_rate_cells(rates)))
        for row, sources in leaderboard.rates()
        for source, rates in sources.items()
    )
    return Table("questions and responses", headers, tuple(rows))


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
    rows = (
        TableRow((row.run.name, key, f"{n:,}"))
        for row in leaderboard.rows
        for key, n in row.run.keys.most_common()
    )
    return Table("models and sampling", ("run", "model and sampling", "responses"), tuple(rows))
