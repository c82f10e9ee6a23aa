"""A run's table for other programs: a row per step, a column per metric."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewardkit.output import atomic
from rewardkit.trainlog.training_run import TrainingRun

#: What a spreadsheet takes for the beginning of a formula, in its full width too.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def rows(run: TrainingRun) -> Iterator[dict[str, float]]:
    """The steps in order, each with the metrics that were logged of it."""
    columns = list(run.table.items())
    for i, step in enumerate(run.steps):
        values = ((key, column[i]) for key, column in columns)
        yield {"step": step, **{key: value for key, value in values if value is not None}}


def write_csv(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """The runs as CSV, with a `run` column if there are several; what is missing is empty.

    A name that a spreadsheet would take for a formula begins with an apostrophe; see `as_text`.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    names = _columns(runs)
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        csv.writer(file).writerow(map(as_text, names))
        writer = csv.DictWriter(file, names, restval="")
        for run in runs:
            writer.writerows(_named(as_text(run.name), row, names) for row in rows(run))


def write_parquet(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """The runs as parquet: `step` as int64, metrics as float64; what is missing is null.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = _columns(runs)
    kinds = {"run": pa.string(), "step": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    columns = {
        name: [_float(row.get(name), name) for run in runs for row in _all(run, names)]
        for name in names
    }
    with atomic(out, overwrite=overwrite) as temporary:
        pq.write_table(pa.table(columns, schema=schema), temporary)


def as_text(name: str) -> str:
    """A name that spreadsheets show as it is: one that begins like a formula gets an apostrophe.

    Names come from a log. This is what OWASP advises against CSV injection.
    """
    return f"'{name}" if name.startswith(FORMULAS) else name


def _all(run: TrainingRun, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    return (_named(run.name, row, names) for row in rows(run))


def _named(name: str, row: dict[str, float], names: Sequence[str]) -> dict[str, Any]:
    return {"run": name, **row} if names[0] == "run" else dict(row)


def _columns(runs: Sequence[TrainingRun]) -> list[str]:
    first = ["run", "step"] if len(runs) > 1 else ["step"]
    found = dict.fromkeys(key for run in runs for key in run.table)
    return [*first, *(key for key in found if key not in first)]


def _float(value: Any, name: str) -> Any:
    return value if value is None or name in {"run", "step"} else float(value)
