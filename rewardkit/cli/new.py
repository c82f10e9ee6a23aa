"""`rewardkit new`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.help import examples

if TYPE_CHECKING:
    from rewardkit.scaffold import Kind

EXAMPLES = examples(
    "rewardkit new dataset medical-mcq --scorer mcq",
    "rewardkit new scorer exact-text --out plugins/exact-text",
)

app = typer.Typer(
    help="A package with a dataset or scorer of your own, which passes its own tests.",
    no_args_is_help=True,
    epilog=EXAMPLES,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="Of it and its package, as in medical-mcq.")]
Out = Annotated[Path | None, typer.Option(help="The new folder; ./NAME if not said.")]


@app.command("dataset", epilog=examples("rewardkit new dataset medical-mcq --scorer mcq"))
def dataset(
    name: Name,
    scorer: Annotated[
        str, typer.Option(help="The scorer of its rows; with mcq they are choice questions.")
    ] = "math",
    out: Out = None,
) -> None:
    """Write a package with a dataset: code, card, sample rows, tests, entry points."""
    _new("dataset", name, out, scorer, "rewardkit prep {} --sample --out {}.parquet")


@app.command("scorer", epilog=examples("rewardkit new scorer exact-text"))
def scorer(name: Name, out: Out = None) -> None:
    """Write a package with a scorer: code that verl loads as it stands, tests, entry point."""
    _new("scorer", name, out, "", "rewardkit audit {}")


def _new(kind: Kind, name: str, out: Path | None, scorer: str, last: str) -> None:
    from rewardkit.scaffold import new_package

    folder = new_package(kind, name, out, scorer=scorer)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        typer.echo(file)
    warn(f"next, in {folder}: pip install -e '.[test]'; pytest; {last.format(name, name)}")
