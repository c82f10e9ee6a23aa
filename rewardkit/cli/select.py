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
from rewardkit.cli.shared.html_page import require_html_path
from rewardkit.cli.shared.options import GoldKey, HtmlFile, JsonFlag, Overwrite, ResponseKey

if TYPE_CHECKING:
    from rewardkit.responses.select.report import SelectReport

EXAMPLES = examples(
    "rewardkit select scored.jsonl --train train.parquet --pass-rate 0.1:0.9 --out selected.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0.01:0.99 --min-samples 8 --out o.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0:0.5 --unseen keep --out o.parquet",
)

#: Width of the histogram's longest bar, in columns.
BAR_COLUMNS = 50


class Unseen(str, Enum):
    """What to do with rows that have too few responses."""

    keep = "keep"
    drop = "drop"


def command(
    scored: Annotated[
        list[str],
        typer.Argument(help="Output of rewardkit score --out: files, folders or glob patterns."),
    ],
    train: Annotated[
        Path, typer.Option(help="verl parquet that the responses were generated from.")
    ],
    pass_rate: Annotated[
        str,
        typer.Option(
            metavar="LOW:HIGH", help="Range of pass rates to keep, bounds included: 0.1:0.9."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Output parquet.")],
    min_samples: Annotated[
        int, typer.Option(min=1, help="Minimum number of responses per row.")
    ] = 1,
    unseen: Annotated[
        Unseen,
        typer.Option(help="What to do with rows that have fewer responses than --min-samples."),
    ] = Unseen.drop,
    response_key: ResponseKey = None,
    gold_key: GoldKey = None,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Select training rows by their pass rate.

    Responses are matched to rows by data_source, split and index, else by prompt, else by
    source_id. A response whose prompt, question, id or gold contradicts its row is an error.
    Selected rows are written unchanged and in order; the others go to OUT.dropped.jsonl with their
    pass rates.
    """
    from rewardkit.responses.matching.match import PLACE_ALONE
    from rewardkit.responses.select.report import PassRateFilter
    from rewardkit.responses.select.selection import parse_bounds, select

    wanted = PassRateFilter(
        *parse_bounds(pass_rate), min_samples=min_samples, unseen=unseen is Unseen.keep
    )
    require_html_path(html, overwrite=overwrite, inputs=[*map(Path, scored), train])
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
        warn(f"skipped: {line}")
    if alone := report.responses[PLACE_ALONE]:
        warn(
            f"{alone:,} responses were matched by {PLACE_ALONE}: nothing else in them or their rows "
            "confirms the match."
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
    from rewardkit.responses.select.page import match_sentence, zero_variance_sentence

    bands = report.bands()
    most = max(*bands.values(), 1)
    print_table(
        ("pass rate", "rows", ""),
        ((band, f"{rows:,}", "█" * -(-BAR_COLUMNS * rows // most)) for band, rows in bands.items()),
        title=f"{report.out}: {report.written:,} of {report.rows:,} rows kept",
    )
    lines = [f"dropped, {why}: {as_share(n, report.rows)}" for why, n in report.dropped.items()]
    action = "kept" if report.wanted.unseen else "dropped"
    lines.append(
        f"rows without responses: {report.unseen:,}, with too few: {report.few:,} (both {action})"
    )
    not_read = f"; lines skipped: {report.unread:,}" if report.unread else ""
    for line in (*lines, f"{match_sentence(report)}{not_read}", zero_variance_sentence(report)):
        typer.echo(printable(line))
