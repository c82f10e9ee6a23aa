"""What is known to be wrong with a run before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]

_RANK = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class LaunchFinding:
    """One thing, in one line.

    Attributes:
        severity: an `error` stops the launch, a `warning` does with --strict.
        rule: its id, as in L-17 (`rewardkit recipes rules` lists them) or a short name.
        key: of verl or of the recipe, that is to be changed.
        text: what is the case, with the numbers.
        fix: what to do.
        source: where the rule comes from.
    """

    severity: Severity
    rule: str
    key: str
    text: str
    fix: str = ""
    source: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.key}: {self.text}", self.fix) if part)


def sort_by_severity(findings: Iterable[LaunchFinding]) -> list[LaunchFinding]:
    """The worst first; within a severity in the order they were found."""
    return sorted(findings, key=lambda finding: _RANK[finding.severity])
