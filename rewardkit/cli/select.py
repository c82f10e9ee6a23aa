"""`rewardkit select`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import (
    as_share,
    print_json,
    print_table,
    printable,
    progress,
    warn,
)
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import HtmlFile, JsonFlag, Overwrite

if TYPE_CHECKING:
    from rewardkit.responses.select.report import SelectReport

EXAMPLES = examples(
    "rewardkit select scored.jsonl --train train.parquet --pass-rate 0.1:0.9 --out selected.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0.01:0.99 --min-samples 8 --out o.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0:0.5 --unseen keep --out o.parquet",
)

#: Columns of the longest bar of the histogram.
BAR = 50


class Unseen(str, Enum):
    """What becomes of rows without enough responses."""

    keep = "keep"
    drop = "drop"


def command(
    scored: Annotated[
        list[str],
        typer.Argument(help="What rewardkit score --out wrote: files, folders, patterns."),
    ],
    train: Annotated[Path, typer.Option(help="The verl parquet the responses were made from.")],
    pass_rate: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Pass rates to keep, both included: 0.1:0.9.")
    ],
    out: Annotated[Path, typer.Option(help="The parquet to write.")],
    min_samples: Annotated[int, typer.Option(min=1, help="Responses that a pass rate takes.")] = 1,
    unseen: Annotated[
        Unseen, typer.Option(help="What to do with rows that have fewer, or none.")
    ] = Unseen.drop,
    response_key: Annotated[str | None, typer.Option(help="The field with the response.")] = None,
    gold_key: Annotated[str | None, typer.Option(help="The field with the gold.")] = None,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the training rows whose prompts are solved neither too often nor too rarely.

    Responses find their rows by data_source, split and index, else by the prompt, else by
    source_id. A response whose prompt, question, id or gold contradicts its row is an error. Rows are written as they are and in order; the others, with their pass rates,
    go to OUT.dropped.jsonl.
    """
    from rewardkit.output import require_absent, require_not_input
    from rewardkit.responses.matching.match import PLACE_ALONE
    from rewardkit.responses.select.report import PassRateFilter
    from rewardkit.responses.select.selection import parse_bounds, select

    wanted = PassRateFilter(*parse_bounds(pass_rate), min_samples, unseen is Unseen.keep)
    if html:
        require_absent(html, overwrite=overwrite)
        for source in (*map(Path, scored), train):
            require_not_input(html, source)
    with progress(f"reading {', '.join(scored)[:60]}") as advance:
        report = select(
            scored,
            train,
            out,
            wanted,
            response_key=response_key,
            gold_key=gold_key,
            overwrite=overwrite,
            progress=advance,
        )
    for line in report.examples:
        warn(f"not counted: {line}")
    if alone := report.responses[PLACE_ALONE]:
        warn(
            f"{alone:,} responses were joined by {PLACE_ALONE}: nothing else in them or their rows "
            "confirms it."
        )
    if html:
        _write_html(report, html, overwrite=overwrite)
    if as_json:
        print_json(report.summary())
    else:
        _print(report)


def _write_html(report: SelectReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.pages.html import write_html
    from rewardkit.responses.select.page import select_page

    write_html(select_page(report), out, overwrite=overwrite)


def _print(report: SelectReport) -> None:
    from rewardkit.responses.select.page import joined, zero_variance

    bands = report.bands()
    most = max(*bands.values(), 1)
    print_table(
        ("pass rate", "rows", ""),
        ((band, f"{rows:,}", "█" * -(-BAR * rows // most)) for band, rows in bands.items()),
        title=f"{report.out}: {report.written:,} of {report.rows:,} rows kept",
    )
    lines = [f"dropped, {why}: {as_share(n, report.rows)}" for why, n in report.dropped.items()]
    kept = "kept" if report.wanted.unseen else "dropped"
    lines.append(
        f"rows without responses: {report.unseen:,}, with too few: {report.few:,} (both {kept})"
    )
    not_read = f"; lines not read: {report.unread:,}" if report.unread else ""
    for line in (*lines, f"{joined(report)}{not_read}", zero_variance(report)):
        typer.echo(printable(line))
