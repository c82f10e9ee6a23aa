"""`rewardkit mix`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import print_json, print_table, printable, progress
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import HtmlFile, JsonFlag, Overwrite

if TYPE_CHECKING:
    from rewardkit.preprocess.report import MixReport

EXAMPLES = examples(
    "rewardkit mix gsm8k.parquet:0.3 dapo.parquet:0.7 --out train.parquet",
    "rewardkit mix gsm8k.parquet:0.3 dapo.parquet:0.7 --rows 10000 --seed 7 --out train.parquet",
    "rewardkit mix aime.parquet math.parquet:4 --rows 20000 --oversample --out train.parquet",
)


def command(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="FILE[:WEIGHT]...", help="verl parquets, ours or not; weight 1."),
    ],
    out: Annotated[Path, typer.Option(help="The parquet to write.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows; else as many as there are.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample and the order.")] = 0,
    oversample: Annotated[
        bool, typer.Option("--oversample", help="Repeat rows of a file that has too few.")
    ] = False,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write verl parquets as one, in given shares and in one schema.

    verl cannot list files together whose columns differ in type; the mix loads. Fields that have
    no place in the schema are left out and named; what verl reads is never left out.
    """
    from rewardkit.output import require_absent, require_different, require_not_input
    from rewardkit.pages.html import write_html
    from rewardkit.preprocess.mix import mix, parse_part
    from rewardkit.preprocess.report_pages import mix_page

    given = [parse_part(part) for part in parts]
    if html:
        require_absent(html, overwrite=overwrite)
        require_different(out=out, html=html)
        for part in given:
            require_not_input(html, part.path)
    with progress(f"mixing {out}") as advance:
        report = mix(
            given,
            out,
            rows=rows,
            seed=seed,
            oversample=oversample,
            overwrite=overwrite,
            progress=advance,
        )
    if html:
        write_html(mix_page(report), html, overwrite=overwrite)
    if as_json:
        print_json(report)
        return
    print_table(
        ("file", "weight", "share", "rows there", "taken", "each at most"),
        (
            (p.path, f"{p.weight:g}", f"{p.share:.1%}", f"{p.available:,}", f"{p.rows:,}", p.times)
            for p in report.parts
        ),
        title=f"{report.out}: {report.written:,} rows, seed {report.seed}",
    )
    for line in _notes(report):
        typer.echo(printable(line))


def _notes(report: MixReport) -> Iterator[str]:
    """What was left out, changed, and asked by several files."""
    for part in report.parts:
        for change, count in part.changes.most_common():
            yield f"{part.path}: {change} ({count:,} rows)"
        for name, count in part.left_out.most_common():
            yield f"{part.path}: left out {name} ({count:,} rows)"
    if report.shared:
        yield (
            f"{report.shared:,} questions are in several files, {report.conflicting:,} of them "
            "with different golds"
        )
