"""Lay out tables as text for a terminal of any width, without breaking a name in two.

A table that is too wide is changed in this order: prose is wrapped at spaces; cells that may stand
alone move to a line below their row; columns that can be spared are left out; the first column gets a
line of its own. What still does not fit becomes a record of `header: value` pairs for each row.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

#: Columns between two cells, and before what stands below a row.
GAP, INDENT = "  ", "  "

#: Columns that wrapped prose keeps at least, and prose that may stand below its row instead.
MIN_PROSE_WIDTH, MIN_WIDTH_BESIDE = 18, 44

#: A character of a script that is written without spaces, or a word, with the full-width brackets
#: before it and the punctuation after it, which do not end and begin a line.
_CJK = r"\u2e80-\u2fff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af\uf900-\ufaff"
_OPENING, _CLOSING = "（【《「『〈〔［｛", "、。，．：；？！）】》」』〉〕］｝％～"
_PIECES = re.compile(
    rf"[{_OPENING}]*(?:[{_CJK}]|[^ \t{_CJK}{_OPENING}{_CLOSING}]+)[{_CLOSING}]*"
    rf"|[ \t]+|[{_OPENING}{_CLOSING}]+"
)


@dataclass(frozen=True)
class TextLayout:
    """A table to lay out: its columns, the cells of its rows, and what may become of the columns.

    Attributes:
        columns: header of each column; the first one names the row.
        rows: cells of each row, as many as columns; a cell may have several lines.
        wrap: columns of prose, which may be wrapped at spaces.
        below: columns whose cells may move to a line below their row.
        spare: columns that may be left out, the least important one first.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wrap: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    spare: tuple[str, ...] = ()


def table_lines(layout: TextLayout, width: int) -> list[str]:
    """Return the lines of a table, of at most `width` columns unless a single word is longer.

    The first line is the header and the second one a rule, but for records, which have neither.
    """
    for has_name_line in (False, True):
        for count in range(len(layout.spare) + 1):
            smaller = _without(layout, layout.spare[:count])
            for below in (frozenset[str](), layout.below):
                lines = _columns(smaller, below, width, has_name_line=has_name_line)
                if lines:
                    return lines
    return list(_records(layout, width))


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
        for piece in _PIECES.findall(paragraph):
            size = text_width(piece)
            if size > room and line.strip():
                lines.append(line.rstrip())
                line, room = "", width
                if piece.isspace():
                    continue
            line, room = line + piece, room - size
        lines.append(line.rstrip())
    return lines


def _without(layout: TextLayout, names: Collection[str]) -> TextLayout:
    """Return the layout without some columns."""
    places = [i for i, name in enumerate(layout.columns) if name not in names]
    return replace(
        layout,
        columns=tuple(layout.columns[i] for i in places),
        rows=tuple(tuple(row[i] for i in places) for row in layout.rows),
    )


def _columns(
    layout: TextLayout, below: Collection[str], width: int, *, has_name_line: bool
) -> list[str]:
    """Return the lines of aligned columns; none if they do not fit.

    Args:
        layout: the table.
        below: columns whose cells stand below their row.
        width: columns of the terminal.
        has_name_line: put the first column on a line of its own, and the others below it.
    """
    names = layout.columns
    places = [i for i, name in enumerate(names) if name not in below and (i or not has_name_line)]
    indent = INDENT if has_name_line else ""
    widths = _widths(layout, places, width - len(indent))
    if not places or widths is None:
        return []
    header = _aligned([wrap_text(names[i], n) for i, n in zip(places, widths, strict=True)], widths)
    lines = [names[0]] if has_name_line else []
    lines += [f"{indent}{line}".rstrip() for line in header]
    body: list[str] = []
    for row in layout.rows:
        if has_name_line:
            body += [line for line in row[0].split("\n") if line]
        cells = [
            wrap_text(row[i], n) if names[i] in layout.wrap else row[i].split("\n")
            for i, n in zip(places, widths, strict=True)
        ]
        body += [f"{indent}{line}".rstrip() for line in _aligned(cells, widths)]
        for name in (name for name in names if name in below):
            text = row[names.index(name)]
            body += [f"{indent}{INDENT}{line}" for line in wrap_text(text, width - 4) if line]
    return [*lines, "─" * min(_widest([*lines, *body]), width), *body]


def _widths(layout: TextLayout, places: Sequence[int], width: int) -> list[int] | None:
    """Return the width of each column; None if even wrapped prose does not fit."""
    least, widths = [], []
    for i in places:
        cells = [layout.columns[i], *(row[i] for row in layout.rows)]
        widest = _widest(line for cell in cells for line in cell.split("\n"))
        if layout.columns[i] not in layout.wrap:
            least.append(widest)
        else:
            widest = min(widest, width)
            word = _widest(piece for cell in cells for piece in _PIECES.findall(cell))
            can_move = layout.columns[i] in layout.below
            least.append(min(widest, max(MIN_WIDTH_BESIDE if can_move else MIN_PROSE_WIDTH, word)))
        widths.append(widest)
    room = width - len(GAP) * (len(places) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        slack = [at for at in range(len(widths)) if widths[at] > least[at]]
        widths[max(slack, key=lambda at: widths[at])] -= 1
    return widths


def _widest(texts: Iterable[str]) -> int:
    return max(map(text_width, texts), default=0)


def _aligned(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row whose cells have several lines."""
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        padded = (
            text + " " * (n - text_width(text)) for text, n in zip(texts, widths, strict=True)
        )
        yield GAP.join(padded).rstrip().replace("\N{NO-BREAK SPACE}", " ")


def _records(layout: TextLayout, width: int) -> Iterator[str]:
    """Yield each row as its name, and the other cells as `header: value` below it."""
    for row in layout.rows:
        yield from row[0].split("\n")
        line = ""
        for name, text in list(zip(layout.columns, row, strict=True))[1:]:
            if not text:
                continue
            pair = " ".join((f"{name}: {text}" if name else text).split())
            longer = f"{line}; {pair}"
            if line and text_width(longer) + len(INDENT) <= width:
                line = longer
                continue
            yield from (f"{INDENT}{part}" for part in wrap_text(line, width - len(INDENT)) if part)
            line = pair
        yield from (f"{INDENT}{part}" for part in wrap_text(line, width - len(INDENT)) if part)
