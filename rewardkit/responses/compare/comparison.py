"""`rewardkit compare`: two scorers on the same responses, and why they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.output import atomic, refuse_input, require_suffix
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.compare.scorer_calls import (
    CallResult,
    DisagreementCause,
    ScorerCalls,
    disagreement_cause,
)
from rewardkit.responses.json_lines import json_line
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.samples import Sample, read_samples
from rewardkit.scorers.base import Scorer
from rewardkit.statistics import mcnemar_p_value, wilson_interval

#: Samples of each cause, and lines that could not be read, that are kept to be shown.
EXAMPLES = 3

#: Characters of a response's end that an example shows: the answer is there.
ENDING = 200

Keep: TypeAlias = Callable[[Sample, CallResult, CallResult], None]


@dataclass(frozen=True)
class DisagreementExample:
    """A sample that two scorers judge differently."""

    where: str
    gold: str
    pred_a: str
    pred_b: str
    ending: str


@dataclass
class Disagreement:
    """Samples judged differently for one cause: how many, and the first of them."""

    count: int = 0
    examples: list[DisagreementExample] = field(default_factory=list)


@dataclass
class CompareReport:
    """What `compare_file` found.

    Attributes:
        name: the file or files, with their paths.
        short_name: the file's name, or how many files there are.
        a: the first scorer.
        b: the second.
        right: samples that both judged, by whether A and whether B calls them right.
        groups: samples with another verdict, those that one scorer raised on among them.
        unread: lines that hold no sample.
        unread_examples: the first of them.
    """

    name: str
    short_name: str
    a: ScorerCalls
    b: ScorerCalls
    right: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    groups: dict[DisagreementCause, Disagreement] = field(default_factory=dict)
    unread: int = 0
    unread_examples: list[SkippedRow] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """Samples that both scorers judged."""
        return self.right.total()

    @property
    def agreed(self) -> int:
        """Samples with one verdict."""
        return self.right[True, True] + self.right[False, False]

    @property
    def p_value(self) -> float:
        """Of McNemar's exact test."""
        return mcnemar_p_value(self.right[True, False], self.right[False, True])

    def worst(self) -> list[tuple[DisagreementCause, Disagreement]]:
        """The causes with most samples first."""
        return sorted(self.groups.items(), key=lambda item: -item[1].count)

    def add(self, sample: Sample, a: CallResult, b: CallResult) -> None:
        """Count a sample."""
        if a.correct is not None and b.correct is not None:
            self.right[a.correct, b.correct] += 1
            self.a.score_sum += a.score
            self.b.score_sum += b.score
        if a.correct != b.correct:
            group = self.groups.setdefault(disagreement_cause(sample, a, b), Disagreement())
            group.count += 1
            if len(group.examples) < EXAMPLES:
                ending = sample.response[-ENDING:]
                gold = sample.ground_truth
                group.examples.append(
                    DisagreementExample(sample.where, gold, a.pred, b.pred, ending)
                )

    def skip(self, line: SkippedRow) -> None:
        """Count a line that holds no sample."""
        self.unread += 1
        if len(self.unread_examples) < EXAMPLES:
            self.unread_examples.append(line)

    def summary(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        n = self.judged
        return {
            "file": self.name,
            "judged_by_both": n,
            "unread": self.unread,
            "unread_examples": [f"{line.where}: {line.reason}" for line in self.unread_examples],
            "both_right": self.right[True, True],
            "only_a_right": self.right[True, False],
            "only_b_right": self.right[False, True],
            "neither_right": self.right[False, False],
            "agreement": self.agreed / n if n else None,
            "agreement_95": wilson_interval(self.agreed, n),
            "mcnemar_p": self.p_value,
            "a": self._side(self.a, 0),
            "b": self._side(self.b, 1),
            "disagreements": [
                {**asdict(why), "count": group.count, "examples": group.examples}
                for why, group in self.worst()
            ],
        }

    def right_of(self, place: int) -> int:
        """Samples judged by both that the scorer in that place, 0 or 1, calls right."""
        return sum(n for verdicts, n in self.right.items() if verdicts[place])

    def _side(self, side: ScorerCalls, place: int) -> dict[str, Any]:
        return {
            "scorer": side.name,
            "right": self.right_of(place),
            "mean_score": side.score_sum / self.judged if self.judged else None,
            "raised": dict(side.raised.most_common()),
            "raised_first": side.first,
            **side.speed(),
        }


def compare_files(
    names: Sequence[str],
    a: tuple[str, Scorer],
    b: tuple[str, Scorer],
    *,
    response_key: str | None = None,
    gold_key: str | None = None,
    export: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CompareReport:
    """Judge every response of files, folders and patterns with two scorers.

    Args:
        names: jsonl and parquet; see `expand_paths`.
        a: a scorer and what to call it.
        b: another.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        export: a jsonl to write: every sample with another verdict, and both verdicts.
        overwrite: replace `export` if it exists.
        progress: called with 1 for every line.

    Raises:
        UsageError: `export` does not end in .jsonl.
        DataError: a file cannot be read, or a scorer that is not ours never answers.
        OutputError: `export` cannot be written.
    """
    require_suffix("--export", export, ".jsonl")
    files = expand_paths(names)
    for file in files:
        refuse_input(export, Path(file))
    short_name = Path(files[0]).name if len(files) == 1 else f"{len(files):,} files"
    name = files[0] if len(files) == 1 else f"{short_name} ({', '.join(names)[:100]})"
    report = CompareReport(name, short_name, ScorerCalls(a[0]), ScorerCalls(b[0]))
    with _sink(export, report, overwrite=overwrite) as keep:
        samples = (s for f in files for s in read_samples(Path(f), response_key, gold_key))
        for number, sample in enumerate(samples):
            if isinstance(sample, SkippedRow):
                report.skip(sample)
            else:
                said = _both(report, a[1], b[1], sample, b_first=number % 2 == 1)
                keep(sample, *said)
                report.add(sample, *said)
            progress(1)
    return report


def compare_file(
    path: Path | str, a: tuple[str, Scorer], b: tuple[str, Scorer], **options: Any
) -> CompareReport:
    """Judge every response of one file with two scorers; see `compare_files`."""
    return compare_files([str(path)], a, b, **options)


def _both(
    report: CompareReport, a: Scorer, b: Scorer, sample: Sample, *, b_first: bool
) -> tuple[CallResult, CallResult]:
    """Both verdicts. The scorers take turns to be first: who is second finds caches warm."""
    early = report.b.judge(b, sample) if b_first else None
    said = report.a.judge(a, sample)
    return said, early or report.b.judge(b, sample)


@contextmanager
def _sink(export: Path | None, report: CompareReport, *, overwrite: bool) -> Iterator[Keep]:
    if export is None:
        yield lambda *_: None
        return
    with atomic(export, overwrite=overwrite) as temporary, temporary.open("w") as lines:

        def keep(sample: Sample, a: CallResult, b: CallResult) -> None:
            if a.correct != b.correct:
                lines.write(json_line(_case(sample, report, a, b)))

        yield keep


def _case(sample: Sample, report: CompareReport, a: CallResult, b: CallResult) -> dict[str, Any]:
    """A sample as a test case: what `score` and `compare` read, and both verdicts."""
    info = dict(sample.extra_info)
    return {
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "data_source": info.pop("data_source", ""),
        "extra_info": info,
        "a": {"scorer": report.a.name, **a.summary()},
        "b": {"scorer": report.b.name, **b.summary()},
    }
