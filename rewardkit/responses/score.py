"""`rewardkit score`: score the responses of a run in bulk and summarise them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.jsonl import fingerprint
from rewardkit.output import (
    atomic,
    atomic_side_file,
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
    expand_paths,
    read_chunks,
    require_outside,
)
from rewardkit.responses.samples import FieldNames, Sample
from rewardkit.responses.scoring import (
    ScoredChunk,
    ScoringPlan,
    loaded_chunks,
    release_scorer,
    score_in_order,
)
from rewardkit.responses.store import Store, open_store
from rewardkit.scorers.base import Score, Scorer
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS
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
    keep_scores: bool = False,
    on_score: Callable[[Sample, Score], object] | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> ScoreReport:
    """Score every response of files, folders and patterns.

    Args:
        names: jsonl (also `.gz`, `.zst`) and parquet files, folders and patterns of them; `-` for
            jsonl on standard input.
        scorer: a scorer's name or `file.py:function`; `auto` scores each row with its own scorer.
            A function is called in this process only.
        options: options of the scorer.
        response_key: the field with the response or a list of responses.
        gold_key: the field with the ground truth.
        train: a training parquet, in which rows without a `data_source` are looked up.
        out: a jsonl to write: every row with `score`, `acc`, `pred`, `status` and the
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
        keep_scores: whether rows that state a score keep it; the others are scored.
        on_score: called with each sample and its score, in order; not with those of an interrupted run.
        progress: called with the number of rows since the last call.

    Raises:
        UsageError: the scorer does not load, `out` has another suffix, or the arguments exclude
            each other.
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses.
        OutputError: `out` cannot be written, or an interrupted run can be resumed.
    """
    names = list(names)
    plan = ScoringPlan(
        scorer,
        tuple((options or {}).items()),
        FieldNames(response_key, gold_key),
        str(train) if train else None,
        seconds,
        load_seconds,
        right_score,
        keeps_scores=keep_scores,
        lines=out is not None,
        samples=on_score is not None,
    )
    _require_valid_arguments(out, train, engine, address)
    require_outside(out, names)
    out = resolve_output(out) if out else None
    files = expand_paths(names)
    require_not_input(out, *map(Path, files), *([train] if train else []))
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    chunks = read_chunks(files, plan.divisor)
    with (
        loaded_chunks(plan, chunks) as (plan, chunks),
        _open_output(out, plan, files, resume=resume, overwrite=overwrite) as store,
    ):
        report = ScoreReport(files=tuple(files), rule=plan.rule or RightRule())
        start = store.count if store else 0
        for record in store.records() if store else ():
            report.add(ScoreFigures.from_values(record.head["figures"]))
        if jobs > 1 or engine == "ray":  # other processes load their own
            release_scorer(plan)
        if engine == "ray":
            scored = _score_on_ray(plan, files, address, is_plain=not (start or on_score))
        else:
            rest = islice(chunks, start, None)
            scored = score_in_order(plan, rest, jobs, is_large=_size(files) > LARGE_INPUT_BYTES)
        for chunk in scored:
            if store:
                head = {"rows": len(chunk.lines), "figures": chunk.figures.as_values()}
                store.append(head, chunk.lines + chunk.unscored)
            report.add(chunk.figures)
            if on_score:
                for sample, score in chunk.samples:
                    on_score(sample, score)
            progress(chunk.figures.total.n + chunk.figures.unscored)
        if out and store:
            _write_output(store, out, report.unscored, overwrite=overwrite)
    return report


def score_file(path: Path | str, scorer: str | Scorer = "auto", **options: Any) -> ScoreReport:
    """Score every response of one file; see `score_files`."""
    return score_files([path], scorer, **options)


def _require_valid_arguments(
    out: Path | None, train: Path | None, engine: Engine, address: str | None
) -> None:
    """Raise `UsageError` for invalid arguments before a file is read."""
    require_suffix("--out", out, ".jsonl")
    if address is not None and engine != "ray":
        raise UsageError("--address is that of a Ray cluster: add --engine ray.")
    if train is not None:
        from rewardkit.responses.matching import require_train_parquet

        require_train_parquet(train)


def _size(files: list[str]) -> int:
    """Size in bytes; standard input counts as empty."""
    return sum(Path(file).stat().st_size for file in files if file != "-")


def _score_on_ray(
    plan: ScoringPlan, files: list[str], address: str | None, *, is_plain: bool
) -> Iterator[ScoredChunk]:
    from rewardkit.responses.ray_engine import score_on_ray

    if not is_plain or not isinstance(plan.scorer, str):
        raise UsageError("--engine ray takes a scorer by name, and no --resume or --html.")
    return score_on_ray(plan, files, address)


@contextmanager
def _open_output(
    out: Path | None, plan: ScoringPlan, files: list[str], *, resume: bool, overwrite: bool
) -> Iterator[Store | None]:
    if out is None:
        yield None
        return
    require_side_file(unscored_path(out), _UNSCORED_START, overwrite=overwrite)
    code = [str(plan.scorer).partition(":")[0]] if is_path(str(plan.scorer)) else []
    inputs = [*files, *code, *([plan.train] if plan.train else [])]
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
