"""The content of a report page, independent of its design.

Every text may be hostile and of any length: `html` clips and escapes it. All sections have a title,
and a note: a sentence or two under it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rewardkit.table import Badge, Table


@dataclass(frozen=True)
class Steps:
    """A funnel of rows: each step with the number of rows left after it; the first is the input."""

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

    title: str
    counts: tuple[tuple[str, int], ...]
    note: str = ""
    unit: str = "rows"


@dataclass(frozen=True)
class Histogram:
    """Rows by a whole number, whose `unit` is a plural such as `characters`.

    `marks` are values to point out, each with its name (`("p50", 213)`), and rows should not exceed
    the `limit`.
    """

    title: str
    counts: Mapping[int, int]
    unit: str
    marks: tuple[tuple[str, int], ...] = ()
    limit: int | None = None
    note: str = ""

    @property
    def rows_over_limit(self) -> int:
        """The number of rows above the limit."""
        limit = self.limit
        return sum(n for value, n in self.counts.items() if limit is not None and value > limit)


@dataclass(frozen=True)
class Pair:
    """Two texts that are nearly the same.

    `caption` says how they are related, and `alarm` what is wrong with them, in a word or two.
    """

    caption: str
    names: tuple[str, str]
    texts: tuple[str, str]
    alarm: str = ""


@dataclass(frozen=True)
class Pairs:
    """Texts side by side, with the words they share marked."""

    title: str
    pairs: tuple[Pair, ...]
    note: str = ""


@dataclass(frozen=True)
class RowExample:
    """A row of a dataset: its prompt and gold with formulas, and addresses of its images."""

    caption: str
    prompt: str
    gold: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Rows of a dataset, with their formulas and images."""

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
    def has_images(self) -> bool:
        """Whether a row of the page has an image."""
        sections = (section for section in self.sections if isinstance(section, Rows))
        return any(row.images for section in sections for row in section.rows)
