"""Scoring on a Ray cluster with Ray Data, which distributes, retries and keeps the order.

Every worker reads its part of the files, so all nodes must see them under the same path, and
rewardkit (and the user's scorer file) must be installed there.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, MissingPackageError, UsageError
from rewardkit.responses.figures import ScoreFigures
from rewardkit.responses.files import Chunk, read_chunks
from rewardkit.responses.score import ScoredChunk, ScoringPlan, score_chunk
from rewardkit.row import batched

#: Chunks of a plain jsonl in one task.
TASK_CHUNKS = 8

#: How often the task of a dead worker is retried.
MAX_RETRIES = 3


def score_on_ray(
    plan: ScoringPlan, files: Sequence[str], address: str | None
) -> Iterator[ScoredChunk]:
    """Yield the scored chunks of files, which every node sees under their path, in order.

    `address` is that of a running cluster (`auto`, `ray://...`); None starts one on this machine and stops
    it at the end.

    Raises:
        MissingPackageError: Ray is not installed.
        DataError: a task failed in all retries.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            "--engine ray needs Ray Data: pip install 'ray[data]'."
        ) from error
    if "-" in files:
        raise UsageError("--engine ray reads files, not standard input.")
    is_started_here = not ray.is_initialized()
    if is_started_here:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR")
    try:
        yield from _run(ray, plan, files)
    finally:
        if is_started_here:
            ray.shutdown()


def _run(ray: Any, plan: ScoringPlan, files: Sequence[str]) -> Iterator[ScoredChunk]:
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    tasks = [task for file in files for task in _tasks(file)]
    if not tasks:
        return
    dataset = ray.data.from_items(tasks, override_num_blocks=len(tasks))
    scored = dataset.flat_map(partial(_score_task, plan), max_retries=MAX_RETRIES)
    try:
        for row in scored.iter_rows():
            yield _scored_chunk(row)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise DataError(
            f"Ray gave up on a part of {', '.join(files)[:100]} ({reason}). --engine local scores "
            "without it."
        ) from error


def _tasks(file: str) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a file: some chunks of a plain jsonl, all of any other file."""
    whole = {"file": str(Path(file).resolve()), "name": file, "chunks": "[]"}
    if not file.endswith(".jsonl"):
        yield whole
        return
    for chunks in batched(read_chunks([file]), TASK_CHUNKS):
        spans = [[chunk.first, *chunk.span, chunk.problem] for chunk in chunks]
        yield {**whole, "chunks": json.dumps(spans)}


def _score_task(plan: ScoringPlan, task: dict[str, Any]) -> list[dict[str, Any]]:
    return [_ray_row(score_chunk(plan, chunk)) for chunk in _chunks(task)]


def _chunks(task: dict[str, Any]) -> Iterator[Chunk]:
    """Yield the chunks of a task, under the name that the user gave the file."""
    spans = json.loads(task["chunks"])
    if not spans:
        for chunk in read_chunks([task["file"]]):
            yield replace(chunk, path=task["name"])
    for first, start, size, problem in spans:
        lines = Chunk(path=task["file"], first=first, span=(start, size)).text
        yield Chunk(path=task["name"], first=first, lines=lines, problem=problem)


def _ray_row(scored: ScoredChunk) -> dict[str, Any]:
    figures = json.dumps(scored.figures.values())
    return {"lines": scored.lines, "unscored": scored.unscored, "figures": figures}


def _scored_chunk(row: dict[str, Any]) -> ScoredChunk:
    figures = ScoreFigures.from_values(json.loads(row["figures"]))
    return ScoredChunk(bytes(row["lines"]), bytes(row["unscored"]), figures)
