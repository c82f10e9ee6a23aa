"""`rewardkit score` with two scorers: the same responses, and the disagreements grouped by cause."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.answers.number import read_number
from rewardkit.answers.parsing.tokens import canonical_spelling
from rewardkit.checks.row_stats import answer_kind
from rewardkit.jsonl import json_line
from rewardkit.output import atomic
from rewardkit.pages.model import Bars, Page
from rewardkit.parallel import INLINE_BATCHES, in_order
from rewardkit.responses.figures import bad_gold_notes
from rewardkit.responses.files import (
    Chunk,
    SkippedRow,
    files_name,
    input_files,
    read_chunks,
    skipped_lines,
)
from rewardkit.responses.samples import Sample, golds_of, read_samples
from rewardkit.responses.score import ScoringPlan, call_plan, loaded_plan, plan_samples
from rewardkit.scorers.base import NO_VERDICT, NoVerdictError, Score, Status, error_line
from rewardkit.statistics import mcnemar_p_value, wilson_interval
from rewardkit.table import Table
from rewardkit.text import count_of, percentage, sentence

#: The pred of a response without an answer, in verl's `math_dapo`.
INVALID_PRED = "[INVALID]"

#: Characters of a pred that are compared with another, and of an error message.
MAX_COMPARED_CHARACTERS = 500

#: Samples of each cause, and unusable rows, that a report lists; all are counted.
MAX_EXAMPLES = 3

#: Characters of a response that an example shows, from its end, where the answer is.
ENDING_CHARACTERS = 200

#: The keys of `CompareReport.outcomes`.
PAIRS = (True, True), (True, False), (False, True), (False, False)


class Verdict(NamedTuple):
    """The fields of a `Score`; of a scorer that failed, None, 0.0, its message and what it did."""

    correct: bool | None
    score: float
    pred: str
    status: str

    @classmethod
    def of(cls, result: Score | Exception) -> "Verdict":
        """Return the verdict of a call."""
        if isinstance(result, Exception):
            name = f"raised {type(result).__name__}"
            status = result.description if isinstance(result, NoVerdictError) else name
            return cls(None, 0.0, error_line(result)[:MAX_COMPARED_CHARACTERS], status)
        if result.correct is None:
            return cls(None, result.score, NO_VERDICT, "has no verdict")
        return cls(result.correct, result.score, result.pred, result.status.value)


class DisagreementCause(NamedTuple):
    """The properties by which samples are grouped on which two scorers disagree."""

    status_a: str
    status_b: str
    gold_kind: str
    preds: str


class DisagreementExample(NamedTuple):
    """A sample on which two scorers disagree; `ending` is the end of the response."""

    where: str
    gold: str
    pred_a: str
    pred_b: str
    ending: str


@dataclass
class ScorerSide:
    """One of the two scorers: its name with its options, and counts.

    `score_sum` and `right` count the samples that both scorers scored.
    """

    scorer: str
    score_sum: float = 0.0
    right: int = 0
    failed: int = 0
    first_failure: str = ""
    bad_golds: int = 0


@dataclass
class CompareReport:
    """The results of two scorers, A and B, on the same responses.

    `outcomes` are the samples that both scored, by whether A and whether B accepts them; `causes` those
    on which they disagree, or one of them failed. `unread` counts rows without a usable response.
    """

    name: str
    sides: dict[str, ScorerSide]
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
        for side, verdict in zip(self.sides.values(), (a, b), strict=True):
            side.bad_golds += verdict.status == Status.BAD_GROUND_TRUTH.value
            if verdict.correct is None:
                side.failed += 1
                failure = f"{sample.where}: {verdict.status}: {verdict.pred}"
                side.first_failure = side.first_failure or failure
            elif is_judged:
                side.score_sum += verdict.score
                side.right += verdict.correct
        if is_judged:
            self.outcomes[bool(a.correct), bool(b.correct)] += 1
        if a.correct != b.correct:
            gold = sample.ground_truth
            preds = describe_difference(a, b)
            cause = DisagreementCause(a.status, b.status, answer_kind(gold), preds)
            self.causes[cause] += 1
            ending = sample.response[-ENDING_CHARACTERS:]
            example = DisagreementExample(sample.where, gold, a.pred, b.pred, ending)
            examples = self.examples.setdefault(cause, [])
            examples += [example][: MAX_EXAMPLES - len(examples)]

    def warnings(self) -> list[str]:
        """Return sentences about rows, golds and scorers that failed."""
        lines = skipped_lines(self.unread_examples, self.unread)
        for letter, side in self.sides.items():
            if side.failed:
                lines.append(
                    f"{letter} failed on {side.failed:,} samples, first on {side.first_failure}"
                )
            lines += [f"{letter}: {note}" for note in bad_gold_notes(side.bad_golds, self.n)]
        return lines

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        n = self.judged
        sides = {
            letter.lower(): {**vars(side), "mean_score": side.score_sum / n if n else None}
            for letter, side in self.sides.items()
        }
        cells = "both_right", "only_a_right", "only_b_right", "neither_right"
        return {
            "file": self.name,
            "judged_by_both": n,
            "unread": self.unread,
            "unread_examples": [f"{row.where}: {row.reason}" for row in self.unread_examples],
            **{cell: self.outcomes[pair] for cell, pair in zip(cells, PAIRS, strict=True)},
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
            f"agreement {percentage(self.agreed, self.judged)} (95% interval {low:.1%} to {high:.1%}); "
            f"McNemar's exact test: {p}"
        )

    def scorer_table(self) -> Table:
        """Return a table with a row for each scorer."""
        rows = [
            (
                f"{letter}: {side.scorer}",
                count_of(side.right, self.judged),
                f"{side.score_sum / max(self.judged, 1):.4f}",
                f"{side.failed:,}",
            )
            for letter, side in self.sides.items()
        ]
        note = "Correct and mean score count the samples that both judged."
        return Table(("scorer", "correct", "mean score", "failed"), rows, "Scorers", note=note)

    def cause_table(self, most: int | None = None) -> Table:
        """Return a table with a row for each cause, or the `most` frequent ones, and its examples."""
        causes = self.causes.most_common(most)
        is_cut = len(causes) < len(self.causes)
        rest = f", the first {most} of {len(self.causes):,} causes" if is_cut else ""
        return Table(
            ("samples", "status of A", "status of B", "gold", "preds"),
            [(f"{n:,}", *cause) for cause, n in causes],
            f"Where they disagree{rest}",
            details=[
                [
                    f"{where}: gold '{gold}', A read '{pred_a}', B read '{pred_b}'\n…{ending}"
                    for where, gold, pred_a, pred_b, ending in self.examples[cause]
                ]
                for cause, _ in causes
            ],
            formulas=True,
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


def compare_files(
    names: Sequence[str | Path],
    a: tuple[str, ScoringPlan],
    b: tuple[str, ScoringPlan],
    *,
    jobs: int = 1,
    announce: Callable[[str], object] = lambda _: None,
    export: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CompareReport:
    """Score every response of files, folders and patterns with two plans, each with a scorer's name.

    `announce` is called with a sentence about which scores of a scorer are right. `export` is a jsonl
    to write: the samples on which the scorers disagree, with both results.

    Raises:
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses, or
            it is not known which of its scores are right.
    """
    files = input_files(names, "--export", export, ".jsonl")
    name, short = files_name(files), ", ".join(map(str, names))[:100]
    report = CompareReport(
        f"{name} ({short})" if files[1:] else name, {"A": ScorerSide(a[0]), "B": ScorerSide(b[0])}
    )
    plans: list[ScoringPlan] = []
    with ExitStack() as stack:
        for own_name, plan in (a, b):
            own = plan if plan.is_custom else replace(plan, right_score=None)
            golds = golds_of(read_samples(files, plan.names))
            plans.append(stack.enter_context(loaded_plan(own, golds, is_required=True)))
            if (rule := plans[-1].rule) and rule.sentence:
                announce(f"{own_name}: {rule.sentence}")
        file = None
        if export:
            temporary = stack.enter_context(atomic(export, overwrite=overwrite))
            file = stack.enter_context(temporary.open("w"))
        divisor = max(plan.divisor for plan in plans)
        jobs = 1 if any(callable(plan.scorer) for plan in plans) else jobs
        chunks, inline = read_chunks(files, divisor), 0 if divisor > 1 else INLINE_BATCHES
        compared = in_order(partial(_compare_chunk, plans), chunks, jobs, inline)
        for _, (results, skipped) in compared:
            for sample, *verdicts in results:
                report.add(sample, *verdicts)
                if file and verdicts[0].correct != verdicts[1].correct:
                    file.write(json_line(_test_case(sample, report, *verdicts)))
            report.unread += len(skipped)
            report.unread_examples += skipped[: MAX_EXAMPLES - len(report.unread_examples)]
            progress(len(results) + len(skipped))
    return report


def _compare_chunk(
    plans: Sequence[ScoringPlan], chunk: Chunk
) -> tuple[list[tuple[Sample, Verdict, Verdict]], list[SkippedRow]]:
    rows = plan_samples(plans[0], chunk)
    samples = [row._replace(fields={}) for row in rows if isinstance(row, Sample)]
    verdicts = []
    for plan in plans:
        # copies: a scorer that changes extra_info must not affect the other
        own = (sample._replace(extra_info=dict(sample.extra_info)) for sample in samples)
        verdicts.append(list(map(Verdict.of, call_plan(plan, own))))
    skipped = [row for row in rows if isinstance(row, SkippedRow)]
    return list(zip(samples, *verdicts, strict=True)), skipped


def _test_case(sample: Sample, report: CompareReport, *verdicts: Verdict) -> dict[str, Any]:
    """Return a sample as a test case, which `score` reads, with both results."""
    info, sides = dict(sample.extra_info), report.sides.items()
    results = {
        letter.lower(): {"scorer": side.scorer, **verdict._asdict()}
        for (letter, side), verdict in zip(sides, verdicts, strict=True)
    }
    return {
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "data_source": info.pop("data_source", ""),
        "extra_info": info,
        **results,
    }


def compare_page(report: CompareReport) -> Page:
    """Return the page of a comparison."""
    names = "both correct", "only A correct", "only B correct", "neither correct"
    verdicts = [(name, report.outcomes[pair]) for name, pair in zip(names, PAIRS, strict=True)]
    return Page(
        f"A and B agree on {percentage(report.agreed, report.judged)} of {report.judged:,} samples",
        (("file", report.name), ("rows without a usable response", f"{report.unread:,}")),
        (
            Bars("Verdicts", tuple(verdicts), note=sentence(report.agreement()), unit="samples"),
            report.scorer_table(),
            report.cause_table(),
        ),
    )
