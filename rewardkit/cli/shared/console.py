"""What the commands share: printing, progress, examples and `--set` options."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from rewardkit.errors import UsageError
from rewardkit.output import json_value
from rewardkit.redact import Redactor, secrets_of

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what exists.")]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write the report as a page.")
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes for large files; all cores if not said.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the scorer. Repeatable."),
]


SecondsPerRow = Annotated[
    float, typer.Option(min=0.01, help="Timeout per response for custom scorers, in seconds.")
]


class EndedError(BaseException):
    """A signal asked for the end; no SystemExit, which a scorer's guard would take for its own."""


def examples(*lines: str) -> str:
    r"""The end of a command's help. The \b keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def print_json(value: object) -> None:
    """One JSON document on stdout; dataclasses become objects, paths text, NaN null."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    json.dump(json_value(value), sys.stdout, ensure_ascii=not unicode, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A plain table on stdout; cells are text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    if title:  # not the table's own title, which is broken into lines as narrow as the table
        console.print(Text(printable(title)))
    table = Table(box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console.print(table)


def print_wrapped(text: str) -> None:
    """A text on stdout, in lines of 80 columns."""
    typer.echo(fill(printable(text), 80, subsequent_indent="  ", break_on_hyphens=False))


def warn(message: str) -> None:
    """A line on stderr that is no result; without secrets."""
    sys.stderr.write(f"{printable(redactor().text(message))}\n")


@cache
def redactor() -> Redactor:
    """What hides secrets in messages: it knows those of the environment and the command line."""
    return secrets_of(os.environ, sys.argv[1:]).learn(
        [value for option in sys.argv if (value := _json(option)) is not None]
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith("{") else None
    except ValueError:
        return None


def printable(text: str) -> str:
    """The text with control characters escaped: what a model wrote must not drive a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """While this is open, `print` goes to stderr: what a user's scorer prints is no result."""
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], object]]:
    """Counts on stderr while something runs, if stderr is a terminal; yields the counter."""
    with prints_to_stderr(), _bar(what) as advance:
        yield advance


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int], object]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda n: bar.advance(task, n)


def refuse_unused(ctx: typer.Context, mode: str, used: AbstractSet[str]) -> None:
    """Raise `UsageError` if an option was given that is not looked at with `mode`.

    Args:
        ctx: of the command.
        mode: what decides which options are looked at: `--compare`, or a recipe.
        used: the parameters that are; `--json` always is.
    """
    for name, option in _given(ctx).items():
        if name not in used and name != "as_json":
            raise UsageError(f"{option} is not used with {mode}: leave it out.")


def refuse_alone(ctx: typer.Context, option: str, needs: str, *, given: bool) -> None:
    """Raise `UsageError` if an option was given without what it needs to have an effect.

    Args:
        ctx: of the command.
        option: the parameter's name: `seed`.
        needs: the option that it goes with, as the user writes it: `--shuffle`.
        given: whether that one was given.
    """
    if not given and (said := _given(ctx).get(option)):
        raise UsageError(f"{said} needs {needs}.")


def _given(ctx: typer.Context) -> dict[str, str]:
    """The parameters on the command line, each with its option as it is written."""
    named = {param.name or "": param.opts[0] for param in ctx.command.params}
    return {name: option for name, option in named.items() if _is_given(ctx, name)}


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def scorer_options(settings: list[str] | None) -> dict[str, Any]:
    """`["method=robust", "x=1"]` -> `{"method": "robust", "x": 1}`; values are JSON or text.

    `True` and `False` are read as Hydra reads them in verl's overrides.
    """
    options: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {setting}: write it as NAME=VALUE.")
        options[name] = _value(value)
    return options


def as_share(part: int, whole: int) -> str:
    """`3 (12.0 %)`."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, (Mapping, list)) else value
