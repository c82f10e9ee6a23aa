"""Commands and options of earlier releases, and what they are called now."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from rewardkit.errors import UsageError

#: Old spelling -> what to write instead. One word is a command. Of two words the second is an
#: option, wherever it stands, or a pattern for the first argument. The first entry that fits counts.
OLD_SPELLINGS = {
    "explain-metric": "rewardkit glossary NAME",
    "explain-key": "rewardkit glossary NAME",
    "serve": "rewardkit merge CHECKPOINT --recipe RECIPE",
    "eval --compare": "rewardkit eval compare A B",
    "eval --responses": "rewardkit eval responses PARQUET FILE...",
    "eval --*": "rewardkit eval run [PARQUET]",
    "eval -n": "rewardkit eval run [PARQUET]",
    "eval *.parquet": "rewardkit eval run PARQUET",
    "logs --png": "rewardkit logs RUN... --html FILE",
}


def require_current_spelling(arguments: Sequence[str]) -> None:
    """Raise `UsageError` if a command line uses a spelling of an earlier release.

    Args:
        arguments: the words after `rewardkit`, and after its own options.
    """
    for old, new in OLD_SPELLINGS.items():
        if _fits(old.split(), arguments):
            raise UsageError(f"`rewardkit {old}` is now `{new}`.")


def _fits(old: Sequence[str], arguments: Sequence[str]) -> bool:
    command, *rest = arguments
    if command != old[0] or len(old) == 1:
        return command == old[0]
    if not rest or rest[0] in {"-h", "--help"}:
        return False
    word = old[1]
    if word.startswith("--") and "*" not in word:
        return any(argument.partition("=")[0] == word for argument in rest)
    return fnmatchcase(rest[0], word)
