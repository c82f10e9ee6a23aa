"""The content of a report page, independent of its design.

Every text may be hostile and of any length: `html` clips and escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

#: How good or bad something is; the colour of a badge.
Level: TypeAlias = Literal["good", "neutral", "warning", "error"]


@dataclass(frozen=True)
class Badge:
    """A word in a coloured frame. The word alone says what the colour says."""

    kind: ClassVar[str] = "badge"

    text: str
    level: Level = "neutral"


@dataclass(frozen=True)
class ShareBar:
    """A share from 0 to 1 with the ends of its interval: a text above a bar."""

    kind: ClassVar[str] = "share_bar"

    text: str
    value: float
    low: float
    high: float


#: A cell of a table.
Cell: TypeAlias = str | Badge | ShareBar


@dataclass(frozen=True)
class Steps:
    """A funnel of rows.

    Attributes:
        title: heading of the section, as in all sections.
        steps: each step with the number of rows left after it; the first is the input.
        note: a sentence or two under the title, as in all sections.
    """

    kind: ClassVar[str] = "steps"

    title: str
    steps: tuple[tuple[str, int], ...]
    note: str = ""

    def losses(self) -> Iterator[tuple[str, int, int]]:
        """Yield each step, the rows left after it, and the rows it lost (negative if it added rows)."""
        before = self.steps[0][1] if self.steps else 0
        for label, left in self.steps:
            yield label, left, before - left
            before = left


@dataclass(frozen=True)
class Bars:
    """Numbers by label, in the given order; `unit` says what is counted, in the plural."""

    kind: ClassVar[str] = "bars"

    title: str
    counts: tuple[tuple[str, int], ...]
    note: str = ""
    unit: str = "rows"


@dataclass(frozen=True)
class Histogram:
    """Rows by a whole number.

    Attributes:
        counts: number of rows with each value.
        unit: unit of the values, in the plural: `characters`.
        marks: values to point out, each with its name: `("p50", 213)`.
        limit: a value that rows should not exceed.
    """

    kind: ClassVar[str] = "histogram"

    title: str
    counts: Mapping[int, int]
    unit: str
    marks: tuple[tuple[str, int], ...] = ()
    limit: int | None = None
    note: str = ""


@dataclass(frozen=True)
class TableRow:
    """A row of a table.

    Attributes:
        cells: its texts, badges and bars.
        details: texts that are folded away below it.
        bold: indices of the cells in bold.
    """

    cells: tuple[Cell, ...]
    details: tuple[str, ...] = ()
    bold: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows under headers.

    Attributes:
        details_name: name of the rows' details, in the plural.
        fold: words under which the whole table is folded away; "" for a table that is open.
        formulas: whether the details show LaTeX as formulas.
    """

    kind: ClassVar[str] = "table"

    title: str
    headers: tuple[str, ...]
    rows: tuple[TableRow, ...]
    details_name: str = "examples"
    note: str = ""
    fold: str = ""
    formulas: bool = False


@dataclass(frozen=True)
class Pair:
    """Two texts that are nearly the same.

    Attributes:
        caption: how the two are related.
        names: name of each text.
        texts: the two texts.
        alarm: what is wrong with them, in a word or two.
    """

    caption: str
    names: tuple[str, str]
    texts: tuple[str, str]
    alarm: str = ""


@dataclass(frozen=True)
class Pairs:
    """Texts side by side, with the words they share marked."""

    kind: ClassVar[str] = "pairs"

    title: str
    pairs: tuple[Pair, ...]
    note: str = ""


@dataclass(frozen=True)
class RowExample:
    """A row of a dataset.

    Attributes:
        caption: which row it is.
        prompt: its prompt; formulas in it are shown.
        gold: its ground truth, which may be a formula as a whole.
        pictures: its pictures, as addresses of `page_address`.
    """

    caption: str
    prompt: str
    gold: str
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Rows of a dataset, with their formulas and pictures."""

    kind: ClassVar[str] = "rows"

    title: str
    rows: tuple[RowExample, ...]
    note: str = ""


Section: TypeAlias = Steps | Bars | Histogram | Table | Pairs | Rows


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: the result in one line.
        facts: the main figures, then names and values of the circumstances.
        sections: in order.
        warnings: sentences in the header, such as limits of the comparison.
        badge: the result in a word, in its colour.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()
    badge: Badge | None = None

    @property
    def has_pictures(self) -> bool:
        """Whether a row of the page has a picture."""
        rows = (
            row for section in self.sections if isinstance(section, Rows) for row in section.rows
        )
        return any(row.pictures for row in rows)
