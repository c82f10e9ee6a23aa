"""Pages of the reports of `prep`, `mix` and `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rewardkit.pages.model import (
    Badge,
    Bars,
    Histogram,
    Page,
    Pair,
    Pairs,
    Section,
    Steps,
    Table,
    TableRow,
)
from rewardkit.pages.text import row_count, share
from rewardkit.preprocess.check_report import CheckReport
from rewardkit.preprocess.contamination.overlap import Overlap
from rewardkit.preprocess.dropped_rows import dropped_path
from rewardkit.preprocess.first_rows import first_rows_sections
from rewardkit.preprocess.mix_report import MixPartReport, MixReport
from rewardkit.preprocess.prep_report import PrepReport, SplitReport
from rewardkit.preprocess.row_checks import RULES
from rewardkit.preprocess.row_stats import RowStats
from rewardkit.statistics import percentile_of_counts

#: Pairs of texts that a section shows; its note counts all.
MAX_PAIRS = 25


def prep_page(report: PrepReport) -> Page:
    """Return the page of `prep`, with the sections of each split."""
    written = sum(split.written for split in report.splits)
    facts = (
        ("dataset", report.dataset),
        ("data_source", report.data_source),
        ("template", report.template),
        ("scorer", report.scorer),
        *(
            (f"{split.split}, from {split.origin}", f"{row_count(split.written)} in {split.out}")
            for split in report.splits
        ),
    )
    several = len(report.splits) > 1
    sections = (
        section
        for split in report.splits
        for section in split_sections(split, f" ({split.split})" if several else "")
    )
    dropped = sum(split.dropped.total() for split in report.splits)
    title = f"{report.dataset}: {row_count(written)} written, {dropped:,} dropped"
    return Page(title, facts, tuple(sections))


def mix_page(report: MixReport) -> Page:
    """Return the page of `mix`: the rows taken from each file, and statistics of the result."""
    facts = (
        ("file", str(report.out)),
        ("rows", f"{report.written:,}"),
        ("seed", str(report.seed)),
        ("questions in several files", f"{report.shared:,}"),
        ("of these with different golds", f"{report.conflicting:,}"),
    )
    headers = ("file", "weight", "share", "rows available", "rows taken", "each at most")
    parts = tuple(
        TableRow(
            (
                str(part.path),
                f"{part.weight:,.10g}",
                f"{part.share:.1%}",
                f"{part.available:,}",
                f"{part.rows:,}",
                str(part.times),
            ),
            tuple(f"{what}: {count:,} rows" for what, count in _part_changes(part)),
        )
        for part in report.parts
    )
    table = Table("Files", headers, parts, "changed and left out")
    title = f"{report.out.name}: {row_count(report.written)} mixed"
    return Page(
        title, facts, (table, *first_rows_sections(report.out), *stats_sections(report.stats))
    )


def _part_changes(part: MixPartReport) -> Iterator[tuple[str, int]]:
    yield from part.changes.most_common()
    yield from ((f"left out {name}", count) for name, count in part.left_out.most_common())


def check_page(report: CheckReport) -> Page:
    """Return the page of `check`."""
    facts = (
        ("file", str(report.path)),
        ("rows", f"{report.rows:,}"),
        ("bad rows", f"{report.bad_rows:,}"),
        ("findings", f"{report.counts.total():,}"),
    )
    title = f"{Path(report.path).name}: {report.verdict()}"
    found = report.counts.total()
    badge = (
        Badge(f"{found:,} finding{'s' * (found > 1)}", "error")
        if found
        else Badge("no findings", "good")
    )
    return Page(title, facts, tuple(_check_sections(report)), badge=badge)


def _check_sections(report: CheckReport) -> Iterator[Section]:
    yield from _findings(report)
    if report.checked or report.not_checked:
        yield _scope(report)
    if report.missing_sets:
        lines = (TableRow(cells) for cells in report.missing_set_lines())
        yield Table("Evaluation sets that were not checked", ("sets", "reason"), tuple(lines))
    if report.overlaps:
        yield overlaps_section(report.overlaps, report.counts["overlap"])
    if report.near_misses:
        yield near_misses_section(report.near_misses, report.near_miss_count)
    if report.clusters:
        clusters = [(c.rows, c.conflicting) for c in report.clusters]
        yield clusters_section(clusters, report.cluster_rows)
    if report.lengths.unit == "tokens" or report.lengths.limit:
        yield lengths_section(report.lengths.counts, report.lengths.unit, report.lengths.limit)
    yield from first_rows_sections(report.path)
    yield from stats_sections(report.stats)


def split_sections(split: SplitReport, suffix: str = "") -> Iterator[Section]:
    """Yield the sections of a split: rows left, rows dropped, and statistics of the rows written."""
    yield Steps(f"Rows left after each step{suffix}", tuple(split.steps()))
    if split.dropped:
        yield _dropped(split, suffix)
    yield from first_rows_sections(split.out, suffix)
    yield from stats_sections(split.stats, suffix)


def stats_sections(stats: RowStats, suffix: str = "") -> Iterator[Section]:
    """Yield the notes on rows and their statistics: lengths, kinds of answers, groups if any."""
    if not stats.rows:
        return
    if notes := stats.notes():
        yield Table(f"Notes{suffix}", ("note",), tuple(TableRow((note,)) for note in notes))
    yield lengths_section(stats.prompt_chars, "characters", title=f"Length of the prompts{suffix}")
    yield Bars(f"Kinds of answers{suffix}", _descending(stats.answer_kinds))
    for name, counts in stats.groups.items():
        if len(counts) > 1:
            # Levels are ordered by name, not by frequency.
            ordered = tuple(sorted(counts.items())) if name == "level" else _descending(counts)
            yield Bars(f"Rows by {name}{suffix}", ordered)


def lengths_section(
    lengths: Counter[int], unit: str, limit: int | None = None, title: str = "Length of the prompts"
) -> Histogram:
    """Return the histogram of lengths.

    Args:
        lengths: number of rows by length.
        unit: unit of the lengths, `tokens` or `characters`.
        limit: maximum length, if there is one.
        title: title of the section.
    """
    percents = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    marks = tuple((name, percentile_of_counts(lengths, part)) for name, part in percents.items())
    return Histogram(title, lengths, unit, marks, limit)


def clusters_section(
    clusters: Sequence[tuple[Sequence[tuple[int, str, str]], bool]], totals: tuple[int, int]
) -> Pairs:
    """Return the near-duplicates, those with conflicting golds first.

    Args:
        clusters: row number, text and gold of each member, and whether the golds conflict.
        totals: number of rows in clusters and of clusters, which may exceed those in `clusters`.
    """
    conflicts = sum(conflict for _, conflict in clusters)
    note = (
        f"{row_count(totals[0])} in {totals[1]:,} clusters; golds conflict in {conflicts:,} of them."
        f"{_shown(totals[1])} Words that two rows share are marked."
        if clusters
        else "No two rows are nearly the same."
    )
    ordered = sorted(clusters, key=lambda cluster: not cluster[1])
    pairs = tuple(_cluster(rows, conflict) for rows, conflict in ordered[:MAX_PAIRS])
    return Pairs("Near-duplicates", pairs, note)


def overlaps_section(overlaps: Sequence[Overlap], total: int) -> Pairs:
    """Return the evaluation items found in the rows, the most complete first.

    Args:
        overlaps: some of the overlaps.
        total: number of all overlaps.
    """
    items = Counter(source for source, _ in {(o.source, o.item) for o in overlaps})
    sources = ", ".join(f"{n:,} of {source}" for source, n in _descending(items))
    these = (
        "" if len(overlaps) == total else f"Of the first {len(overlaps):,} of {total:,} findings: "
    )
    note = (
        f"{these}Evaluation items in {row_count(len({o.row for o in overlaps}))}: {sources}."
        f"{_shown(total)} Words that an item and a row share are marked."
        if overlaps
        else "No evaluation item was found in any row."
    )
    ordered = sorted(overlaps, key=lambda o: -o.coverage)
    return Pairs("Contamination", tuple(_overlap(o) for o in ordered[:MAX_PAIRS]), note)


def near_misses_section(near_misses: Sequence[Overlap], total: int) -> Pairs:
    """Return the pairs of a row and an evaluation item that are alike, the most alike first.

    Args:
        near_misses: some of the pairs.
        total: number of all pairs.
    """
    note = (
        f"{total:,} pairs of a row and an evaluation item are alike but are no findings: variants "
        f"with other numbers, and retellings without enough numbers.{_shown(total)} Words that an "
        "item and a row share are marked."
    )
    ordered = sorted(near_misses, key=lambda o: -max(o.common, o.coverage))
    pairs = tuple(_overlap(o) for o in ordered[:MAX_PAIRS])
    return Pairs("Near misses of contamination", pairs, note)


def _dropped(split: SplitReport, suffix: str) -> Table:
    lines = (
        TableRow(
            (reason, f"{n:,}", share(n, split.distinct)),
            tuple(_at(i, what) for why, i, what in split.examples if why == reason),
        )
        for reason, n in _descending(split.dropped)
    )
    note = f"{dropped_path(split.out)} has all of them, each with its reason."
    headers = ("reason", "rows", "share")
    return Table(f"Dropped rows{suffix}", headers, tuple(lines), "examples", note)


def _findings(report: CheckReport) -> Iterator[Section]:
    if report.ok:
        return
    rules = [(rule, todo) for rule, todo in RULES.items() if report.counts[rule]]
    lines = (TableRow((rule, f"{report.counts[rule]:,}", todo)) for rule, todo in rules)
    yield Table("Findings", ("rule", "findings", "what to do"), tuple(lines))
    yield Table(
        "Examples of findings",
        ("place", "rule", "problem"),
        tuple(TableRow(cells) for cells in report.example_lines()),
        note="The first findings of each rule. The first row is row 0.",
    )


def _scope(report: CheckReport) -> Table:
    """Return what was checked, and what was not, with the option that requests it."""
    checked = (TableRow((Badge("checked", "good"), aspect)) for aspect in report.checked)
    others = (TableRow((Badge("not checked", "warning"), aspect)) for aspect in report.not_checked)
    return Table("What was checked", ("status", "aspect"), (*checked, *others))


def _cluster(rows: Sequence[tuple[int, str, str]], conflict: bool) -> Pair:
    """The first row and another one: if golds conflict, the first with another gold."""
    first = rows[0]
    other = next((row for row in rows if conflict and row[2] != first[2]), rows[-1])
    return Pair(
        f"rows {', '.join(str(number) for number, _, _ in rows[:8])}"
        f"{f' and {len(rows) - 8:,} more' if len(rows) > 8 else ''}",
        (f"row {first[0]}, gold {first[2]}", f"row {other[0]}, gold {other[2]}"),
        (first[1], other[1]),
        f"golds conflict: {first[2]}, {other[2]}" if conflict else "",
    )


def _overlap(overlap: Overlap) -> Pair:
    one, other = (", ".join(words[:12]) for words in overlap.differing_words)
    note = f"only in the item: {one or 'nothing'}; only in the row: {other or 'nothing'}"
    return Pair(
        f"row {overlap.row} has {overlap.summary}",
        (f"{overlap.source} {overlap.item}", f"row {overlap.row}"),
        (overlap.item_text, overlap.row_text),
        note if overlap.rule != "copy" else "",
    )


def _descending(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Sorted by frequency, the most frequent first, then by name."""
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _shown(n: int) -> str:
    return f" The first {MAX_PAIRS} of {n:,} are below." if n > MAX_PAIRS else ""


def _place(row: int | None) -> str:
    return "file" if row is None else f"row {row}"


def _at(row: int, what: str) -> str:
    return f"{_place(row)}: {what}" if what else _place(row)
