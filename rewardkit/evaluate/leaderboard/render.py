"""A leaderboard as text, as Markdown, and as a page beside the pages of each run's responses.

Names of runs and data sources enter the page and the Markdown escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment

from rewardkit.errors import OutputError, UsageError
from rewardkit.evaluate.leaderboard.leaderboard import Board, Row
from rewardkit.output import atomic, refuse_existing
from rewardkit.pages.environment import environment
from rewardkit.pages.text import brief, clean
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
    template = _environment().get_template("board.html.j2")
    lines = [(row, cells(board, row), link) for row, link in zip(board.rows, links, strict=True)]
    text = template.render(board=board, title=title(board), head=head(board), lines=lines)
    with atomic(out, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name)[:60]


@cache
def _environment() -> Environment:
    made = environment("rewardkit.evaluate.leaderboard")
    made.filters |= {"brief": brief}
    return made
