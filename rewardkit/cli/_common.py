"""What the commands share: printing, progress, examples and `--set` options."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.errors import UsageError
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


class EndedError(BaseException):
    """A signal asked for the end; no SystemExit, which a scorer's guard would take for its own."""


def examples(*lines: str) -> str:
    r"""The end of a command's help. The \b keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def print_json(value: object) -> None:
    """One JSON document on stdout; dataclasses become objects, paths text, NaN null."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    json.dump(_plain(value), sys.stdout, ensure_ascii=not unicode, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A plain table on stdout; cells are text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    heading = Text(printable(title)) if title else None
    table = Table(box=SIMPLE_HEAD, title=heading, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console.print(table)


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
def progress(what: str) -> Iterator[Callable[[int], object]]:
    """Counts on stderr while something runs, if stderr is a terminal; yields the counter."""
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


def scorer_options(settings: list[str] | None) -> dict[str, Any]:
    """`["method=robust", "x=1"]` -> `{"method": "robust", "x": 1}`; values are JSON or text."""
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


def _plain(value: Any) -> Any:
    """The value in what JSON has."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(cell) for cell in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, (Mapping, list)) else value
