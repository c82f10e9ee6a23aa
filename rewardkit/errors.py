"""The errors that rewardkit raises on purpose, their exit codes, and the function that catches all others.

Every message says what is wrong, where (file:row, key) and what to do next. The command line prints
the message and exits with the error's `exit_code`; `EXIT_CODES` says what each code means. Each class
also inherits the standard type that it refines, so that library users can catch `ValueError` or
`OSError`. Their arguments are texts, which keeps them picklable across processes.
"""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

#: What the exit codes of the command line mean; docs/reference/cli.md shows this table.
EXIT_CODES = {
    "0": "Success. `check RECIPE` also where the recipe is right and only this machine lacks something, "
    "such as devices or verl.",
    "1": "The answer is no: findings, a failed check, a finding of the `--fail-on` severity, nothing "
    "that could be scored or compared.",
    "2": "Wrong call: an unknown command, option, name or value, or a scorer, dataset or rubric of "
    "yours that does not load.",
    "3": "Input is missing: a file, folder, download, server or package that is not there or cannot be "
    "opened.",
    "4": "Bad data: a file was read, and its content cannot be used.",
    "5": "Output cannot be written, or it would overwrite a file.",
    "70": "Unexpected error: a bug in rewardkit. Run again with `REWARDKIT_DEBUG=1` and report it.",
    "128 + n": "Signal n ended the command: 130 after Ctrl-C, 143 after SIGTERM, 141 "
    "if the reader of a pipe is gone (`| head`).",
    "verl's": "`train` and the files that it writes exit with the code of verl once it has started.",
}

#: The exit code after an error that rewardkit did not raise on purpose.
BUG_EXIT_CODE = 70


class RewardkitError(Exception):
    """Base of every error that a user can cause. The command line exits with `exit_code`."""

    exit_code = 1


class UsageError(RewardkitError, ValueError):
    """The request is wrong: an invalid value of an option, or two options that exclude each other."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A dataset, scorer, template or option of that name does not exist."""


class MissingPackageError(UsageError, ImportError):
    """A package that the request needs is not installed. The message has the `pip install`."""

    exit_code = 3


class DataError(RewardkitError, ValueError):
    """A file was read but its content cannot be used."""

    exit_code = 4


class SourceError(RewardkitError, OSError):
    """Input is missing: a file cannot be found or opened, or rows cannot be downloaded.

    Attributes:
        reason: the message without the ways to get the rows.
    """

    exit_code = 3

    def __init__(self, reason: str, remedies: str = "") -> None:
        super().__init__(f"{reason} {remedies}" if remedies else reason)
        self.reason = reason


class OutputError(RewardkitError, OSError):
    """A result cannot be written, or it would overwrite a file."""

    exit_code = 5


def unreadable_file(path: Path | str, error: OSError) -> SourceError:
    """Return the error for a file that cannot be found or opened."""
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{path}: no such file.")
    return SourceError(f"{path}: cannot be read: {error.strerror or error}.")


class ScorerExitedError(RuntimeError):
    """Stands for the SystemExit of a scorer, or of another file of the user's."""


def call_catching(function: Callable[..., T], *arguments: Any, **options: Any) -> T | Exception:
    """Return what a function returns, or the exception that it raised.

    Use it for code whose failure has to be scored, counted or reported: scorers, users' files and values,
    and libraries that read hostile text. Other handlers of every exception are at process boundaries, as
    in a child that must outlive a user's KeyboardInterrupt or CancelledError.
    """
    try:
        return function(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - a user's scorer may raise anything; none is lost
        return error
    except SystemExit as error:
        return ScorerExitedError(f"it calls sys.exit({error.code!r})")


async def call_catching_async(
    function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any
) -> T | Exception:
    """`call_catching` for a coroutine function. A cancellation is not caught."""
    try:
        return await function(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - a user's scorer may raise anything; none is lost
        return error
    except SystemExit as error:
        return ScorerExitedError(f"it calls sys.exit({error.code!r})")
