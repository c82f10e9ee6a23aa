"""What `rewardkit check` prints of several files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.cli.shared.console import echo, print_json, print_wrapped, warn
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.preprocess.check_files import FilesReport
    from rewardkit.preprocess.check_report import CheckReport

#: Files that are left out, and pairs of files with common prompts, that are named.
MAX_NAMES = 5


def require_one_file(outputs: dict[str, Path | None]) -> None:
    """Raise `UsageError` if an option writes a file that belongs to one parquet."""
    for option, out in outputs.items():
        if out:
            raise UsageError(
                f"{option} writes the result of one parquet. Give one file, no folder."
            )


def warn_of_other_files(others: list[Path]) -> None:
    """Say which data files in folders are not checked because they are not parquets."""
    if others:
        more = f" and {len(others) - MAX_NAMES} more" if len(others) > MAX_NAMES else ""
        names = ", ".join(map(str, others[:MAX_NAMES]))
        warn(f"not checked, because they are not parquets: {names}{more}")


def print_aspects(report: CheckReport) -> None:
    """Print what was checked and what was not."""
    print_wrapped(f"Checked: {', '.join(report.checked)}.")
    if report.not_checked:
        print_wrapped(f"Not checked: {', '.join(report.not_checked)}.")
    for missing, reason in report.missing_set_lines():
        print_wrapped(f"Not checked: {missing} ({reason}).")


def print_files(
    report: FilesReport,
    print_file: Callable[..., None],
    report_json: Callable[[CheckReport], dict[str, Any]],
    *,
    as_json: bool,
) -> None:
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
        print_file(each, with_aspects=not are_alike)
    if are_alike:
        print_aspects(report.reports[0])
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
