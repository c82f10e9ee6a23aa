"""Evaluate one set of questions: generate or read responses, score them, compute metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.evaluate.generate import (
    GenerationConfig,
    ProgressCallbacks,
    ResponseIndex,
    add_responses,
    generate,
)
from rewardkit.evaluate.matched import MatchReport, match_to_rows
from rewardkit.evaluate.metrics import EvaluationMetrics
from rewardkit.evaluate.questions import count_questions, read_questions, require_questions
from rewardkit.evaluate.runs import read_results, read_run
from rewardkit.model_client.completions import UNUSABLE
from rewardkit.output import atomic, require_absent, require_not_input, resolve_output
from rewardkit.responses.files import Chunk, require_outside
from rewardkit.responses.samples import FieldNames
from rewardkit.responses.scoring import ScoringPlan, loaded_plan, score_in_order
from rewardkit.responses.store import Store, open_store
from rewardkit.row import batched

#: Responses per chunk, which a custom scorer gets fewer of.
CHUNK_RESPONSES = 256

#: Fields of a result that its responses have too.
_RESPONSE_FIELDS = ("response", "reasoning", "finish_reason", "tokens")

#: Each response is scored with the scorer of its row.
OWN_SCORERS = ScoringPlan()


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
    plan: ScoringPlan = OWN_SCORERS,
    *,
    jobs: int = 1,
    overwrite: bool = False,
    resume: bool = False,
    name: str = "",
    callbacks: ProgressCallbacks | None = None,
) -> EvaluationReport:
    """Generate responses to every row, score them with the row's scorer, and compute metrics.

    Responses are stored in `.OUT.part` as they arrive, and the same call resumes from there. In the
    end `out` has them in the order of row and sample, each with its row and its score.

    Args:
        parquet: verl rows.
        generation: the server, the model and the sampling.
        out: the jsonl file to write.
        plan: how responses are scored; each with the scorer of its row by default.
        jobs: number of processes that score.
        overwrite: replace `out`, and discard an interrupted run of another model or sampling.
        resume: keep the responses of a finished `out`, and request those that a larger n adds. All
            are scored again.
        name: name of the set for `callbacks.start`; the model by default.
        callbacks: progress callbacks.

    Raises:
        SourceError: the server did not answer some requests; all other responses are stored.
        DataError: the parquet cannot be used, or a scorer fails on every response.
        OutputError: `out` exists or cannot be written.
    """
    out, callbacks = resolve_output(out), callbacks or ProgressCallbacks()
    if out.is_file() and not (overwrite or resume):
        raise OutputError(
            f"{out} exists: --resume adds responses up to a larger -n, --overwrite replaces it."
        )
    _require_output(parquet, out, overwrite=True)
    # The store stays locked until it is scored; another run of the same command would remove it.
    with (
        _loaded(plan, parquet) as loaded,
        open_store(
            out, generation.key(), resume=True, overwrite=overwrite, replace=resume
        ) as store,
    ):
        rows = count_questions(parquet)
        api, needs_scorers = generation.sampling.api, loaded.scorer == "auto"
        require_questions(parquet, api=api, scorers=needs_scorers)
        if resume and out.exists():
            _add_finished(out, rows, store, generation)
        index = ResponseIndex(store)
        callbacks.start(name or generation.model, index.n, rows * generation.n)
        result = generate(generation, read_questions(parquet), store, index, callbacks.advance)
        if result.lost:
            raise SourceError(
                f"{generation.server.url}: no answer to requests for {result.lost:,} responses: "
                f"{result.reason} The other responses are in {store.path}. Run the same command to "
                "request what is missing, or score what exists: rewardkit eval responses "
                f"{parquet} {store.path}"
            )
        lines = _joined_lines(parquet, store, generation.n)
        metrics = _score(loaded, lines, out, jobs, overwrite=overwrite or resume)
        store.remove()
    return EvaluationReport(parquet, rows, metrics)


def evaluate_responses(
    parquet: Path,
    names: Sequence[str],
    out: Path | None = None,
    plan: ScoringPlan = OWN_SCORERS,
    *,
    jobs: int = 1,
    overwrite: bool = False,
) -> EvaluationReport:
    """Score responses that exist already; see `match_to_rows` and `evaluate`.

    Raises:
        DataError: no response matches a row, a response contradicts its row, a file cannot be read,
            or a scorer fails on every response.
        OutputError: `out` exists or cannot be written.
    """
    if out:
        _require_output(parquet, out, overwrite=overwrite)
        require_outside(out, names)
        require_not_input(out, *map(Path, names))
    with (
        _loaded(plan, parquet) as loaded,
        TemporaryDirectory(prefix="rewardkit-") as folder,
        open_store(Path(folder) / "responses", {}, resume=False, overwrite=False) as store,
    ):
        rows = count_questions(parquet)
        require_questions(parquet, scorers=loaded.scorer == "auto")
        matches = match_to_rows(names, parquet, store)
        target = out or Path(folder) / "scored.jsonl"
        metrics = _score(loaded, _joined_lines(parquet, store), target, jobs, overwrite=overwrite)
    return EvaluationReport(parquet, rows, metrics, matches)


def _require_output(parquet: Path, out: Path, *, overwrite: bool) -> None:
    if out.suffix != ".jsonl":
        raise UsageError(f"--out {out}: the name must end in .jsonl.")
    require_not_input(out, parquet)
    require_absent(out, overwrite=overwrite)


@contextmanager
def _loaded(plan: ScoringPlan, parquet: Path) -> Iterator[ScoringPlan]:
    """Load the scorer of a plan.

    All metrics count right answers, so a custom scorer must say, or let it be learned from the first
    golds, which of its scores are right. Where it fails, the response counts as wrong.
    """
    plan = replace(plan, names=FieldNames("response", "ground_truth"), counts_failures=True)
    golds = (
        (each.ground_truth, {"data_source": each.data_source, **each.extra_info})
        for each in read_questions(parquet)
    )
    with loaded_plan(plan, golds, is_required=True) as learned:
        yield learned


def _add_finished(out: Path, rows: int, store: Store, generation: GenerationConfig) -> None:
    """Append the responses of a finished output to a store.

    Those that the store has already, because an earlier run was killed, are not added again. Those
    that the server refused or withheld are left out, so that they are requested again.

    Raises:
        DataError: the output is of another model or sampling, of other rows, or of a larger n.
    """
    index, key = ResponseIndex(store), json.loads(json.dumps(generation.key()))
    for result, _ in read_results(out):
        line = result.fields
        for name, value in key.items():
            if line.get(name) != value:
                other = str(line.get(name))[:200]
                raise DataError(f"{out} is of another {name} ({other}): choose another --out.")
        row, sample, digest = (line.get(name) for name in ("row", "sample", "prompt_sha256"))
        if type(row) is not int or type(sample) is not int or not isinstance(digest, str):
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
        if sample not in index.samples(row) and line.get("finish_reason") not in UNUSABLE:
            response = {name: line[name] for name in _RESPONSE_FIELDS if name in line}
            add_responses(store, (row, digest), sample, [response], key)


def _joined_lines(parquet: Path, store: Store, n: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the first n responses to each row, or all, in the order of row and sample, with the row.

    Raises:
        DataError: a response answers another prompt than its row's.
    """
    index = ResponseIndex(store)
    with store.path.open("rb") as file:
        for question in read_questions(parquet):
            if not index.answers(question):
                raise DataError(
                    f"{store.path}: its responses to row {question.row} answer another prompt than "
                    "the row has. Name the parquet that the responses were generated from."
                )
            lines: dict[int, dict[str, Any]] = {}
            for first, size, start in index.of_row(question.row):
                file.seek(start)
                for sample in range(first, first + size):
                    lines.setdefault(sample, json.loads(file.readline()))
            for sample in sorted(lines):
                if n is None or sample < n:
                    yield {
                        **lines[sample],
                        "data_source": question.data_source,
                        "prompt": question.prompt,
                        "ground_truth": question.ground_truth,
                        "extra_info": question.extra_info,
                    }


def _score(
    plan: ScoringPlan, lines: Iterator[dict[str, Any]], out: Path, jobs: int, *, overwrite: bool
) -> EvaluationMetrics:
    """Score responses, write them and compute metrics; only the metrics stay in memory."""
    batches = batched(
        ({**line, "scorer": plan.label} for line in lines), CHUNK_RESPONSES // plan.divisor
    )
    chunks = (Chunk(path=str(out), first=0, rows=tuple(batch)) for batch in batches)
    with atomic(out, overwrite=overwrite) as temporary:
        with temporary.open("wb") as file:
            file.writelines(scored.lines for scored in score_in_order(plan, chunks, jobs))
        return read_run("", [temporary]).metrics
