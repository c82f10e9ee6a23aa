"""Evaluate one set of questions: generate or read responses, score them, compute metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.evaluate.evaluated_responses import EvaluatedResponse, join_with_rows, score_all
from rewardkit.evaluate.generate import GenerationConfig, ProgressCallbacks, generate
from rewardkit.evaluate.match_responses import MatchReport, match_to_rows
from rewardkit.evaluate.metrics import EvaluationMetrics, compute_metrics
from rewardkit.evaluate.questions import (
    count_questions,
    read_questions,
    require_questions,
    require_scorers,
)
from rewardkit.evaluate.results import read_result_lines
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.model_client.completions import UNUSABLE
from rewardkit.output import (
    atomic,
    require_absent,
    require_not_input,
    resolve_output,
    temporary_folder,
)
from rewardkit.responses.chunk_scores import (
    ScoringPlan,
    learn_plan,
    plan_scorer,
    release_scorer,
)
from rewardkit.responses.chunks import require_outside
from rewardkit.responses.response_log import (
    ResponseIndex,
    ResponseLog,
    open_response_log,
    read_response_index,
)
from rewardkit.responses.resumable_output import part_path
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS

#: Fields of a result that its response log has too.
_RESPONSE_FIELDS = ("response", "reasoning", "finish_reason", "tokens")


@dataclass(frozen=True)
class ScorerConfig:
    """How responses are scored.

    Attributes:
        scorer: a scorer's name or `file.py:function`; `auto` scores each row with its own scorer.
        options: options of the scorer.
        timeout_seconds: timeout per response for custom scorers, in seconds.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score of a custom scorer; None to learn it from the first golds.
        jobs: number of processes.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    timeout_seconds: float = CALL_TIMEOUT_SECONDS
    load_seconds: float = LOAD_TIMEOUT_SECONDS
    right_score: float | None = None
    jobs: int = 1

    def plan(self) -> ScoringPlan:
        """Return the same settings as `responses.chunk_scores` takes them."""
        return ScoringPlan(
            self.scorer,
            tuple(self.options.items()),
            seconds=self.timeout_seconds,
            load_seconds=self.load_seconds,
            right_score=self.right_score,
        )


@dataclass
class EvaluationReport:
    """The result of an evaluation.

    Attributes:
        parquet: the questions.
        rows: number of questions.
        metrics: metrics of the questions that have a response.
        matches: how responses from files were matched to rows; None if they were generated.
    """

    parquet: Path
    rows: int
    metrics: EvaluationMetrics
    matches: MatchReport | None = None

    @property
    def unanswered(self) -> int:
        """Number of questions without a response; metrics leave them out."""
        return self.rows - len(self.metrics.total.questions)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values."""
        matches = self.matches or MatchReport()
        return {
            "parquet": str(self.parquet),
            "rows": self.rows,
            "unanswered": self.unanswered,
            "unconfirmed": matches.unconfirmed,
            "unread": matches.unread,
            "unread_examples": [f"{row.where}: {row.reason}" for row in matches.examples],
            **self.metrics.summary(),
        }


def evaluate(
    parquet: Path,
    generation: GenerationConfig,
    out: Path,
    scoring: ScorerConfig | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    name: str = "",
    callbacks: ProgressCallbacks | None = None,
) -> EvaluationReport:
    """Generate responses to every row, score them with the row's scorer, and compute metrics.

    Responses are logged in `.OUT.part` as they arrive, and the same call resumes from there. In the
    end `out` has them in the order of row and sample, each with its row and its score.

    Args:
        parquet: verl rows.
        generation: the server, the model and the sampling.
        out: the jsonl file to write.
        scoring: the scorer; each row's own by default.
        overwrite: replace `out`, and discard an interrupted run of another model or sampling.
        resume: keep the responses of a finished `out`, and request those that a larger n adds. All
            are scored again.
        name: name of the set for `callbacks.start`; the model by default.
        callbacks: progress callbacks.

    Raises:
        SourceError: the server did not answer some requests; all other responses are logged.
        DataError: the parquet cannot be used, or a scorer fails on every response.
        OutputError: `out` exists or cannot be written.
    """
    out, callbacks = resolve_output(out), callbacks or ProgressCallbacks()
    if out.is_file() and not (overwrite or resume):
        raise OutputError(
            f"{out} exists: --resume adds responses up to a larger -n, --overwrite replaces it."
        )
    _require_output(parquet, out, overwrite=True)
    scoring, path = scoring or ScorerConfig(), part_path(out)
    # The log stays locked until it is scored; another run of the same command would remove it.
    with (
        _loaded_scorer(scoring, parquet) as plan,
        open_response_log(path, generation.key(), overwrite=overwrite) as (log, index),
    ):
        rows = count_questions(parquet)
        api, needs_scorers = generation.sampling.api, scoring.scorer == "auto"
        require_questions(parquet, api=api, scorers=needs_scorers)
        is_finished = resume and out.exists()
        known = _add_finished(out, path, log, index, generation, rows) if is_finished else index
        callbacks.start(name or generation.model, len(known.rows), rows * generation.n)
        result = generate(generation, read_questions(parquet), log, known, callbacks.advance)
        if result.lost:
            raise SourceError(
                f"{generation.server.url}: no answer to requests for {result.lost:,} responses: "
                f"{result.reason} The other responses are in {path}. Run the same command to "
                f"request what is missing, or score what exists: rewardkit eval responses {parquet} {path}"
            )
        lines = join_with_rows(
            read_questions(parquet), path, read_response_index(path), generation.n, result.missing
        )
        may_replace = overwrite or resume
        metrics = _score_and_write(plan, lines, scoring.jobs, out, path, overwrite=may_replace)
        path.unlink()
    return EvaluationReport(parquet, rows, metrics)


def evaluate_responses(
    parquet: Path,
    names: Sequence[str],
    out: Path | None = None,
    scoring: ScorerConfig | None = None,
    *,
    overwrite: bool = False,
) -> EvaluationReport:
    """Score responses that exist already; see `match_to_rows` and `evaluate`.

    Args:
        parquet: verl rows.
        names: files, folders and patterns with responses.
        out: the jsonl file to write; None to write none.
        scoring: the scorer; each row's own by default.
        overwrite: replace `out`.

    Raises:
        DataError: no response matches a row, a response contradicts its row, a file cannot be read,
            or a scorer fails on every response.
        OutputError: `out` exists or cannot be written.
    """
    if out:
        _require_output(parquet, out, overwrite=overwrite)
        require_outside(out, names)
        for name in names:
            require_not_input(out, Path(name))
    scoring = scoring or ScorerConfig()
    with _loaded_scorer(scoring, parquet) as plan, temporary_folder("eval") as folder:
        path, rows = folder / "part", count_questions(parquet)
        if scoring.scorer == "auto":
            require_scorers(parquet)
        matches = match_to_rows(names, parquet, path)
        lines = join_with_rows(read_questions(parquet), path, read_response_index(path))
        metrics = _score_and_write(plan, lines, scoring.jobs, out, path, overwrite=overwrite)
    return EvaluationReport(parquet, rows, metrics, matches)


def _add_finished(
    out: Path,
    part: Path,
    log: ResponseLog,
    index: ResponseIndex,
    generation: GenerationConfig,
    rows: int,
) -> ResponseIndex:
    """Append the responses of a finished output to a log, and return the log's new index.

    Responses that the log has already, because an earlier run was killed, are not added again. Those
    that the server refused or withheld are left out, so that they are requested again.

    Args:
        out: the finished jsonl file.
        part: the file of the log.
        log: log that gets the responses.
        index: index of the responses that the log already has.
        generation: the model, the sampling and the larger n.
        rows: number of questions.

    Raises:
        DataError: the output is of another model or sampling, of other rows, or of a larger n.
    """
    expected = json.loads(json.dumps(generation.key()))
    known = set(zip(index.rows, index.samples, strict=True))
    for line, _ in read_result_lines(out):
        for name, value in expected.items():
            if line.get(name) != value:
                raise DataError(
                    f"{out} is of another {name} ({str(line.get(name))[:200]}): choose another --out."
                )
        row, sample, prompt = line.get("row"), line.get("sample"), line.get("prompt_sha256")
        if type(row) is not int or type(sample) is not int or not isinstance(prompt, str):
            raise DataError(
                f"{out}: is not an output of 'rewardkit eval run', so it cannot be continued."
            )
        if row >= rows:
            raise DataError(f"{out} answers row {row}, which the parquet does not have.")
        if sample >= generation.n:
            raise DataError(
                f"{out} has more than {generation.n} responses to a question. --resume only adds "
                "responses: name a larger -n, or another --out."
            )
        if (row, sample) not in known and line.get("finish_reason") not in UNUSABLE:
            response = {name: line[name] for name in _RESPONSE_FIELDS if name in line}
            log.append(row, prompt, sample, [response])
    return read_response_index(part, generation.key())


def _require_output(parquet: Path, out: Path, *, overwrite: bool) -> None:
    if out.suffix != ".jsonl":
        raise UsageError(f"--out {out}: the name must end in .jsonl.")
    require_not_input(out, parquet)
    require_absent(out, overwrite=overwrite)


@contextmanager
def _loaded_scorer(scoring: ScorerConfig, parquet: Path) -> Iterator[ScoringPlan]:
    """Load the scorer first, so that its errors come first; unload it at the end.

    All metrics count right answers, so a custom scorer must say, or let it be learned from the first
    golds, which of its scores are right.
    """
    plan = scoring.plan()
    try:
        plan_scorer(plan)
        golds = (
            (each.ground_truth, {"data_source": each.data_source, **each.extra_info})
            for each in read_questions(parquet)
        )
        plan = learn_plan(plan, golds, is_required=True)
        yield plan
    finally:
        release_scorer(plan)


def _score_and_write(
    plan: ScoringPlan,
    lines: Iterator[dict[str, Any]],
    jobs: int,
    out: Path | None,
    path: Path,
    *,
    overwrite: bool,
) -> EvaluationMetrics:
    """Score responses, write them and compute metrics; only the metrics stay in memory."""
    with atomic(out, overwrite=overwrite) if out else nullcontext() as temporary:
        with temporary.open("wb") if temporary else nullcontext() as file:
            metrics = compute_metrics(_write(score_all(plan, lines, jobs), file))
        if not metrics.total.questions:
            raise DataError(f"{path}: the file has no responses.")
    return metrics


def _write(
    batches: Iterator[tuple[bytes, list[EvaluatedResponse]]], file: IO[bytes] | None
) -> Iterator[EvaluatedResponse]:
    for lines, responses in batches:
        if file:
            file.write(lines)
        yield from responses
