"""Check several parquets: each alone, and what they have in common.

verl loads the files of one list together (`data.train_files`), and a prompt that is in two files is
trained on twice, or is evaluated after it was trained on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.checks.check import CheckReport
from rewardkit.checks.schema import ConcatenationFault, concatenation_fault
from rewardkit.errors import DataError, SourceError
from rewardkit.scorers.base import NeverAnswersError


@dataclass
class FilesReport:
    """What was found in several files."""

    reports: list[CheckReport] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
    concatenation: ConcatenationFault | None = None

    @property
    def ok(self) -> bool:
        """Whether all files could be read and none has findings."""
        return not self.unreadable and all(report.ok for report in self.reports)

    @property
    def exit_code(self) -> int:
        """That of `DataError` if a file cannot be read, 1 if a file has findings, otherwise 0."""
        return DataError.exit_code if self.unreadable else int(not self.ok)

    def verdict(self) -> str:
        """Return the result of all files in a few words."""
        good = sum(report.ok for report in self.reports)
        counts = {
            "good": good,
            "with findings": len(self.reports) - good,
            "unreadable": len(self.unreadable),
        }
        total = sum(counts.values())
        if good == total:
            has_notes = any(report.stats.notes() for report in self.reports)
            return f"{total} files, {'no findings' if has_notes else 'all good'}"
        return f"{total} files: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}"


def check_files(
    files: Sequence[Path], check_file: Callable[[Path, dict[bytes, str]], CheckReport]
) -> FilesReport:
    """Check files one after the other."""
    report, prompts = FilesReport(), dict[bytes, str]()
    for file in files:
        try:
            report.reports.append(check_file(file, prompts))
        except NeverAnswersError:
            raise
        except (DataError, SourceError) as error:
            report.unreadable[file] = str(error)
    report.concatenation = concatenation_fault([each.path for each in report.reports])
    return report
