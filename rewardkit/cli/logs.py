"""`rewardkit logs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from rewardkit.cli.shared.console import print_json, print_table, printable, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import JsonFlag, Overwrite, require_companion, require_unused
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Group

    from rewardkit.trainlog.follow import LogTail
    from rewardkit.trainlog.rules import LogFinding
    from rewardkit.trainlog.training_run import TrainingRun

EXAMPLES = examples(
    "rewardkit logs train.log",
    "rewardkit logs train.log --fail-on error",
    "rewardkit logs train.log --follow",
    "rewardkit logs train.log --html train.html --lang zh",
    "rewardkit logs compare with_kl.log without_kl.log",
    "rewardkit logs with_kl.log without_kl.log --html ablation.html --x hours",
    "rewardkit logs train.log --csv steps.csv --parquet steps.parquet",
    "rewardkit logs tensorboard_log/project/experiment --config .hydra/config.yaml",
)


#: The word before runs that are to be compared; a file of that name is read.
COMPARE = "compare"


class Lang(str, Enum):
    """The language of pictures."""

    en = "en"
    zh = "zh"


class Across(str, Enum):
    """What goes across in pictures."""

    step = "step"
    hours = "hours"


class FailOn(str, Enum):
    """Which findings end the command with 1."""

    warning = "warning"
    error = "error"


def command(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Console logs, jsonl of verl's file logger, TensorBoard files or folders of "
            "them, folders of rollout dumps.",
        ),
    ],
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all steps as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all steps as parquet.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the curves as a page to look around in."),
    ] = None,
    lang: Annotated[Lang, typer.Option(help="The language of all but names and rules.")] = Lang.en,
    x: Annotated[
        Across, typer.Option(help="What goes across in them, and what is aligned.")
    ] = Across.step,
    smooth: Annotated[
        int | None,
        typer.Option(
            min=1, help="Points their curves are means of; 1 for none, by length if not said."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The run's config.yaml, where its log does not hold it."),
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit with 1 on such findings; warning: on errors too.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as the log grows, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks, with --follow.")
    ] = 2.0,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a training run's log says: curves, time, validation, and what is wrong.

    A finding names its steps and numbers, the rule with its source, and the key to change; a run
    with nothing wrong has none. Lines that cannot be read are counted. --json has every step.

    `logs compare A B...` shows instead how runs differ from the first, with intervals, at the same
    step or with --x hours at the same time, and which settings differ.
    """
    from rewardkit.output import require_different, require_suffix
    from rewardkit.trainlog.export import write_csv, write_parquet
    from rewardkit.trainlog.page import write_page
    from rewardkit.trainlog.rules import diagnose

    require_different(csv=csv, parquet=parquet, html=html)
    require_suffix("--parquet", parquet, ".parquet")
    require_suffix("--csv", csv, ".csv")
    if follow:
        require_unused(ctx, "--follow", {"runs", "follow", "interval", "lang"})
        if as_json:
            raise UsageError("--json is not used with --follow: leave it out.")
        _follow(runs, interval, lang.value)
        return
    compare = runs[0] == COMPARE and not Path(COMPARE).exists()
    has_page = html is not None
    require_companion(ctx, "interval", "--follow", is_set=False)
    require_companion(ctx, "smooth", "--html", is_set=has_page)
    require_companion(ctx, "x", "compare or --html", is_set=has_page or compare)
    require_companion(ctx, "lang", "--html", is_set=has_page or not compare)
    read = _read(runs[1:] if compare else runs, config)
    findings = [diagnose(run) for run in read]
    options = {"overwrite": overwrite}
    if csv:
        write_csv(read, csv, **options)
    if parquet:
        write_parquet(read, parquet, **options)
    if html:
        write_page(read, findings, html, lang=lang.value, x=x.value, window=smooth, **options)
    if compare:
        _compare(read, x, as_json=as_json)
    else:
        _show(read, findings, lang.value, as_json=as_json)
    _fail([finding for found in findings for finding in found], fail_on)


def _read(paths: Sequence[str], config: Path | None) -> list[TrainingRun]:
    from rewardkit.trainlog.config_file import with_config
    from rewardkit.trainlog.read import read_runs

    with progress(f"reading {', '.join(paths)[:60]}") as advance:
        runs = read_runs(paths, progress=advance)
    if config is None:
        return runs
    if len(runs) > 1:
        raise UsageError("--config is of one run; name one RUN.")
    return [with_config(runs[0], config)]


def _compare(runs: Sequence[TrainingRun], x: Across, *, as_json: bool) -> None:
    from rewardkit.trainlog.run_comparison import compare_runs
    from rewardkit.trainlog.tables import comparison_tables

    found = compare_runs(runs, "hours" if x == Across.hours else "step")
    if as_json:
        print_json([it.plain() for it in found])
        return
    for it in found:
        for table in comparison_tables(it):
            print_table(table.columns, table.rows, title=table.title)
        if sum(it.unshared_keys):
            typer.echo(
                f"{it.unshared_keys[0]:,} settings only the first has, {it.unshared_keys[1]:,} the other."
            )
    typer.echo(
        "* the interval leaves out 0; it takes into account that neighbouring steps are alike. Too "
        "few: fewer than 8 points, or hardly independent ones, as of a difference that grows."
    )


def _show(
    runs: Sequence[TrainingRun],
    findings: Sequence[Sequence[LogFinding]],
    lang: str,
    *,
    as_json: bool,
) -> None:
    from rewardkit.trainlog.export import rows
    from rewardkit.trainlog.summary import summarize

    pairs = list(zip(runs, findings, strict=True))
    if not as_json:
        for run, found in pairs:
            _print(run, found, lang)
        return
    documents = [
        {
            **summarize(run, lang).plain(),
            "findings": [finding.plain(lang) for finding in found],
            "rows": list(rows(run)),
        }
        for run, found in pairs
    ]
    print_json(documents[0] if len(documents) == 1 else documents)


def _print(run: TrainingRun, findings: Sequence[LogFinding], lang: str) -> None:
    from rewardkit.trainlog.summary import summarize
    from rewardkit.trainlog.tables import ASCII, BLOCKS, run_tables
    from rewardkit.trainlog.translations import translations

    marks = BLOCKS if (sys.stdout.encoding or "").lower().startswith("utf") else ASCII
    for table in run_tables(summarize(run, lang), findings, lang=lang, marks=marks):
        print_table(table.columns, table.rows, title=table.title)
    for item in run.examples:
        warn(f"{run.path}: {item.where}: not read: {item.reason}")
    if not findings:
        typer.echo(translations("tables", lang)["nothing"])


def _fail(findings: Sequence[LogFinding], fail_on: FailOn | None) -> None:
    counted = {FailOn.error: {"error"}, FailOn.warning: {"error", "warning"}}
    if fail_on and any(finding.rule.severity in counted[fail_on] for finding in findings):
        raise typer.Exit(1)


def _follow(paths: Sequence[str], interval: float, lang: str) -> None:
    from rewardkit.trainlog.follow import LogTail

    if len(paths) != 1:
        raise UsageError("--follow takes one RUN.")
    tail = LogTail(Path(paths[0]))
    show = _live if sys.stdout.isatty() else _lines
    try:
        show(tail, interval, lang)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


_WAITING = "{}: not there; waiting for it."


def _lines(tail: LogTail, interval: float, lang: str) -> NoReturn:
    """A line for every step, and for every finding when it first shows; never returns."""
    from rewardkit.trainlog.rules import diagnose
    from rewardkit.trainlog.tables import format_step

    last, restarts, begun, missing = -1, 0, 0, False
    told: set[str] = set()
    while True:
        run = tail.poll()
        if tail.missing and not missing:
            warn(_WAITING.format(tail.path))
        missing = tail.missing
        if tail.begun > begun:
            last, restarts, begun, told = -1, 0, tail.begun, set()
            typer.echo("the log was begun anew")
        if run:
            if len(run.restarts) > restarts:
                restarts, last = len(run.restarts), run.restarts[-1].step - 1
                typer.echo(f"restart at step {run.restarts[-1].step:,}")
            for step in run.steps:
                if step > last:
                    typer.echo(format_step(run, step))
            last = run.steps[-1]
            for finding in diagnose(run):
                if finding.rule.id not in told:
                    told.add(finding.rule.id)
                    facts = "; ".join(map(str, finding.evidence.facts))
                    typer.echo(f"{finding.rule.severity}: {finding.rule.title[lang]}: {facts}")
        sys.stdout.flush()
        sleep(interval)


def _live(tail: LogTail, interval: float, lang: str) -> NoReturn:
    """The tables, drawn anew as the log grows; never returns."""
    from rich.live import Live
    from rich.text import Text

    missing = False
    with Live("waiting for the first step ...", auto_refresh=False) as live:
        while True:
            if run := tail.poll():
                live.update(_drawn(run, lang), refresh=True)
            if tail.missing and not missing:
                live.update(Text(printable(_WAITING.format(tail.path))), refresh=True)
            missing = tail.missing
            sleep(interval)


def _drawn(run: TrainingRun, lang: str) -> Group:
    """The tables of a run for a terminal, as `print_table` prints them."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rewardkit.trainlog.rules import diagnose
    from rewardkit.trainlog.summary import summarize
    from rewardkit.trainlog.tables import run_tables

    drawn = []
    for table in run_tables(summarize(run, lang), diagnose(run), lang=lang, brief=True):
        title = Text(printable(table.title))
        shown = Table(*table.columns, box=SIMPLE_HEAD, title=title, title_justify="left")
        for row in table.rows:
            shown.add_row(*(Text(printable(cell)) for cell in row))
        drawn.append(shown)
    return Group(*drawn)
