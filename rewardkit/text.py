"""Texts of any origin on a line, in a terminal and on a page; templates of pages escape them as well."""

import re

#: Characters that Unicode calls not printable, which readers expect unchanged.
_ALLOWED = frozenset("\n\t\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}\N{ZERO WIDTH JOINER}")

#: A character of a script that is written without spaces, or a word, with the full-width brackets
#: before it and the punctuation after it, which do not end and begin a line.
_CJK = r"\u2e80-\u2fff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af\uf900-\ufaff"
_OPENING, _CLOSING = "（【《「『〈〔［｛", "、。，．：；？！）】》」』〉〕］｝％～"
WORDS = re.compile(
    rf"[{_OPENING}]*(?:[{_CJK}]|[^ \t{_CJK}{_OPENING}{_CLOSING}]+)[{_CLOSING}]*"
    rf"|[ \t]+|[{_OPENING}{_CLOSING}]+"
)


def printable(text: str) -> str:
    """Escape characters that would drive a terminal, or that a file cannot contain or nobody would see.

    These are NUL and other controls, lone surrogates, and marks that change the direction of writing
    or have no width.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _ALLOWED else ascii(c)[1:-1] for c in text)


def brief(text: str, most: int = 160) -> str:
    """Return the start of a text on one line, for places without a part to unfold."""
    line = " ".join(text[: 2 * most].split())
    is_whole = len(line) <= most and len(text) <= 2 * most
    return printable(line) if is_whole else f"{printable(line[:most])}…"


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def row_count(n: int) -> str:
    """Return `1 row` or `1,200 rows`."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def percentage(part: int, whole: int) -> str:
    """Return a fraction such as `12.3%`; only 0 of `whole` is 0.0%, and only all of it is 100.0%."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "< 0.1%"
    if 99.9 < percent < 100:
        return "> 99.9%"
    return f"{percent:.1f}%"


def count_of(part: int, whole: int) -> str:
    """Return a count with its percentage of a whole: `3 (12.0%)`."""
    return f"{part:,} ({percentage(part, whole)})"


def text_width(text: str) -> int:
    """Return the columns that a line takes in a terminal; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text into lines at spaces and between Chinese characters; no word is broken."""
    lines = []
    for paragraph in text.split("\n"):
        line, room = "", width
        for piece in WORDS.findall(paragraph):
            size = text_width(piece)
            if size > room and line.strip():
                lines.append(line.rstrip())
                line, room = "", width
                if piece.isspace():
                    continue
            line, room = line + piece, room - size
        lines.append(line.rstrip())
    return lines
