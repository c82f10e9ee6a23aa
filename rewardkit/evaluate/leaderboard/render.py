"""A leaderboard as text, as Markdown, and as a page beside the pages of each run's responses.

Names of runs and data sources enter the page and the Markdown escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rewardkit.errors import OutputError, UsageError
from rewardkit.evaluate.leaderboard.leaderboard import Board, Row
from rewardkit.output import refuse_existing
from rewardkit.pages.html import write_html
from rewardkit.pages.model import Page, Section, Table, TableRow
from rewardkit.pages.text import clean
from rewardkit.responses.report.page import write_report

#: Responses that a run's page holds, an even sample if there are more; its figures count all.
RESPONSES = 5_000

_MARKS = {"best": "*", "near": "~", "": ""}


def title(board: Board) -> str:
    """What the cells are."""
    return f"{board.figure} [95 %]"


def head(board: Board) -> list[str]:
    """The names of the columns after the run's."""
    average = ["average"] if len(board.columns) > 1 else []
    return [*average, *(source or "(none)" for source in board.columns)]


def cells(board: Board, row: Row) -> list[str]:
    """A row's cells as in `61.2* [58.0, 64.3]`, the average first if there are several."""
    average = [] if len(board.columns) < 2 else [_value(*row.average) if row.average else ""]
    found = (row.cells.get(source) for source in board.columns)
    return [
        *average,
        *(_value(cell.value, cell.interval, _MARKS[cell.mark]) if cell else "" for cell in found),
    ]


def _value(value: float, interval: tuple[float, float], mark: str = "") -> str:
    low, high = interval
    return f"{100 * value:.1f}{mark} [{100 * low:.1f}, {100 * high:.1f}]"


def to_markdown(board: Board) -> str:
    """The board as a Markdown table with its notes below."""
    names = ["run", *head(board)]
    lines = [[row.run.name, *cells(board, row)] for row in board.rows]
    table = [names, ["---"] * len(names), *lines]
    said = f"{title(board)} over questions; * best, ~ the difference to it may be chance."
    return "\n".join(
        [
            *("| " + " | ".join(map(_markdown, line)) + " |" for line in table),
            "",
            _markdown(said),
            *(f"- {_markdown(note)}" for note in board.notes),
        ]
    )


def _markdown(text: str) -> str:
    """A text as itself in a cell."""
    line = " ".join(clean(text).split())
    return line if line == "---" else re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", line)


def refuse_existing_page(out: Path, *, overwrite: bool) -> None:
    """Raise before the work if the page or the folder beside it is there already.

    Raises:
        OutputError: it is, and `overwrite` is False.
        UsageError: the page is not called .html.
    """
    if out.suffix != ".html":
        raise UsageError(f"--html {out}: write .html; that is no name of a page.")
    refuse_existing(out, overwrite=overwrite)
    folder = responses_folder(out)
    if folder.exists() and not overwrite:
        raise OutputError(f"{folder} exists; add --overwrite to replace the pages in it.")


def responses_folder(out: Path) -> Path:
    """Where the pages with responses lie, beside the board's."""
    return out.with_name(f"{out.stem}.responses")


def write_page(
    board: Board,
    out: Path,
    *,
    overwrite: bool,
    progress: Callable[[int], object] = lambda _: None,
) -> None:
    """Write the board as a page, and every run's responses as a page in the folder beside it.

    Raises:
        OutputError: one exists and `overwrite` is False, or cannot be written.
    """
    refuse_existing_page(out, overwrite=overwrite)
    folder, links = responses_folder(out), []
    for former in folder.glob("[0-9]*-*.html"):  # of a board with other runs
        former.unlink()
    for place, row in enumerate(board.rows, 1):
        page = folder / f"{place}-{_plain(row.run.name)}.html"
        write_report(
            row.run.files,
            page,
            max_responses=RESPONSES,
            overwrite=overwrite,
            progress=progress,
        )
        links.append(f"{quote(folder.name)}/{quote(page.name)}")
    write_html(board_page(board, links), out, overwrite=overwrite)


def board_page(board: Board, links: Sequence[str]) -> Page:
    """Return the page of a board; `links` are the relative URLs of the runs' pages, row by row."""
    sections = (_scores(board, links), _rates(board), _models(board))
    return Page(f"Leaderboard: {title(board)}", (), sections, board.notes)


def _scores(board: Board, links: Sequence[str]) -> Section:
    rows = []
    for row, link in zip(board.rows, links, strict=True):
        texts = (row.run.name, *cells(board, row))
        bold = tuple(i for i, cell in enumerate(texts) if i and "*" in cell)
        rows.append(TableRow(texts, link=link, bold=bold))
    note = (
        "In brackets: the 95% interval over questions. *: best of its column. ~: the difference to "
        "the best, question by question, may be chance (paired t-test, p of 0.05 or more, not "
        "corrected for the number of runs). The average weights every data source equally."
    )
    return Table("scores", ("run", *head(board)), tuple(rows), note=note)


def _rates(board: Board) -> Section:
    headers = ("run", "data source", "questions", "n", "truncated", "no answer", "mean tokens")
    rows = (
        TableRow((row.run.name, source or "(none)", *_rate_cells(rates)))
        for row, sources in board.rates()
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


def _models(board: Board) -> Section:
    rows = (
        TableRow((row.run.name, key, f"{n:,}"))
        for row in board.rows
        for key, n in row.run.keys.most_common()
    )
    return Table("models and sampling", ("run", "model and sampling", "responses"), tuple(rows))


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)[:60]
