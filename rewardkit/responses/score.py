"""Score responses, a chunk at a time in any process; `rewardkit score` and `eval` do it here."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.frames import takes_rows
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS
from rewardkit.jsonl import fingerprint, json_bytes, json_line, parsed_json_bytes
from rewardkit.output import atomic, atomic_side_file, require_side_file, resolve_output
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.registry import is_path
from rewardkit.responses.figures import (
    MAX_EXAMPLES,
    ScoreFigures,
    Tally,
    bad_gold_notes,
    prompt_key,
)
from rewardkit.responses.files import (
    CHUNK_BYTES,
    UNSCORED_SUFFIX,
    Chunk,
    SkippedRow,
    input_files,
    read_chunks,
    skipped_lines,
)
from rewardkit.responses.samples import (
    USUAL_NAMES,
    FieldNames,
    Sample,
    golds_of,
    rule_of_samples,
    samples_of,
    stated_score,
)
from rewardkit.responses.store import Store, open_store
from rewardkit.scorers import isolated
from rewardkit.scorers.base import (
    NO_VERDICT,
    Score,
    Scorer,
    Status,
    call_scorer,
    failure_reason,
    require_verdict,
    to_verl,
)
from rewardkit.scorers.load import call_each
from rewardkit.scorers.right_score import GoldRow
from rewardkit.scorers.score import LITERAL, RightRule

Engine: TypeAlias = Literal["local", "ray"]

#: The fields that scoring adds to a row.
SCORE_FIELDS = frozenset({*to_verl(Score.wrong()), "status"})

#: The size of chunks is divided by this for a custom scorer, which may be slow.
CUSTOM_SCORER_DIVISOR = 16

#: Size of the input from which other processes are started at once.
LARGE_INPUT_BYTES = 3 * INLINE_BATCHES * CHUNK_BYTES

#: How a file of rows that could not be scored begins.
_UNSCORED_START = re.compile(rb'\{"where": "(?:[^"\\]|\\.)*", "reason": "')

_scorers: "dict[ScoringPlan, Scorer]" = {}


@dataclass(frozen=True)
class ScoringPlan:
    """How responses are scored. It can be pickled, unless the scorer is a function.

    Attributes:
        scorer: a scorer's name or `file.py:function`, loaded in every process; `auto` scores each
            row with its own. Or a function.
        options: options of the scorer, as `(name, value)`.
        names: the fields with response and ground truth.
        train: the training parquet in which rows without a `data_source` are looked up.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score of a custom scorer; None to learn it from the first golds.
        rule: which results of a custom scorer are right; None before it is learned.
        keeps_scores: whether a row that states a score keeps it.
        counts_failures: whether a response without a verdict counts as wrong, with a `reason`.
        lines: whether to return the rows with their scores, beside the figures.
        samples: whether to return the samples with their scores, too.
    """

    scorer: str | Scorer = "auto"
    options: tuple[tuple[str, Any], ...] = ()
    names: FieldNames = USUAL_NAMES
    train: Path | None = None
    seconds: float = isolated.CALL_TIMEOUT_SECONDS
    load_seconds: float = LOAD_TIMEOUT_SECONDS
    right_score: float | None = None
    rule: RightRule | None = None
    keeps_scores: bool = False
    counts_failures: bool = False
    lines: bool = True
    samples: bool = False

    @property
    def is_custom(self) -> bool:
        """Whether the scorer is loaded by name and runs in a process of its own."""
        return isinstance(self.scorer, str) and not isolated.is_built_in(self.scorer)

    @property
    def divisor(self) -> int:
        """The divisor of the size of chunks: a custom scorer may call a model for each response."""
        return CUSTOM_SCORER_DIVISOR if self.is_custom else 1

    @property
    def label(self) -> str:
        """The scorer with its options: `gsm8k?method=strict`."""
        settings = dict(self.options)
        if self.right_score is not None:
            settings["right_score"] = self.right_score
        options = ",".join(f"{name}={value}" for name, value in sorted(settings.items()))
        return f"{self.scorer}?{options}" if options else str(self.scorer)


@dataclass(frozen=True)
class ScoredChunk:
    """The scores of a chunk: rows as jsonl, figures, and samples if the plan wants them.

    `unscored` has `where` and `reason` of the rows that could not be scored, as jsonl.
    """

    lines: bytes
    unscored: bytes
    figures: ScoreFigures
    samples: tuple[tuple[Sample, Score], ...] = ()


@dataclass
class ScoreReport(ScoreFigures):
    """The figures of the responses in `files`, by a rule of which score is right.

    `total`, `sources` and `steps` are computed when they are first read, at the end of a run.
    """

    files: tuple[str, ...] = ()
    rule: RightRule = field(default_factory=RightRule)

    @cached_property
    def total(self) -> Tally:
        """The figures of all scored rows."""
        return self.merged(lambda _source, _step: "").get("", Tally())

    @cached_property
    def sources(self) -> dict[str, Tally]:
        """The figures of each data source."""
        return self.merged(lambda source, _: source)

    @cached_property
    def steps(self) -> dict[str, Tally]:
        """The figures of each training step, by its text."""
        return self.merged(lambda _, step: step)

    def warnings(self) -> list[str]:
        """Return sentences about rows without a score, and about scores and golds that are doubtful."""
        total, lines = self.total, skipped_lines(self.examples, self.unscored, "not scored")
        if any(row.reason.startswith("the scorer") for row in self.examples):
            lines.append(
                "responses on which the scorer fails are in no figure; verl 0.9 drops them, and a "
                "guarded reward scores them as wrong."
            )
        lines += filter(None, [self.rule.sentence])
        lines += filter(None, [self.rule.doubt(total.statuses["scored"], total.n)])
        if not total.n and not self.unscored:
            lines.append("error: the files have no rows.")
        return [*lines, *bad_gold_notes(total.bad_golds, total.n)]

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for people and for JSON."""
        groups = {"by_data_source": self.sources, "by_step": self.steps}
        return {
            "files": list(self.files),
            "right_score": self.rule.least,
            "unscored": self.unscored,
            "unscored_examples": [f"{row.where}: {row.reason}" for row in self.examples],
            "total": self.total.summary(),
            **{
                group: {name: tally.summary() for name, tally in tallies.items()}
                for group, tallies in groups.items()
            },
        }


@takes_rows
def score_files(
    names: str | Path | Iterable[str | Path],
    scorer: str | Scorer | ScoringPlan = "auto",
    *,
    options: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
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
        names: jsonl (also `.gz`, `.zst`), parquet, Arrow, CSV and JSON files, folders and patterns of
            them; `-` for jsonl on standard input.
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
    if not isinstance(scorer, ScoringPlan):
        scorer = ScoringPlan(scorer, tuple((options or {}).items()), **settings)
    plan = replace(scorer, lines=out is not None, samples=on_score is not None)
    out = resolve_output(Path(out)) if out else None
    names = [names] if isinstance(names, (str, Path)) else names
    files = input_files(names, "--out", out, ".jsonl", plan.train)
    if resume and (out is None or "-" in files):
        raise UsageError("--resume needs --out, and files that can be read again.")
    if engine == "ray" and (resume or on_score or not isinstance(plan.scorer, str)):
        raise UsageError("--engine ray takes a scorer by name, and no --resume or --html.")
    with (
        loaded_chunks(plan, read_chunks(files, plan.divisor)) as (plan, chunks),
        _open_output(out, plan, files, resume=resume, overwrite=overwrite) as store,
    ):
        report = ScoreReport(files=tuple(files), rule=plan.rule or RightRule())
        for record in store.records() if store else ():
            report.add(ScoreFigures.from_values(record.head["figures"]))
        rest = islice(chunks, store.count if store else 0, None)
        for chunk in _scored_chunks(plan, files, rest, jobs, engine, address):
            if store:
                head = {"rows": len(chunk.lines), "figures": chunk.figures.values()}
                store.append(head, chunk.lines + chunk.unscored)
            report.add(chunk.figures)
            if on_score:
                for sample, score in chunk.samples:
                    on_score(sample, score)
            progress(chunk.figures.n + chunk.figures.unscored)
        if out and store:
            _write_output(store, out, report.unscored, overwrite=overwrite)
    return report


@takes_rows
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
    require_side_file(_unscored_path(out), _UNSCORED_START, overwrite=overwrite)
    code = [str(plan.scorer).partition(":")[0]] if is_path(str(plan.scorer)) else []
    inputs = [*files, *code, *([str(plan.train)] if plan.train else [])]
    timeouts = {"seconds", "load_seconds"}
    run = {
        "files": [[file, *fingerprint(file)] for file in inputs if file != "-"],
        "options": [str(value) for name, value in vars(plan).items() if name not in timeouts],
    }
    with open_store(out, run, resume=resume, overwrite=overwrite) as store:
        yield store


def _unscored_path(out: Path) -> Path:
    return out.with_name(f"{out.name}{UNSCORED_SUFFIX}")


def _write_output(store: Store, out: Path, unscored: int, *, overwrite: bool) -> None:
    """Write the records to the output and to the file of rows that could not be scored.

    The output comes last: until then the run can be resumed.
    """
    path = _unscored_path(out)
    with (
        atomic(out, overwrite=overwrite) as temporary,
        atomic_side_file(path, _UNSCORED_START, overwrite=overwrite) as rest,
        temporary.open("wb") as rows_file,
        rest.open("wb") as rest_file,
    ):
        for head, _, body in store.records():
            rows_file.write(body[: head["rows"]])
            rest_file.write(body[head["rows"] :])
    if not unscored:
        path.unlink()
    store.remove()


def score_chunk(plan: ScoringPlan, chunk: Chunk) -> ScoredChunk:
    """Score the rows of a chunk; a row that cannot be scored is returned with the reason."""
    # A parquet may have values that JSON does not.
    to_json = json_bytes if chunk.rows else parsed_json_bytes
    lines: list[bytes] = []
    unscored: list[SkippedRow] = []
    scored: list[tuple[Sample, Score]] = []
    figures = ScoreFigures()
    for result in _score_samples(plan, plan_samples(plan, chunk)):
        if isinstance(result, SkippedRow):
            unscored.append(result)
            continue
        sample, score = result
        step = sample.fields.get("step")
        key = sample.source, None if step is None else str(step)
        prompt = prompt_key(sample.group(sample.prompt))
        figures.tallies.setdefault(key, Tally()).add(score, len(sample.response), prompt)
        if plan.lines:
            lines.append(to_json(_scored_row(sample.fields, score)) + b"\n")
        if plan.samples:
            scored.append(result)
    figures.unscored, figures.examples = len(unscored), unscored[:MAX_EXAMPLES]
    return ScoredChunk(
        lines=b"".join(lines),
        unscored="".join(json_line(row._asdict()) for row in unscored).encode(),
        figures=figures,
        samples=tuple(scored),
    )


def plan_samples(plan: ScoringPlan, chunk: Chunk) -> list[Sample | SkippedRow]:
    """Return the samples of a chunk, looked up in the training parquet if the plan has one."""
    samples = list(samples_of(chunk, plan.names))
    if not plan.train:
        return samples
    from rewardkit.responses.matching import look_up_row

    train = plan.train
    return [look_up_row(s, train) if isinstance(s, Sample) else s for s in samples]


def call_plan(plan: ScoringPlan, samples: Iterable[Sample]) -> Iterator[Score | Exception]:
    """Yield the score of each sample, or why it has none."""
    scorer = plan_scorer(plan)
    requests = [(sample.response, sample.ground_truth, sample.extra_info) for sample in samples]
    if isinstance(scorer, isolated.IsolatedScorer):
        return map(require_verdict, scorer.score_batch(requests))
    results = call_each(scorer, lambda request: call_scorer(scorer, *request), requests)
    return map(require_verdict, results)


def _score_samples(
    plan: ScoringPlan, samples: Sequence[Sample | SkippedRow]
) -> Iterator[tuple[Sample, Score] | SkippedRow]:
    stated: list[Score | str | None] = [None] * len(samples)
    if plan.keeps_scores:
        rule = plan.rule or LITERAL
        stated = [stated_score(s, rule) if isinstance(s, Sample) else None for s in samples]
    pairs = list(zip(samples, stated, strict=True))
    results = call_plan(plan, (s for s, own in pairs if isinstance(s, Sample) and own is None))
    for sample, own in pairs:
        if isinstance(sample, SkippedRow):
            yield sample
            continue
        result = next(results) if own is None else own
        if isinstance(result, Score) and (result.correct is not None or not plan.counts_failures):
            yield sample, result
            continue
        reason = NO_VERDICT if isinstance(result, Score) else result
        reason = failure_reason(reason) if isinstance(reason, Exception) else reason
        if plan.counts_failures:
            fields = {**sample.fields, "reason": reason}
            yield sample._replace(fields=fields), Score.wrong("", Status.FAILED)
        else:
            yield SkippedRow(sample.where, reason)


def _scored_row(fields: Mapping[str, Any], score: Score) -> dict[str, Any]:
    row = {**fields, **{f"{name}_before": fields[name] for name in SCORE_FIELDS & fields.keys()}}
    row.update(to_verl(score), status=score.status.value)
    if score.correct is None:
        row["acc"] = None
    return row


def plan_scorer(plan: ScoringPlan) -> Scorer:
    """Return the scorer of a plan, loaded once in a process; raise `UsageError` if it does not."""
    if not isinstance(plan.scorer, str):
        return plan.scorer
    if plan not in _scorers:
        _scorers[plan] = isolated.start_scorer(
            plan.scorer, dict(plan.options), plan.seconds, plan.load_seconds, plan.rule
        )
    return _scorers[plan]


def release_scorer(plan: ScoringPlan) -> None:
    """Drop the scorer of a plan from this process, and end its own process if it has one."""
    if scorer := _scorers.pop(plan, None):
        isolated.close_scorer(scorer)


@contextmanager
def loaded_plan(
    plan: ScoringPlan, golds: Iterable[GoldRow], *, is_required: bool = False
) -> Iterator[ScoringPlan]:
    """Load the scorer of a plan, so that its errors come first, and release it at the end.

    Yields the plan with the rule that a custom scorer learns from golds.
    """
    try:
        scorer = plan_scorer(plan)
        may_learn = plan.is_custom or plan.right_score is not None or callable(plan.scorer)
        if plan.rule is None and may_learn:
            scorer, rule = isolated.learn_rule(
                scorer, golds, plan.right_score, is_required=is_required
            )
            _scorers.pop(plan, None)
            plan = replace(plan, rule=rule)
            if isinstance(plan.scorer, str):
                _scorers[plan] = scorer
            else:
                plan = replace(plan, scorer=scorer)
        yield plan
    finally:
        release_scorer(plan)


@contextmanager
def loaded_chunks(
    plan: ScoringPlan, chunks: Iterator[Chunk]
) -> Iterator[tuple[ScoringPlan, Iterator[Chunk]]]:
    """`loaded_plan` with the golds of the first chunk; also yields all chunks."""
    first: list[Chunk] = []

    def samples() -> Iterator[Sample | SkippedRow]:
        first.extend(islice(chunks, not first))
        for chunk in first:
            yield from plan_samples(plan, chunk)

    if plan.keeps_scores:
        plan = replace(plan, rule=rule_of_samples(samples(), plan.right_score))
    with loaded_plan(plan, golds_of(samples())) as learned:
        yield learned, chain(first, chunks)


def score_in_order(
    plan: ScoringPlan, chunks: Iterator[Chunk], jobs: int, *, is_large: bool = False
) -> Iterator[ScoredChunk]:
    """Yield the scored chunks in order; a function is called in this process only.

    Other processes are started at once if the input is large.
    """
    jobs = jobs if isinstance(plan.scorer, str) else 1
    inline = 0 if plan.is_custom or is_large else INLINE_BATCHES
    for _, scored in in_order(partial(score_chunk, plan), chunks, jobs, inline):
        yield scored
