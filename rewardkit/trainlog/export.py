"""Export of runs as CSV and parquet: a row per step, a column per metric."""

from __future__ import annotations

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
    names = _columns(runs)
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerow(map(escape_formula, names))
        writer = csv.DictWriter(file, names, restval="")
        for run in runs:
            writer.writerows(_with_run(escape_formula(run.name), row, names) for row in rows(run))


def write_parquet(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """Write runs as parquet: `step` as int64, metrics as float64; missing values are null.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    steps = [step for run in runs for step in run.steps]
    columns = {"run": [run.name for run in runs for _ in run.steps]} if len(runs) > 1 else {}
    columns["step"] = pa.array(steps, pa.int64())
    for name in _columns(runs)[len(columns) :]:
        values = [v for run in runs for v in run.table.get(name) or [None] * len(run.steps)]
        columns[name] = pa.array([v if v is None else float(v) for v in values], pa.float64())
    with atomic(out, overwrite=overwrite) as temporary:
        pq.write_table(pa.table(columns), temporary)


def escape_formula(name: str) -> str:
    """Put an apostrophe before a name that starts like a formula, so that spreadsheets show it.

    Names come from a log. OWASP recommends this against CSV injection.
    """
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name


def _with_run(name: str, row: dict[str, float], names: Sequence[str]) -> dict[str, Any]:
    return {"run": name, **row} if names[0] == "run" else dict(row)


def _columns(runs: Sequence[TrainingRun]) -> list[str]:
    first = ["run", "step"] if len(runs) > 1 else ["step"]
    metrics = dict.fromkeys(key for run in runs for key in run.table)
    return [*first, *(key for key in metrics if key not in first)]
