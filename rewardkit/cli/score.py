"""`rewardkit score`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import (
    as_share,
    print_json,
    print_table,
    printable,
    progress,
    warn,
)
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import option
from rewardkit.errors import DataError

if TYPE_CHECKING:
    from rewardkit.responses.score import ScoreReport
    from rewardkit.responses.tally import Tally

EXAMPLES = examples(
    "rewardkit score responses.jsonl --scorer gsm8k",
    "rewardkit score rollouts/ --train train.parquet --out scored.jsonl",
    "rewardkit score 'dumps/*.jsonl.zst' --scorer gsm8k --set method=robust --out scored.parquet",
    "rewardkit score rollouts/ --scorer my_reward.py:compute_score --out scored.jsonl --resume",
    "rewardkit score - --scorer math < responses.jsonl",
)


#: Reasons that are printed for rows that could not be scored; OUT.unscored.jsonl has all.
MAX_REASONS = 5


def command(
    files: opt.ResponseFiles,
    scorer: opt.Scorer = "auto",
    settings: opt.Settings = None,
    right_score: opt.RightScore = None,
    response_key: opt.ResponseKey = None,
    gold_key: opt.GoldKey = None,
    train: Annotated[
        Path | None, option("Training parquet used to look up a missing data_source.")
    ] = None,
    out: Annotated[
        Path | None, option("Output jsonl or parquet: the rows with their scores.")
    ] = None,
    resume: Annotated[bool, option("Resume an interrupted run.", "--resume")] = False,
    jobs: opt.Jobs = None,
    engine: Annotated[
        Literal["local", "ray"],
        option("Where workers run: local processes, or Ray Data on the cluster at --address."),
    ] = "local",
    address: Annotated[str | None, option("Address of the Ray cluster: auto, ray://...")] = None,
    seconds_per_row: opt.SecondsPerRow = 60.0,
    load_seconds: opt.LoadSeconds = 60.0,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Score responses in bulk and sum up the results.

    Results are summed up by data source, step and status. Without --response-key and --gold-key
    the usual field names are tried, among them those of verl's rollout and validation dumps. Rows
    that cannot be scored are reported, and written with the reason to OUT.unscored.jsonl.
    """
    from rewardkit.parallel import cores
    from rewardkit.responses.chunks import DAMAGE
    from rewardkit.responses.score import score_files

    try:
        with progress(f"scoring {', '.join(files)[:60]}") as advance:
            report = score_files(
                files,
                scorer,
                options=opt.scorer_options(settings),
                response_key=response_key,
                gold_key=gold_key,
                train=train,
                out=out,
                overwrite=overwrite,
                resume=resume,
                jobs=jobs or cores(),
                engine=engine,
                address=address,
                seconds=seconds_per_row,
                load_seconds=load_seconds,
                right_score=right_score,
                progress=advance,
            )
    except KeyboardInterrupt:
        if out:
            warn(f"{out}: interrupted; run the same command with --resume to continue.")
        raise
    _warn_about(report)
    if as_json:
        print_json(report.summary())
    else:
        _print(report)
    if any(row.reason.startswith(DAMAGE) for row in report.examples):
        raise typer.Exit(DataError.exit_code)
    if report.total.n == report.total.bad_golds:
        raise typer.Exit(1)


def _warn_about(report: ScoreReport) -> None:
    """Warn about rows that could not be scored, one for each reason."""
    from rewardkit.responses.tally import bad_gold_note

    reasons: dict[str, str] = {}
    for row in report.examples:
        reasons.setdefault(row.reason, row.where)
    for reason, where in islice(reasons.items(), MAX_REASONS):
        warn(f"{where}: not scored: {reason}")
    shown = min(len(reasons), MAX_REASONS)
    if report.unscored > shown:
        warn(f"... and {report.unscored - shown:,} more rows, for these or other reasons")
    if any(row.reason.startswith("the scorer") for row in report.examples):
        warn(
            "responses on which the scorer fails are in no figure; verl 0.9 drops them, and a guarded "
            "reward scores them as wrong."
        )
    if report.rule.sentence:
        warn(report.rule.sentence)
    scored = report.total.statuses["scored"]
    for line in report.rule.doubts(scored, report.between, report.total.n):
        warn(line)
    if not report.total.n and not report.unscored:
        warn("error: the files have no rows.")
    if note := bad_gold_note(report.total.bad_golds, report.total.n):
        warn(note)


def _print(report: ScoreReport) -> None:
    columns = ("data source", "responses", "correct", "mean score", "95 %", "no answer", "statuses")
    sources = report.tallies.get("data_source", {})
    rows = [_row(name or "(none)", tally) for name, tally in sources.items()]
    if len(rows) > 1:
        rows.append(_row("all", report.total))
    files = report.files[0] if len(report.files) == 1 else f"{len(report.files):,} files"
    title = f"{files}: {report.total.n:,} scored, {report.unscored:,} failed"
    if not rows:
        typer.echo(printable(title))
        return
    print_table(columns, rows, title=title, below={"statuses"})
    if steps := report.tallies.get("step", {}):
        ordered = sorted(steps.items(), key=lambda item: (len(item[0]), item[0]))
        step_rows = [_row(f"step {name}", tally) for name, tally in ordered]
        print_table(("", *columns[1:]), step_rows, below={"statuses"})


def _row(name: str, tally: Tally) -> tuple[Any, ...]:
    summary = tally.summary()
    low, high = summary["interval"] or (0.0, 0.0)
    is_known = summary["accuracy"] is not None
    statuses = ", ".join(f"{status} {n:,}" for status, n in summary["statuses"].items())
    return (
        name,
        f"{tally.n:,}",
        as_share(tally.correct, tally.n) if is_known else "not known",
        f"{summary['mean_score']:.4f}",
        f"{low:.1%} to {high:.1%}" if is_known else "",
        f"{summary['no_answer']:.1%}",
        statuses,
    )
