"""The `rewardkit` command: its subcommands, and how errors end it."""

from __future__ import annotations

import os
import signal
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit import __version__
from rewardkit.cli import (
    audit,
    card,
    check,
    compare,
    compose,
    doctor,
    explain,
    glossary,
    leaderboard,
    logs,
    merge,
    mix,
    new,
    path,
    prep,
    recipes,
    report,
    reward_server,
    score,
    select,
    serve,
    show,
    train,
)
from rewardkit.cli import eval as eval_
from rewardkit.cli import list as list_
from rewardkit.cli.shared.console import EndedError, warn
from rewardkit.errors import OutputError, RewardkitError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

app = typer.Typer(
    help="Correct, fast and checkable data and rewards for RL with verl.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: half the start-up time, and examples keep their lines
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("prep", epilog=prep.EXAMPLES)(prep.command)
app.command("check", epilog=check.EXAMPLES)(check.command)
app.command("mix", epilog=mix.EXAMPLES)(mix.command)
app.command("score", epilog=score.EXAMPLES)(score.command)
app.command("report", epilog=report.EXAMPLES)(report.command)
app.command("compare", epilog=compare.EXAMPLES)(compare.command)
app.command("select", epilog=select.EXAMPLES)(select.command)
app.command("audit", epilog=audit.EXAMPLES)(audit.command)
app.command("train", epilog=train.EXAMPLES)(train.command)
app.add_typer(recipes.app, name="recipes")
app.command("eval", epilog=eval_.EXAMPLES)(eval_.command)
app.command("leaderboard", epilog=leaderboard.EXAMPLES)(leaderboard.command)
app.command("logs", epilog=logs.EXAMPLES)(logs.command)
app.command("explain-metric", epilog=glossary.METRIC_EXAMPLES)(glossary.explain_metric)
app.command("explain-key", epilog=glossary.KEY_EXAMPLES)(glossary.explain_key)
app.command("merge", epilog=merge.EXAMPLES)(merge.command)
app.command("serve", epilog=serve.EXAMPLES)(serve.command)
app.command("reward-server", epilog=reward_server.EXAMPLES)(reward_server.command)
app.command("compose", epilog=compose.EXAMPLES)(compose.command)
app.command("explain", epilog=explain.EXAMPLES)(explain.command)
app.command("path", epilog=path.EXAMPLES)(path.command)
app.command("list", epilog=list_.EXAMPLES)(list_.command)
app.command("show", epilog=show.EXAMPLES)(show.command)
app.command("card", epilog=card.EXAMPLES)(card.command)
app.add_typer(new.app, name="new")
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewardkit {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Correct, fast and checkable data and rewards for RL with verl."""


def run() -> None:
    """Run the command line; every foreseen error is one line on stderr and its exit code."""
    if os.environ.get("REWARDKIT_DEBUG") != "1":
        sys.excepthook = _say_bug
    for number in (signal.SIGTERM, signal.SIGHUP):  # these ends must clean up as Ctrl-C does
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(number, _end)
    try:
        _open_streams()
        try:
            typer.main.get_command(app)()  # app() itself would put typer's own hook in place
        finally:
            sys.stdout.flush()  # while a failure can still be said; at exit it is too late
    except RewardkitError as error:
        if os.environ.get("REWARDKIT_DEBUG") == "1":
            raise
        warn(f"error: {error}")
        sys.exit(error.exit_code)
    except EndedError as ended:
        sys.exit(ended.args[0])


class _Stdout(FileIO):
    """Standard output of which a failed write is an error of ours, whatever was printing."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the bytes.

        Raises:
            OutputError: the disk is full, the reader of the pipe is gone, ...
        """
        try:
            return super().write(data)
        except OSError as error:
            # what is still buffered would fail again, and be reported, when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            raise OutputError(f"standard output cannot be written: {error.strerror}.") from error


def _open_streams() -> None:
    """Make stdout and stderr print lone surrogates too, and stdout say what fails.

    Raises:
        OutputError: standard output is closed.
    """
    if sys.stderr is None:  # closed by whoever started us: nobody reads messages
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        raise OutputError("standard output is closed: redirect it, to /dev/null for example.")
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = TextIOWrapper(
            BufferedWriter(_Stdout(sys.stdout.fileno(), "w", closefd=False)),
            encoding=sys.stdout.encoding,
            line_buffering=sys.stdout.line_buffering,
            write_through=sys.stdout.write_through,
        )
    for stream in (sys.stdout, sys.stderr):  # a lone surrogate in a response is still printed
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end(number: int, _: object) -> None:
    raise EndedError(128 + number)


def _say_bug(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    warn(
        f"error: unexpected {kind.__name__}: {error}. This is a bug in rewardkit; run again with "
        "REWARDKIT_DEBUG=1 and report the traceback."
    )
