"""`rewardkit compare`: score the same responses with two scorers, and group the disagreements."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any, TypeAlias

from rewardkit.answers.number import read_number
from rewardkit.answers.parsing.typography import canonical_spelling
from rewardkit.jsonl import json_line
from rewardkit.output import atomic, require_not_input, require_suffix
from rewardkit.pages.model import Bars, Page, Section, Table, TableRow
from rewardkit.pages.text import sentence, share
from rewardkit.preprocess.row_stats import answer_kind
from rewardkit.responses.chunks import expand_paths, require_outside
from rewardkit.responses.samples import Sample, SkippedRow, read_samples
from rewardkit.scorers.base import Scorer, Status
from rewardkit.scorers.call import NO_VERDICT, NoVerdictError, call_scorer_or_stop, error_line
from rewardkit.scorers.isolated import IsolatedScorer, is_custom, learn_rule
from rewardkit.statistics import mcnemar_p_value, percentile, wilson_interval

#: The pred of a response without an answer, in verl's `math_dapo`.
INVALID_PRED = "[INVALID]"

#: Characters of a pred that are compared with another, and of an error message.
MAX_COMPARED_CHARACTERS = 500


@dataclass(frozen=True)
class CallResult:
    """The fields of a `Score`, or the error in its place.

    Attributes:
        correct: None if the scorer failed.
        score: the reward; 0.0 if the scorer failed.
        pred: the answer that the scorer read; "" if it read none or does not return it.
        status: the score's status. A function with verl's signature has `correct` or `wrong`. A
            scorer that failed has `raised` and the name of the exception, or what it did instead
            (`ended its process`, `took too long`).
        error: the message of the error.
    """

    correct: bool | None
    score: float
    pred: str
    status: str
    error: str = ""

    def summary(self) -> dict[str, Any]:
        """Return the result for JSON."""
        if self.correct is None:
            return {"status": self.status, "error": self.error}
        fields = ("correct", "score", "pred", "status")
        return {name: getattr(self, name) for name in fields}


@dataclass
class ScorerCalls:
    """The calls of one scorer.

    Attributes:
        name: the scorer's name with its options.
        score_sum: sum of the scores of the samples that both scorers scored.
        raised: number of failures by status.
        first: place and message of the first failure of each status.
        bad_golds: number of samples whose gold the scorer cannot score.
        nanoseconds: duration of each call.
    """

    name: str
    score_sum: float = 0.0
    raised: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    bad_golds: int = 0
    nanoseconds: array[int] = field(default_factory=lambda: array("q"))

    def call(self, scorer: Scorer, sample: Sample) -> CallResult:
        """Call the scorer on a sample, and record the duration and the failure."""
        start = perf_counter_ns()
        result = call_on_sample(scorer, sample)
        duration = perf_counter_ns() - start
        if isinstance(scorer, IsolatedScorer):  # without the time for messages
            duration = scorer.last_call_ns
        self.nanoseconds.append(duration)
        self.bad_golds += result.status == Status.BAD_GROUND_TRUTH.value
        if result.correct is None:
            self.raised[result.status] += 1
            self.first.setdefault(result.status, f"{sample.where}: {result.error}")
        return result

    def speed(self) -> dict[str, float]:
        """Microseconds per call and calls per second, without the first call, which imports."""
        times = sorted(self.nanoseconds[1:] or self.nanoseconds) or [0]
        return {
            "median_us": median(times) / 1e3,
            "p99_us": percentile(times, 99) / 1e3,
            "calls_per_second": len(times) / max(sum(times), 1) * 1e9,
        }


@dataclass(frozen=True)
class DisagreementCause:
    """The properties by which samples are grouped on which two scorers disagree."""

    status_a: str
    status_b: str
    gold_kind: str
    preds: str


def call_on_sample(scorer: Scorer, sample: Sample) -> CallResult:
    """Call a scorer on a sample; an exception of the scorer is a result.

    Raises:
        NeverAnswersError: an isolated scorer failed on all of its first responses.
    """
    # a copy: a scorer that changes extra_info must not affect the other scorer
    info = dict(sample.extra_info)
    result = call_scorer_or_stop(scorer, sample.response, sample.ground_truth, info)
    if isinstance(result, Exception):
        name = type(result).__name__
        status = result.description if isinstance(result, NoVerdictError) else f"raised {name}"
        return CallResult(None, 0.0, "", status, error_line(result)[:MAX_COMPARED_CHARACTERS])
    if result.correct is None:
        return CallResult(None, result.score, result.pred, "has no verdict", NO_VERDICT)
    return CallResult(result.correct, result.score, result.pred, result.status.value)


def disagreement_cause(sample: Sample, a: CallResult, b: CallResult) -> DisagreementCause:
    """Return the cause under which a sample is grouped."""
    kind = answer_kind(sample.ground_truth)
    return DisagreementCause(a.status, b.status, kind, describe_difference(a, b))


def describe_difference(a: CallResult, b: CallResult) -> str:
    """How the answers differ that the two scorers read."""
    if a.correct is None or b.correct is None:
        return f"{'A' if a.correct is None else 'B'} failed"
    pred_a, pred_b = _answer(a), _answer(b)
    if not pred_a or not pred_b:
        return "no pred" if pred_a == pred_b else f"only {'A' if pred_a else 'B'} has a pred"
    if pred_a == pred_b:
        return "same pred"
    return _describe(pred_a[:MAX_COMPARED_CHARACTERS], pred_b[:MAX_COMPARED_CHARACTERS])


def _answer(result: CallResult) -> str:
    """Return the pred, unless it is what some scorers return for a response without an answer."""
    has_none = result.status == Status.NO_ANSWER.value or result.pred == INVALID_PRED
    return "" if has_none else result.pred


def _describe(a: str, b: str) -> str:
    number_a, number_b = read_number(a), read_number(b)
    a, b = canonical_spelling(a).casefold(), canonical_spelling(b).casefold()
    if a == b:
        return "same pred, spelled differently"
    if isinstance(number_a, Fraction) and isinstance(number_b, Fraction):
        return "same number, written differently" if number_a == number_b else "different numbers"
    if a in b:
        return "A's pred is part of B's"
    return "B's pred is part of A's" if b in a else "different preds"


#: Samples of each cause, and unusable rows, that a report lists; all are counted.
MAX_EXAMPLES = 3

#: Characters of a response that an example shows, from its end, where the answer is.
ENDING_CHARACTERS = 200

_Exporter: TypeAlias = Callable[[Sample, CallResult, CallResult], None]


@dataclass(frozen=True)
class DisagreementExample:
    """A sample on which two scorers disagree."""

    where: str
    gold: str
    pred_a: str
    pred_b: str
    ending: str


@dataclass
class Disagreement:
    """The samples of one cause: their number, and the first of them."""

    count: int = 0
    examples: list[DisagreementExample] = field(default_factory=list)


@dataclass
class CompareReport:
    """The results of two scorers on the same responses.

    Attributes:
        name: the path of the file, or the number of files and their names.
        short_name: the name of the file, or the number of files.
        a: the calls of the first scorer.
        b: the calls of the second scorer.
        outcomes: samples that both scored, by whether A and whether B accepts them.
        groups: samples on which the scorers disagree, or on which one of them failed.
        unread: number of rows without a usable response.
        unread_examples: the first of these.
    """

    name: str
    short_name: str
    a: ScorerCalls
    b: ScorerCalls
    outcomes: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    groups: dict[DisagreementCause, Disagreement] = field(default_factory=dict)
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

    def worst(self) -> list[tuple[DisagreementCause, Disagreement]]:
        """Return the causes, the one with most samples first."""
        return sorted(self.groups.items(), key=lambda item: -item[1].count)

    def add(self, sample: Sample, a: CallResult, b: CallResult) -> None:
        """Count the two results on a sample."""
        if a.correct is not None and b.correct is not None:
            self.outcomes[a.correct, b.correct] += 1
            self.a.score_sum += a.score
            self.b.score_sum += b.score
        if a.correct != b.correct:
            group = self.groups.setdefault(disagreement_cause(sample, a, b), Disagreement())
            group.count += 1
            if len(group.examples) < MAX_EXAMPLES:
                ending = sample.response[-ENDING_CHARACTERS:]
                gold = sample.ground_truth
                group.examples.append(
                    DisagreementExample(sample.where, gold, a.pred, b.pred, ending)
                )

    def skip(self, row: SkippedRow) -> None:
        """Count a row without a usable response."""
        self.unread += 1
        if len(self.unread_examples) < MAX_EXAMPLES:
            self.unread_examples.append(row)

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        n = self.judged
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
            "a": self._side_summary(self.a, 0),
            "b": self._side_summary(self.b, 1),
            "disagreements": [
                {**asdict(cause), "count": group.count, "examples": group.examples}
                for cause, group in self.worst()
            ],
        }

    def accepted_by(self, place: int) -> int:
        """Return the number of samples scored by both that the scorer in place 0 or 1 accepts."""
        return sum(n for accepted, n in self.outcomes.items() if accepted[place])

    def _side_summary(self, calls: ScorerCalls, place: int) -> dict[str, Any]:
        return {
            "scorer": calls.name,
            "right": self.accepted_by(place),
            "mean_score": calls.score_sum / self.judged if self.judged else None,
            "raised": dict(calls.raised.most_common()),
            "raised_first": calls.first,
            "bad_golds": calls.bad_golds,
            **calls.speed(),
        }


def compare_files(
    names: Sequence[str],
    a: tuple[str, Scorer],
    b: tuple[str, Scorer],
    *,
    response_key: str | None = None,
    gold_key: str | None = None,
    right_score: float | None = None,
    announce: Callable[[str], object] = lambda _: None,
    export: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CompareReport:
    """Score every response of files, folders and patterns with two scorers.

    Args:
        names: jsonl and parquet; see `expand_paths`.
        a: the name and the function of a scorer.
        b: those of another.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        right_score: the lowest right score of a custom scorer; None to learn it.
        announce: called with a sentence about which scores of a scorer are right.
        export: a jsonl to write: the samples on which the scorers disagree, with both results.
        overwrite: replace `export` if it exists.
        progress: called with 1 for every row.

    Raises:
        UsageError: `export` does not end in .jsonl.
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses, or
            it is not known which of its scores are right.
        OutputError: `export` cannot be written.
    """
    require_suffix("--export", export, ".jsonl")
    require_outside(export, names)
    files = expand_paths(names)
    for file in files:
        require_not_input(export, Path(file))
    short_name = Path(files[0]).name if len(files) == 1 else f"{len(files):,} files"
    name = files[0] if len(files) == 1 else f"{short_name} ({', '.join(names)[:100]})"
    report = CompareReport(name, short_name, ScorerCalls(a[0]), ScorerCalls(b[0]))

    def learned(name: str, scorer: Scorer) -> Scorer:
        samples = read_samples(files, response_key, gold_key)
        golds = ((s.ground_truth, s.extra_info) for s in samples if isinstance(s, Sample))
        own = right_score if is_custom(scorer) else None
        scorer, rule = learn_rule(scorer, golds, own, is_required=True)
        if rule.sentence:
            announce(f"{name}: {rule.sentence}")
        return scorer

    scorer_a, scorer_b = learned(*a), learned(*b)
    with _open_export(export, report, overwrite=overwrite) as write_case:
        for number, sample in enumerate(read_samples(files, response_key, gold_key)):
            if isinstance(sample, SkippedRow):
                report.skip(sample)
            else:
                results = _call_both(report, scorer_a, scorer_b, sample, b_first=number % 2 == 1)
                write_case(sample, *results)
                report.add(sample, *results)
            progress(1)
    return report


def _call_both(
    report: CompareReport, a: Scorer, b: Scorer, sample: Sample, *, b_first: bool
) -> tuple[CallResult, CallResult]:
    """Return both results. The scorers take turns to go first, because the second has warm caches."""
    if b_first:
        result_b = report.b.call(b, sample)
        return report.a.call(a, sample), result_b
    return report.a.call(a, sample), report.b.call(b, sample)


@contextmanager
def _open_export(
    export: Path | None, report: CompareReport, *, overwrite: bool
) -> Iterator[_Exporter]:
    if export is None:
        yield lambda *_: None
        return
    with atomic(export, overwrite=overwrite) as temporary, temporary.open("w") as lines:

        def write_case(sample: Sample, a: CallResult, b: CallResult) -> None:
            if a.correct != b.correct:
                lines.write(json_line(_test_case(sample, report, a, b)))

        yield write_case


def _test_case(
    sample: Sample, report: CompareReport, a: CallResult, b: CallResult
) -> dict[str, Any]:
    """Return a sample as a test case, which `score` and `compare` read, with both results."""
    info = dict(sample.extra_info)
    return {
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "data_source": info.pop("data_source", ""),
        "extra_info": info,
        "a": {"scorer": report.a.name, **a.summary()},
        "b": {"scorer": report.b.name, **b.summary()},
    }


def compare_page(report: CompareReport) -> Page:
    """Return the page of a comparison."""
    facts = (
        ("file", report.name),
        ("A", report.a.name),
        ("B", report.b.name),
        *((name, f"{n:,}") for name, n in verdicts(report) if name.startswith("only")),
        ("judged by both", f"{report.judged:,}"),
        ("rows without a usable response", f"{report.unread:,}"),
    )
    title = (
        f"{report.short_name}: A and B agree on {share(report.agreed, report.judged)} "
        f"of {report.judged:,} samples"
    )
    return Page(title, facts, tuple(_sections(report)))


def agreement(report: CompareReport) -> str:
    """Return a sentence with the agreement of two scorers, and the test whether one is laxer."""
    low, high = wilson_interval(report.agreed, report.judged)
    return (
        f"agreement {share(report.agreed, report.judged)} (95% interval {low:.1%} to {high:.1%}); "
        f"McNemar's exact test: {p_text(report.p_value)}"
    )


def p_text(p: float) -> str:
    """Return a p-value as `p = 0.0012`."""
    return f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"


def verdicts(report: CompareReport) -> tuple[tuple[str, int], ...]:
    """Return the cells of the confusion table."""
    return (
        ("both correct", report.outcomes[True, True]),
        ("only A correct", report.outcomes[True, False]),
        ("only B correct", report.outcomes[False, True]),
        ("neither correct", report.outcomes[False, False]),
    )


def scorer_rows(report: CompareReport) -> Iterator[tuple[str, ...]]:
    """Yield a row for each scorer, in the columns `SCORER_COLUMNS`."""
    for letter, calls, place in (("A", report.a, 0), ("B", report.b, 1)):
        accepted, speed = report.accepted_by(place), calls.speed()
        yield (
            f"{letter}: {calls.name}",
            f"{accepted:,} ({share(accepted, report.judged)})",
            f"{calls.score_sum / max(report.judged, 1):.4f}",
            f"{speed['median_us']:,.1f}",
            f"{speed['p99_us']:,.1f}",
            f"{speed['calls_per_second']:,.0f}",
            f"{calls.raised.total():,}",
        )


#: Headers of `scorer_rows` and `cause_rows`.
SCORER_COLUMNS = ("scorer", "correct", "mean score", "median µs", "p99 µs", "calls/s", "raised")
CAUSE_COLUMNS = ("samples", "status of A", "status of B", "gold", "preds")


def cause_rows(
    report: CompareReport,
) -> Iterator[tuple[tuple[str, ...], list[DisagreementExample]]]:
    """Yield the disagreements by cause, in the columns `CAUSE_COLUMNS`, with their examples."""
    for cause, group in report.worst():
        kind, preds = cause.gold_kind, cause.preds
        cells = (f"{group.count:,}", cause.status_a, cause.status_b, kind, preds)
        yield cells, group.examples


def _sections(report: CompareReport) -> Iterator[Section]:
    yield Bars("Verdicts", verdicts(report), note=sentence(agreement(report)), unit="samples")
    note = "Correct and mean score count the samples that both judged. First calls are not timed."
    yield Table("Scorers", SCORER_COLUMNS, tuple(map(TableRow, scorer_rows(report))), note=note)
    if report.groups:
        lines = (
            TableRow(cells, tuple(map(_example_text, examples)))
            for cells, examples in cause_rows(report)
        )
        yield Table(
            "Disagreements by cause",
            CAUSE_COLUMNS,
            tuple(lines),
            formulas=True,
            note="The most frequent first.",
        )
    if raised := tuple(_raised(report)):
        yield Table("Exceptions", ("scorer", "exception", "times", "first"), raised)


def _example_text(example: DisagreementExample) -> str:
    preds = f"A read '{example.pred_a}', B read '{example.pred_b}'"
    return f"{example.where}: gold '{example.gold}', {preds}\n…{example.ending}"


def _raised(report: CompareReport) -> Iterator[TableRow]:
    for calls in (report.a, report.b):
        for name, times in calls.raised.most_common():
            yield TableRow((calls.name, name, f"{times:,}", calls.first[name]))
