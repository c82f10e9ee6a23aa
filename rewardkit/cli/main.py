"""The `rewardkit` command: its subcommands, and how errors end it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from rewardkit.cli.shared.console import TerminatedError, warn
from rewardkit.cli.shared.help import LazyGroup
from rewardkit.errors import BUG_EXIT_CODE, OutputError, RewardkitError
from rewardkit.redact import process_redactor
from rewardkit.versions import VERSION

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: Headings of `--help`, and the summary of each command below them.
PANELS = {
    "Data": {
        "prep": "Write a dataset as a checked verl parquet.",
        "check": "Check parquets before training, or a recipe before launch.",
        "mix": "Mix verl parquets into one, whole or in the chosen shares.",
        "show": "Print rows of a dataset as verl reads them.",
    },
    "Rewards": {
        "path": "Print the reward file, or the overrides, to pass to verl.",
        "explain": "Explain step by step how one response gets its score.",
        "compose": "Write a reward of several parts as one file for verl.",
        "guard": "Write a file that runs your reward safely inside verl.",
        "audit": "Attack a scorer to find wrong answers that it rewards.",
        "reward-server": "Serve a scorer over HTTP to any trainer.",
        "new": "Create a package for your own dataset or scorer.",
    },
    "Responses": {
        "score": "Score responses in bulk and sum up the results.",
        "select": "Select training rows by pass rate, or the best responses.",
    },
    "Launch": {
        "recipes": "List, show, copy and import recipes of verl runs.",
        "train": "Turn a recipe into a verl launch, check it and start it.",
        "logs": "Show and diagnose the log of a training run.",
    },
    "Evaluation": {"eval": "Evaluate a model with the reward it was trained on."},
    "Look-up": {
        "list": "List datasets, scorers and more, or print a dataset's card.",
        "glossary": "Explain a metric or key of verl, or a rule.",
        "doctor": "Report versions, verl's config keys, the sandbox for programs, hubs and devices.",
    },
}

#: Commands of earlier releases, and what to type instead.
OLD_COMMANDS = {
    "card": "rewardkit list NAME",
    "compare": "rewardkit score FILES --scorer A --scorer B",
    "explain-key": "rewardkit glossary KEY",
    "explain-metric": "rewardkit glossary METRIC",
    "leaderboard": "rewardkit eval compare RUNS",
    "merge": "rewardkit eval merge CHECKPOINT OUT",
    "report": "rewardkit score FILES --html PAGE",
    "serve": "rewardkit eval merge CHECKPOINT --recipe RECIPE",
}


class Commands(LazyGroup):
    """The commands of `rewardkit`."""

    panels = PANELS
    old = OLD_COMMANDS


app = typer.Typer(
    cls=Commands,
    help="Correct, fast and checkable data and rewards for RL with verl.",
    epilog="Exit codes: 0 yes, 1 no, 2 wrong call, 3 input is missing, 4 bad data, 5 output failed.\n"
    "docs/reference/cli.md has the table.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: half the start-up time, and examples keep their lines
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"rewardkit {VERSION}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Correct, fast and checkable data and rewards for RL with verl."""


def run() -> None:
    """Run the command line; an expected error is one line on stderr and sets the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # clean up as after Ctrl-C
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(number, _terminate)
    try:
        _open_streams()
        try:
            # Calling app() itself would install typer's own excepthook.
            typer.main.get_command(app)(prog_name="rewardkit")
        finally:
            sys.stdout.flush()  # a failure at exit could not be reported
    except RewardkitError as error:
        _report_error(error, f"error: {error}")
        sys.exit(error.exit_code)
    except TerminatedError as termination:
        sys.exit(termination.args[0])
    except SystemExit as end:
        _exit_beside_threads(end.code)
        raise
    except Exception as error:  # noqa: BLE001 - the end of the process: no user sees a bare traceback
        message = (
            f"error: unexpected {type(error).__name__}: {error}. This is a bug in rewardkit; run "
        )
        _report_error(error, f"{message}again with REWARDKIT_DEBUG=1 and report the traceback.")
        sys.exit(BUG_EXIT_CODE)


class _Stdout(FileIO):
    """Standard output that raises our own error when a write fails, whoever was printing."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the bytes.

        Raises:
            TerminatedError: the reader of the pipe is gone, as in `rewardkit list | head`.
            OutputError: the disk is full, ...
        """
        try:
            return super().write(data)
        except OSError as error:
            # what is still buffered would fail once more when Python ends, and print a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise TerminatedError(128 + signal.SIGPIPE) from error
            raise OutputError(f"standard output cannot be written: {error.strerror}.") from error


class _StreamWithoutSecrets(TextIOWrapper):
    """A stream in place of another, of whose text a function hides the secrets."""

    def __init__(self, stream: TextIOWrapper, buffer: BinaryIO, hide: Callable[[str], str]) -> None:
        super().__init__(
            buffer,
            encoding=stream.encoding,
            errors="backslashreplace",  # a lone surrogate in a response is still printed
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        self.hide = hide

    def write(self, text: str, /) -> int:
        super().write(self.hide(text))
        return len(text)


def _open_streams() -> None:
    """Let stdout and stderr hide secrets and print lone surrogates, and stdout report failed writes.

    This is the only exit of the process for text. What stdout shows may be data, where only the
    secrets that are known are hidden: those of the environment, the command and the recipe.

    Raises:
        OutputError: standard output is closed.
    """
    if sys.stderr is None:  # closed by the parent process: nobody reads messages
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        raise OutputError("standard output is closed: redirect it, to /dev/null for example.")
    redactor = process_redactor()
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, TextIOWrapper):
        raw = BufferedWriter(_Stdout(sys.stdout.fileno(), "w", closefd=False))
        sys.stdout = _StreamWithoutSecrets(sys.stdout, raw, redactor.data)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, TextIOWrapper):
        sys.stderr = _StreamWithoutSecrets(sys.stderr, sys.stderr.buffer, redactor.text)


def _exit_beside_threads(code: object) -> None:
    """Exit at once if threads of a user's file still run, for which Python would wait."""
    threads = [thread for thread in threading.enumerate() if not thread.daemon]
    if threads != [threading.main_thread()]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


def _terminate(number: int, _: object) -> None:
    raise TerminatedError(128 + number)


def _report_error(error: Exception, message: str) -> None:
    """Print a message, or the whole traceback if REWARDKIT_DEBUG=1 is set."""
    if os.environ.get("REWARDKIT_DEBUG") == "1":
        sys.stderr.write("".join(traceback.format_exception(error)))
    else:
        warn(message)
