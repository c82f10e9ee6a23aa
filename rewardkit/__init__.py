"""rewardkit: correct, fast and checkable data and rewards for RL with verl.

The public names below load their modules on first use, so that `import rewardkit` costs
milliseconds and pulls in nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rewardkit.versions import VERSION

if TYPE_CHECKING:
    from rewardkit.checks.check import CheckReport, check
    from rewardkit.frames import read_table
    from rewardkit.preprocess.prep import PrepReport, prep
    from rewardkit.responses.score import ScoreReport, score_file, score_files
    from rewardkit.scorers.auto import compute_score, score
    from rewardkit.scorers.base import Score, Status
    from rewardkit.scorers.load import load_scorer


__version__ = VERSION

_MODULES = {
    "CheckReport": "rewardkit.checks.check",
    "PrepReport": "rewardkit.preprocess.prep",
    "Score": "rewardkit.scorers.base",
    "ScoreReport": "rewardkit.responses.score",
    "Status": "rewardkit.scorers.base",
    "check": "rewardkit.checks.check",
    "compute_score": "rewardkit.scorers.auto",
    "load_scorer": "rewardkit.scorers.load",
    "prep": "rewardkit.preprocess.prep",
    "read_table": "rewardkit.frames",
    "score": "rewardkit.scorers.auto",
    "score_file": "rewardkit.responses.score",
    "score_files": "rewardkit.responses.score",
}

__all__ = [
    "CheckReport",
    "PrepReport",
    "Score",
    "ScoreReport",
    "Status",
    "check",
    "compute_score",
    "load_scorer",
    "prep",
    "read_table",
    "score",
    "score_file",
    "score_files",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rewardkit' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
