"""`rewardkit check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli._common import (
    JsonFlag,
    Overwrite,
    Settings,
    examples,
    print_json,
    print_table,
    progress,
    scorer_options,
)

EXAMPLES = examples(
    "rewardkit check train.parquet",
    "rewardkit check train.parquet --scorer gsm8k --set method=robust",
    "rewardkit check train.parquet --drop-bad clean.parquet",
)


def command(
    file: Annotated[Path, typer.Argument(help="A verl parquet, ours or not.")],
    scorer: Annotated[
        str | None, typer.Option(help="Judge with this scorer instead of each row's own.")
    ] = None,
    settings: Settings = None,
    allow_duplicates: Annotated[
        bool, typer.Option("--allow-duplicates", help="Repeated prompts are meant.")
    ] = False,
    drop_bad: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write the good rows here; the others are kept beside."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Prove a verl parquet fit to train on: schema, contents, duplicates, gold self-check.

    The self-check scores every row's own solution and its gold in the form asked for (both must
    be right) and another answer (must be wrong). Exit 1 if anything is found, also with
    --drop-bad: the file given is bad, OUT is clean.
    """
    from rewardkit.preprocess.check import check
    from rewardkit.preprocess.quality import RULES
    from rewardkit.scorers.load import load_scorer

    options = scorer_options(settings)
    judge = load_scorer(scorer or "auto", **options)
    own = scorer in (None, "auto")
    with progress(f"checking {file}") as advance:
        report = check(
            file,
            scorer=None if own else judge,
            options=options if own else None,
            allow_duplicates=allow_duplicates,
            drop_bad=drop_bad,
            overwrite=overwrite,
            progress=advance,
        )
    if as_json:
        print_json({"ok": report.ok, **vars(report)})
    elif report.ok:
        typer.echo(f"{file}: {report.rows:,} rows, all good.")
    else:
        found = sorted(report.examples, key=lambda f: list(RULES).index(f.rule))
        place = ("file" if f.row is None else f"row {f.row}" for f in found)
        print_table(
            ("where", "rule", "what"),
            ((p, f.rule, f.message) for p, f in zip(place, found, strict=True)),
        )
        print_table(
            ("rule", "found", "what to do"),
            (
                (rule, f"{report.counts[rule]:,}", todo)
                for rule, todo in RULES.items()
                if report.counts[rule]
            ),
            title=f"{file}: {report.bad_rows:,} of {report.rows:,} rows are bad",
        )
    if drop_bad and report.rows:
        typer.echo(
            f"{drop_bad}: {report.rows - report.bad_rows:,} good rows; the others are in "
            f"{drop_bad}.dropped.jsonl",
            err=as_json,
        )
    if not report.ok:
        raise typer.Exit(1)
