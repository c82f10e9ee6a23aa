"""Statistics of rows for the reports: lengths, kinds of answers, and groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.row import Row

#: Kinds of golds; the first pattern that matches decides.
_KINDS = (
    (
        "placeholder",
        re.compile(r"(?i:#?n/?a|none|nan|todo|tbd|unknown|fixme|xxx)|[?？]+|-+|—|\.+|…"),
    ),
    ("quoted text", re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|“[^”]*”")),
    ("integer", re.compile(r"[-+]?[0-9][0-9,]*")),
    ("decimal", re.compile(r"[-+]?[0-9]*\.[0-9]+")),
    (
        "fraction",
        re.compile(r"-?(?:[0-9]+/[0-9]+|\\[dt]?frac\s*\{?\s*[0-9]+\s*\}?\s*\{?[0-9 ]+\}?)"),
    ),
    ("choice", re.compile(r"[A-J](?:[,、 ]*[A-J])*")),
    ("percent or unit", re.compile(r"[-+]?[0-9][0-9.,]*\s*(?:\\?%|\^?\\?circ|\\text\{.*\}|°).*")),
    ("text", re.compile(r"(?:\\text\{)?[^\W\d_][^\W\d_ ]+(?: [^\W\d_]+)*\}?")),
    ("alternatives", re.compile(r"\[\s*\".*", re.DOTALL)),
    ("tuple, set or interval", re.compile(r"(?:\\left)?\s*(?:[(\[]|\\\{).*,.*", re.DOTALL)),
    ("equation or inequality", re.compile(r".*(?:[=<>]|\\[lg]eq?(?![a-z])).*", re.DOTALL)),
)

#: A word of a sentence, and a Chinese character; a sentence has at least this number of either.
_WORD, _HAN = re.compile(r"[^\W\d_]{2,}"), re.compile("[\u4e00-\u9fff]")
_SENTENCE_WORDS, _SENTENCE_CHARACTERS = 5, 12


def answer_kind(gold: str) -> str:
    """Return the kind of a gold for reports and hints: `integer`, `choice`, `sentence`, ...

    No verdict depends on it. A gold that matches no pattern is an `expression`.
    """
    gold = gold.strip()[:200]
    kind = next((name for name, pattern in _KINDS if pattern.fullmatch(gold)), "expression")
    is_sentence = "\\" not in gold and (
        len(_WORD.findall(gold)) >= _SENTENCE_WORDS
        or len(_HAN.findall(gold)) >= _SENTENCE_CHARACTERS
    )
    return "sentence" if is_sentence and kind != "alternatives" else kind


#: The kinds of golds that are seldom meant.
_DOUBTFUL_KINDS = {
    "placeholder": "a placeholder (N/A, none, TODO, ?)",
    "quoted text": "a text in quotes",
}


@dataclass
class RowStats:
    """Counts of rows, for the charts of a report.

    Attributes:
        rows: number of rows.
        prompt_chars: number of rows by the length of the prompt in characters (all messages).
        answer_kinds: number of rows by kind of gold.
        groups: number of rows by value of `data_source`, `subject`, `level` and `kind`; rows
            without a value are not counted.
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

    def doubtful_golds(self) -> list[str]:
        """Return sentences about golds that equal themselves as text, but are hardly answers."""
        return [
            f"rows whose gold is {name}: {n:,}; fix or drop them unless it is the answer."
            for kind, name in _DOUBTFUL_KINDS.items()
            if (n := self.answer_kinds[kind])
        ]
