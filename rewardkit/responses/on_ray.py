"""Scoring on a Ray cluster, with Ray Data: it reads, spreads, retries and keeps the order.

Every worker reads its part of the files itself, so they must lie where all nodes see them, and
rewardkit (and the user's scorer file) must be installed there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.responses.files import Unit, units
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.tally import tallies_as_values, tallies_from_values
from rewardkit.responses.unit import Plan, Scored, score_unit
from rewardkit.row import batched

#: Units of a plain jsonl that a worker is given at a time.
PIECE_UNITS = 8

#: How often a part is tried again whose worker died.
RETRIES = 3


def scored_on_ray(plan: Plan, files: Sequence[str], address: str | None) -> Iterator[Scored]:
    """What `score_unit` makes of the files, in order.

    Args:
        plan: how responses are scored, by a scorer's name.
        files: on a path that every node sees.
        address: of a running cluster (`auto`, `ray://...`); None starts one on this machine and
            ends it again.

    Raises:
        UsageError: Ray is not installed, or standard input is to be read.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError("--engine ray needs Ray Data: pip install 'ray[data]'.") from error
    if "-" in files:
        raise UsageError("--engine ray reads files, no standard input.")
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR")
    try:
        yield from _run(ray, plan, files)
    finally:
        if ours:
            ray.shutdown()


def _run(ray: Any, plan: Plan, files: Sequence[str]) -> Iterator[Scored]:
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    pieces = [piece for file in files for piece in _pieces(file)]
    if not pieces:
        return
    dataset = ray.data.from_items(pieces, override_num_blocks=len(pieces))
    scored = dataset.flat_map(partial(_score_piece, plan), max_retries=RETRIES)
    try:
        for row in scored.iter_rows():
            yield _scored(row)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise DataError(
            f"Ray gave up on a part of {', '.join(files)[:100]} ({reason}). --engine local scores "
            "without it."
        ) from error


def _pieces(file: str) -> Iterator[dict[str, Any]]:
    """Parts of a file that are read by themselves: units of a plain jsonl, all of any other."""
    whole = {"file": str(Path(file).resolve()), "name": file, "units": "[]"}
    if not file.endswith(".jsonl"):
        yield whole
        return
    for some in batched(units([file]), PIECE_UNITS):
        places = [[unit.first, *unit.span, unit.cut] for unit in some]
        yield {**whole, "units": json.dumps(places)}


def _score_piece(plan: Plan, piece: dict[str, Any]) -> list[dict[str, Any]]:
    return [_row(score_unit(plan, unit)) for unit in _units(piece)]


def _units(piece: dict[str, Any]) -> Iterator[Unit]:
    """The units of a piece, by the name that the file has for the one who asked."""
    places = json.loads(piece["units"])
    if not places:
        for unit in units([piece["file"]]):
            yield replace(unit, path=piece["name"])
    for first, start, size, cut in places:
        text = Unit(piece["file"], first, span=(start, size)).text
        yield Unit(piece["name"], first, text, cut=cut)


def _row(scored: Scored) -> dict[str, Any]:
    examples = [[row.where, row.reason] for row in scored.examples]
    return {
        "lines": scored.lines,
        "unscored": scored.unscored,
        "n": scored.n_unscored,
        "rest": json.dumps([tallies_as_values(scored.tallies), examples]),
    }


def _scored(row: dict[str, Any]) -> Scored:
    tallies, examples = json.loads(row["rest"])
    return Scored(
        bytes(row["lines"]),
        bytes(row["unscored"]),
        [SkippedRow(*example) for example in examples],
        int(row["n"]),
        tallies_from_values(tallies),
    )
