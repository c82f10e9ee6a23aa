"""`rewardkit score`: judge a file of responses and sum up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.output import atomic, refuse_input
from rewardkit.rollouts.read import Sample, Unread, read_samples
from rewardkit.scorers.base import Score, Scorer, guarded, to_verl

#: Lines that could not be scored and are kept to be shown; all are counted.
EXAMPLES = 20


@dataclass
class Tally:
    """Scores summed up."""

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, score: Score) -> None:
        """Count one score."""
        self.n += 1
        self.score_sum += score.score
        self.statuses[score.status.value] += 1
        self.correct += score.correct

    def summary(self) -> dict[str, Any]:
        """Count, means (0.0 of nothing) and statuses."""
        n = max(self.n, 1)
        return {
            "n": self.n,
            "mean_score": self.score_sum / n,
            "accuracy": self.correct / n,
            "statuses": dict(self.statuses.most_common()),
        }


@dataclass
class ScoreReport:
    """What `score_file` found.

    Attributes:
        path: the file.
        total: all samples that were scored.
        by_source: the same by `data_source`.
        unscored: how many lines could not be scored.
        examples: the first of them.
    """

    path: Path
    total: Tally = field(default_factory=Tally)
    by_source: dict[str, Tally] = field(default_factory=dict)
    unscored: int = 0
    examples: list[Unread] = field(default_factory=list)

    def add(self, sample: Sample, score: Score) -> None:
        """Count one score."""
        self.total.add(score)
        source = str(sample.extra_info.get("data_source") or "")
        self.by_source.setdefault(source, Tally()).add(score)

    def skip(self, line: Unread) -> None:
        """Count a line that could not be scored."""
        self.unscored += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(line)

    def summary(self) -> dict[str, Any]:
        """The report as plain values, for people and for JSON."""
        return {
            "file": str(self.path),
            "unscored": self.unscored,
            "unscored_examples": [f"{line.where}: {line.reason}" for line in self.examples],
            "total": self.total.summary(),
            "by_data_source": {k: tally.summary() for k, tally in self.by_source.items()},
        }


def score_file(
    path: Path | str,
    scorer: Scorer,
    *,
    response_key: str | None = None,
    gold_key: str | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> ScoreReport:
    """Score every response of a jsonl or parquet file.

    Args:
        path: the file.
        scorer: `load_scorer("auto")` judges each row with its own.
        response_key: the field with the response; see `rollouts.read`.
        gold_key: the field with the ground truth.
        out: a jsonl to write: every row scored, with `score`, `acc`, `pred`, `status` and the
            flags. A field of that name that the row had is kept as `<name>_before`.
        overwrite: replace `out` if it exists.
        progress: called with 1 for every line.

    Raises:
        DataError: the file cannot be read.
        OutputError: `out` cannot be written.
    """
    report = ScoreReport(Path(path))
    refuse_input(out, report.path)
    with _sink(out, overwrite=overwrite) as keep:
        for sample in read_samples(report.path, response_key, gold_key):
            result = sample if isinstance(sample, Unread) else _judge(scorer, sample)
            if isinstance(result, Unread):
                report.skip(result)
            elif isinstance(sample, Sample):
                report.add(sample, result)
                keep(sample, result)
            progress(1)
    return report


def _judge(scorer: Scorer, sample: Sample) -> Score | Unread:
    result = guarded(scorer, sample.response, sample.ground_truth, sample.extra_info)
    if isinstance(result, Exception):
        return Unread(sample.where, f"the scorer raised {type(result).__name__}: {result}")
    return result


@contextmanager
def _sink(out: Path | None, *, overwrite: bool) -> Iterator[Callable[[Sample, Score], None]]:
    if out is None:
        yield lambda *_: None
        return
    with atomic(out, overwrite=overwrite) as temporary, temporary.open("w") as lines:
        yield lambda sample, score: _write_line(lines.write, sample, score)


def _write_line(write: Callable[[str], object], sample: Sample, score: Score) -> None:
    ours = {**to_verl(score), "status": score.status.value}
    theirs = {f"{k}_before" if k in ours else k: v for k, v in sample.fields.items()}
    write(json.dumps({**theirs, **ours}, ensure_ascii=True, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
