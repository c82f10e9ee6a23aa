"""Which responses answer the same prompt, and which of them GRPO compares.

Responses to one prompt are alike: they are one cluster of an interval, whatever their step. A *group* is
the responses to one prompt at one step, or in the file if it has no steps. With GRPO a group whose
responses all have the same score has no gradient.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.responses.samples import Sample

#: The keys under which a prompt is looked up; verl's dumps have `input`.
PROMPT_KEYS = ("input", "prompt", "question", "problem")

#: The keys that identify a row without a prompt.
INDEX_KEYS = ("uid", "index")


@dataclass(slots=True)
class PromptStepCounts:
    """The responses to one prompt in one step; `low` and `high` are their extreme scores."""

    n: int = 0
    correct: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, score: float, *, is_correct: bool | None) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(is_correct)
        self.low = min(self.low, score)
        self.high = max(self.high, score)


@dataclass(frozen=True, kw_only=True)
class GradientGroups:
    """Groups of two responses or more to one prompt in one step; all numbers are counts.

    Attributes:
        n: groups of two responses or more.
        without_gradient: groups whose responses have the same score.
        all_correct: those whose responses are all correct.
        none_correct: those whose responses are all wrong.
        responses: responses in the groups.
    """

    n: int = 0
    without_gradient: int = 0
    all_correct: int = 0
    none_correct: int = 0
    responses: int = 0

    @property
    def kinds_by_score(self) -> list[tuple[str, int]]:
        """The number of groups whose scores differ, and of those whose scores do not."""
        flat = self.without_gradient
        return [("scores differ", self.n - flat), ("same score", flat)]

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """The number of groups of each kind that occurs."""
        kinds = {
            "scores differ": self.n - self.without_gradient,
            "same score, all correct": self.all_correct,
            "same score, none correct": self.none_correct,
            "same score, some correct": self.without_gradient
            - self.all_correct
            - self.none_correct,
        }
        return [(kind, n) for kind, n in kinds.items() if n]


def count_groups(cells: Iterable[PromptStepCounts]) -> GradientGroups:
    """Count the cells with several responses."""
    groups = [cell for cell in cells if cell.n > 1]
    flat = [cell for cell in groups if cell.low == cell.high]
    return GradientGroups(
        n=len(groups),
        without_gradient=len(flat),
        all_correct=sum(cell.correct == cell.n for cell in flat),
        none_correct=sum(cell.correct == 0 for cell in flat),
        responses=sum(cell.n for cell in groups),
    )


def step_of(fields: Mapping[str, Any]) -> int | None:
    """Return the training step of a row; None if it has none."""
    step = fields.get("step")
    return int(step) if isinstance(step, (int, float)) and -1e300 < step < 1e300 else None


def prompt_text(sample: Sample) -> str:
    """Return the prompt as text; "" if the row does not have it."""
    for fields in (sample.fields, sample.extra_info):
        for key in PROMPT_KEYS:
            if value := fields.get(key):
                return value if isinstance(value, str) else _as_text(value)
    return ""


def prompt_group(sample: Sample, prompt: str) -> str:
    """Return a text that responses to one prompt share: the prompt, its index, or else the line.

    Every data source and split counts its rows from 0.
    """
    if prompt:
        return prompt
    identity = _first_value(sample, *INDEX_KEYS)
    if identity is None:
        return sample.where
    source, split = _first_value(sample, "data_source"), _first_value(sample, "split")
    return f"{source} {split} {type(identity).__name__} {identity}"


def _first_value(sample: Sample, *keys: str) -> Any:
    rows = (sample.fields, sample.extra_info)
    values = (row.get(key) for key in keys for row in rows)
    return next((value for value in values if value is not None), None)


def _as_text(prompt: Any) -> str:
    """Return a prompt as text; a chat as its messages, each with its role."""
    if isinstance(prompt, list) and all(isinstance(message, Mapping) for message in prompt):
        return "\n\n".join(f"{m.get('role', '')}: {m.get('content', '')}" for m in prompt)
    return json.dumps(prompt, default=str)
