"""Check several parquets: each alone, and what they have in common.

verl loads the files of one list together (`data.train_files`), and a prompt that is in two files is
trained on twice, or is evaluated after it was trained on.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.file_kinds import missing_file
from rewardkit.preprocess.check import CheckReport
from rewardkit.preprocess.column_guess import require_parquet
from rewardkit.preprocess.concatenation import ConcatenationFault, concatenation_fault
from rewardkit.preprocess.file_rows import is_row_file
from rewardkit.preprocess.source import saved_splits
from rewardkit.scorers.call import NeverAnswersError

#: Most files of a folder that are no parquet and are named in a message.
MAX_NAMES = 3


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


def parquet_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the parquets that are named or lie in folders, and the other data files of the folders.

    A folder stands for all parquets in it and in its folders, by name; hidden ones are left out.
    """
    parquets: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            if path.suffix in (".yaml", ".yml"):
                raise UsageError(f"{path}: a recipe is checked alone, without other files.")
            if not path.exists():
                raise SourceError(missing_file(path))
            require_parquet(str(path))
            parquets.append(path)
            continue
        files = [file for file in sorted(path.rglob("*")) if _is_data(file.relative_to(path), file)]
        inside = [file for file in files if file.suffix.lower() == ".parquet"]
        if not inside:
            if saved_splits(path) or (path / "state.json").is_file():
                command = f"rewardkit prep {shlex.quote(str(path))} --out {path.name}.parquet"
                raise DataError(f"{path}: this is Arrow, not parquet. Run this first:\n  {command}")
            for file in files[:1]:
                require_parquet(str(file))
            raise SourceError(f"{path}: no parquet in this folder or below it.")
        parquets += inside
        others += [file for file in files if file.suffix.lower() != ".parquet"]
    places = Counter(file.resolve() for file in parquets)
    for file in parquets:
        if places[file.resolve()] > 1:
            raise UsageError(f"{file} is given twice.")
    return parquets, others


def _is_data(inner: Path, file: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in inner.parts)
    is_dropped = file.name.endswith(".dropped.jsonl")
    return is_row_file(file) and file.is_file() and not is_hidden and not is_dropped
