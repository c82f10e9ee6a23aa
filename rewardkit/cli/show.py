"""`rewardkit show`."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import echo, print_json, prints_to_stderr
from rewardkit.cli.shared.options import argument, complete_set, examples, option
from rewardkit.cli.shared.user_code import require_sets
from rewardkit.errors import DataError
from rewardkit.text import printable

EXAMPLES = examples(
    "rewardkit show gsm8k -n 3",
    "rewardkit show gsm8k --sample --template boxed",
    "rewardkit show train.parquet --row 5162",
)


def command(
    ctx: typer.Context,
    name: Annotated[
        str,
        argument(
            "Dataset name, also with a split: aime2024; or a verl parquet.",
            autocompletion=complete_set,
        ),
    ],
    n: Annotated[int, option("Number of rows to print.", "-n", min=1)] = 1,
    row: Annotated[
        int, option("Number of the first row to print, as check counts: the first row is 0.", min=0)
    ] = 0,
    split: Annotated[str | None, option("Split to read: train, test, ...")] = None,
    source: Annotated[
        Path | None, option("Read raw rows from this parquet or jsonl file, or folder of files.")
    ] = None,
    hub: opt.Hub = "huggingface",
    sample: Annotated[
        bool, option("Use the sample that comes with rewardkit.", "--sample")
    ] = False,
    template: Annotated[str | None, option("Prompt template, as for rewardkit prep.")] = None,
    system: Annotated[str | None, option("System message to put before each prompt.")] = None,
    load_seconds: opt.LoadSeconds = 60.0,
    as_json: opt.JsonFlag = False,
) -> None:
    """Print rows of a dataset as verl reads them."""
    from rewardkit.preprocess.column_guess import require_parquet
    from rewardkit.preprocess.prep import preview
    from rewardkit.row import read_rows

    require_parquet(name)
    if name.endswith(".parquet"):
        opt.require_unused(ctx, "a parquet", {"name", "n", "row"})
        rows = list(islice(read_rows(Path(name)), row, row + n))
    else:
        if source or sample:
            opt.require_unused(ctx, "--source or --sample", set(ctx.params) - {"hub"})
        require_sets([name], load_seconds)
        with prints_to_stderr():
            rows = preview(
                name,
                row + n,
                split=split,
                source=source,
                hub=hub,
                sample=sample,
                template=template,
                system=system,
            )[row:]
    if row and not rows:
        raise DataError(f"{name}: there is no row {row}. Give a smaller --row.")
    if as_json:
        print_json(rows)
        return
    for number, verl_row in enumerate(rows, row):
        typer.echo(f"{'-' * 30} row {number} {'-' * 30}")
        _print_row(verl_row)


def _print_row(row: dict[str, Any]) -> None:
    column = "prompt" if "prompt" in row else "messages"
    prompt = row.get(column)
    for message in prompt if isinstance(prompt, list) else [prompt]:
        shown = message if isinstance(message, dict) else {"role": "prompt", "content": message}
        echo(f"[{shown.get('role')}]\n{shown.get('content')}\n")
    for field, value in row.items():
        if field == column:
            continue
        if field == "images" and isinstance(value, list):
            typer.echo(f"images: {', '.join(map(_image_text, value)) or 'none'}")
            continue
        for key, cell in value.items() if isinstance(value, dict) else (("", value),):
            echo(f"{field}{'.' if key else ''}{key}: {cell}")


def _image_text(image: object) -> str:
    """Return the type and the size of an image, whose bytes say nothing in a terminal."""
    from rewardkit.pages.images import media_type

    data = image.get("bytes") if isinstance(image, dict) else image
    if not isinstance(data, bytes):
        return printable(str(image))
    return f"{media_type(data) or 'unknown type'} of {len(data):,} bytes"
