"""What a set of rows looks like: lengths, and kinds of answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.row import Row

#: Kinds of gold, the first that matches.
_KINDS = (
    ("integer", re.compile(r"[-+]?[0-9][0-9,]*")),
    ("decimal", re.compile(r"[-+]?[0-9]*\.[0-9]+")),
    (
        "fraction",
        re.compile(r"-?(?:[0-9]+/[0-9]+|\\[dt]?frac\s*\{?\s*[0-9]+\s*\}?\s*\{?[0-9 ]+\}?)"),
    ),
    ("choice", re.compile(r"[A-J](?:[,、 ]*[A-J])*")),
    ("percent or unit", re.compile(r"[-+]?[0-9][0-9.,]*\s*(?:\\?%|\^?\\?circ|\\text\{.*\}|°).*")),
    ("text", re.compile(r"(?:\\text\{)?[^\W\d_][^\W\d_ ]+(?: [^\W\d_]+)*\}?")),
    ("tuple, set or interval", re.compile(r"(?:\\left)?\s*(?:[(\[]|\\\{).*,.*", re.DOTALL)),
    ("equation or inequality", re.compile(r".*(?:[=<>]|\\[lg]eq?(?![a-z])).*", re.DOTALL)),
)


def answer_kind(gold: str) -> str:
    """What kind of answer a gold is, for the report's picture: `integer`, `choice`, ...

    It decides nothing; a gold that no rule knows is an `expression`.
    """
    gold = gold.strip()[:200]
    return next((name for name, rule in _KINDS if rule.fullmatch(gold)), "expression")


@dataclass
class RowStats:
    """Counts over rows, for pictures.

    Attributes:
        rows: how many.
        prompt_chars: how many rows have a prompt of so many characters (all messages).
        answer_kinds: rows by kind of gold.
        groups: rows by value, for `data_source`, `subject`, `level` and `kind`, where there is one.
    """

    rows: int = 0
    prompt_chars: Counter[int] = field(default_factory=Counter)
    answer_kinds: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Count a row."""
        self.rows += 1
        self.prompt_chars[sum(len(str(m["content"])) for m in row["prompt"])] += 1
        self.answer_kinds[answer_kind(str(row["reward_model"]["ground_truth"]))] += 1
        info: Mapping[str, Any] = row.get("extra_info") or {}
        for name in ("subject", "level", "kind"):
            if value := info.get(name):
                self.groups.setdefault(name, Counter())[str(value)] += 1
        self.groups.setdefault("data_source", Counter())[row["data_source"]] += 1


def share_over(lengths: Counter[int], limit: int) -> float:
    """The share of rows that are longer than `limit`."""
    over = sum(count for length, count in lengths.items() if length > limit)
    return over / lengths.total() if lengths else 0.0
