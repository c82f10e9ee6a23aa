"""Texts of any kind and length, made fit to be shown. Escaping is the template's work."""

from __future__ import annotations

from dataclasses import dataclass

#: Characters of a text that a page holds.
KEPT = 2000

#: Characters and lines of a text that is shown without being opened.
SHORT = 240
SHORT_LINES = 5

#: Not printable by Unicode's count, and yet what a reader expects to see as it is.
_SEEN = frozenset("\n\t\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}\N{ZERO WIDTH JOINER}")


@dataclass(frozen=True)
class Clipped:
    """A text to be shown.

    Attributes:
        head: what is shown at first; all of the text if it is short.
        body: what is shown when it is opened; empty if there is nothing to open.
        cut: how many characters even that leaves out.
    """

    head: str
    body: str = ""
    cut: int = 0


def clean(text: str) -> str:
    """The text with what a page must not hold, or a reader would not see, written as an escape.

    Those are NUL and other controls, lone surrogates (no file can hold them), and marks that turn
    the direction of writing or take no room.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _SEEN else ascii(c)[1:-1] for c in text)


def brief(text: str, kept: int = 160) -> str:
    """The start of a text on one line, for where nothing can be opened."""
    line = " ".join(text[: 2 * kept].split())
    whole = len(line) <= kept and len(text) <= 2 * kept
    return clean(line) if whole else f"{clean(line[:kept])}…"


def clip(text: str) -> Clipped:
    """The text as it is if it is short, else a start and as much as a page keeps."""
    if len(text) <= SHORT and text.count("\n") < SHORT_LINES:
        return Clipped(clean(text))
    return Clipped(brief(text), clean(text[:KEPT]), max(0, len(text) - KEPT))


def rows(n: int) -> str:
    """`1 row`, `1,200 rows`."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def share(part: int, whole: int) -> str:
    """`12.3%`; something is never 0%, and not all is never 100%."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "< 0.1%"
    if 99.9 < percent < 100:
        return "> 99.9%"
    return f"{percent:.1f}%"
