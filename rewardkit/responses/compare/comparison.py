"""`rewardkit compare`: score the same responses with two scorers, and group the disagreements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.json_lines import json_line
from rewardkit.output import atomic, require_not_input, require_suffix
from rewardkit.responses.chunks import expand_paths, require_outside
from rewardkit.responses.compare.scorer_calls import (
    CallResult,
    DisagreementCause,
    ScorerCalls,
    disagreement_cause,
)
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.isolated import is_custom, learn_rule
from rewardkit.statistics import mcnemar_p_value, wilson_interval

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
