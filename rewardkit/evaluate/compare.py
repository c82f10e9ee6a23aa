"""Two result files on the same questions: the difference, how sure it is, and a test."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.evaluate.intervals import Paired, paired
from rewardkit.evaluate.judge import outcome
from rewardkit.row import question_of


@dataclass
class Side:
    """One result file.

    Attributes:
        path: the file.
        shares: of every question its responses and those that are right.
        sources: the data source of every question.
        keys: model and sampling, as JSON, with their responses.
    """

    path: Path
    shares: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    sources: dict[bytes, str] = field(default_factory=dict)
    keys: Counter[str] = field(default_factory=Counter)

    def share(self, question: bytes) -> float:
        """The share of right responses to a question."""
        n, right = self.shares[question]
        return right / n

    @property
    def n(self) -> tuple[int, int]:
        """The least and the most responses to a question."""
        counts = [n for n, _ in self.shares.values()]
        return min(counts), max(counts)


@dataclass(frozen=True)
class Comparison:
    """Two result files compared.

    Attributes:
        a, b: the files.
        means: mean@n of both on the questions that both have, by data source; "" for all.
        differences: B less A.
    """

    a: Side
    b: Side
    means: Mapping[str, tuple[float, float]]
    differences: Mapping[str, Paired]

    def only(self) -> tuple[int, int]:
        """Questions that only A, and only B, has."""
        shared = len(self.a.shares.keys() & self.b.shares.keys())
        return len(self.a.shares) - shared, len(self.b.shares) - shared

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
    """Compare two files that `rewardkit eval --out` wrote, B against A.

    Questions are the same if data source, question and gold are; the prompts and the number of
    responses may differ.

    Raises:
        DataError: a file cannot be read, or they have no question in common.
    """
    sides = read_side(a), read_side(b)
    shared = [question for question in sides[0].shares if question in sides[1].shares]
    if not shared:
        raise DataError(f"{a} and {b} have no question in common.")
    groups: dict[str, list[bytes]] = {"": shared}
    for question in shared:
        groups.setdefault(sides[0].sources[question] or "(none)", []).append(question)
    means, differences = {}, {}
    for name, questions in groups.items():
        both = [(sides[0].share(each), sides[1].share(each)) for each in questions]
        size = len(both)
        means[name] = (sum(x for x, _ in both) / size, sum(y for _, y in both) / size)
        differences[name] = paired([y - x for x, y in both])
    return Comparison(*sides, means, differences)


def read_side(path: Path) -> Side:
    """The shares of right responses in a result file; the responses themselves are not kept.

    Raises:
        DataError: it is no file of results.
    """
    side = Side(path)
    for line in _lines(path):
        source = str(line["data_source"])
        asked = (source, question_of(line), line["ground_truth"])
        question = blake2b(json.dumps(asked).encode(), digest_size=16).digest()
        n, right = side.shares.get(question, (0, 0))
        side.shares[question] = n + 1, right + outcome(line).right
        side.sources[question] = source
        key = {"model": line.get("model"), "sampling": line.get("sampling")}
        side.keys[json.dumps(key, sort_keys=True)] += 1
    if not side.shares:
        raise DataError(f"{path}: no results.")
    return side


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a result file, each checked to be one."""
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = json.loads(text)
                    outcome(line)
                    question_of(line)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise DataError(
                        f"{path}:{number}: no judged response ({type(error).__name__}: {error}); "
                        "compare files that 'rewardkit eval --out' wrote."
                    ) from error
                yield line
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error


def _described(side: Side) -> dict[str, Any]:
    keys = [{**json.loads(key), "responses": n} for key, n in side.keys.most_common()]
    return {"file": str(side.path), "questions": len(side.shares), "n": side.n, "of": keys}
