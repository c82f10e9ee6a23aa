"""`rewardkit score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli._common import (
    JsonFlag,
    Overwrite,
    Settings,
    as_share,
    examples,
    print_json,
    print_table,
    progress,
    scorer_options,
    warn,
)

if TYPE_CHECKING:
    from rewardkit.rollouts.score import ScoreReport, Tally

EXAMPLES = examples(
    "rewardkit score responses.jsonl --scorer gsm8k",
    "rewardkit score rollouts/100.jsonl --scorer gsm8k --set method=robust --out scored.jsonl",
    "rewardkit score responses.jsonl --scorer my_reward.py:compute_score",
)


def command(
    file: Annotated[Path, typer.Argument(help="jsonl or parquet with responses and golds.")],
    scorer: Annotated[
        str, typer.Option(help="A scorer's name or file.py:function; auto: each row's own.")
    ] = "auto",
    settings: Settings = None,
    response_key: Annotated[str | None, typer.Option(help="The field with the response.")] = None,
    gold_key: Annotated[str | None, typer.Option(help="The field with the gold.")] = None,
    out: Annotated[Path | None, typer.Option(help="A jsonl to write: rows with scores.")] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Score a file of responses and sum up by status and data source.

    Without --response-key and --gold-key the usual names are tried, those of verl's dumps
    among them. Lines that cannot be scored are reported with their number.
    """
    from rewardkit.rollouts.score import score_file
    from rewardkit.scorers.load import load_scorer

    judge = load_scorer(scorer, **scorer_options(settings))
    with progress(f"scoring {file}") as advance:
        report = score_file(
            file,
            judge,
            response_key=response_key,
            gold_key=gold_key,
            out=out,
            overwrite=overwrite,
            progress=advance,
        )
    for line in report.examples:
        warn(f"{line.where}: not scored: {line.reason}")
    if report.unscored > len(report.examples):
        warn(f"... and {report.unscored - len(report.examples):,} more")
    if as_json:
        print_json(report.summary())
    else:
        _print(report)
    if not report.total.n:
        raise typer.Exit(1)


def _print(report: ScoreReport) -> None:
    tallies = {source or "(none)": tally for source, tally in report.by_source.items()}
    if len(tallies) > 1:
        tallies["all"] = report.total
    print_table(
        ("data source", "responses", "right", "mean score", "how they ended"),
        (
            (source, f"{t.n:,}", as_share(t.correct, t.n), *_rest(t))
            for source, t in tallies.items()
        ),
        title=f"{report.path}: {report.total.n:,} scored, {report.unscored:,} not",
    )


def _rest(tally: Tally) -> tuple[str, str]:
    ended = ", ".join(f"{status} {n:,}" for status, n in tally.statuses.most_common())
    return f"{tally.score_sum / tally.n:.4f}", ended
