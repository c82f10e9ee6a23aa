"""Findings about a run before it starts, and the report of all checks."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Severity = Literal["error", "machine", "warning", "info"]

_RANK = {"error": 0, "machine": 1, "warning": 2, "info": 3}


@dataclass(frozen=True)
class LaunchFinding:
    """One problem of a run, in one line: the setting or field to change, what is wrong, what to do.

    An `error` stops the launch, and so does `machine`: the recipe may be right, but this machine lacks
    what it needs. A `warning` stops it with --strict.
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


class FileFacts(NamedTuple):
    """A parquet file of a run: its path in the plan, its role (`train`, `val`), and what its rows are."""

    path: str
    role: str
    rows: int
    data_sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PreflightReport:
    """The findings about a run, a line for each check that was not possible, and the files it read."""

    findings: list[LaunchFinding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    files: list[FileFacts] = field(default_factory=list)

    def add(
        self, severity: Severity, rule: str, key: str, text: str, fix: str = "", source: str = ""
    ) -> None:
        """Add a finding; see `LaunchFinding` for the arguments."""
        self.findings.append(LaunchFinding(severity, rule, key, text, fix, source))

    def files_of(self, role: str) -> list[FileFacts]:
        """Return the files of a role."""
        return [file for file in self.files if file.role == role]

    def is_fatal(self, *, strict: bool, on_this_machine: bool = True) -> bool:
        """Whether the run must not start: it has an error, or a warning if `strict`.

        What only this machine lacks counts if `on_this_machine`.
        """
        fatal = {"error", *(["warning"] * strict), *(["machine"] * on_this_machine)}
        return any(finding.severity in fatal for finding in self.findings)
