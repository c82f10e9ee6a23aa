"""The errors that rewardkit raises on purpose, and the function that catches all others.

Every message says what is wrong, where (file:row, key) and what to do next. The command line prints
the message and exits with the error's `exit_code`. Each class also inherits the standard type that
it refines, so that library users can catch `ValueError` or `OSError`. Their arguments are texts,
which keeps them picklable across processes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class RewardkitError(Exception):
    """Base of every error that a user can cause. The command line exits with `exit_code`."""

    exit_code = 1


class UsageError(RewardkitError, ValueError):
    """The request is wrong: an invalid value of an option, or two options that exclude each other."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A dataset, scorer, template or option of that name does not exist."""


class DataError(RewardkitError, ValueError):
    """A file was read but its content cannot be used."""


class SourceError(RewardkitError, OSError):
    """The rows of a dataset could not be found or downloaded.

    Attributes:
        reason: the message without the ways to get the rows.
    """

    def __init__(self, reason: str, remedies: str = "") -> None:
        super().__init__(f"{reason} {remedies}" if remedies else reason)
        self.reason = reason


class OutputError(RewardkitError, OSError):
    """A result cannot be written, or it would overwrite a file."""


class ScorerExitedError(RuntimeError):
    """Stands for the SystemExit of a scorer, or of another file of the user's."""


def call_catching(function: Callable[..., T], *arguments: Any, **options: Any) -> T | Exception:
    """Return what a function returns, or the exception that it raised.

    Use it for scorers and users' files only: code whose failure has to be scored or reported. Other
    handlers of every exception are at process boundaries: in a child that must outlive a user's
    KeyboardInterrupt or CancelledError, and in `Recorder.add`, which counts what it drops.
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
