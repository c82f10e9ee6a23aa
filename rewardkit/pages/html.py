"""Render pages with the only Jinja environment of the package, and write them.

Every page extends `base.html.j2`. Its policy forbids every request and every script but the one
that is passed here. Every text is escaped.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rewardkit.output import atomic
from rewardkit.pages.charts import histogram_layout
from rewardkit.pages.formulas import show_formulas, show_value
from rewardkit.pages.model import Bars, Cell, Page
from rewardkit.pages.provenance import provenance
from rewardkit.pages.shared_words import mark_shared_words
from rewardkit.pages.text import MAX_CHARACTERS, brief, clean, clip, row_count, share
from rewardkit.redact import process_redactor

#: Maximum number of bars in a section; the last one is the sum of the rest.
MAX_BARS = 20

#: Longest cell, in characters, that is kept on one line.
SHORT_CELL_CHARACTERS = 32


def render(
    template: str,
    *,
    title: str,
    lang: str = "en",
    script: str = "",
    pictures: bool = False,
    **values: object,
) -> Iterator[str]:
    """Render a template that extends `pages/base.html.j2`, piece by piece.

    Args:
        template: path of the template in the package, e.g. `trainlog/page.html.j2`.
        title: title of the page.
        lang: language of the page, for the browser.
        script: JavaScript of the package that the page runs; empty for a page without a script.
        pictures: whether the page has pictures, as data: addresses.
        values: the other values of the template.
    """
    digest = b64encode(sha256(script.encode()).digest()).decode() if script else ""
    code = Markup(script)  # noqa: S704 - a file of the package
    page = _environment().get_template(template)
    return page.generate(
        title=title,
        lang=lang,
        script=code,
        digest=digest,
        pictures=pictures,
        provenance=provenance(),
        **values,
    )


def write_pieces(pieces: Iterable[str], out: Path, *, overwrite: bool) -> None:
    """Write a rendered page to a file.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(map(process_redactor().data, pieces))


def to_html(page: Page) -> str:
    """Return the page as an HTML document without a script, encodable whatever its texts."""
    return "".join(_render_page(page))


def write_html(page: Page, out: Path, *, overwrite: bool) -> None:
    """Write the page to a file; errors as in `write_pieces`."""
    write_pieces(_render_page(page), out, overwrite=overwrite)


def script_json(data: object) -> Markup:
    """Return JSON for a `script` element, which no text in it can end."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped)  # noqa: S704 - escaped in the line above


def _render_page(page: Page) -> Iterator[str]:
    return render("pages/page.html.j2", title=page.title, page=page, pictures=page.has_pictures)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rewardkit", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = {
        "brief": brief,
        "cell_class": _cell_class,
        "clean": clean,
        "clip": clip,
        "histogram_layout": histogram_layout,
        "limited_bars": _limited_bars,
        "number": "{:,}".format,
        "percent": "{:.1%}".format,
        "row_count": row_count,
        "share": share,
        "show_formulas": show_formulas,
        "show_value": show_value,
    }
    environment.filters |= filters
    environment.globals |= {
        "mark_shared_words": mark_shared_words,
        "max_characters": MAX_CHARACTERS,
    }
    return environment


def _limited_bars(section: Bars) -> list[tuple[str, int]]:
    """Return at most `MAX_BARS` bars; the last one is the sum of the others if there are more."""
    if len(section.counts) <= MAX_BARS:
        return list(section.counts)
    rest = section.counts[MAX_BARS - 1 :]
    others = (f"{len(rest):,} others", sum(n for _, n in rest))
    return [*section.counts[: MAX_BARS - 1], others]


def _cell_class(cell: Cell) -> str:
    """CSS class of a cell: `n` aligns a number to the right, `short` keeps a text on one line."""
    if not isinstance(cell, str):
        return "tag" if cell.kind == "badge" else "short"
    if cell.strip(" %+-").replace(",", "").replace(".", "").isdecimal():
        return "n"
    return "short" if len(cell) <= SHORT_CELL_CHARACTERS and "\n" not in cell else ""
