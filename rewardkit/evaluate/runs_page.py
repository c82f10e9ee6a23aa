"""A comparison of runs as Markdown and as an HTML page. Names are escaped in both."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardkit.evaluate.runs import Comparison, RunCell
from rewardkit.pages.model import Page, ShareBar, Table, TableRow
from rewardkit.pages.text import clean


def to_markdown(comparison: Comparison) -> str:
    """Return the comparison as a Markdown table followed by its notes."""
    names = ["run", *comparison.columns]
    rows = [
        [row.run.name, *(cell.text if cell else "" for cell in comparison.cells(row))]
        for row in comparison.rows
    ]
    legend = (
        f"{comparison.metric} [95 %] over questions; *: best, ~: the difference to the best may be "
        "chance."
    )
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        [
            *("| " + " | ".join(map(_escape, line)) + " |" for line in lines),
            "",
            _escape(legend),
            *(f"- {_escape(note)}" for note in comparison.notes),
        ]
    )


def _escape(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if line == "---" else re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", line)


def comparison_page(comparison: Comparison) -> Page:
    """Return the page of a comparison."""
    scores, rates, models = [], [], []
    for row in comparison.rows:
        cells = comparison.cells(row)
        bold = tuple(i for i, cell in enumerate(cells, 1) if cell and cell.mark == "best")
        bars = (ShareBar(c.text, c.value, *c.interval) if c else "" for c in cells)
        scores.append(TableRow((row.run.name, *bars), bold=bold))
        for source, cell in row.cells.items():
            rates.append(TableRow((row.run.name, source or "(none)", *_rate_texts(cell))))
        for origin in row.run.origin_list():
            sampling = ", ".join(f"{name} {v}" for name, v in (origin["sampling"] or {}).items())
            texts = str(origin["model"] or ""), sampling, f"{origin['responses']:,}"
            models.append(TableRow((row.run.name, *texts)))
    note = (
        "Percent, with the 95% interval over questions in brackets and as a line on the bar. "
        "*: best of its column. ~: the difference to the best, question by question, may be chance "
        "(paired t-test, p of 0.05 or more, not corrected for the number of runs). The average "
        "weights every data source equally."
    )
    headers = ("run", "data source", "questions", "n", "truncated", "no answer", "mean tokens")
    sections = (
        Table("Scores", ("run", *comparison.columns), tuple(scores), note=note),
        Table("Questions and responses", headers, tuple(rates)),
        Table("Models and sampling", ("run", "model", "sampling", "responses"), tuple(models)),
    )
    return Page(comparison.headline(), tuple(_facts(comparison)), sections, comparison.notes)


def _facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield "metric", comparison.metric
    yield "runs", f"{len(comparison.rows):,}"
    yield "data sources", f"{len(comparison.sources):,}"
    for source in comparison.sources:
        marks = {r.run.name: r.cells[source].mark for r in comparison.rows if source in r.cells}
        near = list(marks.values()).count("near")
        if best := [name for name, mark in marks.items() if mark == "best"]:
            others = f" ({near} other{'s' * (near > 1)} within chance)" if near else ""
            yield f"best on {source or '(none)'}", f"{best[0]}{others}"


def _rate_texts(cell: RunCell) -> tuple[str, ...]:
    (fewest, most), tokens = cell.rates["n"], cell.rates["mean_tokens"]
    truncated = cell.rates["truncated"]
    return (
        f"{cell.rates['questions']:,}",
        f"{fewest}" if fewest == most else f"{fewest} to {most}",
        "unknown" if truncated is None else f"{truncated:.1%}",
        f"{cell.rates['no_answer']:.1%}",
        "unknown" if tokens is None else f"{tokens:,.0f}",
    )
