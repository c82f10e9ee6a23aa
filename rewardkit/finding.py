"""One problem of a file, a recipe, a script, a log or a run, in one line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "machine", "warning", "info"]

_RANK = {"error": 0, "machine": 1, "warning": 2, "info": 3}


@dataclass(frozen=True)
class Finding:
    """What is wrong, where (a setting, a field, a line), and what to do.

    An `error` stops a launch, and so does `machine`: the recipe may be right, but this machine lacks what it
    needs. A `warning` stops it with --strict.
    """

    severity: Severity
    rule: str
    where: str
    text: str
    fix: str = ""
    source: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.where}: {self.text}", self.fix) if part)

    def values(self) -> dict[str, str]:
        """Return what --json prints of a finding about a launch."""
        return {"key" if name == "where" else name: text for name, text in vars(self).items()}


def sort_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, errors first; the order within a severity is kept."""
    return sorted(findings, key=lambda finding: _RANK[finding.severity])
