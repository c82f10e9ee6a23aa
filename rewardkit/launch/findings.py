"""The report of all checks of a run before it starts."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rewardkit.finding import Finding, Severity


class FileFacts(NamedTuple):
    """A parquet file of a run: its path in the plan, its role (`train`, `val`), and what its rows are."""

    path: str
    role: str
    rows: int
    data_sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PreflightReport:
    """The findings about a run, a line for each check that was not possible, and the files it read."""

    findings: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    files: list[FileFacts] = field(default_factory=list)

    def add(
        self, severity: Severity, rule: str, key: str, text: str, fix: str = "", source: str = ""
    ) -> None:
        """Add a finding; see `Finding` for the arguments."""
        self.findings.append(Finding(severity, rule, key, text, fix, source))

    def is_fatal(self, *, strict: bool, on_this_machine: bool = True) -> bool:
        """Whether the run must not start: it has an error, or a warning if `strict`.

        What only this machine lacks counts if `on_this_machine`.
        """
        fatal = {"error", *(["warning"] * strict), *(["machine"] * on_this_machine)}
        return any(finding.severity in fatal for finding in self.findings)
