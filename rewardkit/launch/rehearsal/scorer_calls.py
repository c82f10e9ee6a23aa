"""The recorded calls of the user's scorer, or of verl's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ScorerCall:
    """One call of the scorer.

    Attributes:
        data_source: the argument; "" where it is not known.
        ground_truth: the first characters of the argument; None for None.
        extra_info: the keys of the argument, or its type if it is not a mapping.
        response: the first characters of the response.
        returned: the type of the result; "" if the call raised.
        keys: the keys of the result, if it is a mapping.
        numbers: the keys that have a number.
        score: the number under `score`, or the result itself; None if neither is a number.
        error: the exception; "" if the call returned.
        thread: the name of the thread of the call.
        seconds: the duration.
    """

    data_source: str
    ground_truth: str | None
    extra_info: tuple[str, ...] | str
    response: str
    returned: str = ""
    keys: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    score: float | None = None
    error: str = ""
    thread: str = ""
    seconds: float = 0.0


def read_calls(file: Path) -> tuple[list[ScorerCall], str]:
    """Return the recorded calls, and why the scorer did not load ("" if it did)."""
    calls, failure = [], ""
    for line in _lines(file):
        if "load_error" in line:
            failure = failure or str(line["load_error"])
        else:
            calls.append(_call(line))
    return calls, failure


def _call(line: dict[str, Any]) -> ScorerCall:
    info, numbers = line["extra_info"], line.get("numbers", {})
    return ScorerCall(
        data_source=line["data_source"] or "",
        ground_truth=line["ground_truth"],
        extra_info=tuple(info) if isinstance(info, list) else str(info),
        response=line["response"] or "",
        returned=line.get("returned", ""),
        keys=tuple(line.get("keys", ())),
        numbers=tuple(key for key, value in numbers.items() if key and value is not None),
        score=numbers.get("score", numbers.get("")),
        error=line["error"],
        thread=line["thread"],
        seconds=line["seconds"],
    )


def read_dumps(folder: Path) -> list[ScorerCall]:
    """Return the calls of verl's own scorer, from the responses that it dumped."""
    own = {"input", "output", "gts", "score", "step", "uid", "request_id"}
    return [
        ScorerCall(
            data_source="",
            ground_truth=str(row["gts"]) if "gts" in row else None,
            extra_info="",
            response=str(row.get("output", "")),
            returned="dict",
            keys=tuple(key for key in row if key not in own),
            score=row["score"],
        )
        for file in sorted(folder.glob("*.jsonl"))
        for row in _lines(file)
        if isinstance(row.get("score"), (int, float))
    ]


def _lines(file: Path) -> Iterable[dict[str, Any]]:
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue  # the last line of a process that was ended
        if isinstance(value, dict):
            yield value


def select_examples(calls: Sequence[ScorerCall], count: int = 5) -> tuple[ScorerCall, ...]:
    """Return calls to show: first those with different sources and results, then the earliest."""
    kinds = {(call.data_source, call.returned, call.keys, call.error): call for call in calls[::-1]}
    chosen = [*reversed(kinds.values()), *calls]
    return tuple(dict.fromkeys(chosen))[:count]
