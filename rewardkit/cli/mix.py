"""`rewardkit mix`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import echo, print_json, print_table, progress
from rewardkit.cli.shared.options import argument, examples, option
from rewardkit.table import Table

if TYPE_CHECKING:
    from rewardkit.preprocess.mix import MixReport

EXAMPLES = examples(
    "rewardkit mix gsm8k.parquet dapo.parquet --out train.parquet",
    "rewardkit mix gsm8k.parquet:0.3 dapo.parquet:0.7 --rows 10000 --seed 7 --out train.parquet",
    "rewardkit mix aime.parquet math.parquet:4 --rows 20000 --oversample --out train.parquet",
)


def command(
    parts: Annotated[
        list[str],
        argument(
            "verl parquets from any source. With weights, each gets its share of the mix; a file "
            "without one then has the weight 1.",
            metavar="FILE[:WEIGHT]...",
        ),
    ],
    out: Annotated[Path, option("Output parquet.")],
    rows: Annotated[
        int | None,
        option(
            "Number of rows to write; the default is all, or as many as the shares allow.", min=1
        ),
    ] = None,
    seed: Annotated[int, option("Random seed for sampling and ordering rows.")] = 0,
    oversample: Annotated[
        bool, option("Repeat rows of files that have too few.", "--oversample")
    ] = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Mix verl parquets into one, whole or in the chosen shares.

    Without weights all rows of all files are written. verl cannot load files together if their column
    types differ; the mix has one schema. Fields outside that schema are dropped and reported; fields
    that verl reads are never dropped.
    """
    from rewardkit.preprocess.mix import mix, parse_part

    sources = [parse_part(part) for part in parts]
    with progress(f"mixing {out}") as advance:
        report = mix(
            sources,
            out,
            rows=rows,
            seed=seed,
            oversample=oversample,
            overwrite=overwrite,
            progress=advance,
        )
    if as_json:
        print_json(report)
        return
    lines = [
        (p.path, f"{p.weight:,.10g}", f"{p.share:.1%}", f"{p.available:,}", f"{p.rows:,}", p.times)
        for p in report.parts
    ]
    columns = ("file", "weight", "share", "available", "written", "max repeats")
    title = f"{report.out}: {report.written:,} rows, seed {report.seed}"
    print_table(Table(columns, lines, title))
    for note in _notes(report):
        echo(note)


def _notes(report: MixReport) -> Iterator[str]:
    """Report rows and fields left out, changed values, and questions that several files share."""
    for part in report.parts:
        if not part.rows:
            yield f"{part.path}: no row is written, because its share of the rows is less than one"
        elif part.rows < part.available:
            rest = part.available - part.rows
            yield (
                f"{part.path}: {rest:,} of {part.available:,} rows are left out, because its share "
                f"of the mix is {part.share:.1%}"
            )
        for change, count in part.changes.most_common():
            yield f"{part.path}: {change} ({count:,} rows)"
        for name, count in part.left_out.most_common():
            yield f"{part.path}: dropped field {name} ({count:,} rows)"
    if report.shared:
        yield (
            f"{report.shared:,} questions are in several files; {report.conflicting:,} of them have "
            "different golds"
        )
