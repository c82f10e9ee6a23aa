"""The checks of one verl row: its contents, and the gold self-check.

The self-check runs the reward itself: the dataset's own solution and the shortest well-formed
response with the gold must be right, and another answer must not. What it finds is found at step
200 otherwise, if at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rewardkit.answers.number import read_number
from rewardkit.errors import UnknownNameError
from rewardkit.row import Row
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import Score, Scorer, Status, as_text, guarded
from rewardkit.scorers.load import respond_of

#: The rules, in the order they are reported, and what to do about each.
RULES: Mapping[str, str] = {
    "missing": "prepare the file with rewardkit prep, or add the column",
    "schema": "write the column as the type named, or prepare the file with rewardkit prep",
    "empty_prompt": "drop the row: the policy would answer nothing",
    "bad_prompt": "write the prompt as a chat: a list of {role, content}",
    "empty_gold": "drop the row or add its answer: no response could score",
    "unknown_data_source": "name a scorer in extra_info.scorer, pass --scorer, or register one",
    "bad_gold": "mend the gold: this scorer cannot read it, so no response could score",
    "gold_is_wrong": "the gold, given in the asked form, does not score: wrong scorer for this row?",
    "solution_is_wrong": "the dataset's own solution does not give this gold: look at the row",
    "wrong_is_right": "another answer scores as right: do not train on this reward",
    "scorer_raises": "mend the scorer: inside verl 0.9 the sample is dropped without a word",
    "duplicate": "drop it, or pass --allow-duplicates if it is meant",
    "conflicting_gold": "keep one: the same prompt has another gold in an earlier row",
}

ROLES = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a file (`row` is None) or with one of its rows (0-based)."""

    row: int | None
    rule: str
    message: str


def check_row(row: Row, index: int, scorer: Scorer | None = None) -> list[Finding]:
    """What is wrong with a row by itself; empty if nothing is.

    Args:
        row: in verl's schema; fields verl does not need may be missing.
        index: its place in the file.
        scorer: judges instead of the row's own scorer.
    """
    found = list(_contents(row)) or list(_self_check(row, scorer))
    return [Finding(index, rule, message) for rule, message in found]


def prompt_key(row: Row) -> bytes:
    """A digest of what the policy sees: prompt and images. Equal for duplicates."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((row["data_source"], row["prompt"])).encode("utf-8", "surrogatepass"))
    for image in row.get("images") or ():
        digest.update(repr(image).encode())
    return digest.digest()


def dropped_path(out: Path) -> Path:
    """Where the rows dropped on the way to `out` are kept, with their reasons."""
    return out.with_name(f"{out.name}.dropped.jsonl")


def dropped_line(index: int, reasons: list[str], row: Mapping[str, Any]) -> str:
    """A line of `OUT.dropped.jsonl`: where the row was, why it went, and the row itself."""
    entry = {"index": index, "reasons": reasons, "row": row}
    return json.dumps(entry, ensure_ascii=True, default=_summary) + "\n"


def _contents(row: Row) -> Iterator[tuple[str, str]]:
    prompt = row["prompt"]
    if not prompt or not any((m.get("content") or "").strip() for m in prompt):
        yield "empty_prompt", "the prompt is empty"
    elif bad := [m for m in prompt if m.get("role") not in ROLES or m.get("content") is None]:
        yield "bad_prompt", f"message {str(bad[0])[:80]}: role must be one of {sorted(ROLES)}"
    if not as_text((row["reward_model"] or {}).get("ground_truth")).strip():
        yield "empty_gold", "reward_model.ground_truth is empty"


def _self_check(row: Row, scorer: Scorer | None) -> Iterator[tuple[str, str]]:
    info = {**(row.get("extra_info") or {}), "data_source": row["data_source"]}
    gold = str(row["reward_model"]["ground_truth"])
    try:
        judge = scorer or scorer_for(row["data_source"], info)
    except UnknownNameError as error:
        yield "unknown_data_source", str(error)
        return
    if respond := respond_of(judge):
        yield from _expect_right(judge, respond(gold), gold, info, "gold_is_wrong")
        yield from _expect_wrong(judge, respond(another_answer(gold)), gold, info)
    solution = as_text(info.get("answer")).strip()
    if solution and solution != gold.strip():
        judge = _solution_scorer(row["data_source"], judge)
        yield from _expect_right(judge, solution, gold, info, "solution_is_wrong")


def _solution_scorer(data_source: str, judge: Scorer) -> Scorer:
    """A dataset's solutions keep its own form, whatever form the template asks for."""
    try:
        return scorer_for(data_source, {})
    except UnknownNameError:
        return judge


def _expect_right(
    judge: Scorer, response: str, gold: str, info: Mapping[str, Any], rule: str
) -> Iterator[tuple[str, str]]:
    result = guarded(judge, response, gold, info)
    if isinstance(result, Exception):
        yield "scorer_raises", f"{type(result).__name__}: {result}"
    elif result.status is Status.BAD_GROUND_TRUTH:
        yield "bad_gold", f"gold {gold[:80]!r} cannot be scored"
    elif not result.correct:
        yield rule, f"gold {gold[:80]!r}, read {result.pred[:80]!r} in ...{response[-60:]!r}"


def _expect_wrong(
    judge: Scorer, response: str, gold: str, info: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    result = guarded(judge, response, gold, info)
    if isinstance(result, Score) and result.correct:
        yield "wrong_is_right", f"gold {gold[:80]!r}, yet {response[:80]!r} scores as right"


def another_answer(gold: str) -> str:
    """An answer that is certainly not `gold`: the next number, or 0 where gold is no number."""
    value = read_number(gold)
    return str(value + 1) if isinstance(value, Fraction) else "0"


def _summary(value: Any) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
