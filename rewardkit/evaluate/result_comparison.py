"""Compare the results of two runs on the questions that both have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.evaluate.results import RunResults, read_results, result_files
from rewardkit.statistics import PairedDifference, paired_difference


@dataclass(frozen=True)
class ResultComparison:
    """The comparison of two runs.

    Attributes:
        a, b: the results of both.
        means: mean@n of A and of B on the shared questions, by data source; "" for all.
        differences: B minus A, by the same names.
    """

    a: RunResults
    b: RunResults
    means: Mapping[str, tuple[float, float]]
    differences: Mapping[str, PairedDifference]

    def unshared_questions(self) -> tuple[int, int]:
        """Return the number of questions that only A has, and that only B has."""
        shared = len(self.a.questions.keys() & self.b.questions.keys())
        return len(self.a.questions) - shared, len(self.b.questions) - shared

    def summary(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        only_a, only_b = self.unshared_questions()
        return {
            "method": "paired t over questions",
            "a": _side_summary(self.a),
            "b": _side_summary(self.b),
            "only_a": only_a,
            "only_b": only_b,
            "total": self._summary_row(""),
            "by_data_source": {name: self._summary_row(name) for name in self.means if name},
        }

    def _summary_row(self, name: str) -> dict[str, Any]:
        a, b = self.means[name]
        return {"mean_a": a, "mean_b": b, **self.differences[name]._asdict()}


def compare_results(a: Path, b: Path) -> ResultComparison:
    """Compare run B with run A, each a result file or a folder of them.

    Two questions are the same if data source, question and gold are. The prompts and the number of
    responses may differ.

    Raises:
        SourceError, UsageError: a path does not exist, or it is a folder without results.
        DataError: a file cannot be read, or the runs have no question in common.
    """
    sides = read_results(str(a), result_files(a)), read_results(str(b), result_files(b))
    shared = [key for key in sides[0].questions if key in sides[1].questions]
    if not shared:
        raise DataError(f"{a} and {b} have no question in common.")
    groups: dict[str, list[bytes]] = {"": shared}
    for key in shared:
        groups.setdefault(sides[0].questions[key][0] or "(none)", []).append(key)
    means, differences = {}, {}
    for name, keys in groups.items():
        pairs = [(_correct_share(sides[0], key), _correct_share(sides[1], key)) for key in keys]
        means[name] = (sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs))
        differences[name] = paired_difference([y - x for x, y in pairs])
    return ResultComparison(*sides, means, differences)


def _correct_share(side: RunResults, key: bytes) -> float:
    result = side.questions[key][1]
    return result.correct / result.n


def _side_summary(side: RunResults) -> dict[str, Any]:
    keys = [{**json.loads(key), "responses": n} for key, n in side.keys.most_common()]
    return {"file": side.name, "questions": len(side.questions), "n": side.n, "of": keys}
