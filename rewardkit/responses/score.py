"""`rewardkit score`: score the responses of a run in bulk and summarise them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.jsonl import fingerprint
from rewardkit.output import (
    atomic,
    atomic_side_file,
    json_value,
    require_not_input,
    require_side_file,
    require_suffix,
    resolve_output,
)
from rewardkit.parallel import INLINE_BATCHES
from rewardkit.registry import is_path
from rewardkit.responses.figures import ScoreFigures, Tally
from rewardkit.responses.files import (
    CHUNK_BYTES,
    Chunk,
    expand_paths,
    read_chunks,
    require_outside,
)
from rewardkit.responses.samples import Sample
from rewardkit.responses.scoring import (
    ScoredChunk,
    ScoringPlan,
    loaded_chunks,
    release_scorer,
    score_in_order,
)
from rewardkit.responses.store import Store, open_store
from rewardkit.scorers.base import Score, Scorer
from rewardkit.scorers.reward_result import RightRule

Engine: TypeAlias = Literal["local", "ray"]

#: Size of the input from which other processes are started at once.
LARGE_INPUT_BYTES = 3 * INLINE_BATCHES * CHUNK_BYTES

#: How a file of rows that could not be scored begins.
_UNSCORED_START = re.compile(rb'\{"where": "(?:[^"\\]|\\.)*", "reason": "')


@dataclass
class ScoreReport(ScoreFigures):
    """The figures of the responses in `files`, by a rule of which score is right."""

    files: tuple[str, ...] = ()
    rule: RightRule = field(default_factory=RightRule)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for people and for JSON."""

        def summaries(tallies: Mapping[str, Tally]) -> dict[str, Any]:
            return {name: tally.summary() for name, tally in tallies.items()}

        return {
            "files": list(self.files),
            "right_score": self.rule.least,
            "unscored": self.unscored,
            "unscored_examples": [f"{row.where}: {row.reason}" for row in self.examples],
            "total": self.total.summary(),
            "by_data_source": summaries(self.sources),
            "by_step": summaries(self.steps),
        }


def score_files(
    names: Iterable[str | Path],
    scorer: str | Scorer | ScoringPlan = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    jobs: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    on_score: Callable[[Sample, Score], object] | None = None,
    progress: Callable[[int], object] = lambda _: None,
    **settings: Any,
) -> ScoreReport:
    """Score every response of files, folders and patterns.

    Args:
        names: jsonl (also `.gz`, `.zst`) and parquet files, folders and patterns of them; `-` for
            jsonl on standard input.
        scorer: a scorer's name or `file.py:function`; `auto` scores each row with its own scorer.
            A function is called in this process only. Or a plan, without `options` and `settings`.
        options: options of the scorer.
        out: a jsonl to write: every row with `score`, `acc`, `pred`, `status` and the flags. A field
            of the row with one of these names is renamed to `<name>_before`. Rows that could not be
            scored are written to `<out>.unscored.jsonl`, with the reason.
        overwrite: replace `out` if it exists, and discard an interrupted run.
        resume: continue an interrupted run, without scoring its rows again.
        jobs: number of processes.
        engine: `local`, or `ray` for Ray Data on the cluster at `address`.
        address: address of the Ray cluster; None for a private one on this machine.
        on_score: called with each sample and its score, in order; not with those of an interrupted run.
        progress: called with the number of rows since the last call.
        settings: other fields of `ScoringPlan`.

    Raises:
        UsageError: the scorer does not load, `out` has another suffix, or the arguments exclude
            each other.
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses.
        OutputError: `out` cannot be written, or an interrupted run can be resumed.
    """
    names = list(names)
    if not isinstance(scorer, ScoringPlan):
        scorer = ScoringPlan(scorer, tuple((options or {}).items()), **settings)
    plan = replace(scorer, lines=out is not None, samples=on_score is not None)
    require_suffix("--out", out, ".jsonl")
    require_outside(out, names)
    out = resolve_output(out) if out else None
    files = expand_paths(names)
    require_not_input(out, *map(Path, files), *([plan.train] if plan.train else []))
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    if engine == "ray" and (resume or on_score or not isinstance(plan.scorer, str)):
        raise UsageError("--engine ray takes a scorer by name, and no --resume or --html.")
    chunks = read_chunks(files, plan.divisor)
    with (
        loaded_chunks(plan, chunks) as (plan, chunks),
        _open_output(out, plan, files, resume=resume, overwrite=overwrite) as store,
    ):
        report = ScoreReport(files=tuple(files), rule=plan.rule or RightRule())
        for record in store.records() if store else ():
            report.add(ScoreFigures.from_values(record.head["figures"]))
        rest = islice(chunks, store.count if store else 0, None)
        for chunk in _scored_chunks(plan, files, rest, jobs, engine, address):
            if store:
                head = {"rows": len(chunk.lines), "figures": json_value(chunk.figures)}
                store.append(head, chunk.lines + chunk.unscored)
            report.add(chunk.figures)
            if on_score:
                for sample, score in chunk.samples:
                    on_score(sample, score)
            progress(chunk.figures.total.n + chunk.figures.unscored)
        if out and store:
            _write_output(store, out, report.unscored, overwrite=overwrite)
    return report


def score_file(
    path: Path | str, scorer: str | Scorer | ScoringPlan = "auto", **options: Any
) -> ScoreReport:
    """Score every response of one file; see `score_files`."""
    return score_files([path], scorer, **options)


def _scored_chunks(
    plan: ScoringPlan,
    files: list[str],
    chunks: Iterator[Chunk],
    jobs: int,
    engine: Engine,
    address: str | None,
) -> Iterator[ScoredChunk]:
    if plan.train:
        from rewardkit.responses.matching import training_rows

        training_rows(plan.train)  # its errors come first
    if jobs > 1 or engine == "ray":  # other processes load their own
        release_scorer(plan)
    if engine == "ray":
        from rewardkit.responses.ray_engine import score_on_ray

        return score_on_ray(plan, files, address)
    size = sum(Path(file).stat().st_size for file in files if file != "-")
    return score_in_order(plan, chunks, jobs, is_large=size > LARGE_INPUT_BYTES)


@contextmanager
def _open_output(
    out: Path | None, plan: ScoringPlan, files: list[str], *, resume: bool, overwrite: bool
) -> Iterator[Store | None]:
    if out is None:
        yield None
        return
    require_side_file(unscored_path(out), _UNSCORED_START, overwrite=overwrite)
    code = [str(plan.scorer).partition(":")[0]] if is_path(str(plan.scorer)) else []
    inputs = [*files, *code, *([str(plan.train)] if plan.train else [])]
    timeouts = {"seconds", "load_seconds"}
    run = {
        "files": [[file, *fingerprint(file)] for file in inputs if file != "-"],
        "options": [str(value) for name, value in vars(plan).items() if name not in timeouts],
    }
    with open_store(out, run, resume=resume, overwrite=overwrite) as store:
        yield store


def unscored_path(out: Path) -> Path:
    """Return the path of the rows of an output that could not be scored."""
    return out.with_name(f"{out.name}.unscored.jsonl")


def _write_output(store: Store, out: Path, unscored: int, *, overwrite: bool) -> None:
    """Write the records to the output and to the file of rows that could not be scored.

    The output comes last: until then the run can be resumed.
    """
    path = unscored_path(out)
    with (
        atomic(out, overwrite=overwrite) as temporary,
        atomic_side_file(path, _UNSCORED_START, overwrite=overwrite) as rest,
        temporary.open("wb") as rows_file,
        rest.open("wb") as rest_file,
    ):
        for record, body in store.bodies():
            rows_file.write(body[: record.head["rows"]])
            rest_file.write(body[record.head["rows"] :])
    if not unscored:
        path.unlink()
    store.remove()
