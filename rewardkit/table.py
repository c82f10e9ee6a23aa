"""A table for a terminal of any width, a page (`rewardkit.pages`) and Markdown.

For a terminal, a table that is too wide is changed in this order: prose is wrapped at spaces; cells that
may stand alone move to a line below their row; columns that can be spared are left out; the first column
gets a line of its own. What still does not fit becomes a record of `header: value` pairs for each row. No
name is broken in two.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from rewardkit.text import WORDS, printable, text_width, wrap_text

#: Columns between two cells, and before what stands below a row.
GAP, INDENT = "  ", "  "

#: Columns that wrapped prose keeps at least, and prose that may stand below its row instead.
MIN_PROSE_WIDTH, MIN_WIDTH_BESIDE = 18, 44

#: How good or bad something is; the colour of a badge.
Level: TypeAlias = Literal["good", "neutral", "warning", "error"]


@dataclass(frozen=True)
class Badge:
    """A word in a coloured frame. The word alone says what the colour says."""

    text: str
    level: Level = "neutral"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class FractionBar:
    """A fraction from 0 to 1 with the ends of its interval: a text, on a page above a bar."""

    text: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Rows under headers; a cell is a badge, a bar or any value with a text, never markup.

    Attributes:
        columns: header of each column; the first one names the row.
        rows: cells of each row, as many as columns; a cell may have several lines.
        title: a line above the table.
        wrap: in a terminal, columns of prose, which may be wrapped at spaces.
        below: in a terminal, columns whose cells may move to a line below their row.
        spare: in a terminal, columns that may be left out, the least important one first.
        note: on a page, a sentence or two under the title.
        details: on a page, examples folded away below each row.
        formulas: whether the details show LaTeX as formulas.
        bold: on a page, row and column of cells in bold.
        fold: on a page, words under which the whole table is folded away.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    wrap: Collection[str] = ()
    below: Collection[str] = ()
    spare: Sequence[str] = ()
    note: str = ""
    details: Sequence[Sequence[str]] = ()
    formulas: bool = False
    bold: Collection[tuple[int, int]] = ()
    fold: str = ""

    def lines(self, width: int) -> list[str]:
        """Return the table for a terminal, in lines of at most `width` columns unless a word is longer.

        After the title, the first line is the header and the second one a rule, but for records, which
        have neither.
        """
        table = replace(
            self,
            columns=list(map(printable, self.columns)),
            rows=[[printable(str(cell)) for cell in row] for row in self.rows],
        )
        title = wrap_text(printable(self.title), width) if self.title else []
        for has_name_line in (False, True):
            for count in range(len(self.spare) + 1):
                for below in ((), self.below):
                    outside = {*self.spare[:count], *below}
                    indices = [i for i, name in enumerate(self.columns) if name not in outside]
                    if lines := _columns(table, indices, below, width, has_name_line=has_name_line):
                        return [*title, *lines]
        return [*title, *_records(table, width)]

    def markdown(self) -> str:
        """Return the table in Markdown, without its title."""
        return "".join(
            f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |\n"
            for row in (self.columns, ["---"] * len(self.columns), *self.rows)
        )


def _columns(
    table: Table, indices: list[int], below: Collection[str], width: int, *, has_name_line: bool
) -> list[str]:
    """Return the lines of aligned columns; none if they do not fit.

    Args:
        table: the table, its cells strings.
        indices: the columns side by side; others stand below their row, or are left out.
        below: the columns that stand below their row.
        width: columns of the terminal.
        has_name_line: put the first column on a line of its own, and the others below it.
    """
    indices = indices[has_name_line:]
    indent = INDENT if has_name_line else ""
    widths = _widths(table, indices, width - len(indent))
    if not indices or widths is None:
        return []
    columns = list(zip(indices, widths, strict=True))
    header = _aligned([wrap_text(table.columns[i], n) for i, n in columns], widths)
    head = [table.columns[0]] if has_name_line else []
    head += [f"{indent}{line}".rstrip() for line in header]
    body: list[str] = []
    for row in table.rows:
        if has_name_line:
            body += [line for line in row[0].split("\n") if line]
        cells = [
            wrap_text(row[i], n) if table.columns[i] in table.wrap else row[i].split("\n")
            for i, n in columns
        ]
        body += [f"{indent}{line}".rstrip() for line in _aligned(cells, widths)]
        for name, text in zip(table.columns, row, strict=True):
            if name in below:
                body += [f"{indent}{INDENT}{line}" for line in wrap_text(text, width - 4) if line]
    return [*head, "─" * min(_widest([*head, *body]), width), *body]


def _widths(table: Table, indices: Sequence[int], width: int) -> list[int] | None:
    """Return the width of each column; None if even wrapped prose does not fit."""
    least, widths = [], []
    for i in indices:
        name = table.columns[i]
        cells = [name, *(row[i] for row in table.rows)]
        widest = _widest(line for cell in cells for line in cell.split("\n"))
        if name not in table.wrap:
            least.append(widest)
        else:
            widest = min(widest, width)
            word = _widest(piece for cell in cells for piece in WORDS.findall(cell))
            beside = MIN_WIDTH_BESIDE if name in table.below else MIN_PROSE_WIDTH
            least.append(min(widest, max(beside, word)))
        widths.append(widest)
    room = width - len(GAP) * (len(indices) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        slack = [i for i in range(len(widths)) if widths[i] > least[i]]
        widths[max(slack, key=lambda i: widths[i])] -= 1
    return widths


def _widest(lines: Iterable[str]) -> int:
    return max(map(text_width, lines), default=0)


def _aligned(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a row whose cells have several lines."""
    for lines in zip_longest(*cells, fillvalue=""):
        padded = (
            text + " " * (n - text_width(text)) for text, n in zip(lines, widths, strict=True)
        )
        yield GAP.join(padded).rstrip().replace("\N{NO-BREAK SPACE}", " ")


def _records(table: Table, width: int) -> Iterator[str]:
    """Yield each row as its name, and the other cells as `header: value` below it."""
    for row in table.rows:
        yield from row[0].split("\n")
        lines: list[str] = []
        for name, text in list(zip(table.columns, row, strict=True))[1:]:
            pair = " ".join((f"{name}: {text}" if name else text).split())
            if text and lines and text_width(f"{lines[-1]}; {pair}") <= width - len(INDENT):
                lines[-1] += f"; {pair}"
            elif text:
                lines.append(pair)
        for line in lines:
            yield from (f"{INDENT}{part}" for part in wrap_text(line, width - len(INDENT)) if part)
