"""Printing of results, warnings and progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from textwrap import fill

import typer

from rewardkit.output import json_value
from rewardkit.redact import process_redactor


class TerminatedError(BaseException):
    """A signal that ends the command; not a SystemExit, which the guard of scorers would catch."""


def print_json(value: object) -> None:
    """Print one JSON document; dataclasses become objects, paths text, NaN null."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    json.dump(json_value(value), sys.stdout, ensure_ascii=not unicode, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a plain table; cells are text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    if title:  # rich breaks a table's own title into lines as narrow as the table
        console.print(Text(printable(title)))
    table = Table(box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console.print(table)


def print_wrapped(text: str) -> None:
    """Print a text in lines of 80 columns."""
    typer.echo(fill(printable(text), 80, subsequent_indent="  ", break_on_hyphens=False))


def warn(message: str) -> None:
    """Print a line to stderr, with secrets hidden."""
    sys.stderr.write(f"{printable(process_redactor().text(message))}\n")


def printable(text: str) -> str:
    """Return the text with control characters escaped, so that no response drives a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def as_share(part: int, whole: int) -> str:
    """Return a count with its share of a whole: `3 (12.0 %)`."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what user code prints to stderr while the block runs, so that stdout has results only."""
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def progress(description: str) -> Iterator[Callable[[int], object]]:
    """Count on stderr while the block runs, if stderr is a terminal; yield the counter."""
    with prints_to_stderr(), _progress_bar(description) as advance:
        yield advance


@contextmanager
def activity(description: str) -> Iterator[Callable[[str], object]]:
    """Show on stderr what a long command is doing, if stderr is a terminal.

    Yield the function that takes what it is doing now.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    columns = SpinnerColumn(), text, TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(description, total=None)
        yield lambda now: line.update(task, description=f"{description}: {printable(now)}")


@contextmanager
def show_import(name: str) -> Iterator[None]:
    """Show on a terminal that a custom scorer or dataset is imported while the block runs."""
    with prints_to_stderr(), activity(f"importing {name}"):
        yield


@contextmanager
def _progress_bar(description: str) -> Iterator[Callable[[int], object]]:
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
        task = bar.add_task(description, total=None)
        yield lambda n: bar.advance(task, n)
