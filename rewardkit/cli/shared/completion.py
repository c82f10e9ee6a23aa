"""Names that the shell completes: datasets, scorers and recipes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def complete_datasets(incomplete: str) -> list[str]:
    """Return the names of datasets that begin as the word does."""
    from rewardkit.registry import known

    return _matching(known("datasets"), incomplete)


def complete_scorers(incomplete: str) -> list[str]:
    """Return the names of scorers that begin as the word does."""
    from rewardkit.registry import known

    return _matching(known("scorers"), incomplete)


def complete_recipes(incomplete: str) -> list[str]:
    """Return the names of built-in recipes that begin as the word does."""
    from rewardkit import launch

    # The recipe's module would import pydantic, which takes longer than a key press may.
    folder = Path(launch.__path__[0]) / "recipes"
    return _matching((path.stem for path in folder.glob("*.yaml")), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
