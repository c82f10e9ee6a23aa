"""How `prep` makes the verl rows of one split: from a raw row to a problem to a checked row."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UsageError, call_catching
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.column_map import top_level
from rewardkit.preprocess.conditions import Condition
from rewardkit.preprocess.file_rows import RawRow
from rewardkit.preprocess.problem_filter import ProblemFilter, language_fault, text_fault
from rewardkit.preprocess.raw_rows import RawRows
from rewardkit.preprocess.row_checks import check_row
from rewardkit.preprocess.source import Source
from rewardkit.preprocess.template import Template
from rewardkit.preprocess.turns import Turns
from rewardkit.preprocess.value_path import value_at_path
from rewardkit.row import BATCH_ROWS, Row, build_row
from rewardkit.versions import VERSION


@dataclass(frozen=True, kw_only=True)
class PrepOptions:
    """The options that decide how problems become rows.

    Attributes:
        template: the prompt template.
        is_default_template: whether `template` is the card's; a problem's own prompt replaces only
            this one.
        scorer: name of the scorer in every row.
        turns: the tool or interaction of every row; None for rows of one turn.
        filter: the problems to keep.
        repeat: how often every row is written.
        limit: maximum number of rows per split; None for no limit.
        shuffle_seed: random seed of the shuffle; None for the order of the source.
        options_seed: random seed of the order of options; None for the order of the source.
        jobs: number of processes.
        keep: columns of the raw rows (dotted paths) to write into `extra_info.columns`.
        where: conditions that raw rows must meet.
    """

    template: Template
    is_default_template: bool
    scorer: str
    turns: Turns | None
    filter: ProblemFilter
    repeat: int
    limit: int | None
    shuffle_seed: int | None
    options_seed: int | None
    jobs: int
    keep: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    def batch_rows(self) -> int:
        """Return the number of rows per batch: no more than the limit asks for."""
        return min(self.limit or BATCH_ROWS, BATCH_ROWS)

    def order(self, rows: Iterable[tuple[int, RawRow]]) -> Iterable[tuple[int, RawRow]]:
        """Return the rows in the order in which they are written."""
        if self.shuffle_seed is None:
            return rows
        shuffled = list(rows)
        random.Random(self.shuffle_seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret
        return shuffled

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        """Return the chat of a problem, from the template or the problem's own prompt."""
        messages = self.template.messages(problem.question)
        if problem.prompt and self.is_default_template:
            messages[-1] = {"role": "user", "content": problem.prompt}
        return messages


@dataclass(frozen=True)
class SplitJob:
    """One split on its way from raw rows to verl rows; it is pickled to worker processes."""

    dataset: Dataset
    card: Card
    split: str
    source: Source
    options: PrepOptions

    def raw_rows(self) -> RawRows:
        """Return the raw rows of the split, without copies."""
        conditions = (*self.card.where, *self.options.where)
        paths = (*self.options.keep, *(condition.column for condition in conditions))
        others = tuple(dict.fromkeys(map(top_level, paths)))
        layouts = [tuple(dict.fromkeys(layout + others)) for layout in self.card.columns]
        return RawRows(self.source.files, layouts, self.dataset.repeats, self.dataset.noted_columns)

    def problem(self, raw: RawRow) -> Problem | Dropped:
        """Return the problem in a raw row, or the reason to drop it."""
        if raw and all(value is None for value in raw.values()):
            return Dropped("empty row, or a row that does not fit the header")
        for conditions in (self.card.where, self.options.where):
            for condition in conditions:
                if not condition.holds(raw):
                    value = value_at_path(raw, condition.column)
                    return Dropped(f"not {condition}", f"{condition.column} is {value!r}"[:80])
        problem = call_catching(self.dataset.to_problem, raw)
        if isinstance(problem, TypeError):  # a null or a number where the dataset has text
            return Dropped("unexpected type", str(problem))
        if isinstance(problem, Exception):
            return Dropped("unreadable row", f"{type(problem).__name__}: {problem}")
        if isinstance(problem, Dropped):
            return problem
        if not isinstance(problem, Problem):
            kind = type(problem).__name__
            raise UsageError(
                f"{self.dataset.name}: to_problem returned {kind}, not a Problem or Dropped."
            )
        fault = text_fault(problem) or language_fault(
            problem.question, self.options.filter.language
        )
        return Dropped(fault) if fault else problem

    def checked_row(self, raw: RawRow, index: int) -> Row | Dropped:
        """Return the verl row of a raw row, or the reason to drop it; `index` is its place."""
        problem = self.problem(raw)
        if isinstance(problem, Dropped):
            return problem
        row = self.row(problem, index, self._kept_columns(raw, problem))
        findings = check_row(row, index)
        return Dropped(findings[0].rule, findings[0].message) if findings else row

    def _kept_columns(self, raw: RawRow, problem: Problem) -> str:
        """Return the columns that the user and the problem keep, as the text of a JSON object."""
        if not (self.options.keep or problem.columns):
            return ""
        columns = {path: value_at_path(raw, path) for path in self.options.keep}
        columns.update(problem.columns)
        return json.dumps(columns, ensure_ascii=False, default=str)

    def row(self, problem: Problem, index: int, columns: str = "") -> Row:
        """Return the verl row of a problem; `columns` are further ones of its raw row."""
        row = build_row(
            data_source=self.card.reward_key(self.split),
            prompt=self.options.messages(problem),
            ability=self.card.ability,
            ground_truth=problem.ground_truth,
            index=index,
            split=self.split,
            source_id=problem.source_id,
            question=problem.question,
            answer=problem.answer,
            scorer=self.options.scorer,
            subject=problem.subject,
            level=problem.level,
            kind=problem.kind,
            options=problem.options,
            columns=columns,
            images=problem.images,
        )
        return self.options.turns.add_to(row) if self.options.turns else row

    def metadata(self) -> dict[str, Any]:
        """Return how the file was made, for the metadata of the parquet."""
        turns = self.options.turns
        return {
            "rewardkit": VERSION,
            "dataset": self.card.name,
            "split": self.split,
            "origin": self.source.origin,
            "revision": self.source.revision,
            "template": self.options.template.text,
            "system": self.options.template.system,
            "scorer": self.options.scorer,
            "language": self.options.filter.language,
            "dedup": self.options.filter.dedup,
            "repeat": self.options.repeat,
            "limit": self.options.limit,
            "shuffle_seed": self.options.shuffle_seed,
            "options_seed": self.options.options_seed,
            "keep": list(self.options.keep),
            "where": list(map(str, self.options.where)),
            "unread_options": list(self.dataset.unread_options),
            **({turns.option: turns.name} if turns else {}),
        }
