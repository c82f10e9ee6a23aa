"""`rewardkit prep`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli._common import (
    JsonFlag,
    Overwrite,
    examples,
    print_json,
    print_table,
    progress,
)

EXAMPLES = examples(
    "rewardkit prep gsm8k --out train.parquet",
    "rewardkit prep gsm8k --split all --out data/gsm8k --source /mnt/hub/gsm8k",
    "rewardkit prep gsm8k --out train.parquet --template boxed --limit 1000 --shuffle --seed 7",
    "rewardkit prep gsm8k --out demo.parquet --sample",
)


class HubName(str, Enum):
    """Where rows are downloaded from."""

    huggingface = "huggingface"
    modelscope = "modelscope"


def command(
    dataset: Annotated[str, typer.Argument(help="A dataset's name; see rewardkit list.")],
    out: Annotated[Path, typer.Option(help="The parquet to write; a folder with --split all.")],
    split: Annotated[str, typer.Option(help="train, test, ... or all.")] = "train",
    source: Annotated[
        Path | None, typer.Option(help="A parquet or jsonl file, or a folder of them.")
    ] = None,
    hub: Annotated[HubName, typer.Option(help="Where to download from.")] = HubName.huggingface,
    sample: Annotated[bool, typer.Option("--sample", help="Use the packaged sample.")] = False,
    template: Annotated[
        str | None,
        typer.Option(help="hash, boxed, answer_line, none, or a text file with {question} in it."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="A system message.")] = None,
    scorer: Annotated[
        str | None, typer.Option(help="The scorer rows name, instead of the template's.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many rows.")] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle before --limit.")] = False,
    seed: Annotated[int, typer.Option(help="Of the shuffle.")] = 0,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a dataset as verl parquet, checked row by row.

    Rows come from --sample, else --source, else the local Hugging Face cache, else the hub
    (HF_ENDPOINT is honoured). Dropped rows are kept, with reasons, in OUT.dropped.jsonl.
    """
    from rewardkit.preprocess.pipeline import prep

    with progress(f"preparing {dataset}") as advance:
        report = prep(
            dataset,
            out,
            split=split,
            source=source,
            hub=hub.value,
            sample=sample,
            template=template,
            system=system,
            scorer=scorer,
            limit=limit,
            shuffle=shuffle,
            seed=seed,
            overwrite=overwrite,
            progress=advance,
        )
    if as_json:
        print_json(report)
        return
    print_table(
        ("split", "read", "dropped", "written", "from", "file"),
        [
            (s.split, f"{s.read:,}", sum(s.dropped.values()), f"{s.written:,}", s.origin, s.out)
            for s in report.splits
        ],
        title=f"{report.dataset}: data_source {report.data_source}, template {report.template}, "
        f"scorer {report.scorer}",
    )
    for s in report.splits:
        for reason, count in s.dropped.most_common():
            typer.echo(f"{s.split}: dropped {count:,}: {reason} (see {s.out}.dropped.jsonl)")
