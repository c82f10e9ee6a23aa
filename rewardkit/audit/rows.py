"""Choose the rows of an audit: a sample of the user's parquet, or packaged rows for the scorer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardkit.audit.model import AuditRow
from rewardkit.audit.question_attacks import question_rows
from rewardkit.errors import DataError
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.prep import preview
from rewardkit.row import question_of, read_rows
from rewardkit.scorers.gold import MISSING, unwrap_gold

#: Datasets whose samples have the forms of gold that a scorer reads; more of them would only be more
#: of the same.
_DATASETS = {
    "geometry3k": ("geometry3k",),
    "gsm8k": ("gsm8k",),
    "math": ("aime", "math", "math-500"),
    "math_dapo": ("dapo-math-17k",),
    "math_verify": ("math", "math-500"),
    "mcq": ("dianjin-mcq",),
}

#: Datasets for a scorer of any kind, such as `auto` and custom scorers.
_ALL_KINDS = ("gsm8k", "math", "dapo-math-17k", "dianjin-mcq", "geometry3k")

#: Datasets for a judge, whose calls are few.
_JUDGE_KINDS = ("gsm8k", "math")

#: Datasets for verl's default reward, beginning with the one whose answers it runs as code.
_VERL_KINDS = ("eurus-2", "gsm8k", "math")


def sample_rows(
    rows: Path | str | Iterable[Mapping[str, Any]], n: int, seed: int
) -> list[AuditRow]:
    """Return up to `n` rows of a verl parquet, or of rows in verl's schema, sampled by `seed`.

    Raises:
        DataError: the file cannot be read, or a row has no gold.
    """
    is_file = isinstance(rows, (str, Path))
    source = str(rows) if is_file else "rows"
    stream = read_rows(Path(rows)) if isinstance(rows, (str, Path)) else rows
    sample = _sample(stream, n, random.Random(seed))  # noqa: S311 - a sample, not a secret
    if not sample:
        raise DataError(f"{source}: no rows to audit with.")
    return [_audit_row(row, source) for row in sample]


def packaged_rows(
    scorer: str, n: int, seed: int, options: Mapping[str, Any] | None = None
) -> list[AuditRow]:
    """Return `n` packaged rows for a scorer with its options, or rows of all kinds."""
    if scorer == "qa" or (scorer == "judge" and (options or {}).get("rubric") == "qa"):
        return question_rows()[:n]
    general = {"judge": _JUDGE_KINDS, "verl": _VERL_KINDS}.get(scorer, _ALL_KINDS)
    names = _DATASETS.get(scorer, general)
    share = -(-n // len(names))
    rows = [
        row
        for name in names
        for row in sample_rows(_packaged_sample(name), share, seed)  # some of each kind
    ][:n]
    # Eurus-2 has these names in its own parquet; `prep` writes another.
    return [
        replace(row, data_source="numina_olympiads")
        if scorer == "verl" and "Eurus-2" in row.data_source
        else row
        for row in rows
    ]


def _packaged_sample(name: str) -> list[dict[str, Any]]:
    split = next(iter(read_card(name).splits))
    return preview(name, 1000, sample=True, split=split)


def _sample(rows: Iterable[Any], n: int, rng: random.Random) -> list[Any]:
    """Return a sample of a stream in one pass, in the order of the stream."""
    sample: list[tuple[int, Any]] = []
    for index, row in enumerate(rows):
        if index < n:
            sample.append((index, row))
        elif (place := rng.randrange(index + 1)) < n:
            sample[place] = (index, row)
    return [row for _, row in sorted(sample, key=lambda pair: pair[0])]


def _audit_row(row: Mapping[str, Any], source: str) -> AuditRow:
    model = row.get("reward_model")
    value = model.get("ground_truth") if isinstance(model, Mapping) else row.get("ground_truth")
    gold = unwrap_gold(value)
    if gold.strip() in MISSING:
        raise DataError(f"{source}: a row has no reward_model.ground_truth; run rewardkit check.")
    info = row.get("extra_info")
    fields = dict(info) if isinstance(info, Mapping) else {}
    return AuditRow(
        prompt=_prompt_text(row),
        gold=gold,
        data_source=str(row.get("data_source") or ""),
        extra_info=json.loads(json.dumps(fields, default=str)),
    )


def _prompt_text(row: Mapping[str, Any]) -> str:
    """Return the text that the policy reads: all messages of the prompt, or else the question."""
    prompt = row.get("prompt")
    if isinstance(prompt, list):
        return "\n".join(str(message["content"]) for message in prompt)
    return str(prompt) if prompt else question_of({"prompt": "", **row})
