"""Output of `rewardkit eval`: progress, tables, warnings and comparisons."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from rewardkit.cli.shared.console import (
    as_share,
    print_json,
    print_table,
    printable,
    progress_bar,
    warn,
)

if TYPE_CHECKING:
    from rewardkit.evaluate.evaluation import EvaluationReport
    from rewardkit.evaluate.generate import ProgressCallbacks
    from rewardkit.evaluate.runs import Comparison

#: Columns of the table of pass@k and maj@k; the JSON has every k.
MAX_K_COLUMNS = 8

COLUMNS = ("", "questions", "n", "mean@n", "95 %", "truncated", "no answer", "mean tokens")
NOTE = "95 %: interval over questions (Korn and Graubard); truncated: finish_reason is length."


@contextmanager
def generation_progress() -> Iterator[ProgressCallbacks]:
    """Show responses, tokens per second and time left on stderr, if it is a terminal."""
    from rewardkit.evaluate.generate import ProgressCallbacks

    if not sys.stderr.isatty():
        yield ProgressCallbacks()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    started, tokens = monotonic(), 0
    speed = TextColumn("{task.fields[speed]}", markup=False)
    columns = BarColumn(bar_width=20), MofNCompleteColumn(), speed, TimeRemainingColumn(), "left;"
    is_terminal = sys.stdout.isatty()  # otherwise results would go to stderr
    with progress_bar(*columns, speed_estimate_period=300, redirect_stdout=is_terminal) as bar:
        task = bar.add_task("", total=None, speed="", visible=False)

        def start(name: str, finished: int, total: int) -> None:
            nonlocal started, tokens
            started, tokens = monotonic(), 0
            bar.reset(task, total=total, completed=finished, visible=True)
            bar.update(task, description=f"generating {printable(name)[:40]}", speed="")

        def advance(responses: int, new_tokens: int) -> None:
            nonlocal tokens
            tokens += new_tokens
            seconds = max(monotonic() - started, 1e-9)
            bar.update(task, advance=responses, speed=f"{tokens / seconds:,.0f} tokens/s")

        yield ProgressCallbacks(start, advance)


def warn_about(report: EvaluationReport) -> None:
    """Warn about responses that are not in the metrics, or count as wrong because scoring failed."""
    from rewardkit.responses.figures import bad_gold_note
    from rewardkit.scorers.base import Status

    total, rows = report.metrics.total, report.rows
    for row in report.examples[:3]:
        warn(f"{row.where}: skipped: {row.reason}")
    if report.unread:
        warn(f"{report.unread:,} records were skipped.")
    if report.unconfirmed:
        warn(
            f"{report.unconfirmed:,} responses were matched to rows by split and index only; "
            "nothing else in them confirms the match."
        )
    if report.unanswered:
        warn(
            f"{report.unanswered:,} of {rows:,} questions have no response and are not in the metrics."
        )
    if note := total.unusable_note():
        warn(note)
    if note := bad_gold_note(total.bad_golds, total.responses):
        warn(note)
    if failures := total.statuses[Status.FAILED.value]:
        warn(
            f"the scorer failed on {failures:,} responses; they count as wrong; the field 'reason' has the cause."
        )


def print_report(report: EvaluationReport, *, as_json: bool) -> None:
    """Print the metrics of a report, by data source, subject, level and k.

    Raises:
        typer.Exit: no gold can be scored, so that the metrics mean nothing.
    """
    warn_about(report)
    summary = report.summary()
    if as_json:
        print_json(summary)
    else:
        total = summary["total"]
        sources = {name or "(none)": each for name, each in summary["by_data_source"].items()}
        groups = {**sources, **({"all": total} if len(sources) > 1 else {})}
        rows = [_row(name, each) for name, each in groups.items()]
        for kind in ("by_subject", "by_level"):
            for source, named in summary[kind].items():
                if len(named) > 1:
                    rows += [_row(f"{source}: {name}", each) for name, each in named.items()]
        print_table(COLUMNS, rows, title=f"{report.parquet}: {total['responses']:,} responses")
        if total["n"][0] > 1:
            _print_at_k(groups)
        typer.echo(NOTE)
    _require_a_gold([report])


def print_suite(reports: Mapping[str, EvaluationReport], out: Path, *, as_json: bool) -> None:
    """Print the metrics of several sets, one line per data source.

    Raises:
        typer.Exit: no gold of one of the sets can be scored.
    """
    for report in reports.values():
        warn_about(report)
    summaries = {name: report.summary() for name, report in reports.items()}
    if as_json:
        print_json(summaries)
    else:
        rows = [
            _row(name if source in ("", name) else f"{name}: {source}", group)
            for name, summary in summaries.items()
            for source, group in summary["by_data_source"].items()
        ]
        print_table(COLUMNS, rows, title=f"{out}: {len(reports)} sets")
        typer.echo(
            f"{NOTE}\nFor pass@k and maj@k use --json, or rewardkit eval compare --metric pass@8."
        )
    _require_a_gold(reports.values())


def _require_a_gold(reports: Iterable[EvaluationReport]) -> None:
    totals = [report.metrics.total for report in reports]
    if any(total.bad_golds == total.responses for total in totals):
        raise typer.Exit(1)


def _row(name: str, group: Mapping[str, Any]) -> tuple[object, ...]:
    low, high = group["mean"]["interval"]
    least, most = group["n"]
    lengths = group["tokens"]
    mean = f"{lengths['mean']:,.0f}" if lengths["known"] else "unknown"
    unknown = group["finish_reason_unknown"] == group["responses"]
    return (
        name,
        f"{group['questions']:,}",
        str(least) if least == most else f"{least} to {most}",
        f"{group['mean']['value']:.1%}",
        f"{low:.1%} to {high:.1%}",
        "unknown" if unknown else as_share(group["truncated"]["n"], group["responses"]),
        as_share(group["no_answer"]["n"], group["responses"]),
        mean,
    )


def _print_at_k(groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Print one table each for pass@k and maj@k."""
    least = min(group["n"][0] for group in groups.values())
    shown = sorted({1 << i for i in range(MAX_K_COLUMNS - 1) if 1 << i < least} | {least})
    columns = ("", *(f"k = {k}" for k in shown))
    titles = {
        "pass@k": "pass@k, unbiased (Chen et al. 2021)",
        "maj@k": "maj@k: ties are shared; responses without an answer do not vote",
    }
    for figure, title in titles.items():
        rows = [
            (name, *(_at(group[figure].get(str(k))) for k in shown))
            for name, group in groups.items()
        ]
        print_table(columns, rows, title=title)


def _at(figure: Any) -> str:
    if figure is None:
        return ""
    low, high = figure["interval"]
    return f"{figure['value']:.1%} ({low:.1%} to {high:.1%})"


def print_comparison(comparison: Comparison) -> None:
    """Print runs in one table, and the difference of two, paired by question."""
    from rewardkit.evaluate.runs import LEGEND

    print_table(comparison.header, comparison.table(), title=f"{comparison.metric} [95 %]")
    typer.echo(f"in brackets: 95 % interval over questions; {LEGEND}")
    if not comparison.differences:
        return
    lines = []
    for name, pair in comparison.differences.items():
        if name != "all" and len(comparison.differences) == 2:
            continue  # the one data source is all
        low, high = (100 * end for end in pair.interval or (0.0, 0.0))
        interval = f"{low:+.1f} to {high:+.1f}" if pair.interval else "unknown"
        points = f"{100 * pair.difference:+.1f}"
        lines.append((name, f"{pair.questions:,}", points, interval, f"{pair.p:.3g}"))
    typer.echo()
    title = "second run minus first, paired by question"
    print_table(("", "questions", "points", "95 %", "p"), lines, title=title)
    typer.echo("interval and p-value: Student's paired t-test over questions.")
