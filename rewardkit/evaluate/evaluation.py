"""Evaluate one set of questions: generate or read responses, score them, compute metrics."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewardkit.errors import DataError, OutputError, SourceError
from rewardkit.evaluate.generate import (
    GenerationConfig,
    ProgressCallbacks,
    ResponseIndex,
    add_response,
    generate,
)
from rewardkit.evaluate.metrics import EvaluationMetrics
from rewardkit.evaluate.questions import Question, read_questions, require_questions
from rewardkit.evaluate.runs import read_results, read_run
from rewardkit.model_client.completions import UNUSABLE
from rewardkit.output import atomic, require_absent, resolve_output
from rewardkit.responses.figures import MAX_EXAMPLES, bad_gold_notes
from rewardkit.responses.files import Chunk, SkippedRow, input_files, read_chunks, skipped_lines
from rewardkit.responses.matching import INDEX_ALONE, Match, TrainIndex, index_parquet
from rewardkit.responses.samples import FieldNames, Sample, samples_of
from rewardkit.responses.score import ScoringPlan, loaded_plan, score_in_order
from rewardkit.responses.store import Store, open_store
from rewardkit.row import batched
from rewardkit.scorers.score import Status

#: Responses per chunk, which a custom scorer gets fewer of.
CHUNK_RESPONSES = 256

#: Fields of a result that its responses have too.
_RESPONSE_FIELDS = ("response", "reasoning", "finish_reason", "tokens")

#: Each response is scored with the scorer of its row.
OWN_SCORERS = ScoringPlan()


@dataclass
class EvaluationReport:
    """The result of an evaluation: metrics of the questions in `rows` that have a response.

    `unconfirmed` responses match their row by split and index alone; `unread` records have no usable
    response, or it answers no row.
    """

    parquet: Path
    rows: int = 0
    metrics: EvaluationMetrics = field(default_factory=EvaluationMetrics)
    unconfirmed: int = 0
    unread: int = 0
    examples: list[SkippedRow] = field(default_factory=list)

    @property
    def unanswered(self) -> int:
        """Number of questions without a response; metrics leave them out."""
        return self.rows - len(self.metrics.total.questions)

    def skip(self, row: SkippedRow) -> None:
        """Count a record that cannot be used."""
        self.unread += 1
        self.examples += [row][: MAX_EXAMPLES - len(self.examples)]

    def warnings(self) -> list[str]:
        """Return sentences about responses that are in no metric, or count as wrong without a score."""
        total, lines = self.metrics.total, skipped_lines(self.examples, self.unread)
        if self.unconfirmed:
            lines.append(
                f"{self.unconfirmed:,} responses were matched to rows by split and index only; "
                "nothing else in them confirms the match."
            )
        if self.unanswered:
            lines.append(
                f"{self.unanswered:,} of {self.rows:,} questions have no response and are not in the "
                "metrics."
            )
        lines += filter(None, [total.unusable_note()])
        lines += bad_gold_notes(total.bad_golds, total.responses)
        if failures := total.statuses[Status.FAILED.value]:
            lines.append(
                f"the scorer failed on {failures:,} responses; they count as wrong; the field 'reason' "
                "has the cause."
            )
        return lines

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "parquet": str(self.parquet),
            "rows": self.rows,
            "unanswered": self.unanswered,
            "unconfirmed": self.unconfirmed,
            "unread": self.unread,
            "unread_examples": [f"{row.where}: {row.reason}" for row in self.examples],
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
    end `out` has them in the order of row and sample, each with its row and its score. `overwrite`
    replaces it; `resume` keeps the responses of a finished `out` and requests those that a larger n
    adds. All are scored again. `name` is that of the set for `callbacks.start`.

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
    input_files((), "--out", out, ".jsonl", parquet)
    require_absent(out, overwrite=True)
    with _loaded(plan, parquet) as loaded:
        api, needs_scorers = generation.sampling.api, loaded.scorer == "auto"
        digests = require_questions(parquet, api=api, scorers=needs_scorers)
        rows = len(digests)
        run = {**generation.key(), "questions": sha256("".join(digests).encode()).hexdigest()}
        # The store stays locked until it is scored; another run of the same command would remove it.
        with open_store(out, run, resume=True, overwrite=overwrite, replace=resume) as store:
            if resume and out.exists():
                is_new = not store.count
                try:
                    _add_finished(out, digests, store, generation)
                except DataError:
                    if is_new:
                        store.remove()
                    raise
            index = ResponseIndex(store)
            callbacks.start(name or generation.model, index.n, rows * generation.n)
            questions = read_questions(parquet)
            lost, reason = generate(generation, questions, store, index, callbacks.advance)
            if lost:
                raise SourceError(
                    f"{generation.server.url}: no answer to requests for {lost:,} responses: "
                    f"{reason} The other responses are in {store.path}. Run the same command to "
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
    """Score responses that exist already, each with the scorer of the row that it answers.

    A response answers the row that `TrainIndex` finds by question: by index, by the question in its
    prompt, or by the source's id, which the `custom_id` of a batch may be, perhaps with a number at
    its end: `ID-3`. Records of no response or of no row are counted.

    Raises:
        DataError: no response matches a row, a response contradicts its row, a file cannot be read,
            or a scorer fails on every response.
        OutputError: `out` exists or cannot be written.
    """
    files = input_files(names, "--out", out, ".jsonl", parquet)
    if out:
        require_absent(out, overwrite=overwrite)
    report = EvaluationReport(parquet)
    with _loaded(plan, parquet) as loaded, TemporaryDirectory(prefix="rewardkit-") as folder:
        report.rows = len(require_questions(parquet, scorers=loaded.scorer == "auto"))
        lines = _matched_lines(parquet, files, report)
        target = out or Path(folder) / "scored.jsonl"
        report.metrics = _score(loaded, lines, target, jobs, overwrite=overwrite)
    return report


def _matched_lines(
    parquet: Path, files: Sequence[str], report: EvaluationReport
) -> Iterator[dict[str, Any]]:
    """Yield the responses of files, each with the row that it answers."""
    index = index_parquet(parquet, by_question=True)
    questions = [question._replace(images=()) for question in read_questions(parquet)]
    is_empty = True
    for sample in (s for chunk in read_chunks(files) for s in samples_of(chunk, needs_gold=False)):
        match = sample if isinstance(sample, SkippedRow) else _find_row(index, sample)
        if isinstance(match, SkippedRow):
            report.skip(match)
        if isinstance(match, SkippedRow) or isinstance(sample, SkippedRow):
            continue
        question = questions[index.prompts[match.prompt].row]
        if sample.fields.get("prompt_sha256", question.digest) != question.digest:
            raise DataError(
                f"{sample.where} answers another prompt than row {question.row} of {parquet} has, or "
                "other images. Name the parquet that the responses were generated from."
            )
        is_empty = False
        report.unconfirmed += match.way == INDEX_ALONE
        finish, tokens = sample.fields.get("finish_reason"), sample.fields.get("tokens")
        response = {"response": sample.response, "finish_reason": finish or "", "tokens": tokens}
        yield {**response, **question.fields()}
    if is_empty:
        why = f" {': '.join(report.examples[0])}." if report.examples else ""
        raise DataError(f"{', '.join(files)[:200]}: no response answers a row of {parquet}.{why}")


def _find_row(index: TrainIndex, sample: Sample) -> Match | SkippedRow:
    match = index.try_match(sample)
    if match is None and "custom_id" in sample.fields:
        source_id = sample.fields["custom_id"].rpartition("-")[0]
        match = index.try_match(sample._replace(fields={"source_id": source_id}))
    if isinstance(match, Match):
        return match
    if match and match.contradicts:
        raise DataError(f"{sample.where} {match.reason}")
    reason = f"it {match.reason}" if match else "no row of the parquet has its question"
    return SkippedRow(sample.where, reason)


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


def _add_finished(
    out: Path, digests: Sequence[str], store: Store, generation: GenerationConfig
) -> None:
    """Append the responses of a finished output to a store.

    Those that the store has already, because an earlier run was killed, are not added again. Those
    that the server refused or withheld are left out, so that they are requested again.
    """
    index, key = ResponseIndex(store), json.loads(json.dumps(generation.key()))
    digest_of_row = dict(enumerate(digests))
    for result, _ in read_results(out):
        line = result.fields
        numbers = (line.get(name) for name in ("row", "sample"))
        row, sample = (number if type(number) is int else -1 for number in numbers)
        digest = digest_of_row.get(row, "none")
        for name, value in {**key, "prompt_sha256": digest}.items():
            if line.get(name) != value:
                other = str(line.get(name))[:200]
                raise DataError(
                    f"{out}: row {row} is of another {name.removesuffix('_sha256')} ({other}): choose "
                    "another --out, or discard its responses with --overwrite."
                )
        if not 0 <= sample < generation.n:
            raise DataError(
                f"{out} has more than {generation.n} responses to a question. --resume only adds "
                "responses: name a larger -n, or another --out."
            )
        if sample not in index.starts.get(row, {}) and line.get("finish_reason") not in UNUSABLE:
            response = {name: line[name] for name in _RESPONSE_FIELDS if name in line}
            question = Question(row, line["prompt"], digest, "", "", {})
            add_response(store, question, sample, response, key)


def _joined_lines(parquet: Path, store: Store, n: int) -> Iterator[dict[str, Any]]:
    """Yield the first n responses to each row, in the order of row and sample, with the row."""
    index = ResponseIndex(store)
    with store.path.open("rb") as file:
        for question in read_questions(parquet):
            for _, start in sorted(index.starts.get(question.row, {}).items())[:n]:
                file.seek(start)
                yield {**json.loads(file.readline()), **question.fields()}


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
