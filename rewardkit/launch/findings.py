"""Findings about a run before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "machine", "warning", "info"]

_RANK = {"error": 0, "machine": 1, "warning": 2, "info": 3}


@dataclass(frozen=True)
class LaunchFinding:
    """One problem of a run, in one line.

    Attributes:
        severity: an `error` stops the launch, and so does `machine`: the recipe may be right, but this
            machine lacks what it needs. A `warning` stops it with --strict.
        rule: the id of the rule, as in L-17 (see `rewardkit recipes rules`), or a short name.
        key: the setting of verl, or the field of the recipe, to change.
        text: what is wrong, with the numbers.
        fix: what to do.
        source: the guide, post or code that the rule comes from.
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
    """Return the findings, errors first; the order within a severity is kept."""
    return sorted(findings, key=lambda finding: _RANK[finding.severity])
