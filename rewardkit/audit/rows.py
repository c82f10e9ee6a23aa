"""The rows a scorer is audited on: a sample of the user's parquet, or packaged ones that fit it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardkit import registry
from rewardkit.audit.model import Case
from rewardkit.errors import DataError
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.pipeline import preview
from rewardkit.row import question_of, read_rows

#: The packaged rows for a scorer that no dataset names, `auto` and users' own among them.
_ALL_KINDS = ("gsm8k", "math", "dapo-math-17k", "dianjin-mcq", "geometry3k")
_LIKE_MATH = ("math", "math-500")


def cases_of(rows: Path | str | Iterable[Mapping[str, Any]], n: int, seed: int) -> list[Case]:
    """Up to `n` rows of a verl parquet, or of rows in verl's schema, drawn by `seed`.

    Raises:
        DataError: the file cannot be read, or no row has what a reward needs.
    """
    is_file = isinstance(rows, (str, Path))
    source = str(rows) if is_file else "rows"
    found = read_rows(Path(rows)) if isinstance(rows, (str, Path)) else rows
    drawn = _drawn(found, n, random.Random(seed))  # noqa: S311 - a sample, not a secret
    cases = [_case(row, source) for row in drawn]
    if not cases:
        raise DataError(f"{source}: no rows to audit with.")
    return cases


def packaged(scorer: str, n: int, seed: int) -> list[Case]:
    """Packaged rows that fit a scorer: of its datasets, or of every kind, `n` in all."""
    names = _fitting(scorer)
    share = -(-n // len(names))
    return [
        case
        for name in names
        for case in cases_of(_sample(name), share, seed)  # ours: a few of each kind
    ][:n]


def _fitting(scorer: str) -> tuple[str, ...]:
    own = tuple(name for name in registry.DATASETS if read_card(name).scorer == scorer)
    if scorer == "math_verify":
        return _LIKE_MATH
    return own or _ALL_KINDS


def _sample(name: str) -> list[dict[str, Any]]:
    split = next(iter(read_card(name).splits))
    return preview(name, 1000, sample=True, split=split)


def _drawn(rows: Iterable[Any], n: int, rng: random.Random) -> list[Any]:
    """A sample of a stream in one pass, in the order of the stream."""
    kept: list[tuple[int, Any]] = []
    for index, row in enumerate(rows):
        if index < n:
            kept.append((index, row))
        elif (place := rng.randrange(index + 1)) < n:
            kept[place] = (index, row)
    return [row for _, row in sorted(kept, key=lambda pair: pair[0])]


def _case(row: Mapping[str, Any], source: str) -> Case:
    model = row.get("reward_model")
    gold = model.get("ground_truth") if isinstance(model, Mapping) else row.get("ground_truth")
    if gold is None:
        raise DataError(f"{source}: a row has no reward_model.ground_truth; run rewardkit check.")
    info = row.get("extra_info")
    extra = dict(info) if isinstance(info, Mapping) else {}
    return Case(_asked(row), str(gold), str(row.get("data_source") or ""), extra)


def _asked(row: Mapping[str, Any]) -> str:
    """All that the policy is told: its prompt, or else the question."""
    prompt = row.get("prompt")
    if isinstance(prompt, list):
        return "\n".join(str(message["content"]) for message in prompt)
    return str(prompt) if prompt else question_of({"prompt": "", **row})
