"""What `rewardkit check` prints of evaluation items in rows, and of near-duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardkit.cli.shared.console import echo, print_table, print_wrapped, printable

if TYPE_CHECKING:
    from rewardkit.preprocess.check_report import CheckReport
    from rewardkit.preprocess.contamination.overlap import Overlap

#: Overlaps, near misses and clusters that are printed; the page has more.
MAX_EXAMPLES = 3

#: Words of each text that are printed of a near miss.
MAX_WORDS = 8


def print_overlaps(report: CheckReport) -> None:
    """Print the pairs of each set, the most complete overlaps, and the near misses most alike."""
    if len(report.pairs_by_set) > 1:
        print_table(
            ("evaluation set", "copies", "in part", "in other words", "near misses"),
            (
                (name, *(f"{pairs[rule]:,}" for rule in ("copy", "part", "reworded", "near_miss")))
                for name, pairs in sorted(report.pairs_by_set.items())
            ),
        )
    shown = sorted(report.overlaps, key=lambda o: -o.coverage)[:MAX_EXAMPLES]
    for overlap in shown:
        _print_pair(overlap, "contains")
    if len(shown) < report.counts["overlap"]:
        echo(f"{len(shown)} of {report.counts['overlap']:,} overlaps are listed.")
    near = sorted(report.near_misses, key=lambda o: -max(o.common, o.coverage))[:MAX_EXAMPLES]
    for overlap in near:
        _print_pair(overlap, "may be a variant: it has")
    if near:
        print_wrapped(
            f"near misses: {report.near_miss_count:,}, {len(near)} of them listed; they are alike "
            "but are no findings: read them in the page (--html) or with --json"
        )


def print_clusters(report: CheckReport) -> None:
    """Print how many near-duplicates there are, and the first clusters of them."""
    rows, clusters = report.cluster_rows
    conflicting = sum(cluster.conflicting for cluster in report.clusters)
    shown = report.clusters[:MAX_EXAMPLES]
    listed = f", {len(shown)} of them listed" if len(shown) < clusters else ""
    differ = (
        f"; in {conflicting:,} clusters the golds differ: variants of a question, or wrong golds"
    )
    print_wrapped(
        f"near-duplicates: {rows:,} rows in {clusters:,} clusters{listed}{differ * bool(conflicting)}"
    )
    print_table(
        ("row", "gold", "prompt"),
        (
            (f"{row}", gold[:30], one_line(text))
            for cluster in shown
            for row, text, gold in cluster.rows[:MAX_EXAMPLES]
        ),
        wrap={"prompt"},
    )


def _print_pair(overlap: Overlap, verb: str) -> None:
    echo(f"\n{printable(f'row {overlap.row} {verb} {overlap.summary}')}")
    echo(f"  row:  {one_line(overlap.row_text)}")
    echo(f"  item: {one_line(overlap.item_text)}")
    if overlap.rule != "copy":
        item, row = (" ".join(words[:MAX_WORDS]) or "-" for words in overlap.differing_words)
        echo(f"  only in the row: {row}; only in the item: {item}")


def one_line(text: str) -> str:
    """Return the first 70 characters of a text, on one line."""
    return printable(" ".join(text.split())[:70].rstrip())
