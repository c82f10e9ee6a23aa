"""Render pages with the only Jinja environment of the package, and write them.

Every page extends `base.html.j2`. Its policy forbids every request and every script but the one
that is passed here. Every text is escaped, and the footer names version, date and command.
"""

import json
import os
import re
import shlex
import sys
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rewardkit.output import atomic
from rewardkit.pages.charts import make_bins
from rewardkit.pages.formulas import show_formulas, show_value
from rewardkit.pages.model import Bars, Histogram, Page
from rewardkit.redact import process_redactor
from rewardkit.table import Badge, FractionBar
from rewardkit.text import brief, percentage, printable, row_count
from rewardkit.versions import VERSION

#: Characters of a command that a page shows.
MAX_COMMAND_CHARACTERS = 400

#: Maximum number of bars in a section; the last one is the sum of the rest.
MAX_BARS = 20

#: Longest cell, in characters, that is kept on one line.
SHORT_CELL_CHARACTERS = 32

#: Characters of a text that a page holds.
MAX_CHARACTERS = 2000

#: Characters and lines of a text that is shown without being unfolded.
SHORT_CHARACTERS = 240
SHORT_LINES = 5

#: Shortest run of shared words that is marked: any two texts share single words.
MIN_RUN_WORDS = 3

#: Words of a text that are compared: difflib takes quadratic time for hostile texts.
MAX_COMPARED_WORDS = 500

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

#: Each Chinese or Japanese character is a word; operators distinguish formulas.
_WORD = re.compile(rf"[{_CJK}]|\d+|[^\W\d_{_CJK}]+|[-+*/^=<>]")


class Provenance(NamedTuple):
    """The origin of a page; `command` is "" for a page that a library call wrote."""

    version: str
    date: str
    command: str


def provenance() -> Provenance:
    """Return the origin of a page that this process writes now.

    The time is that of `SOURCE_DATE_EPOCH` if it is set (reproducible-builds.org), so that the same
    command writes the same bytes.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    is_valid = re.fullmatch("[0-9]{1,11}", text)  # up to the year 5138
    seconds = float(text) if is_valid else time.time()
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    return Provenance(VERSION, date, _command())


def _command() -> str:
    """Return the command line if it is ours, with secrets hidden."""
    program = Path(sys.argv[0] if sys.argv else "")
    is_ours = program.stem == "rewardkit" or program.parts[-2:] == ("rewardkit", "__main__.py")
    if not is_ours:
        return ""
    redactor = process_redactor()
    line = shlex.join(["rewardkit", *(redactor.text(argument) for argument in sys.argv[1:])])
    return brief(redactor.text(line), MAX_COMMAND_CHARACTERS)


def render(
    template: str,
    *,
    title: str,
    lang: str = "en",
    script: str = "",
    images: bool = False,
    **values: object,
) -> Iterator[str]:
    """Render a template that extends `pages/base.html.j2`, piece by piece.

    Args:
        template: path of the template in the package, e.g. `trainlog/page.html.j2`.
        title: title of the page.
        lang: language of the page, for the browser.
        script: JavaScript of the package that the page runs; empty for a page without a script.
        images: whether the page has images, as data: addresses.
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
        images=images,
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
    return render("pages/page.html.j2", title=page.title, page=page, images=page.has_images)


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
        "clip": clip,
        "histogram_bars": _histogram_bars,
        "kind": lambda part: type(part).__name__.lower(),
        "limited_bars": _limited_bars,
        "number": "{:,}".format,
        "percent": "{:.1%}".format,
        "percentage": percentage,
        "printable": printable,
        "row_count": row_count,
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


def _histogram_bars(section: Histogram) -> list[tuple[str, int]]:
    """Return the bins of a histogram as bars."""
    bins = make_bins(section.counts, section.limit)
    return [(f"{low:,}" if low == high else f"{low:,} to {high:,}", n) for low, high, n in bins]


def _cell_class(cell: object) -> str:
    """CSS class of a cell: `n` aligns a number to the right, `short` keeps a text on one line."""
    text = str(cell)
    if isinstance(cell, Badge):
        return "tag"
    if text.strip(" %+-").replace(",", "").replace(".", "").isdecimal():
        return "n"
    is_short = len(text) <= SHORT_CELL_CHARACTERS and "\n" not in text
    return "short" if is_short or isinstance(cell, FractionBar) else ""


@dataclass(frozen=True)
class ClippedText:
    """A text to show: what is visible at first, what unfolding shows, and how much that leaves out."""

    head: str
    body: str = ""
    cut: int = 0


def clip(text: str) -> ClippedText:
    """Return a short text unchanged, of a longer one its start and up to `MAX_CHARACTERS`."""
    if len(text) <= SHORT_CHARACTERS and text.count("\n") < SHORT_LINES:
        return ClippedText(printable(text))
    return ClippedText(
        brief(text), printable(text[:MAX_CHARACTERS]), max(0, len(text) - MAX_CHARACTERS)
    )


def mark_shared_words(left: str, right: str) -> list[list[tuple[str, bool]]]:
    """Return the pieces of the start of both texts, each with whether the other text has it, too.

    A piece that both have is a run of `MIN_RUN_WORDS` words or more, in the same order in both. Case,
    space and punctuation do not count.
    """
    words = [
        list(_WORD.finditer(text[:MAX_CHARACTERS]))[:MAX_COMPARED_WORDS] for text in (left, right)
    ]
    plain = [[word[0].casefold() for word in own] for own in words]
    size = max(1, min(MIN_RUN_WORDS, *map(len, plain)))
    blocks = SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_matching_blocks()
    runs = [(block[:2], block.size) for block in blocks if block.size >= size]
    sides = []
    for side, text in enumerate((left, right)):
        own = words[side]
        ends = [
            offset
            for starts, count in runs
            for offset in (own[starts[side]].start(), own[starts[side] + count - 1].end())
        ]
        offsets = [0, *ends, min(len(text), MAX_CHARACTERS)]
        pieces = ((printable(text[a:b]), i % 2 == 1) for i, (a, b) in enumerate(pairwise(offsets)))
        sides.append([piece for piece in pieces if piece[0]])
    return sides
