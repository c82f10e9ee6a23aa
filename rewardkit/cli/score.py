"""`rewardkit score`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import (
    echo,
    print_json,
    print_table,
    print_wrapped,
    progress,
    warn,
    warns_if_interrupted,
)
from rewardkit.cli.shared.options import complete_scorers, examples, option
from rewardkit.errors import DataError, UsageError
from rewardkit.table import Table
from rewardkit.text import count_of

if TYPE_CHECKING:
    from rewardkit.responses.compare import CompareReport
    from rewardkit.responses.figures import Tally
    from rewardkit.responses.score import ScoreReport, ScoringPlan

EXAMPLES = examples(
    "rewardkit score responses.jsonl --scorer gsm8k",
    "rewardkit score rollouts/ --train train.parquet --out scored.jsonl --resume",
    "rewardkit score 'dumps/*.jsonl.zst' --scorer gsm8k --set method=robust --out scored.jsonl",
    "rewardkit score scored.jsonl --html report.html",
    "rewardkit score responses.jsonl --scorer gsm8k --scorer my_reward.py:compute_score --html c.html",
    "rewardkit score - --scorer math < responses.jsonl",
)

#: Causes of disagreements that are printed; the page and the JSON have all.
MAX_CAUSES = 12


def command(
    ctx: typer.Context,
    files: opt.ResponseFiles,
    scorers: Annotated[
        list[str] | None,
        option(
            "Scorer name or file.py:function; by default that of each row. Name two to compare "
            "them: A, then B.",
            "--scorer",
            autocompletion=complete_scorers,
        ),
    ] = None,
    settings: opt.Settings = None,
    set_b: Annotated[
        list[str] | None, option("Set an option of scorer B. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    right_score: opt.RightScore = None,
    response_key: opt.ResponseKey = None,
    gold_key: opt.GoldKey = None,
    train: Annotated[
        Path | None, option("Training parquet used to look up a missing data_source.")
    ] = None,
    out: Annotated[Path | None, option("Output jsonl: the rows with their scores.")] = None,
    html: Annotated[
        Path | None,
        option("HTML page of the responses, or of the comparison.", "--html", metavar="FILE"),
    ] = None,
    max_responses: Annotated[
        int, option("Maximum number of responses in the page's list.", min=100, max=200_000)
    ] = 50_000,
    export: Annotated[
        Path | None, option("With two scorers: jsonl with each changed verdict as a test case.")
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

    With --html also as a page to filter and read, which works offline; without --scorer, rows that
    have a score then keep it. With two scorers, prints where and why they disagree.
    """
    from rewardkit.parallel import cores
    from rewardkit.responses.samples import FieldNames
    from rewardkit.responses.score import ScoringPlan, score_files

    opt.require_html_path(
        html, overwrite=overwrite, inputs=map(Path, files), out=out, export=export
    )
    names, jobs = scorers or ["auto"], jobs or cores()
    plan = ScoringPlan(
        names=FieldNames(response_key, gold_key),
        train=train,
        right_score=right_score,
        seconds=seconds_per_row,
        load_seconds=load_seconds,
    )
    if len(names) > 1:
        used = {"files", "scorers", "settings", "set_b", "right_score", "response_key", "gold_key"}
        used |= {"train", "html", "export", "jobs", "seconds_per_row", "load_seconds", "overwrite"}
        opt.require_unused(ctx, "two scorers", used)
        if len(names) > 2:
            raise UsageError(f"--scorer is set {len(names)} times; compare two scorers at a time.")
        sides = [_side(plan, *side) for side in zip(names, (settings, set_b), strict=True)]
        switches = {"overwrite": overwrite, "as_json": as_json}
        _compare(files, sides, html, jobs=jobs, export=export, **switches)
        return
    opt.require_companion(ctx, "a second --scorer", None, "set_b", "export")
    opt.require_companion(ctx, "--html", html, "max_responses")
    opt.require_companion(ctx, "--engine ray", engine == "ray" or None, "address")
    if html and resume:
        raise UsageError(
            "--html shows every response: write the page of --out when it is finished."
        )
    page, plan = None, _side(plan, names[0], settings)[1]
    if html:
        from rewardkit.responses.report.page import ReportPage

        page = ReportPage(html, max_responses)
        plan = replace(plan, keeps_scores=not scorers)
    message = f"{out}: interrupted; run the same command with --resume to continue."
    with (
        warns_if_interrupted(message) if out else nullcontext(),
        progress(f"scoring {', '.join(files)[:60]}") as advance,
    ):
        report = score_files(
            files,
            plan,
            out=out,
            overwrite=overwrite,
            resume=resume,
            jobs=jobs,
            engine=engine,
            address=address,
            on_score=page.add if page else None,
            progress=advance,
        )
    for line in report.warnings():
        warn(line)
    written = page.write(report, overwrite=overwrite) if page else {}
    if as_json:
        print_json({**report.summary(), **written})
    else:
        _print(report)
    if written and not as_json:
        size = written["bytes"]
        text = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
        typer.echo(f"{html}: {written['listed']:,} responses listed, {text}")
    _exit(report)


def _exit(report: ScoreReport) -> None:
    """Exit with the code of bad data if a file is damaged, and with 1 if nothing could be scored."""
    from rewardkit.responses.files import DAMAGE

    if any(row.reason.startswith(DAMAGE) for row in report.examples):
        raise typer.Exit(DataError.exit_code)
    if report.total.n == report.total.bad_golds:
        raise typer.Exit(1)


def _print(report: ScoreReport) -> None:
    from rewardkit.responses.files import files_name

    columns = ("data source", "responses", "correct", "mean score", "95 %", "no answer", "statuses")
    rows = [_row(name or "(none)", tally) for name, tally in report.sources.items()]
    if len(rows) > 1:
        rows.append(_row("all", report.total))
    title = f"{files_name(report.files)}: {report.total.n:,} scored, {report.unscored:,} failed"
    if not rows:
        echo(title)
        return
    print_table(Table(columns, rows, title, below={"statuses"}))
    if report.steps:
        ordered = sorted(report.steps.items(), key=lambda item: (len(item[0]), item[0]))
        step_rows = [_row(f"step {name}", tally) for name, tally in ordered]
        print_table(Table(("", *columns[1:]), step_rows, below={"statuses"}))


def _row(name: str, tally: Tally) -> tuple[Any, ...]:
    summary = tally.summary()
    low, high = summary["interval"] or (0.0, 0.0)
    is_known = summary["accuracy"] is not None
    statuses = ", ".join(f"{status} {n:,}" for status, n in summary["statuses"].items())
    return (
        name,
        f"{tally.n:,}",
        count_of(tally.correct, tally.n) if is_known else "not known",
        f"{summary['mean_score']:.4f}",
        f"{low:.1%} to {high:.1%}" if is_known else "",
        f"{summary['no_answer']:.1%}",
        statuses,
    )


def _side(plan: ScoringPlan, scorer: str, settings: list[str] | None) -> tuple[str, ScoringPlan]:
    """Return the name of a scorer with its options, and its plan."""
    options = tuple(opt.scorer_options(settings).items())
    return " ".join([scorer, *(settings or ())]), replace(plan, scorer=scorer, options=options)


def _compare(
    files: list[str],
    sides: list[tuple[str, ScoringPlan]],
    html: Path | None,
    *,
    as_json: bool,
    overwrite: bool,
    **options: Any,
) -> None:
    from rewardkit.responses.compare import compare_files, compare_page

    if sides[0] == sides[1]:
        warn("A and B are the same scorer with the same options: they cannot disagree.")
    with progress(f"comparing on {', '.join(files)[:60]}") as advance:
        report = compare_files(
            files, *sides, announce=warn, overwrite=overwrite, progress=advance, **options
        )
    for line in report.warnings():
        warn(line)
    if html:
        from rewardkit.pages.html import write_html

        write_html(compare_page(report), html, overwrite=overwrite)
    if as_json:
        print_json(report.summary())
    else:
        _print_comparison(report)
    if report.judged <= min(side.bad_golds for side in report.sides.values()):
        raise typer.Exit(1)


def _print_comparison(report: CompareReport) -> None:
    from rewardkit.responses.compare import PAIRS

    if not report.judged:
        echo(f"{report.name}: no sample was judged by both")
        return
    echo(f"{report.name}: {report.judged:,} samples judged by both")
    counts = [count_of(report.outcomes[pair], report.judged) for pair in PAIRS]
    cells = [("A correct", *counts[:2]), ("A wrong", *counts[2:])]
    print_table(Table(("", "B correct", "B wrong"), cells))
    print_table(report.scorer_table())
    if report.causes:
        print_table(report.cause_table(MAX_CAUSES))
    for cause, n in report.causes.most_common(MAX_CAUSES):
        first = report.examples[cause][0]
        answers = f"gold {first.gold[:60]!r}, A {first.pred_a[:60]!r}, B {first.pred_b[:60]!r}"
        ending = " ".join(first.ending.split())[-80:]
        print_wrapped(f"{n:,}x, for example {first.where}: {answers}: …{ending}")
    print_wrapped(report.agreement())
