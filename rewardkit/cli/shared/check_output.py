"""What `rewardkit check` prints of files of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.cli.shared.console import (
    echo,
    print_json,
    print_table,
    print_wrapped,
    printable,
    warn,
)

if TYPE_CHECKING:
    from rewardkit.preprocess.check import CheckReport
    from rewardkit.preprocess.check_files import FilesReport
    from rewardkit.preprocess.contamination.overlap import Overlap

#: Files that are left out, and pairs of files with common prompts, that are named.
MAX_NAMES = 5

#: Overlaps, near misses and clusters that are printed; the page has more.
MAX_EXAMPLES = 3

#: Words of each text that are printed of a near miss.
MAX_WORDS = 8


def warn_of_other_files(others: list[Path]) -> None:
    """Say which data files in folders are not checked because they are not parquets."""
    if others:
        more = f" and {len(others) - MAX_NAMES} more" if len(others) > MAX_NAMES else ""
        names = ", ".join(map(str, others[:MAX_NAMES]))
        warn(f"not checked, because they are not parquets: {names}{more}")


def report_json(report: CheckReport) -> dict[str, Any]:
    """Return what --json prints of a file."""
    more = {"notes": report.stats.notes(), "lengths": report.lengths.to_dict()}
    return {"ok": report.ok, **vars(report), **more}


def print_file(report: CheckReport, *, near: bool, lang: str, with_aspects: bool = True) -> None:
    """Print the findings of a file, what was checked, overlaps, near-duplicates and lengths."""
    _print_findings(report, lang)
    if with_aspects:
        _print_aspects(report)
    _print_overlaps(report)
    if report.clusters:
        _print_clusters(report)
    elif near:
        echo("near-duplicates: none")
    if report.lengths.counts:
        summary = report.lengths.summary()
        over = summary.pop("over", None)
        marks = ", ".join(f"{name} {value:,}" for name, value in summary.items())
        echo(f"prompt {report.lengths.unit}: {marks}")
        if over is not None:
            echo(f"over {report.lengths.limit:,} {report.lengths.unit}: {over:.2%} of the rows")


def print_files(report: FilesReport, *, near: bool, lang: str, as_json: bool) -> None:
    """Print the report of each file, what they have in common, and last the verdict of all."""
    if as_json:
        errors = [
            {"path": file, "ok": False, "error": text} for file, text in report.unreadable.items()
        ]
        files = [report_json(each) for each in report.reports] + errors
        print_json({"ok": report.ok, "files": files, "concatenation": report.concatenation})
        return
    are_alike = len({(each.checked, each.not_checked) for each in report.reports}) == 1
    for each in report.reports:
        print_file(each, near=near, lang=lang, with_aspects=not are_alike)
    if are_alike:
        _print_aspects(report.reports[0])
    for file, text in report.unreadable.items():
        echo(text if text.startswith(str(file)) else f"{file}: {text}")
    _print_shared_prompts(report)
    if fault := report.concatenation:
        only_in_old = " with older versions of datasets" if fault.only_in_old else ""
        first = f" A list that begins with {fault.first} loads." if fault.first else ""
        print_wrapped(
            f"verl cannot load these files as one list{only_in_old}: {fault.message}.{first} "
            "rewardkit mix writes one file of several."
        )
    echo(f"{report.verdict()}.")


def _print_shared_prompts(report: FilesReport) -> None:
    pairs = [
        (count, each.path, other)
        for each in report.reports
        for other, count in each.shared_prompts.items()
    ]
    for count, path, other in sorted(pairs, reverse=True)[:MAX_NAMES]:
        rows = "1 row has" if count == 1 else f"{count:,} rows have"
        print_wrapped(
            f"{path}: {rows} a prompt that is in {other}, too. If one of the files is for "
            f"evaluation, leave these rows out of training: rewardkit check TRAIN --against EVAL "
            "--drop-overlap OUT."
        )


def _print_findings(report: CheckReport, lang: str) -> None:
    from rewardkit.glossary.lookup import chinese_rules
    from rewardkit.preprocess.row_checks import RULES

    echo(f"{report.path}: {report.verdict()}.")
    for note in filter(None, (*report.stats.notes(), report.right)):
        print_wrapped(note)
    if report.ok:
        return
    print_table(("where", "rule", "what"), report.example_lines(), wrap={"what"})
    advice = chinese_rules() if lang == "zh" else RULES
    print_table(
        ("rule", "findings", "what to do"),
        (
            (rule, f"{report.counts[rule]:,}", advice.get(rule, RULES[rule]))
            for rule in RULES
            if report.counts[rule]
        ),
        wrap={"what to do"},
    )


def _print_aspects(report: CheckReport) -> None:
    print_wrapped(f"Checked: {', '.join(report.checked)}.")
    if report.not_checked:
        print_wrapped(f"Not checked: {', '.join(report.not_checked)}.")
    for missing, reason in report.missing_set_lines():
        print_wrapped(f"Not checked: {missing} ({reason}).")


def _print_overlaps(report: CheckReport) -> None:
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


def _print_clusters(report: CheckReport) -> None:
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
            (f"{row}", gold[:30], _one_line(text))
            for cluster in shown
            for row, text, gold in cluster.rows[:MAX_EXAMPLES]
        ),
        wrap={"prompt"},
    )


def _print_pair(overlap: Overlap, verb: str) -> None:
    echo(f"\n{printable(f'row {overlap.row} {verb} {overlap.summary}')}")
    echo(f"  row:  {_one_line(overlap.row_text)}")
    echo(f"  item: {_one_line(overlap.item_text)}")
    if overlap.rule != "copy":
        item, row = (" ".join(words[:MAX_WORDS]) or "-" for words in overlap.differing_words)
        echo(f"  only in the row: {row}; only in the item: {item}")


def _one_line(text: str) -> str:
    """Return the first 70 characters of a text, on one line."""
    return printable(" ".join(text.split())[:70].rstrip())
