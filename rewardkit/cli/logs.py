"""`rewardkit logs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from rewardkit.cli.shared import console
from rewardkit.cli.shared.chinese import localized
from rewardkit.cli.shared.console import print_json, printable, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import (
    JsonFlag,
    Language,
    LanguageCode,
    Overwrite,
    require_companion,
    require_unused,
    seconds_option,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from rewardkit.trainlog.follow_rewards import RunTail
    from rewardkit.trainlog.rules import LogFinding
    from rewardkit.trainlog.tables import TextTable
    from rewardkit.trainlog.training_run import TrainingRun

EXAMPLES = examples(
    "rewardkit logs train.log",
    "rewardkit logs train.log --fail-on error",
    "rewardkit logs train.log --follow",
    "rewardkit logs train.log --html train.html --lang zh",
    "rewardkit logs train.log --rewards records --html train.html",
    "rewardkit logs records --follow",
    "rewardkit logs compare with_kl.log without_kl.log",
    "rewardkit logs with_kl.log without_kl.log --html ablation.html --x hours",
    "rewardkit logs train.log --csv steps.csv --parquet steps.parquet",
    "rewardkit logs tensorboard_log/project/experiment --config .hydra/config.yaml",
)

#: First argument that compares the runs after it, unless a file has this name.
COMPARE = "compare"


class XAxis(str, Enum):
    """The horizontal axis of charts, by which runs are aligned."""

    step = "step"
    hours = "hours"


class FailOn(str, Enum):
    """Least severity of findings that set exit code 1."""

    warning = "warning"
    error = "error"


def command(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Logs of runs: console logs, jsonl of verl's file logger, TensorBoard files or "
            "folders, folders of rollout dumps or of a reward's records, or folders of runs. Put "
            "`compare` first to compare runs.",
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
        typer.Option(metavar="FILE", help="Also write an interactive HTML page with the curves."),
    ] = None,
    lang: Language = LanguageCode.en,
    x: Annotated[
        XAxis, typer.Option(help="Horizontal axis of the curves; runs are aligned by it.")
    ] = XAxis.step,
    smooth: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Smoothing window in points; 1 disables it; the default depends on the run's length.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The run's config.yaml, if its log does not contain it."),
    ] = None,
    rewards: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Records of the run's reward (--record), shown beside its log. The folder of a run "
            "of `rewardkit train` names its own.",
        ),
    ] = None,
    samples_per_step: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Responses in a training step, by which records are aligned to steps; the default "
            "is read from the log.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit with 1 on findings of this severity or worse.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the log as it grows, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, seconds_option("Time between two reads with --follow, in seconds.", least=0.05)
    ] = 2.0,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Show and diagnose the log of a training run.

    Prints curves, timing, validation and findings. The trend of a curve is the mean of its last fifth
    of points minus that of its first; = means within noise. A finding names its steps and values,
    the rule and its source, and the key to change. Lines that cannot be read are counted. --json has
    every step. With the records of a reward it also names the onset of reward hacking, and --html
    shows responses before and after it.

    `logs compare A B...` prints how each run differs from the first, with intervals, and which
    settings differ. Runs are aligned by step, or by time with --x hours.
    """
    from rewardkit.output import require_different, require_not_input, require_suffix
    from rewardkit.trainlog.export import write_csv, write_parquet
    from rewardkit.trainlog.page import write_page
    from rewardkit.trainlog.rules import diagnose

    require_different(csv=csv, parquet=parquet, html=html)
    require_not_input(html, *map(Path, runs))
    require_suffix("--parquet", parquet, ".parquet")
    require_suffix("--csv", csv, ".csv")
    if follow:
        used = {"runs", "follow", "interval", "lang", "rewards", "samples_per_step"}
        require_unused(ctx, "--follow", used)
        if as_json:
            raise UsageError("--json is not used with --follow: leave it out.")
        _follow(runs, rewards, samples_per_step, interval, lang.value)
        return
    compare = runs[0] == COMPARE and not Path(COMPARE).exists()
    has_page = html is not None
    require_companion(ctx, "interval", "--follow", is_set=False)
    require_companion(ctx, "smooth", "--html", is_set=has_page)
    require_companion(ctx, "x", "compare or --html", is_set=has_page or compare)
    training_runs = _read(runs[1:] if compare else runs, config, rewards, samples_per_step)
    findings = [diagnose(run) for run in training_runs]
    options = {"overwrite": overwrite}
    if csv:
        write_csv(training_runs, csv, **options)
    if parquet:
        write_parquet(training_runs, parquet, **options)
    if html:
        write_page(
            training_runs, findings, html, lang=lang.value, x=x.value, window=smooth,
            compare=compare, overwrite=overwrite,
        )  # fmt: skip
    if compare:
        _compare(training_runs, x, lang.value, as_json=as_json)
    else:
        _show(training_runs, findings, lang.value, as_json=as_json)
    _fail([finding for run in findings for finding in run], fail_on)


def _read(
    paths: Sequence[str], config: Path | None, rewards: Path | None, samples_per_step: int | None
) -> list[TrainingRun]:
    from rewardkit.trainlog.config_file import with_config
    from rewardkit.trainlog.read import read_runs
    from rewardkit.trainlog.rewards import SOURCE, with_rewards

    with progress(f"reading {', '.join(paths)[:60]}") as advance:
        runs = read_runs(paths, progress=advance)
    for path, run in zip(paths, runs, strict=True):
        _report_choice(Path(path), Path(run.path))
    if config is None and rewards is None and samples_per_step is None:
        return [_with_own_records(path, run) for path, run in zip(paths, runs, strict=True)]
    if len(runs) > 1:
        raise UsageError(
            "--config, --rewards and --samples-per-step belong to one run; name one RUN."
        )
    run = with_config(runs[0], config) if config else runs[0]
    if rewards is None and run.source != SOURCE:
        return [_with_own_records(paths[0], run, samples_per_step)]
    return [with_rewards(run, rewards, samples_per_step)]


def _with_own_records(
    path: str, run: TrainingRun, samples_per_step: int | None = None
) -> TrainingRun:
    from rewardkit.trainlog.rewards import with_own_records

    run, note = with_own_records(run, Path(path), samples_per_step)
    if note:
        warn(note)
    return run


def _report_choice(path: Path, log: Path) -> None:
    """Report which log of a folder is read, if it has several."""
    from rewardkit.trainlog.run_folder import run_logs

    others = [file.name for file in run_logs(path) if file != log]
    if others:
        warn(f"{path}: read from {log.name}; {', '.join(others)} not read.")


def _compare(runs: Sequence[TrainingRun], x: XAxis, lang: str, *, as_json: bool) -> None:
    from rewardkit.trainlog.run_comparison import compare_runs
    from rewardkit.trainlog.tables import comparison_tables

    comparisons = compare_runs(runs, "hours" if x == XAxis.hours else "step", lang)
    if as_json:
        print_json([comparison.summary() for comparison in comparisons])
        return
    for comparison in comparisons:
        for table in comparison_tables(comparison):
            _print_table(table)
        first, other = comparison.unshared_keys
        if first or other:
            console.echo(
                f"{first:,} settings are only in the first run, {other:,} only in the other."
            )
    console.echo(
        "* the interval excludes 0; it accounts for the correlation of neighbouring steps. Too few: "
        "fewer than 8 points, or too few independent ones, as when the difference keeps growing."
    )


def _show(
    runs: Sequence[TrainingRun],
    findings: Sequence[Sequence[LogFinding]],
    lang: str,
    *,
    as_json: bool,
) -> None:
    from rewardkit.trainlog.export import rows
    from rewardkit.trainlog.hacking_examples import example_values
    from rewardkit.trainlog.rules import check_onsets
    from rewardkit.trainlog.summary import summarize

    pairs = list(zip(runs, findings, strict=True))
    if not as_json:
        for run, run_findings in pairs:
            _print(run, run_findings, lang)
        return
    documents = [
        {
            **summarize(run, lang).summary(),
            "findings": [
                {**finding.summary(lang), "examples": example_values(run, finding.evidence)}
                for finding in run_findings
            ],
            "hacking": [check.summary(lang) for check in check_onsets(run)],
            "rows": list(rows(run)),
        }
        for run, run_findings in pairs
    ]
    print_json(documents[0] if len(documents) == 1 else documents)


def _print(run: TrainingRun, findings: Sequence[LogFinding], lang: str) -> None:
    from rewardkit.trainlog.rules import check_onsets
    from rewardkit.trainlog.summary import summarize
    from rewardkit.trainlog.tables import ASCII, BLOCKS, run_tables, verdict

    marks = BLOCKS if (sys.stdout.encoding or "").lower().startswith("utf") else ASCII
    summary = summarize(run, lang)
    checks = check_onsets(run) if summary.rewards else ()
    for table in run_tables(summary, findings, lang=lang, marks=marks, checks=checks):
        _print_table(table)
    for item in run.examples:
        warn(f"{run.path}: {item.where}: skipped: {item.reason}")
    console.print_wrapped(verdict(summary, findings, lang))


def _print_table(table: TextTable) -> None:
    console.print_table(table.columns, table.rows, table.title, wrap=table.wrap, below=table.below)


def _fail(findings: Sequence[LogFinding], fail_on: FailOn | None) -> None:
    counted = {FailOn.error: {"error"}, FailOn.warning: {"error", "warning"}}
    if fail_on and any(finding.rule.severity in counted[fail_on] for finding in findings):
        raise typer.Exit(1)


def _follow(
    paths: Sequence[str],
    rewards: Path | None,
    samples_per_step: int | None,
    interval: float,
    lang: str,
) -> None:
    from rewardkit.trainlog.follow_rewards import RunTail

    if len(paths) != 1:
        raise UsageError("--follow takes one RUN.")
    tail = RunTail(Path(paths[0]), rewards, samples_per_step)
    show = _live if sys.stdout.isatty() else _lines
    try:
        show(tail, interval, lang)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


_WAITING = "{} does not exist yet; waiting for it."


def _lines(tail: RunTail, interval: float, lang: str) -> NoReturn:
    """Print a line for every step and for every new finding; never returns."""
    from rewardkit.trainlog.rules import diagnose
    from rewardkit.trainlog.tables import format_step

    last, restarts, rewrites, missing = -1, 0, 0, False
    reported: set[str] = set()
    while True:
        run = tail.poll()
        if tail.is_missing and not missing:
            warn(_WAITING.format(tail.path))
        missing = tail.is_missing
        if tail.rewrites > rewrites:
            last, restarts, rewrites, reported = -1, 0, tail.rewrites, set()
            console.echo("the log was replaced by a new one")
        if run:
            if len(run.restarts) > restarts:
                restarts, last = len(run.restarts), run.restarts[-1].step - 1
                console.echo(f"restart at step {run.restarts[-1].step:,}")
            for step in run.steps:
                if step > last:
                    console.echo(format_step(run, step))
            last = run.steps[-1]
            for finding in diagnose(run):
                if finding.rule.id not in reported:
                    reported.add(finding.rule.id)
                    _report(run, finding, lang)
        sys.stdout.flush()
        sleep(interval)


def _report(run: TrainingRun, finding: LogFinding, lang: str) -> None:
    """Print a finding on a line, and a response from before its onset and one from after it."""
    from rewardkit.trainlog.tables import example_rows, onset_text
    from rewardkit.trainlog.translations import translations

    facts = [fact.text(lang) for fact in finding.evidence.facts]
    if onset := onset_text(finding.evidence, lang):
        facts.append(f"{translations('hacking', lang)['onset']}: {onset}")
    line = f"{localized(finding.rule.severity)}: {finding.rule.title[lang]}: {'; '.join(facts)}"
    typer.echo(printable(line))
    for name, text in example_rows(run, finding.evidence, lang):
        typer.echo(printable(f"  {name}: {text}"))


def _live(tail: RunTail, interval: float, lang: str) -> NoReturn:
    """Print the tables, updated as the log grows; never returns."""
    from rich.live import Live
    from rich.text import Text

    missing = False
    with Live(localized("waiting for the first step ..."), auto_refresh=False) as live:
        while True:
            if run := tail.poll():
                live.update(_tables(run, lang), refresh=True)
            if tail.is_missing and not missing:
                live.update(Text(printable(localized(_WAITING.format(tail.path)))), refresh=True)
            missing = tail.is_missing
            sleep(interval)


def _tables(run: TrainingRun, lang: str) -> Text:
    """Return the tables of a run for a terminal, as `print_table` prints them."""
    from rich.text import Text

    from rewardkit.trainlog.rules import diagnose
    from rewardkit.trainlog.summary import summarize
    from rewardkit.trainlog.tables import run_tables

    lines: list[str] = []
    for table in run_tables(summarize(run, lang), diagnose(run), lang=lang, brief=True):
        cells = table.columns, table.rows, table.title
        lines += [*console.format_table(*cells, wrap=table.wrap, below=table.below), ""]
    return Text("\n".join(lines))
