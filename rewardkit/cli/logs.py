"""`rewardkit logs`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from rewardkit.cli.shared import console
from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, progress, warn
from rewardkit.cli.shared.options import argument, examples, option
from rewardkit.errors import UsageError
from rewardkit.trainlog.files import run_logs
from rewardkit.trainlog.read import read_runs, with_config
from rewardkit.trainlog.rules import LogFinding, diagnose
from rewardkit.trainlog.run_comparison import RunComparison, compare_runs
from rewardkit.trainlog.summary import RunSummary, summarize
from rewardkit.trainlog.tables import (
    ASCII,
    BLOCKS,
    comparison_tables,
    example_rows,
    format_step,
    run_tables,
    verdict,
    write_csv,
)
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations

if TYPE_CHECKING:
    from rewardkit.trainlog.follow import RunTail

EXAMPLES = examples(
    "rewardkit logs train.log",
    "rewardkit logs train.log --fail-on error",
    "rewardkit logs train.log --follow",
    "rewardkit logs train.log --html train.html --lang zh",
    "rewardkit logs train.log --rewards records --html train.html",
    "rewardkit logs records --follow",
    "rewardkit logs compare with_kl.log without_kl.log",
    "rewardkit logs with_kl.log without_kl.log --html ablation.html --x hours",
    "rewardkit logs train.log --csv steps.csv",
    "rewardkit logs tensorboard_log/project/experiment --config .hydra/config.yaml",
)

#: First argument that compares the runs after it, unless a file has this name.
COMPARE = "compare"


def command(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        argument(
            "Logs of runs: console logs, jsonl of verl's file logger, TensorBoard files or "
            "folders, folders of rollout dumps or of a reward's records, or folders of runs. Put "
            "`compare` first to compare runs.",
            metavar="RUN...",
        ),
    ],
    csv: Annotated[Path | None, option("Also write all steps as CSV.", metavar="FILE")] = None,
    html: Annotated[
        Path | None, option("Also write an interactive HTML page with the curves.", metavar="FILE")
    ] = None,
    lang: opt.Language = "en",
    x: Annotated[
        Literal["step", "hours"], option("Horizontal axis of the curves; runs are aligned by it.")
    ] = "step",
    smooth: Annotated[
        int | None,
        option(
            "Smoothing window in points; 1 disables it; the default depends on the run's length.",
            min=1,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option("The run's config.yaml, if its log does not contain it.", metavar="FILE"),
    ] = None,
    rewards: Annotated[
        Path | None,
        option(
            "Records of the run's reward (--record), shown beside its log. The folder of a run "
            "of `rewardkit train` names its own.",
            metavar="DIR",
        ),
    ] = None,
    samples_per_step: Annotated[
        int | None,
        option(
            "Responses in a training step, by which records are aligned to steps; the default "
            "is read from the log.",
            min=1,
        ),
    ] = None,
    fail_on: Annotated[
        Literal["warning", "error"] | None,
        option("Exit with 1 on findings of this severity or worse."),
    ] = None,
    follow: Annotated[
        bool, option("Follow the log as it grows, until Ctrl-C.", "--follow", "-f")
    ] = False,
    interval: Annotated[
        float, opt.seconds_option("Time between two reads with --follow, in seconds.", least=0.05)
    ] = 2.0,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
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
    from rewardkit.trainlog.follow import RunTail
    from rewardkit.trainlog.page import write_page

    require_different(csv=csv, html=html)
    require_not_input(html, *map(Path, runs))
    require_suffix("--csv", csv, ".csv")
    if follow:
        used = {"runs", "follow", "interval", "lang", "rewards", "samples_per_step"}
        opt.require_unused(ctx, "--follow", used)
        if as_json:
            raise UsageError("--json is not used with --follow: leave it out.")
        if len(runs) != 1:
            raise UsageError("--follow takes one RUN.")
        _follow(RunTail(Path(runs[0]), rewards, samples_per_step), interval, lang)
    compare = runs[0] == COMPARE and not Path(COMPARE).exists()
    opt.require_companion(ctx, "--follow", False, "interval")
    opt.require_companion(ctx, "--html", html, "smooth")
    opt.require_companion(ctx, "compare or --html", html or compare, "x")
    paths = runs[1:] if compare else runs
    training_runs = list(_read(paths, config, rewards, samples_per_step))
    summaries = [summarize(run, lang) for run in training_runs]
    if csv:
        write_csv(training_runs, csv, overwrite=overwrite)
    if html:
        write_page(summaries, html, x=x, window=smooth, compare=compare, overwrite=overwrite)
    if compare:
        _print_comparisons(compare_runs(summaries, x), as_json=as_json)
    elif as_json:
        documents = [summary.summary() for summary in summaries]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for summary in summaries:
            _print(summary)
    counted = {"error"} if fail_on == "error" else {"error", "warning"}
    findings = (finding for summary in summaries for finding in summary.diagnosis.findings)
    if fail_on and any(finding.rule.severity in counted for finding in findings):
        raise typer.Exit(1)


def _read(
    paths: Sequence[str], config: Path | None, rewards: Path | None, samples_per_step: int | None
) -> Iterator[TrainingRun]:
    """Yield the runs, each with its configuration and the records of its reward."""
    from rewardkit.trainlog.rewards import with_rewards

    with progress(f"reading {', '.join(paths)[:60]}") as advance:
        runs = read_runs(paths, progress=advance)
    for path, run in zip(paths, runs, strict=True):
        others = [file.name for file in run_logs(Path(path)) if file != Path(run.path)]
        if others:
            warn(f"{path}: read from {Path(run.path).name}; {', '.join(others)} not read.")
    is_for_one = (config, rewards, samples_per_step) != (None, None, None)
    if is_for_one and len(runs) > 1:
        raise UsageError(
            "--config, --rewards and --samples-per-step belong to one run; name one RUN."
        )
    for path, log in zip(paths, runs, strict=True):
        run = with_config(log, config) if config else log
        run, note = with_rewards(run, Path(path), rewards, samples_per_step)
        if note:
            warn(note)
        yield run


def _print(summary: RunSummary) -> None:
    marks = BLOCKS if (sys.stdout.encoding or "").lower().startswith("utf") else ASCII
    for table in run_tables(summary, marks):
        console.print_table(table)
    for item in summary.run.examples:
        warn(f"{summary.run.path}: {item.where}: skipped: {item.reason}")
    console.print_wrapped(verdict(summary))


def _print_comparisons(comparisons: Iterable[RunComparison], *, as_json: bool) -> None:
    if as_json:
        print_json([comparison.summary() for comparison in comparisons])
        return
    for comparison in comparisons:
        for table in comparison_tables(comparison):
            console.print_table(table)
        first, other = comparison.keys_only_in.values()
        if first or other:
            console.echo(
                f"{first:,} settings are only in the first run, {other:,} only in the other."
            )
    console.echo(
        "* the interval excludes 0; it accounts for the correlation of neighbouring steps. Too few: "
        "fewer than 8 points, or too few independent ones, as when the difference keeps growing."
    )


def _follow(tail: RunTail, interval: float, lang: str) -> NoReturn:
    """Print a line for every step and for every new finding; never returns."""
    last, restarts, rewrites, missing = -1, 0, 0, False
    reported: set[str] = set()
    with suppress(KeyboardInterrupt):
        while True:
            run = tail.poll()
            if tail.is_missing and not missing:
                warn(f"{tail.path} does not exist yet; waiting for it.")
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
                for finding in diagnose(run).findings:
                    if finding.rule.id not in reported:
                        reported.add(finding.rule.id)
                        _report(run, finding, lang)
            sys.stdout.flush()
            sleep(interval)
    raise typer.Exit(130)


def _report(run: TrainingRun, finding: LogFinding, lang: str) -> None:
    """Print a finding on a line, and a response from before its onset and one from after it."""
    evidence = finding.evidence
    facts = [fact.text(lang) for fact in evidence.facts]
    if onset := evidence.text(lang):
        facts.append(f"{translations('hacking', lang)['onset']}: {onset}")
    console.echo(f"{finding.rule.severity}: {finding.rule.title[lang]}: {'; '.join(facts)}")
    for name, text in example_rows(run, evidence, lang):
        console.echo(f"  {name}: {text}")
