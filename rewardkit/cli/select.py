"""`rewardkit select`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.shared.console import (
    as_share,
    print_json,
    print_table,
    print_wrapped,
    progress,
    warn,
)
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.html_page import require_html_path
from rewardkit.cli.shared.options import (
    GoldKey,
    HtmlFile,
    JsonFlag,
    Overwrite,
    ResponseKey,
    require_companion,
    require_finite,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.responses.select.report import SelectReport, SftReport

EXAMPLES = examples(
    "rewardkit select scored.jsonl --train train.parquet --pass-rate 0.1:0.9 --out selected.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0.01:0.99 --min-samples 8 --out o.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0:0.5 --unseen keep --out o.parquet",
    "rewardkit select scored.jsonl --train train.parquet --sft sft.parquet --per-prompt 4",
)

#: Width of the histogram's longest bar, in columns.
BAR_COLUMNS = 50


class Unseen(str, Enum):
    """What to do with rows that have too few responses."""

    keep = "keep"
    drop = "drop"


def command(
    ctx: typer.Context,
    scored: Annotated[
        list[str],
        typer.Argument(help="Output of rewardkit score --out: files, folders or glob patterns."),
    ],
    train: Annotated[
        Path, typer.Option(help="verl parquet that the responses were generated from.")
    ],
    pass_rate: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH", help="Range of pass rates to keep, bounds included: 0.1:0.9."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output parquet with the selected training rows.")
    ] = None,
    sft: Annotated[
        Path | None,
        typer.Option(
            help="Output parquet with the best right responses, for verl's MultiTurnSFTDataset; "
            "instead of --out."
        ),
    ] = None,
    per_prompt: Annotated[
        int,
        typer.Option(min=1, help="With --sft: maximum responses per prompt, the shortest first."),
    ] = 1,
    min_characters: Annotated[
        int, typer.Option(min=1, help="With --sft: minimum characters of a response.")
    ] = 1,
    max_characters: Annotated[
        int | None, typer.Option(min=1, help="With --sft: maximum characters of a response.")
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            help="With --sft: the run's tool configuration (multi_turn.tool_config_path), for rows "
            "that call tools."
        ),
    ] = None,
    min_samples: Annotated[
        int, typer.Option(min=1, help="Minimum number of responses per row.")
    ] = 1,
    unseen: Annotated[
        Unseen,
        typer.Option(help="What to do with rows that have fewer responses than --min-samples."),
    ] = Unseen.drop,
    response_key: ResponseKey = None,
    gold_key: GoldKey = None,
    right_score: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            callback=require_finite,
            help="Lowest score of a right answer, where no acc of 0 or 1 states it.",
        ),
    ] = None,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Select training rows by pass rate, or the best responses.

    Responses are matched to rows by data_source, split and index, else by prompt, else by
    source_id. A response whose prompt, question, id or gold contradicts its row is an error.
    With --out, the rows in the range of --pass-rate, over all steps, are written unchanged and in
    order. With --sft, the shortest right response of each prompt is written as a conversation;
    --pass-rate then limits the prompts. The other rows go to OUT.dropped.jsonl with their reasons.
    """
    from rewardkit.responses.select.report import PassRateFilter
    from rewardkit.responses.select.selection import parse_bounds, select
    from rewardkit.responses.select.sft import SftConfig, select_sft
    from rewardkit.responses.select.sft_file import read_tools

    _require_options(ctx, out, sft, pass_rate)
    wanted = PassRateFilter(
        *parse_bounds(pass_rate or "0:1"), min_samples=min_samples, unseen=unseen is Unseen.keep
    )
    require_html_path(html, overwrite=overwrite, inputs=[*map(Path, scored), train])
    with progress(f"reading {', '.join(scored)[:60]}") as advance:
        options: dict[str, Any] = {
            "response_key": response_key,
            "gold_key": gold_key,
            "right_score": right_score,
            "overwrite": overwrite,
            "progress": advance,
        }
        if out:
            report = select(scored, train, out, wanted, **options)
        elif sft:
            schemas = read_tools(tools) if tools else ()
            config = SftConfig(per_prompt, min_characters, max_characters, wanted, schemas)
            responses = select_sft(scored, train, sft, config, **options)
    if sft:
        _print_responses(responses, as_json=as_json)
        return
    if html:
        _write_html(report, html, overwrite=overwrite)
    _print(report, as_json=as_json)


def _require_options(
    ctx: typer.Context, out: Path | None, sft: Path | None, pass_rate: str | None
) -> None:
    """Raise `UsageError` for options of the one output with the other."""
    if (out is None) == (sft is None):
        raise UsageError("name one output: --out with --pass-rate, or --sft.")
    if out and pass_rate is None:
        raise UsageError("--out needs --pass-rate LOW:HIGH, such as 0.1:0.9.")
    for name in ("per_prompt", "min_characters", "max_characters", "tools"):
        require_companion(ctx, name, "--sft", is_set=sft is not None)
    for name in ("html", "unseen"):
        require_companion(ctx, name, "--out", is_set=out is not None)


def _write_html(report: SelectReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.pages.html import write_html
    from rewardkit.responses.select.page import select_page

    write_html(select_page(report), out, overwrite=overwrite)


def _print(report: SelectReport, *, as_json: bool) -> None:
    from rewardkit.responses.matching.match import PLACE_ALONE
    from rewardkit.responses.select.page import groups_sentence, match_sentence

    _warn_about(report)
    if alone := report.responses[PLACE_ALONE]:
        warn(
            f"{alone:,} responses were matched by {PLACE_ALONE}: nothing else in them or their rows "
            "confirms the match."
        )
    if as_json:
        print_json(report.summary())
        return
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
    for line in (*lines, f"{match_sentence(report)}{not_read}", groups_sentence(report)):
        print_wrapped(line)


def _print_responses(report: SftReport, *, as_json: bool) -> None:
    from rewardkit.responses.select.page import match_sentence

    _warn_about(report)
    if report.null_tool_fields:
        warn(
            f"{report.out}: the schemas of the tools have different fields. Parquet gives each tool "
            "the fields of all, and verl shows the policy a null for each that a tool does not have."
        )
    if as_json:
        print_json(report.summary())
        return
    not_read = f"; lines skipped: {report.unread:,}" if report.unread else ""
    right = report.responses.total() - report.wrong
    prompts = f"{report.prompts:,} prompts"
    lines = [
        f"{report.out}: {report.written:,} responses to {report.covered:,} of {prompts}",
        *(f"prompts without one, {why}: {n:,}" for why, n in report.dropped.most_common()),
        f"right responses: {right:,}, wrong: {report.wrong:,}",
        *(f"right but left out, {why}: {n:,}" for why, n in report.rejected.most_common()),
        f"{match_sentence(report)}{not_read}",
    ]
    if report.unknown_end:
        lines.append(
            f"{report.unknown_end:,} of them do not say why they ended (finish_reason); "
            "--max-characters leaves out those at the run's length limit"
        )
    if report.tool_arguments:
        lines.append(f"the arguments of tool calls are {report.tool_arguments}")
    for line in lines:
        print_wrapped(line)


def _warn_about(report: SelectReport | SftReport) -> None:
    for line in report.examples:
        warn(f"skipped: {line}")
