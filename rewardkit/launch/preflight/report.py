"""The report of a preflight: findings, checks that were not possible, and facts about files."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewardkit.launch.findings import LaunchFinding, Severity


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """A parquet file of a run.

    Attributes:
        path: its path in the plan.
        role: `train` or `val`.
        rows: the number of its rows.
        data_sources: the data sources of its rows.
    """

    path: str
    role: str
    rows: int
    data_sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PreflightReport:
    """The findings about a run, and what this machine could not check.

    Attributes:
        findings: in the order of the checks; `preflight` sorts them by severity.
        unchecked: a line for each check that was not possible, with the reason.
        files: the parquet files that could be read.
    """

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

        Args:
            strict: whether warnings count.
            on_this_machine: whether it counts what only this machine lacks.
        """
        fatal = {"error", *(["warning"] * strict), *(["machine"] * on_this_machine)}
        return any(finding.severity in fatal for finding in self.findings)
