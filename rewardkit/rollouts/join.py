"""Responses that lack a `data_source`, completed from the training row they answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.rollouts.match import TrainIndex, index_rows, join
from rewardkit.rollouts.read import Sample, Unread
from rewardkit.row import open_parquet, read_rows


def completed(sample: Sample, train: str) -> Sample | Unread:
    """A sample with the `data_source` and `extra_info` of its row in a training parquet.

    A sample that has a `data_source` stays as it is. verl's dumps have none: their `input` holds
    the row's prompt.
    """
    if sample.extra_info.get("data_source"):
        return sample
    index, infos = _training_rows(train)
    sources = ("", *dict.fromkeys(str(info["data_source"]) for info in infos))
    try:
        found = {join(index, _of_source(sample, source)) for source in sources}
    except DataError as error:  # it fits several rows
        return Unread(sample.where, str(error))
    rows = {way_and_place[1] for way_and_place in found if way_and_place is not None}
    if len(rows) != 1:
        fit = "several rows" if rows else "no row"
        return Unread(sample.where, f"{fit} of the training file: by prompt, place and id")
    info = {**infos[index.prompts[rows.pop()].row], **_own(sample)}
    place = {name: info.get(name) for name in ("index", "split", "source_id")}
    fields = {**sample.fields, "data_source": info["data_source"]}
    fields.setdefault("extra_info", place)
    return Sample(sample.where, sample.response, sample.ground_truth, info, fields)


def _of_source(sample: Sample, source: str) -> Sample:
    """The sample as if it were of a data source: its place and id say something in one only."""
    return sample._replace(extra_info={**sample.extra_info, "data_source": source})


def _own(sample: Sample) -> dict[str, Any]:
    return {name: value for name, value in sample.extra_info.items() if value not in ("", None)}


def refuse_no_train(train: Path) -> None:
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
    return index_rows(rows), infos
