"""Export of runs as CSV: a row per step, a column per metric."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewardkit.output import atomic
from rewardkit.trainlog.training_run import TrainingRun

#: Start of a formula in a spreadsheet, also as full-width characters.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def rows(run: TrainingRun) -> Iterator[dict[str, float]]:
    """Yield the steps in order, each with its logged metrics."""
    columns = list(run.table.items())
    for i, step in enumerate(run.steps):
        values = ((key, column[i]) for key, column in columns)
        yield {"step": step, **{key: value for key, value in values if value is not None}}


def write_csv(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """Write runs as CSV, with a `run` column if there are several; missing values are empty.

    A name that a spreadsheet would read as a formula gets a leading apostrophe; see `escape_formula`.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    columns = _columns(runs)
    if len(runs) > 1:
        columns["run"] = [escape_formula(name) for name in columns["run"]]
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(map(escape_formula, columns))
        writer.writerows(zip(*columns.values(), strict=True))


def escape_formula(name: str) -> str:
    """Put an apostrophe before a name that starts like a formula, so that spreadsheets show it.

    Names come from a log. OWASP recommends this against CSV injection.
    """
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name


def _columns(runs: Sequence[TrainingRun]) -> dict[str, list[Any]]:
    """Return the columns of all runs; `step`, and `run` if there are several, hide metrics of that name."""
    first: dict[str, list[Any]] = {}
    if len(runs) > 1:
        first["run"] = [run.name for run in runs for _ in run.steps]
    first["step"] = [step for run in runs for step in run.steps]
    metrics = dict.fromkeys(key for run in runs for key in run.table)
    missing = [(run.table, [None] * len(run.steps)) for run in runs]
    return first | {
        name: [value for table, none in missing for value in table.get(name, none)]
        for name in metrics
        if name not in first
    }
