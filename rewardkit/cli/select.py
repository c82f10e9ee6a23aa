"""`rewardkit select`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, progress, warn
from rewardkit.cli.shared.options import argument, examples, option
from rewardkit.errors import UsageError
from rewardkit.table import Table

if TYPE_CHECKING:
    from rewardkit.responses.select import JoinReport

EXAMPLES = examples(
    "rewardkit select scored.jsonl --train train.parquet --pass-rate 0.1:0.9 --out selected.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0.01:0.99 --min-samples 8 --out o.parquet",
    "rewardkit select s.jsonl --train t.parquet --pass-rate 0:0.5 --unseen keep --out o.parquet",
    "rewardkit select scored.jsonl --train train.parquet --sft sft.parquet --per-prompt 4",
)

#: Width of the histogram's longest bar, in columns.
BAR_COLUMNS = 50


def command(
    ctx: typer.Context,
    scored: Annotated[
        list[str], argument("Output of rewardkit score --out: files, folders or glob patterns.")
    ],
    train: Annotated[Path, option("verl parquet that the responses were generated from.")],
    pass_rate: Annotated[
        str | None,
        option("Range of pass rates to keep, bounds included: 0.1:0.9.", metavar="LOW:HIGH"),
    ] = None,
    out: Annotated[Path | None, option("Output parquet with the selected training rows.")] = None,
    sft: Annotated[
        Path | None,
        option(
            "Output parquet with the best right responses, for verl's MultiTurnSFTDataset; "
            "instead of --out."
        ),
    ] = None,
    per_prompt: Annotated[
        int, option("With --sft: maximum responses per prompt, the shortest first.", min=1)
    ] = 1,
    max_characters: Annotated[
        int | None, option("With --sft: maximum characters of a response.", min=1)
    ] = None,
    tools: Annotated[
        Path | None,
        option(
            "With --sft: the run's tool configuration (multi_turn.tool_config_path), for rows "
            "that call tools."
        ),
    ] = None,
    min_samples: Annotated[int, option("Minimum number of responses per row.", min=1)] = 1,
    unseen: Annotated[
        Literal["keep", "drop"],
        option("What to do with rows that have fewer responses than --min-samples."),
    ] = "drop",
    response_key: opt.ResponseKey = None,
    gold_key: opt.GoldKey = None,
    right_score: Annotated[
        float | None,
        option(
            "Lowest score of a right answer, where no acc of 0 or 1 states it.",
            metavar="SCORE",
            callback=opt.require_finite,
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Select training rows by pass rate, or the best responses.

    Responses are matched to rows by data_source, split and index, else by prompt, else by
    source_id. A response whose prompt, question, id or gold contradicts its row is an error.
    With --out, the rows in the range of --pass-rate, over all steps, are written unchanged and in
    order. With --sft, the shortest right response of each prompt is written as a conversation;
    --pass-rate then limits the prompts. The other rows go to OUT.dropped.jsonl with their reasons.
    """
    from rewardkit.responses.samples import FieldNames
    from rewardkit.responses.select import PassRateFilter, SelectReport, select
    from rewardkit.responses.sft import SftConfig, read_tools, select_sft

    if (out is None) == (sft is None):
        raise UsageError("name one output: --out with --pass-rate, or --sft.")
    if out and pass_rate is None:
        raise UsageError("--out needs --pass-rate LOW:HIGH, such as 0.1:0.9.")
    opt.require_companion(ctx, "--sft", sft, "per_prompt", "max_characters", "tools")
    opt.require_companion(ctx, "--out", out, "unseen")
    wanted = PassRateFilter.parse(pass_rate or "0:1", min_samples, unseen=unseen == "keep")
    with progress(f"reading {', '.join(scored)[:60]}") as advance:
        options: dict[str, Any] = {
            "names": FieldNames(response_key, gold_key),
            "right_score": right_score,
            "overwrite": overwrite,
            "progress": advance,
        }
        if out:
            report: JoinReport = select(scored, train, out, wanted, **options)
        elif sft:
            schemas = read_tools(tools) if tools else ()
            config = SftConfig(per_prompt, max_characters, wanted, schemas)
            report = select_sft(scored, train, sft, config, **options)
    for line in (*(f"skipped: {example}" for example in report.examples), *report.warnings()):
        warn(line)
    if as_json:
        print_json(report.summary())
        return
    if isinstance(report, SelectReport):
        bands = report.bands
        most = max(*bands.values(), 1)
        rows = [(band, f"{n:,}", "█" * -(-BAR_COLUMNS * n // most)) for band, n in bands.items()]
        title = f"{report.out}: {report.written:,} of {report.rows:,} rows kept"
        print_table(Table(("pass rate", "rows", ""), rows, title))
    for line in report.lines():
        print_wrapped(line)
