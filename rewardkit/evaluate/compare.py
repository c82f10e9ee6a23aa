"""Two result files on the same questions: the difference, how sure it is, and a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.evaluate.results import Results, read_results
from rewardkit.statistics import PairedDifference, paired_difference


@dataclass(frozen=True)
class Comparison:
    """Two result files compared.

    Attributes:
        a, b: the files.
        means: mean@n of both on the questions that both have, by data source; "" for all.
        differences: B less A.
    """

    a: Results
    b: Results
    means: Mapping[str, tuple[float, float]]
    differences: Mapping[str, PairedDifference]

    def only(self) -> tuple[int, int]:
        """Questions that only A, and only B, has."""
        shared = len(self.a.questions.keys() & self.b.questions.keys())
        return len(self.a.questions) - shared, len(self.b.questions) - shared

    def summary(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "method": "paired t over questions",
            "a": _described(self.a),
            "b": _described(self.b),
            "only_a": self.only()[0],
            "only_b": self.only()[1],
            "total": self._row(""),
            "by_data_source": {name: self._row(name) for name in self.means if name},
        }

    def _row(self, name: str) -> dict[str, Any]:
        a, b = self.means[name]
        return {"mean_a": a, "mean_b": b, **self.differences[name]._asdict()}


def compare(a: Path, b: Path) -> Comparison:
    """Compare two files that `rewardkit eval run --out` wrote, B against A.

    Questions are the same if data source, question and gold are; the prompts and the number of
    responses may differ.

    Raises:
        DataError: a file cannot be read, or they have no question in common.
    """
    sides = read_results(str(a), [a]), read_results(str(b), [b])
    shared = [key for key in sides[0].questions if key in sides[1].questions]
    if not shared:
        raise DataError(f"{a} and {b} have no question in common.")
    groups: dict[str, list[bytes]] = {"": shared}
    for key in shared:
        groups.setdefault(sides[0].questions[key][0] or "(none)", []).append(key)
    means, differences = {}, {}
    for name, keys in groups.items():
        both = [(_share(sides[0], key), _share(sides[1], key)) for key in keys]
        size = len(both)
        means[name] = (sum(x for x, _ in both) / size, sum(y for _, y in both) / size)
        differences[name] = paired_difference([y - x for x, y in both])
    return Comparison(*sides, means, differences)


def _share(side: Results, key: bytes) -> float:
    """The share of right responses to a question."""
    found = side.questions[key][1]
    return found.right / found.n


def _described(side: Results) -> dict[str, Any]:
    keys = [{**json.loads(key), "responses": n} for key, n in side.keys.most_common()]
    return {"file": side.name, "questions": len(side.questions), "n": side.n, "of": keys}
