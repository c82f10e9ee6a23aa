"""`rewardkit score` with two scorers: the same responses, and the disagreements grouped by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from rewardkit.answers.number import read_number
from rewardkit.answers.parsing.typography import canonical_spelling
from rewardkit.jsonl import json_line
from rewardkit.output import atomic, require_not_input, require_suffix
from rewardkit.pages.model import Bars, Page, Section, Table, TableRow
from rewardkit.pages.text import sentence, share
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.preprocess.row_stats import answer_kind
from rewardkit.responses.files import (
    Chunk,
    SkippedRow,
    expand_paths,
    read_chunks,
    require_outside,
)
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.responses.scoring import ScoringPlan, call_plan, loaded_plan, plan_samples
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.call import NO_VERDICT, NoVerdictError, error_line
from rewardkit.statistics import mcnemar_p_value, wilson_interval

#: The pred of a response without an answer, in verl's `math_dapo`.
INVALID_PRED = "[INVALID]"

#: Characters of a pred that are compared with another, and of an error message.
MAX_COMPARED_CHARACTERS = 500

#: Samples of each cause, and unusable rows, that a report lists; all are counted.
MAX_EXAMPLES = 3

#: Characters of a response that an example shows, from its end, where the answer is.
ENDING_CHARACTERS = 200

#: Headers of `CompareReport.scorer_rows`, and of the causes.
SCORER_COLUMNS = ("scorer", "correct", "mean score", "µs a response", "raised")
CAUSE_COLUMNS = ("samples", "status of A", "status of B", "gold", "preds")


class Verdict(NamedTuple):
    """The fields of a `Score`, or the error in its place.

    Attributes:
        correct: None if the scorer failed.
        score: the reward; 0.0 if the scorer failed.
        pred: the answer that the scorer read; "" if it read none or does not return it.
        status: the score's status; of a scorer that failed, `raised` and the name of the exception,
            or what it did instead (`ended its process`, `took too long`).
        error: the message of the error.
    """

    correct: bool | None
    score: float
    pred: str
    status: str
    error: str = ""

    @classmethod
    def of(cls, result: Score | Exception) -> Verdict:
        """Return the verdict of a call."""
        if isinstance(result, Exception):
            name = f"raised {type(result).__name__}"
            status = result.description if isinstance(result, NoVerdictError) else name
            return cls(None, 0.0, "", status, error_line(result)[:MAX_COMPARED_CHARACTERS])
        if result.correct is None:
            return cls(None, result.score, result.pred, "has no verdict", NO_VERDICT)
        return cls(result.correct, result.score, result.pred, result.status.value)


class DisagreementCause(NamedTuple):
    """The properties by which samples are grouped on which two scorers disagree."""

    status_a: str
    status_b: str
    gold_kind: str
    preds: str


class DisagreementExample(NamedTuple):
    """A sample on which two scorers disagree."""

    where: str
    gold: str
    pred_a: str
    pred_b: str
    ending: str


@dataclass
class ScorerCalls:
    """The calls of one scorer.

    Attributes:
        name: the scorer's name with its options.
        seconds: the time that all calls took.
        score_sum: sum of the scores of the samples that both scorers scored.
        right: number of these samples that the scorer accepts.
        raised: number of failures by status.
        first: place and message of the first failure of each status.
        bad_golds: number of samples whose gold the scorer cannot score.
    """

    name: str
    seconds: float = 0.0
    score_sum: float = 0.0
    right: int = 0
    raised: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    bad_golds: int = 0


@dataclass
class CompareReport:
    """The results of two scorers on the same responses.

    Attributes:
        name: the path of the file, or the number of files and their names.
        a: the calls of the first scorer.
        b: the calls of the second scorer.
        n: number of samples.
        outcomes: samples that both scored, by whether A and whether B accepts them.
        causes: number of samples on which the scorers disagree, or one of them failed, by cause.
        examples: the first samples of each cause.
        unread: number of rows without a usable response.
        unread_examples: the first of these.
    """

    name: str
    a: ScorerCalls
    b: ScorerCalls
    n: int = 0
    outcomes: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    causes: Counter[DisagreementCause] = field(default_factory=Counter)
    examples: dict[DisagreementCause, list[DisagreementExample]] = field(default_factory=dict)
    unread: int = 0
    unread_examples: list[SkippedRow] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """The number of samples that both scorers scored."""
        return self.outcomes.total()

    @property
    def agreed(self) -> int:
        """The number of samples that both scorers accept or both reject."""
        return self.outcomes[True, True] + self.outcomes[False, False]

    @property
    def p_value(self) -> float:
        """The p-value of McNemar's exact test."""
        return mcnemar_p_value(self.outcomes[True, False], self.outcomes[False, True])

    def add(self, sample: Sample, a: Verdict, b: Verdict) -> None:
        """Count the two verdicts on a sample."""
        self.n += 1
        is_judged = a.correct is not None and b.correct is not None
        for calls, verdict in ((self.a, a), (self.b, b)):
            calls.bad_golds += verdict.status == Status.BAD_GROUND_TRUTH.value
            if is_judged:
                calls.score_sum += verdict.score
                calls.right += verdict.correct is True
            elif verdict.correct is None:
                calls.raised[verdict.status] += 1
                calls.first.setdefault(verdict.status, f"{sample.where}: {verdict.error}")
        if a.correct is not None and b.correct is not None:
            self.outcomes[a.correct, b.correct] += 1
        if a.correct != b.correct:
            gold, ending = sample.ground_truth, sample.response[-ENDING_CHARACTERS:]
            preds = describe_difference(a, b)
            cause = DisagreementCause(a.status, b.status, answer_kind(gold), preds)
            self.causes[cause] += 1
            examples = self.examples.setdefault(cause, [])
            if len(examples) < MAX_EXAMPLES:
                examples.append(DisagreementExample(sample.where, gold, a.pred, b.pred, ending))

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        n = self.judged
        sides = {
            letter: {
                "scorer": calls.name,
                "right": calls.right,
                "mean_score": calls.score_sum / n if n else None,
                "raised": dict(calls.raised.most_common()),
                "raised_first": calls.first,
                "bad_golds": calls.bad_golds,
                "mean_us": 1e6 * calls.seconds / max(self.n, 1),
            }
            for letter, calls in (("a", self.a), ("b", self.b))
        }
        return {
            "file": self.name,
            "judged_by_both": n,
            "unread": self.unread,
            "unread_examples": [f"{row.where}: {row.reason}" for row in self.unread_examples],
            "both_right": self.outcomes[True, True],
            "only_a_right": self.outcomes[True, False],
            "only_b_right": self.outcomes[False, True],
            "neither_right": self.outcomes[False, False],
            "agreement": self.agreed / n if n else None,
            "agreement_95": wilson_interval(self.agreed, n),
            "mcnemar_p": self.p_value,
            **sides,
            "disagreements": [
                {
                    **cause._asdict(),
                    "count": count,
                    "examples": [example._asdict() for example in self.examples[cause]],
                }
                for cause, count in self.causes.most_common()
            ],
        }

    def agreement(self) -> str:
        """Return a sentence with the agreement, and the test whether one scorer is laxer."""
        low, high = wilson_interval(self.agreed, self.judged)
        p = f"p = {self.p_value:.2g}" if self.p_value >= 1e-300 else "p < 1e-300"
        return (
            f"agreement {share(self.agreed, self.judged)} (95% interval {low:.1%} to {high:.1%}); "
            f"McNemar's exact test: {p}"
        )

    def scorer_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each scorer, in the columns `SCORER_COLUMNS`."""
        for letter, calls in (("A", self.a), ("B", self.b)):
            yield (
                f"{letter}: {calls.name}",
                f"{calls.right:,} ({share(calls.right, self.judged)})",
                f"{calls.score_sum / max(self.judged, 1):.4f}",
                f"{1e6 * calls.seconds / max(self.n, 1):,.1f}",
                f"{calls.raised.total():,}",
            )


def describe_difference(a: Verdict, b: Verdict) -> str:
    """How the answers differ that the two scorers read."""
    if a.correct is None or b.correct is None:
        return f"{'A' if a.correct is None else 'B'} failed"
    # Some scorers return another pred for a response without an answer.
    pred_a, pred_b = (
        "" if x.status == Status.NO_ANSWER.value or x.pred == INVALID_PRED else x.pred
        for x in (a, b)
    )
    if not pred_a or not pred_b:
        return "no pred" if pred_a == pred_b else f"only {'A' if pred_a else 'B'} has a pred"
    if pred_a == pred_b:
        return "same pred"
    pred_a, pred_b = pred_a[:MAX_COMPARED_CHARACTERS], pred_b[:MAX_COMPARED_CHARACTERS]
    number_a, number_b = read_number(pred_a), read_number(pred_b)
    pred_a, pred_b = canonical_spelling(pred_a).casefold(), canonical_spelling(pred_b).casefold()
    if pred_a == pred_b:
        return "same pred, spelled differently"
    if isinstance(number_a, Fraction) and isinstance(number_b, Fraction):
        return "same number, written differently" if number_a == number_b else "different numbers"
    if pred_a in pred_b:
        return "A's pred is part of B's"
    return "B's pred is part of A's" if pred_b in pred_a else "different preds"


#: A scorer's name with its options, and its plan.
NamedPlan: TypeAlias = tuple[str, ScoringPlan]


def compare_files(
    names: Sequence[str | Path],
    a: NamedPlan,
    b: NamedPlan,
    *,
    jobs: int = 1,
    announce: Callable[[str], object] = lambda _: None,
    export: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CompareReport:
    """Score every response of files, folders and patterns with two scorers.

    Args:
        names: jsonl and parquet; see `expand_paths`.
        a: a scorer.
        b: another, for the same fields.
        jobs: number of processes.
        announce: called with a sentence about which scores of a scorer are right.
        export: a jsonl to write: the samples on which the scorers disagree, with both results.
        overwrite: replace `export` if it exists.
        progress: called with the number of rows since the last call.

    Raises:
        UsageError: `export` does not end in .jsonl.
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses, or
            it is not known which of its scores are right.
        OutputError: `export` cannot be written.
    """
    require_suffix("--export", export, ".jsonl")
    require_outside(export, names)
    files = expand_paths(names)
    require_not_input(export, *map(Path, files))
    short = ", ".join(map(str, names))[:100]
    name = files[0] if len(files) == 1 else f"{len(files):,} files ({short})"
    report = CompareReport(name, ScorerCalls(a[0]), ScorerCalls(b[0]))
    plans: list[ScoringPlan] = []
    with ExitStack() as stack:
        for side, plan in (a, b):
            own = plan if plan.is_custom else replace(plan, right_score=None)
            samples = read_samples(files, plan.names)
            golds = ((s.ground_truth, s.extra_info) for s in samples if isinstance(s, Sample))
            plans.append(stack.enter_context(loaded_plan(own, golds, is_required=True)))
            if (rule := plans[-1].rule) and rule.sentence:
                announce(f"{side}: {rule.sentence}")
        file = None
        if export:
            temporary = stack.enter_context(atomic(export, overwrite=overwrite))
            file = stack.enter_context(temporary.open("w"))
        divisor = max(plan.divisor for plan in plans)
        jobs = 1 if any(callable(plan.scorer) for plan in plans) else jobs
        chunks, inline = read_chunks(files, divisor), 0 if divisor > 1 else INLINE_BATCHES
        for _, part in in_order(partial(_compare_chunk, plans), chunks, jobs, inline):
            for sample, *verdicts in part.results:
                report.add(sample, *verdicts)
                if file and verdicts[0].correct != verdicts[1].correct:
                    file.write(json_line(_test_case(sample, report, *verdicts)))
            report.a.seconds += part.seconds[0]
            report.b.seconds += part.seconds[1]
            report.unread += len(part.skipped)
            report.unread_examples += part.skipped[: MAX_EXAMPLES - len(report.unread_examples)]
            progress(len(part.results) + len(part.skipped))
    return report


class _ComparedChunk(NamedTuple):
    results: list[tuple[Sample, Verdict, Verdict]]
    skipped: list[SkippedRow]
    seconds: list[float]


def _compare_chunk(plans: Sequence[ScoringPlan], chunk: Chunk) -> _ComparedChunk:
    rows = plan_samples(plans[0], chunk)
    samples = [row._replace(fields={}) for row in rows if isinstance(row, Sample)]
    verdicts, seconds = [], []
    for plan in plans:
        # copies: a scorer that changes extra_info must not affect the other
        own = [sample._replace(extra_info=dict(sample.extra_info)) for sample in samples]
        start = perf_counter()
        results = list(call_plan(plan, own))
        seconds.append(perf_counter() - start)
        verdicts.append(map(Verdict.of, results))
    skipped = [row for row in rows if isinstance(row, SkippedRow)]
    return _ComparedChunk(list(zip(samples, *verdicts, strict=True)), skipped, seconds)


def _test_case(sample: Sample, report: CompareReport, *verdicts: Verdict) -> dict[str, Any]:
    """Return a sample as a test case, which `score` reads, with both results."""
    info = dict(sample.extra_info)
    case: dict[str, Any] = {
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "data_source": info.pop("data_source", ""),
        "extra_info": info,
    }
    for letter, calls, verdict in zip("ab", (report.a, report.b), verdicts, strict=True):
        is_error = verdict.correct is None
        names = ("status", "error") if is_error else ("correct", "score", "pred", "status")
        case[letter] = {"scorer": calls.name, **{name: getattr(verdict, name) for name in names}}
    return case


def compare_page(report: CompareReport) -> Page:
    """Return the page of a comparison."""
    outcomes = report.outcomes
    verdicts = (
        ("both correct", outcomes[True, True]),
        ("only A correct", outcomes[True, False]),
        ("only B correct", outcomes[False, True]),
        ("neither correct", outcomes[False, False]),
    )
    facts = (
        ("file", report.name),
        ("A", report.a.name),
        ("B", report.b.name),
        *((name, f"{n:,}") for name, n in verdicts[1:3]),
        ("judged by both", f"{report.judged:,}"),
        ("rows without a usable response", f"{report.unread:,}"),
    )
    title = f"A and B agree on {share(report.agreed, report.judged)} of {report.judged:,} samples"
    note = "Correct and mean score count the samples that both judged."
    sections: list[Section] = [
        Bars("Verdicts", verdicts, note=sentence(report.agreement()), unit="samples"),
        Table("Scorers", SCORER_COLUMNS, tuple(map(TableRow, report.scorer_rows())), note=note),
    ]
    if report.causes:
        rows = (
            TableRow((f"{n:,}", *cause), tuple(map(_example_text, report.examples[cause])))
            for cause, n in report.causes.most_common()
        )
        name, note = "Disagreements by cause", "The most frequent first."
        sections.append(Table(name, CAUSE_COLUMNS, tuple(rows), formulas=True, note=note))
    raised = tuple(
        TableRow((calls.name, name, f"{times:,}", calls.first[name]))
        for calls in (report.a, report.b)
        for name, times in calls.raised.most_common()
    )
    if raised:
        sections.append(Table("Exceptions", ("scorer", "exception", "times", "first"), raised))
    return Page(title, facts, tuple(sections))


def _example_text(example: DisagreementExample) -> str:
    preds = f"A read '{example.pred_a}', B read '{example.pred_b}'"
    return f"{example.where}: gold '{example.gold}', {preds}\n…{example.ending}"
