"""What a report page says, free of how it looks.

Every text may be hostile and of any length: whoever draws a page clips and escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Steps:
    """A funnel of rows.

    Attributes:
        title: what the section is about, like in all sections.
        steps: each step, and the rows left after it; the first is what came in.
        note: a sentence or two under the title, like in all sections.
    """

    kind: ClassVar[str] = "steps"

    title: str
    steps: tuple[tuple[str, int], ...]
    note: str = ""

    def losses(self) -> Iterator[tuple[str, int, int]]:
        """Every step, the rows left after it and those lost in it; less than 0 if it added some."""
        before = self.steps[0][1] if self.steps else 0
        for label, left in self.steps:
            yield label, left, before - left
            before = left


@dataclass(frozen=True)
class Bars:
    """Rows by a label, in the order given."""

    kind: ClassVar[str] = "bars"

    title: str
    counts: tuple[tuple[str, int], ...]
    note: str = ""


@dataclass(frozen=True)
class Histogram:
    """Rows by a whole number.

    Attributes:
        counts: how many rows have each value.
        unit: what the values are, in the plural: `characters`.
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
class Line:
    """A row of a table: its cells, and texts that are folded away below it."""

    cells: tuple[str, ...]
    folded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Lines under headers; `folded` says what it is that lines fold away, in the plural."""

    kind: ClassVar[str] = "table"

    title: str
    headers: tuple[str, ...]
    lines: tuple[Line, ...]
    folded: str = "examples"
    note: str = ""


@dataclass(frozen=True)
class Pair:
    """Two texts that are much the same.

    Attributes:
        caption: what they have to do with each other.
        names: what each of them is.
        texts: the two.
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


Section: TypeAlias = Steps | Bars | Histogram | Table | Pairs


@dataclass(frozen=True)
class Page:
    """A report: the title is what it comes to, the facts are how it came about."""

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
