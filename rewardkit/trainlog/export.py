"""Export of runs as CSV: a row per step, a column per metric."""

import csv
from collections.abc import Sequence
from pathlib import Path

from rewardkit.output import atomic
from rewardkit.trainlog.training_run import TrainingRun

#: Start of a formula in a spreadsheet, also as full-width characters.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """Write runs as CSV, with a `run` column if there are several; missing values are empty.

    `step` and `run` hide metrics of that name. A name that a spreadsheet would read as a formula gets a
    leading apostrophe, as OWASP recommends against CSV injection: names come from a log.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    first = ["run", "step"] if len(runs) > 1 else ["step"]
    metrics = [
        key for key in dict.fromkeys(key for run in runs for key in run.table) if key not in first
    ]
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(map(_escape_formula, [*first, *metrics]))
        for run in runs:
            name = [_escape_formula(run.name)] if len(runs) > 1 else []
            for step, row in zip(run.steps, run.rows(), strict=True):
                writer.writerow([*name, step, *(row.get(metric, "") for metric in metrics)])


def _escape_formula(name: str) -> str:
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
