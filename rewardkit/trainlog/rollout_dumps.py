"""Reader of rollout dumps: `<step>.jsonl` files in verl's `trainer.rollout_data_dir`.

Each line is a response with `input`, `output`, `score` and, in newer releases, `uid`. Lengths are
in characters: the dump has no tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.lines import LongLine, bounded_lines
from rewardkit.trainlog.jsonl_reader import MAX_INTEGER
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import TrainingRun

#: 0.9's trainer names a response `<group>_<session>_<index>`; in earlier releases `uid` is the group.
_SESSION = re.compile(r"(.+)_\d+_\d+")

_FILE = re.compile(r"(\d{1,12})\.jsonl")


@dataclass
class _StepSums:
    """Scores, lengths and groups of the responses of a step."""

    scores: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    groups: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def add(self, group: str, score: float, length: int) -> None:
        self.scores.append(score)
        self.lengths.append(length)
        n, low, high = self.groups.get(group, (0, score, score))
        self.groups[group] = (n + 1, min(low, score), max(high, score))

    def metrics(self) -> Iterator[tuple[str, float]]:
        yield "responses", len(self.scores)
        yield "score/mean", sum(self.scores) / len(self.scores)
        yield "score/max", max(self.scores)
        yield "score/min", min(self.scores)
        yield "response_characters/mean", sum(self.lengths) / len(self.lengths)
        yield "response_characters/max", max(self.lengths)
        groups = [group for group in self.groups.values() if group[0] > 1]
        if groups:
            flat = [low for _, low, high in groups if low == high]
            yield "groups", len(groups)
            yield "groups/zero_variance", len(flat) / len(groups)


def list_dumps(folder: Path) -> list[Path]:
    """Return the dumps of a folder, by step."""
    matches = [(match, file) for file in folder.iterdir() if (match := _FILE.fullmatch(file.name))]
    return [file for _, file in sorted(matches, key=lambda pair: int(pair[0][1]))]


def read_dumps(folder: Path, name: str) -> TrainingRun:
    """Read the run whose responses a folder holds.

    Raises:
        DataError: no file has a response with a score.
    """
    builder = TableBuilder()
    for file in list_dumps(folder):
        step = _StepSums()
        with file.open("rb") as lines:
            for i, line in enumerate(bounded_lines(lines), 1):
                where = f"{file.name}:{i}"
                if isinstance(line, LongLine):
                    builder.skip(where, line.reason)
                else:
                    _add_response(step, line, builder, where)
        if step.scores:
            builder.add(int(file.stem), dict(step.metrics()), file.name)
    if not builder.rows:
        first = "".join(f" {item.where}: {item.reason}." for item in builder.examples[:1])
        raise DataError(f"{folder}: no response with a score in its <step>.jsonl files.{first}")
    return builder.run(name=name, path=str(folder), source="rollouts")


def _add_response(step: _StepSums, line: bytes, builder: TableBuilder, where: str) -> None:
    if not line.strip():
        return
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        builder.skip(where, "not JSON")
        return
    score = row.get("score") if isinstance(row, dict) else None
    if not isinstance(score, (int, float)) or abs(score) > MAX_INTEGER or isnan(score):
        builder.skip(where, "not an object with a numeric 'score'")
        return
    step.add(_group(row), float(score), len(str(row.get("output", ""))))


def _group(row: dict[str, Any]) -> str:
    uid = row.get("uid")
    if uid is None:
        return str(row.get("input", ""))
    session = _SESSION.fullmatch(str(uid))
    return session[1] if session else str(uid)
