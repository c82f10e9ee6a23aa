"""`rewardkit new`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import warn
from rewardkit.cli.shared.help import PanelGroup
from rewardkit.cli.shared.options import argument, examples, option

if TYPE_CHECKING:
    from rewardkit.scaffold import Kind

EXAMPLES = examples(
    "rewardkit new dataset medical-mcq --scorer mcq",
    "rewardkit new scorer exact-text --out plugins/exact-text",
)

app = typer.Typer(
    cls=PanelGroup,
    help="Create a package for your own dataset or scorer.",
    no_args_is_help=True,
    epilog=EXAMPLES,
    rich_markup_mode=None,
)
Name = Annotated[str, argument("Name of the dataset or scorer and of its package: medical-mcq.")]
Out = Annotated[Path | None, option("New folder; the default is ./NAME.")]


@app.command("dataset", epilog=examples("rewardkit new dataset medical-mcq --scorer mcq"))
def dataset(
    name: Name,
    scorer: Annotated[
        str, option("Scorer of the rows; with mcq the sample has multiple-choice questions.")
    ] = "math",
    out: Out = None,
) -> None:
    """Create a package for a dataset.

    It has code, a card, sample rows, tests and entry points, and passes its tests as it is.
    """
    _new("dataset", name, out, scorer, "rewardkit prep {} --sample --out {}.parquet")


@app.command("scorer", epilog=examples("rewardkit new scorer exact-text"))
def scorer(name: Name, out: Out = None) -> None:
    """Create a package for a scorer.

    It has code that verl loads directly, tests and an entry point, and passes its tests as it is.
    """
    _new("scorer", name, out, "", "rewardkit audit {}")


def _new(kind: Kind, name: str, out: Path | None, scorer: str, last: str) -> None:
    from rewardkit.scaffold import new_package

    folder = new_package(kind, name, out, scorer=scorer)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        typer.echo(file)
    warn(f"next, in {folder}: pip install -e '.[test]'; pytest; {last.format(name, name)}")
