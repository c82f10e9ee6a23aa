"""Responses that lack a `data_source`, completed from the training row they answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.preprocess.conform import is_blank
from rewardkit.responses.matching.match import PLACE_ALONE, try_match_row
from rewardkit.responses.matching.train_index import Mismatch, TrainIndex, index_rows
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample
from rewardkit.row import open_parquet, read_rows


def look_up_row(sample: Sample, train: str) -> Sample | SkippedRow:
    """A sample with the `data_source` and `extra_info` of its row in a training parquet.

    A sample that has a `data_source` stays as it is. verl's dumps have none: their `input` holds
    the row's prompt. A sample that contradicts its row, fits several rows or none, or is joined
    by nothing but its place, is returned as unread, with the reason.
    """
    if not is_blank(sample.extra_info.get("data_source")):
        return sample
    index, infos = _training_rows(train)
    match = try_match_row(index, sample)
    if match is None:
        reason = f"it answers no row of {train}: none has its prompt, place or id"
        return SkippedRow(sample.where, reason)
    if isinstance(match, Mismatch):
        return SkippedRow(sample.where, f"it {match.reason}")
    if match.way == PLACE_ALONE:
        return SkippedRow(
            sample.where, f"only its split and index say that it answers a row of {train}"
        )
    info = {**infos[index.prompts[match.place].row], **_own(sample)}
    place = {name: info.get(name) for name in ("index", "split", "source_id")}
    fields = {**sample.fields, "data_source": info["data_source"]}
    fields.setdefault("extra_info", place)
    return Sample(sample.where, sample.response, sample.ground_truth, info, fields)


def _own(sample: Sample) -> dict[str, Any]:
    return {name: value for name, value in sample.extra_info.items() if not is_blank(value)}


def require_train_parquet(train: Path) -> None:
    """Raise `DataError` unless it is a parquet with the columns that rows are looked up by."""
    with open_parquet(train) as file:
        missing = {"prompt", "data_source"} - set(file.schema_arrow.names)
    if missing:
        names = " and no ".join(map(repr, sorted(missing)))
        raise DataError(f"{train}: has no {names}: not a verl parquet.")


@cache
def _training_rows(train: str) -> tuple[TrainIndex, list[dict[str, Any]]]:
    """The rows by what a response may name, and what each tells a scorer."""
    rows = list(read_rows(Path(train)))
    infos = [{**(r.get("extra_info") or {}), "data_source": r["data_source"]} for r in rows]
    return index_rows(rows, train), infos
