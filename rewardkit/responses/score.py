"""`rewardkit score`: score the responses of a run in bulk and summarise them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.output import atomic, require_absent, require_not_input, resolve_output
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.registry import is_path
from rewardkit.responses.chunk_scores import (
    ScoredChunk,
    ScoringPlan,
    gold_rows,
    learn_plan,
    plan_scorer,
    release_scorer,
    score_chunks,
)
from rewardkit.responses.chunks import (
    CHUNK_BYTES,
    Chunk,
    expand_paths,
    read_chunks,
    require_outside,
)
from rewardkit.responses.resumable_output import (
    ResumableOutput,
    ScoringState,
    fingerprints,
    open_resumable_output,
)
from rewardkit.responses.tally import ScoreFigures
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS, is_built_in
from rewardkit.scorers.reward_result import RightRule

Engine: TypeAlias = Literal["local", "ray"]

#: The size of chunks is divided by this for a custom scorer, which may be slow.
CUSTOM_SCORER_DIVISOR = 16

#: Chunks that together take less than this are sent to a process together.
GROUP_SECONDS = 0.25

#: Size of the input from which other processes are started at once.
LARGE_INPUT_BYTES = 3 * INLINE_BATCHES * CHUNK_BYTES

#: Suffixes of `out`.
OUT_SUFFIXES = (".jsonl", ".parquet")


@dataclass
class ScoreReport(ScoreFigures):
    """The figures of the responses in `files`, by a rule of which score is right."""

    files: tuple[str, ...] = ()
    rule: RightRule = field(default_factory=RightRule)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for people and for JSON."""
        summaries = {
            group: {name: tally.summary() for name, tally in self.tallies.get(group, {}).items()}
            for group in ("data_source", "step")
        }
        return {
            "files": list(self.files),
            "right_score": self.rule.least,
            "unscored": self.unscored,
            "unscored_examples": [f"{row.where}: {row.reason}" for row in self.examples],
            "total": self.total.summary(),
            **{f"by_{group}": summary for group, summary in summaries.items()},
        }


def score_files(
    names: Sequence[str],
    scorer: str | Scorer = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    train: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    jobs: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    right_score: float | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> ScoreReport:
    """Score every response of files, folders and patterns.

    Args:
        names: jsonl (also `.gz`, `.zst`) and parquet files, folders and patterns of them; `-` for
            jsonl on standard input.
        scorer: a scorer's name or `file.py:function`; `auto` scores each row with its own scorer.
            A function is called in this process only.
        options: options of the scorer.
        response_key: the field with the response or a list of responses; see `read_samples`.
        gold_key: the field with the ground truth.
        train: a training parquet, in which rows without a `data_source` are looked up.
        out: a jsonl or parquet to write: every row with `score`, `acc`, `pred`, `status` and the
            flags. A field of the row with one of these names is renamed to `<name>_before`. Rows
            that could not be scored are written to `<out>.unscored.jsonl`, with the reason.
        overwrite: replace `out` if it exists, and discard an interrupted run.
        resume: continue an interrupted run, without scoring its rows again.
        jobs: number of processes.
        engine: `local`, or `ray` for Ray Data on the cluster at `address`.
        address: address of the cluster; None for a private one on this machine.
        seconds: timeout per response for a custom scorer. It runs in a process of its own; a
            response on which it ends that process or exceeds the timeout is not scored.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score of a custom scorer; None to learn it from the first golds
            (`scorers.reward_result`).
        progress: called with the number of rows since the last call.

    Raises:
        UsageError: the scorer does not load, `out` has another suffix, or the arguments exclude
            each other.
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses.
        OutputError: `out` cannot be written, or an interrupted run can be resumed.
    """
    plan = ScoringPlan(
        scorer,
        tuple((options or {}).items()),
        response_key=response_key,
        gold_key=gold_key,
        train=str(train) if train else None,
        seconds=seconds,
        load_seconds=load_seconds,
        lines=out is not None,
        right_score=right_score,
    )
    _require_valid_arguments(out, train, engine, address)
    require_outside(out, names)
    out = resolve_output(out) if out else None
    files = expand_paths(names)
    for file in [*files, *([str(train)] if train else [])]:
        require_not_input(out, Path(file))
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    several = jobs > 1 or engine == "ray"
    with (
        _loaded_scorer(plan, files, other_processes=several) as (plan, chunks),
        open_resumable_output(out, _run_key(plan, files), resume=resume, overwrite=overwrite)
        if out
        else nullcontext() as output,
    ):
        state = output.state if output else ScoringState({})
        rule = plan.rule or RightRule()
        report = ScoreReport(**vars(state.figures), files=tuple(files), rule=rule)
        for chunk in _scored_chunks(plan, files, chunks, state.units, jobs, engine, address):
            if output:  # first: until `advance`, what is written does not count
                output.write(chunk.lines, chunk.unscored)
            report.add(chunk.figures)
            if output:
                output.advance(report)
            progress(chunk.figures.total.n + chunk.figures.unscored)
        if out and output:
            _finish(output, plan, out, overwrite=overwrite)
    return report


def score_file(path: Path | str, scorer: str | Scorer = "auto", **options: Any) -> ScoreReport:
    """Score every response of one file; see `score_files`."""
    return score_files([str(path)], scorer, **options)


def _run_key(plan: ScoringPlan, files: list[str]) -> dict[str, Any]:
    """Return what is scored and how: only a run with the same key can be resumed."""
    scorer = str(plan.scorer)
    code = [scorer.partition(":")[0]] if isinstance(plan.scorer, str) and is_path(scorer) else []
    inputs = [*files, *code, *([plan.train] if plan.train else [])]
    timeouts = {"seconds", "load_seconds"}
    values = [str(value) for name, value in vars(plan).items() if name not in timeouts]
    return {"files": fingerprints(inputs), "plan": values}


def _require_valid_arguments(
    out: Path | None, train: Path | None, engine: Engine, address: str | None
) -> None:
    """Raise `UsageError` for invalid arguments before a file is read."""
    if out is not None and out.suffix not in OUT_SUFFIXES:
        suffixes = " or ".join(OUT_SUFFIXES)
        raise UsageError(f"--out {out}: name a file that ends in {suffixes}.")
    if address is not None and engine != "ray":
        raise UsageError("--address is that of a Ray cluster: add --engine ray.")
    if train is not None:
        from rewardkit.responses.matching import require_train_parquet

        require_train_parquet(train)


@contextmanager
def _loaded_scorer(
    plan: ScoringPlan, files: list[str], *, other_processes: bool
) -> Iterator[tuple[ScoringPlan, Iterator[Chunk]]]:
    """Load the scorer, so that its errors come first, and release it at the end.

    Yields the plan with the rule that a custom scorer learned from the first chunk, and all chunks.
    """
    try:
        plan_scorer(plan)
        # A custom scorer may be slow, as one that calls a model is: then even a small file is enough
        # work for all processes.
        chunks = read_chunks(files, CUSTOM_SCORER_DIVISOR if _is_custom(plan) else 1)
        if _is_custom(plan) or plan.right_score is not None or not isinstance(plan.scorer, str):
            first = list(islice(chunks, 1))
            rows = chain.from_iterable(gold_rows(plan, chunk) for chunk in first)
            plan = learn_plan(plan, rows)
            chunks = chain(first, chunks)
        if other_processes:  # they load their own
            release_scorer(plan)
        yield plan, chunks
    finally:
        release_scorer(plan)


def _is_custom(plan: ScoringPlan) -> bool:
    return isinstance(plan.scorer, str) and not is_built_in(plan.scorer)


def _scored_chunks(
    plan: ScoringPlan,
    files: list[str],
    chunks: Iterator[Chunk],
    start: int,
    jobs: int,
    engine: Engine,
    address: str | None,
) -> Iterator[ScoredChunk]:
    """Return the scored chunks from number `start` on, in order."""
    if engine == "ray":
        from rewardkit.responses.ray_engine import score_on_ray

        if not isinstance(plan.scorer, str) or start:
            raise UsageError("--engine ray takes a scorer by name, and no --resume.")
        return score_on_ray(plan, files, address)
    if not isinstance(plan.scorer, str):
        jobs = 1
    inline = 0 if _is_custom(plan) or _size(files) > LARGE_INPUT_BYTES else INLINE_BATCHES
    divisor = CUSTOM_SCORER_DIVISOR if _is_custom(plan) else 1
    return _score_in_groups(plan, islice(chunks, start, None), jobs, inline, divisor)


def _score_in_groups(
    plan: ScoringPlan, chunks: Iterator[Chunk], jobs: int, inline: int, max_size: int
) -> Iterator[ScoredChunk]:
    """Yield the scored chunks in order.

    A process gets one chunk at a time, or up to `max_size` if they take little time: the scores of
    a slow scorer arrive chunk by chunk, and those of a fast one in few messages.
    """
    size = 1

    def groups() -> Iterator[list[Chunk]]:
        while group := list(islice(chunks, size)):
            yield group

    for _, (seconds, scored) in in_order(partial(score_chunks, plan), groups(), jobs, inline):
        yield from scored
        size = min(2 * size, max_size) if seconds < GROUP_SECONDS else max(size // 2, 1)


def _size(files: Sequence[str]) -> int:
    """Size in bytes; standard input counts as empty."""
    return sum(Path(file).stat().st_size for file in files if file != "-")


def _finish(output: ResumableOutput, plan: ScoringPlan, out: Path, *, overwrite: bool) -> None:
    """Turn the part into the output, and write the file of rows that could not be scored.

    The output comes last: until then the files of the run are complete and it can be resumed.
    """
    output.save()
    output.finish(out, overwrite=overwrite)
    if out.suffix == ".parquet":
        from rewardkit.responses.parquet_output import write_scored_parquet

        with atomic(out, overwrite=overwrite) as temporary:
            write_scored_parquet(output.part, temporary, plan.response_key, plan.gold_key)
    else:
        require_absent(out, overwrite=overwrite)
        output.part.replace(out)
    output.remove()
