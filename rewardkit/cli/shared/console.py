"""Printing of results, warnings and progress."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

import typer

from rewardkit.output import json_value
from rewardkit.table import INDENT, Table
from rewardkit.text import printable, wrap_text

if TYPE_CHECKING:
    from rich.progress import Progress


class TerminatedError(BaseException):
    """A signal that ends the command; not a SystemExit, which the guard of scorers would catch."""


def print_json(value: object) -> None:
    """Print one JSON document; dataclasses become objects, paths text, NaN null."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    json.dump(json_value(value), sys.stdout, ensure_ascii=not unicode, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(table: Table) -> None:
    """Print a table that fits the terminal, its title or header bold, and an empty line."""
    for number, line in enumerate(table.lines(terminal_width())):
        is_head = number < (2 if table.title else 1)
        typer.echo(f"\033[1m{line}\033[0m" if is_head and has_colour(sys.stdout) else line)
    typer.echo()


def terminal_width() -> int:
    """Return the columns of the terminal: those of COLUMNS, else its own; 80 for a pipe or a file."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    value = os.environ.get("COLUMNS", "")
    return int(value) if value.isdecimal() and int(value) else 80


def has_colour(stream: TextIO) -> bool:
    """Whether colours and bold text may be printed: on a terminal, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_wrapped(text: str) -> None:
    """Print a text in lines as wide as the terminal, 80 columns at most."""
    echo(_wrapped(text, min(terminal_width(), 80)))


def echo(text: str, *, err: bool = False) -> None:
    """Print a text without control characters."""
    typer.echo(printable(text), err=err)


def print_item(text: str, *, err: bool = False) -> None:
    """Print an item of a list: wrapped on a terminal, on one line in a pipe or a file, for grep."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    echo(_wrapped(text, shutil.get_terminal_size().columns) if is_terminal else text, err=err)


def _wrapped(text: str, width: int) -> str:
    return f"\n{INDENT}".join(wrap_text(printable(text), width - len(INDENT)))


def warn(message: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(f"{printable(message)}\n")


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what user code prints to stderr while the block runs, so that stdout has results only."""
    with redirect_stdout(sys.stderr):
        yield


def progress_bar(*columns: Any, **options: Any) -> Progress:
    """Return a line on stderr with a spinner, a description, columns of rich, and the time."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    all_columns = SpinnerColumn(), text, *columns, TimeElapsedColumn()
    return Progress(*all_columns, console=Console(stderr=True), transient=True, **options)


@contextmanager
def progress(description: str) -> Iterator[Callable[[int], object]]:
    """Count on stderr while the block runs, if stderr is a terminal; yield the counter."""
    with prints_to_stderr():
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.progress import BarColumn

        with progress_bar(BarColumn(bar_width=20), "{task.completed:,}") as bar:
            task = bar.add_task(description, total=None)
            yield lambda n: bar.advance(task, n)


@contextmanager
def activity(description: str) -> Iterator[Callable[[str], object]]:
    """Show on stderr what a long command is doing, if stderr is a terminal.

    Yield the function that takes what it is doing now.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with progress_bar() as line:
        task = line.add_task(description, total=None)
        yield lambda now: line.update(task, description=f"{description}: {printable(now)}")


@contextmanager
def warns_if_interrupted(message: str) -> Iterator[None]:
    """Print a message if the user or a signal ends the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, TerminatedError):
        warn(message)
        raise


@contextmanager
def show_import(name: str) -> Iterator[None]:
    """Show on a terminal that a scorer or dataset is imported while the block runs, if it is custom."""
    from rewardkit.scorers.isolated import is_built_in

    if is_built_in(name):
        yield
        return
    with prints_to_stderr(), activity(f"importing {name}"):
        yield
