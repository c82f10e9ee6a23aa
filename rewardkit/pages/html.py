"""A page as one HTML file: no script, nothing fetched, all text escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment

from rewardkit.output import atomic
from rewardkit.pages.compare import compare
from rewardkit.pages.environment import environment
from rewardkit.pages.histogram import picture
from rewardkit.pages.model import Bars, Page
from rewardkit.pages.text import brief, clip, rows, share

#: Bars of a section that are drawn; the others are one bar together.
BARS = 20

#: Characters of a cell that is not broken into lines on a wide screen.
SHORT_CELL = 24


def to_html(page: Page) -> str:
    """The page as an HTML document that fetches nothing and can be encoded whatever its texts."""
    return _environment().get_template("page.html.j2").render(page=page)


def write_html(page: Page, out: Path, *, overwrite: bool) -> None:
    """Write the page to a file.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    text = to_html(page)
    with atomic(out, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@cache
def _environment() -> Environment:
    made = environment("rewardkit.pages")
    made.filters |= {
        "bars": _bars,
        "brief": brief,
        "cell_class": _cell_class,
        "clip": clip,
        "picture": picture,
        "rows": rows,
        "share": share,
    }
    made.globals["compare"] = compare
    return made


def _bars(section: Bars) -> list[tuple[str, int]]:
    """The bars to be drawn, in a page's bounds."""
    if len(section.counts) <= BARS:
        return list(section.counts)
    rest = section.counts[BARS - 1 :]
    others = (f"{len(rest):,} others", sum(n for _, n in rest))
    return [*section.counts[: BARS - 1], others]


def _cell_class(cell: str) -> str:
    """Numbers go to the right; short cells stay on one line, so that long ones get the room."""
    if cell.strip(" %+-").replace(",", "").replace(".", "").isdecimal():
        return "n"
    return "short" if len(cell) <= SHORT_CELL and "\n" not in cell else ""
