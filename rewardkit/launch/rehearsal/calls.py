"""What was written down of the calls of the user's scorer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call of the scorer.

    Attributes:
        data_source: as given; "" where it is not known.
        ground_truth: the first characters; None if None was given.
        extra_info: its keys, or the type's name if it is not a mapping.
        response: the first characters.
        returned: the type of what came back, "" if nothing did.
        keys: of what came back, if it is a mapping.
        score: the number under `score`, or the number that came back; None if there is none.
        error: what was raised; "" for nothing.
        thread: the name of the thread it was called in.
        seconds: it took.
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


def read_calls(file: Path) -> tuple[list[Call], str]:
    """The calls, and why the scorer did not load ("" if it did)."""
    calls, failure = [], ""
    for line in _lines(file):
        if "load_error" in line:
            failure = failure or str(line["load_error"])
        else:
            calls.append(_call(line))
    return calls, failure


def _call(line: dict[str, Any]) -> Call:
    info, numbers = line["extra_info"], line.get("numbers", {})
    return Call(
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


def read_dumps(folder: Path) -> list[Call]:
    """The calls of verl's own scorer, as far as its dumped responses tell of it."""
    own = {"input", "output", "gts", "score", "step", "uid", "request_id"}
    return [
        Call(
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


def few(calls: Sequence[Call], count: int = 5) -> tuple[Call, ...]:
    """Some calls to show: those that differ in what was given and what came back, then the first."""
    kinds = {(call.data_source, call.returned, call.keys, call.error): call for call in calls[::-1]}
    chosen = [*reversed(kinds.values()), *calls]
    return tuple(dict.fromkeys(chosen))[:count]
