"""`rewardkit eval`: generate or read responses, judge them, sum up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.evaluate.generate import Generation, Run, generate
from rewardkit.evaluate.judge import Outcome, joined, judged
from rewardkit.evaluate.metrics import Figures, figures
from rewardkit.evaluate.questions import count, questions, refuse_unjudged
from rewardkit.evaluate.response_file import Placed, match_to_rows
from rewardkit.output import atomic, refuse_existing, refuse_input, resolve_output, temporary_folder
from rewardkit.responses.append_only_file import part_path
from rewardkit.responses.chunk_scores import ScoringPlan, plan_scorer, release_scorer
from rewardkit.responses.response_log import ResponseIndex, open_response_log, read_response_index
from rewardkit.scorers.isolated import CALL_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Judging:
    """How responses are judged.

    Attributes:
        scorer: a scorer's name or `file.py:function`; `auto` judges each row with its own.
        options: of the scorer.
        seconds: that a scorer which is not ours may take for a response.
        jobs: processes.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = CALL_TIMEOUT_SECONDS
    jobs: int = 1

    def plan(self) -> ScoringPlan:
        """The same, for `responses.chunk_scores`."""
        return ScoringPlan(self.scorer, tuple(self.options.items()), seconds=self.seconds)


@dataclass
class Report:
    """What an evaluation found.

    Attributes:
        parquet: the questions.
        rows: how many there are.
        figures: of those that have a response.
        placed: what came of `--responses`; None if responses were generated.
    """

    parquet: Path
    rows: int
    figures: Figures
    placed: Placed | None = None

    @property
    def unanswered(self) -> int:
        """Questions without a response, which are in no figure."""
        return self.rows - len(self.figures.total.questions)

    def summary(self) -> dict[str, Any]:
        """The report as plain values."""
        unread = self.placed.unread if self.placed else 0
        found = self.placed.examples if self.placed else []
        return {
            "parquet": str(self.parquet),
            "rows": self.rows,
            "unanswered": self.unanswered,
            "unconfirmed": self.placed.unconfirmed if self.placed else 0,
            "unread": unread,
            "unread_examples": [f"{row.where}: {row.reason}" for row in found],
            **self.figures.summary(),
        }


def evaluate(
    parquet: Path,
    generation: Generation,
    out: Path,
    judging: Judging | None = None,
    *,
    overwrite: bool = False,
    start: Callable[[int, int], object] = lambda _have, _all: None,
    progress: Callable[[int, int], object] = lambda _responses, _tokens: None,
) -> Report:
    """Generate responses to every row, judge them with the row's scorer, and sum up.

    Responses are kept in `.OUT.part` as they come; the same call goes on from there. When all are
    there, `out` has them in the order of row and sample, each with its row and its score.

    Args:
        parquet: verl rows.
        generation: what is asked, of whom and how.
        out: the jsonl to write.
        judging: the scorer; each row's own if not said.
        overwrite: replace `out`, and an interrupted run of another model or sampling.
        start: called with the responses that are kept already, and those wanted.
        progress: called with the responses and the tokens that came.

    Raises:
        SourceError: the server gave no answer to some requests; the rest is kept.
        DataError: the parquet cannot be used, or a scorer never answers.
        OutputError: `out` exists, or cannot be written.
    """
    out = resolve_output(out)
    _refuse(parquet, out, overwrite=overwrite)
    judging, path = judging or Judging(), part_path(out)
    # The part is locked until it is judged: another run of the same command would take it away.
    with (
        _loaded(judging, parquet) as plan,
        open_response_log(path, generation.key(), overwrite=overwrite) as (part, kept),
    ):
        rows = count(parquet)
        start(len(kept.rows), rows * generation.n)
        run = generate(generation, questions(parquet), part, kept, progress)
        if run.lost:
            raise SourceError(
                f"{generation.server.url}: no answer to requests for {run.lost:,} responses: "
                f"{run.reason} The rest is in {path}; the same command asks for what is "
                f"missing, --responses {path} judges what is there."
            )
        found = _summed(
            plan, parquet, path, read_response_index(path), judging.jobs, out, generation.n, run
        )
        path.unlink()
    return Report(parquet, rows, found)


def evaluate_responses(
    parquet: Path,
    names: Sequence[str],
    out: Path | None = None,
    judging: Judging | None = None,
    *,
    overwrite: bool = False,
) -> Report:
    """Judge responses that were generated before; see `match_to_rows` and `evaluate`.

    Raises:
        DataError: no response can be placed, one contradicts its row, a file cannot be read, or
            a scorer never answers.
        OutputError: `out` exists, or cannot be written.
    """
    if out:
        _refuse(parquet, out, overwrite=overwrite)
        for name in names:
            refuse_input(out, Path(name))
    judging = judging or Judging()
    with _loaded(judging, parquet) as plan, temporary_folder("eval") as folder:
        path, rows = folder / "part", count(parquet)
        placed = match_to_rows(names, parquet, path)
        found = _summed(plan, parquet, path, read_response_index(path), judging.jobs, out)
    return Report(parquet, rows, found, placed)


def _refuse(parquet: Path, out: Path, *, overwrite: bool) -> None:
    if out.suffix != ".jsonl":
        raise UsageError(f"--out {out}: write .jsonl; that is no name of one.")
    refuse_input(out, parquet)
    refuse_existing(out, overwrite=overwrite)


@contextmanager
def _loaded(judging: Judging, parquet: Path) -> Iterator[ScoringPlan]:
    """Load the scorer, so that what is wrong with it is said first; let go of it in the end."""
    plan = judging.plan()
    try:
        plan_scorer(plan)
        if judging.scorer == "auto":
            refuse_unjudged(parquet)
        yield plan
    finally:
        release_scorer(plan)


def _summed(
    plan: ScoringPlan,
    parquet: Path,
    path: Path,
    kept: ResponseIndex,
    jobs: int,
    out: Path | None,
    n: int | None = None,
    run: Run | None = None,
) -> Figures:
    """Judge what a part has, write it, and sum up; nothing is held but the figures."""
    lines = joined(questions(parquet), path, kept, n, run.missing if run else None)
    with atomic(out, overwrite=True) if out else nullcontext() as temporary:
        with temporary.open("wb") if temporary else nullcontext() as file:
            found = figures(_written(judged(plan, lines, jobs), file))
        if not found.total.questions:
            raise DataError(f"{path}: no responses.")
    return found


def _written(
    batches: Iterator[tuple[bytes, list[Outcome]]], file: IO[bytes] | None
) -> Iterator[Outcome]:
    for lines, outcomes in batches:
        if file:
            file.write(lines)
        yield from outcomes
