"""The page of the report of `check`, and the sections that other pages of data have too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.checks.row_checks import RULES
from rewardkit.checks.row_stats import PromptLengths
from rewardkit.pages.images import MAX_IMAGE_BYTES, MAX_PAGE_IMAGE_BYTES, page_address
from rewardkit.pages.model import Bars, Histogram, Page, Pair, Pairs, RowExample, Rows, Section
from rewardkit.row import image_contents, open_parquet
from rewardkit.table import Badge, Table
from rewardkit.text import row_count

if TYPE_CHECKING:
    from rewardkit.checks.check import CheckReport
    from rewardkit.checks.overlap import Overlap
    from rewardkit.checks.row_stats import RowStats

#: Pairs of texts that a section shows; its note counts all.
MAX_PAIRS = 25

#: Rows of a file that its page shows, and most images of a row.
MAX_ROWS = 5
MAX_IMAGES = 4


def check_page(report: CheckReport) -> Page:
    """Return the page of `check`."""
    count = report.counts.total()
    facts = {"rows": report.rows, "bad rows": report.bad_rows, "findings": count}
    badge = Badge("no findings", "good")
    if count:
        badge = Badge(f"{count:,} finding{'s' * (count > 1)}", "error")
    return Page(
        f"{report.path.name}: {report.verdict()}",
        (("file", str(report.path)), *((name, f"{number:,}") for name, number in facts.items())),
        tuple(_check_sections(report)),
        badge=badge,
    )


def rule_table(report: CheckReport, advice: Mapping[str, str] = RULES) -> Table:
    """Return the number of findings of each rule, and the advice, by default in English."""
    rules = [rule for rule in RULES if report.counts[rule]]
    rows = [(rule, f"{report.counts[rule]:,}", advice.get(rule, RULES[rule])) for rule in rules]
    return Table(("rule", "findings", "what to do"), rows, wrap={"what to do"})


def example_table(report: CheckReport) -> Table:
    """Return where the first findings of each rule are, and how many of all findings they are."""
    rows = []
    for rule in RULES:
        examples = [finding for finding in report.examples if finding.rule == rule]
        for finding in examples:
            where = "file" if finding.row is None else f"row {finding.row}"
            rows.append((where, rule, finding.message))
        if len(examples) < report.counts[rule]:
            rows.append(("...", rule, f"{len(examples):,} of {report.counts[rule]:,} are listed"))
    return Table(("where", "rule", "what"), rows, wrap={"what"})


def _check_sections(report: CheckReport) -> Iterator[Section]:
    if not report.ok:
        yield replace(rule_table(report), title="Findings")
        note = "The first findings of each rule. The first row is row 0."
        yield replace(example_table(report), title="Examples of findings", note=note)
    if report.checked or report.not_checked:
        checked = ((Badge("checked", "good"), aspect) for aspect in report.checked)
        others = ((Badge("not checked", "warning"), aspect) for aspect in report.not_checked)
        yield Table(("status", "aspect"), [*checked, *others], "What was checked")
    if report.missing_sets:
        title = "Evaluation sets that were not checked"
        yield Table(("sets", "reason"), list(report.missing_set_lines()), title)
    if report.overlaps:
        yield overlaps_section(report.overlaps, report.counts["overlap"])
    if report.near_misses:
        note = (
            f"{report.near_miss_count:,} pairs of a row and an evaluation item are alike but are no "
            "findings: variants with other numbers, and retellings without enough numbers."
        )
        ordered = sorted(report.near_misses, key=lambda o: -max(o.common, o.coverage))
        yield _pairs("Near misses of contamination", note, ordered, report.near_miss_count)
    if report.lengths.unit == "tokens":
        yield lengths_section(report.lengths)
    yield from first_rows_sections(report.path)
    yield from stats_sections(report.stats)


def stats_sections(stats: RowStats, suffix: str = "") -> Iterator[Section]:
    """Yield the notes on rows and their statistics: lengths, kinds of answers, groups if any."""
    if not stats.rows:
        return
    if notes := stats.notes():
        yield Table(["note"], [[note] for note in notes], f"Notes{suffix}")
    lengths = PromptLengths("characters", counts=stats.prompt_chars)
    yield lengths_section(lengths, f"Length of the prompts{suffix}")
    yield Bars(f"Kinds of answers{suffix}", tuple(stats.answer_kinds.most_common()))
    for name, counts in stats.groups.items():
        if len(counts) > 1:
            # Levels are ordered by name, not by frequency.
            ordered = sorted(counts.items()) if name == "level" else counts.most_common()
            yield Bars(f"Rows by {name}{suffix}", tuple(ordered))


def lengths_section(lengths: PromptLengths, title: str = "Length of the prompts") -> Histogram:
    """Return the histogram of lengths."""
    marks = tuple(lengths.percentiles().items())
    return Histogram(title, lengths.counts, lengths.unit, marks, lengths.limit)


def overlaps_section(overlaps: Sequence[Overlap], total: int) -> Pairs:
    """Return the first of `total` evaluation items found in the rows, the most complete first."""
    items = Counter(source for source, _ in {(o.source, o.item) for o in overlaps})
    sources = ", ".join(f"{n:,} of {source}" for source, n in items.most_common())
    rows = row_count(len({o.row for o in overlaps}))
    note = f"Evaluation items in {rows}: {sources}."
    if len(overlaps) != total:
        note = f"Of the first {len(overlaps):,} of {total:,} findings: {note}"
    return _pairs("Contamination", note, sorted(overlaps, key=lambda o: -o.coverage), total)


def _pairs(title: str, note: str, overlaps: Sequence[Overlap], total: int) -> Pairs:
    if total > MAX_PAIRS:
        note += f" The first {MAX_PAIRS} of {total:,} are below."
    note += " Words that an item and a row share are marked."
    return Pairs(title, tuple(map(_pair, overlaps[:MAX_PAIRS])), note)


def _pair(overlap: Overlap) -> Pair:
    one, other = (", ".join(words[:12]) or "nothing" for words in overlap.differing_words)
    return Pair(
        f"row {overlap.row} has {overlap.summary}",
        (f"{overlap.source} {overlap.item}", f"row {overlap.row}"),
        (overlap.item_text, overlap.row_text),
        "" if overlap.rule == "copy" else f"only in the item: {one}; only in the row: {other}",
    )


def first_rows_sections(path: Path, suffix: str = "") -> Iterator[Rows]:
    """Yield a section with the first rows of a parquet, if there are any."""
    if not path.is_file():
        return
    with open_parquet(path) as file:
        batch = next(file.iter_batches(MAX_ROWS), None)
    if batch is not None and batch.num_rows:
        yield rows_section(batch.to_pylist(), f"First rows{suffix}")


def rows_section(rows: Iterable[Mapping[str, Any]], title: str) -> Rows:
    """Return rows with their prompts, golds and images, within the limits of a page."""
    budget, missing = MAX_PAGE_IMAGE_BYTES, 0
    examples = []
    for number, row in enumerate(rows):
        images, addresses = image_contents(row), []
        for data in images[:MAX_IMAGES]:
            address = page_address(data) if len(data) <= budget else None
            if address:
                budget -= len(data)
                addresses.append(address)
        missing += len(images) - len(addresses)
        model = row.get("reward_model")
        gold = model.get("ground_truth") if isinstance(model, Mapping) else None
        text = "" if gold is None else str(gold)
        examples.append(RowExample(f"row {number}", _prompt_text(row), text, tuple(addresses)))
    note = (
        f"Images left out: {missing:,}. A page holds PNG, JPEG, GIF and WebP files of up to "
        f"{MAX_IMAGE_BYTES >> 10:,} KB each, {MAX_IMAGES} per row and "
        f"{MAX_PAGE_IMAGE_BYTES >> 20} MB in all."
    )
    return Rows(title, tuple(examples), note if missing else "")


def _prompt_text(row: Mapping[str, Any]) -> str:
    prompt = row.get("prompt", row.get("messages"))
    if not isinstance(prompt, list):
        return "" if prompt is None else str(prompt)
    messages = [(m.get("role"), m.get("content")) for m in prompt if isinstance(m, dict)]
    if len(messages) == 1:
        return str(messages[0][1])
    return "\n\n".join(f"[{role}]\n{content}" for role, content in messages)
