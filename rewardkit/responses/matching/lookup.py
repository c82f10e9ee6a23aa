"""Look up the training row of a response without a `data_source`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.preprocess.foreign_rows import is_blank
from rewardkit.responses.matching.match import PLACE_ALONE, try_match_row
from rewardkit.responses.matching.train_index import Mismatch, TrainIndex, index_rows
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample
from rewardkit.row import open_parquet, read_rows


def look_up_row(sample: Sample, train: str) -> Sample | SkippedRow:
    """Add the `data_source` and `extra_info` of a sample's row in a training parquet.

    A sample with a `data_source` is returned unchanged. verl's dumps have none, but their `input`
    has the row's prompt. A sample that contradicts its row, matches several rows or none, or
    matches by its place alone, is returned as a `SkippedRow` with the reason.
    """
    if not is_blank(sample.extra_info.get("data_source")):
        return sample
    index, infos = _training_rows(train)
    match = try_match_row(index, sample)
    if match is None:
        reason = f"it answers no row of {train}: no row has its prompt, place or id"
        return SkippedRow(sample.where, reason)
    if isinstance(match, Mismatch):
        return SkippedRow(sample.where, f"it {match.reason}")
    if match.way == PLACE_ALONE:
        return SkippedRow(sample.where, f"only its split and index match a row of {train}")
    own = {name: value for name, value in sample.extra_info.items() if not is_blank(value)}
    info = {**infos[index.prompts[match.place].row], **own}
    place = {name: info.get(name) for name in ("index", "split", "source_id")}
    fields = {**sample.fields, "data_source": info["data_source"]}
    fields.setdefault("extra_info", place)
    return Sample(sample.where, sample.response, sample.ground_truth, info, fields)


def require_train_parquet(train: Path) -> None:
    """Raise `DataError` unless a file is a parquet with the columns by which rows are looked up."""
    with open_parquet(train) as file:
        missing = {"prompt", "data_source"} - set(file.schema_arrow.names)
    if missing:
        names = " and no ".join(map(repr, sorted(missing)))
        raise DataError(f"{train}: has no {names}: not a verl parquet.")


@cache
def _training_rows(train: str) -> tuple[TrainIndex, list[dict[str, Any]]]:
    """Return the index of the rows, and the `extra_info` and `data_source` of each."""
    rows = list(read_rows(Path(train)))
    infos = [{**(r.get("extra_info") or {}), "data_source": r["data_source"]} for r in rows]
    return index_rows(rows, train), infos
