"""Names that the shell completes: datasets, sets, scorers, recipes and targets."""

from collections.abc import Iterable
from pathlib import Path

#: The targets of a launch (`Target` of `launch.recipe`, which would import pydantic).
TARGETS = (
    "local", "ray-job", "script", "slurm", "kuberay", "skypilot", "ascend", "modelarts"
)  # fmt: skip


def complete_set(incomplete: str) -> list[str]:
    """Return the names of datasets and sets that begin as the word does."""
    from rewardkit.preprocess.load import known_names

    return _matching(known_names(), incomplete)


def complete_sets(incomplete: str) -> list[str]:
    """Return lists of sets, separated by commas, whose last name begins as the word's does."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_set(last)]


def complete_against(incomplete: str) -> list[str]:
    """Return the same for `--against`, which has a name for all evaluation sets."""
    from rewardkit.preprocess.load import ALL

    before, comma, last = incomplete.rpartition(",")
    return [*complete_sets(incomplete), *(before + comma + name for name in _matching([ALL], last))]


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


def complete_targets(incomplete: str) -> list[str]:
    """Return the names of targets that begin as the word does."""
    return _matching(TARGETS, incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
