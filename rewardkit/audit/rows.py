"""Choose the rows of an audit: a sample of the user's parquet, or packaged rows for the scorer."""

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import nsmallest
from pathlib import Path
from typing import Any

from rewardkit.audit.attacks import OPEN_QUESTIONS
from rewardkit.audit.model import AuditRow
from rewardkit.audit.program_attacks import packaged_problems
from rewardkit.audit.task_attacks import packaged_tasks
from rewardkit.errors import DataError
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.prep import preview
from rewardkit.row import question_of, read_rows
from rewardkit.scorers.conversation import one_turn
from rewardkit.scorers.gold import MISSING, unwrap_gold

#: Datasets whose samples have the forms of gold that a scorer reads; more of them would only be more
#: of the same. The calls of a judge are few; verl's default reward runs the answers of the first as code.
_DATASETS = {
    "geometry3k": "geometry3k",
    "gsm8k": "gsm8k",
    "math": "aime math math-500",
    "math_dapo": "dapo-math-17k",
    "math_verify": "math math-500",
    "mcq": "dianjin-mcq",
    "sql": "spider bird",
    "judge": "gsm8k math",
    "verl": "eurus-2 gsm8k math",
}

#: Datasets for a scorer of any kind, such as `auto` and custom scorers.
_ALL_KINDS = "gsm8k math dapo-math-17k dianjin-mcq geometry3k"


def sample_rows(
    rows: Path | str | Iterable[Mapping[str, Any]], n: int, seed: int
) -> list[AuditRow]:
    """Return up to `n` rows of a verl parquet, or of rows in verl's schema, sampled by `seed`.

    Raises:
        DataError: the file cannot be read, or a row has no gold.
    """
    source = str(rows) if isinstance(rows, (str, Path)) else "rows"
    stream = read_rows(Path(rows)) if isinstance(rows, (str, Path)) else rows
    draw = random.Random(seed).random  # noqa: S311 - a sample, not a secret
    sample = nsmallest(n, enumerate(stream), key=lambda _: draw())
    if not sample:
        raise DataError(f"{source}: no rows to audit with.")
    return [_audit_row(row, source) for _, row in sorted(sample, key=lambda pair: pair[0])]


def packaged_rows(
    scorer: str, n: int, seed: int, options: Mapping[str, Any] | None = None
) -> list[AuditRow]:
    """Return `n` packaged rows for a scorer with its options, or rows of all kinds."""
    if scorer == "qa" or (scorer == "judge" and (options or {}).get("rubric") == "qa"):
        return _open_rows()[:n]
    if scorer == "code":
        return packaged_problems("taco")
    if scorer == "sql":  # some of whose attacks take all of its seconds
        n = min(n, 4)
    if tasks := packaged_tasks(scorer):
        return tasks
    names = _DATASETS.get(scorer, _ALL_KINDS).split()
    count = -(-n // len(names))
    rows: list[AuditRow] = []
    for name in names:
        split = next(iter(read_card(name).splits))
        rows += sample_rows(preview(name, 1000, sample=True, split=split), count, seed)
    if scorer == "verl":  # Eurus-2 has this name in its own parquet; `prep` writes another
        rows = [
            replace(row, data_source="numina_olympiads") if "Eurus-2" in row.data_source else row
            for row in rows
        ]
        return [*packaged_problems("taco"), *rows][:n]
    return rows[:n]


def _open_rows() -> list[AuditRow]:
    """Return rows of open questions, with golds as Search-R1 has them."""
    return [
        AuditRow(
            prompt=f"Answer the question between <answer> and </answer>. {question}",
            gold=json.dumps({"target": [gold]}),
            data_source="searchR1_nq",
            extra_info={"question": question},
        )
        for question, gold in OPEN_QUESTIONS.items()
    ]


def _audit_row(row: Mapping[str, Any], source: str) -> AuditRow:
    model, info, prompt = row.get("reward_model"), row.get("extra_info"), row.get("prompt")
    gold = unwrap_gold((model if isinstance(model, Mapping) else row).get("ground_truth"))
    if gold.strip() in MISSING:
        raise DataError(f"{source}: a row has no reward_model.ground_truth; run rewardkit check.")
    if isinstance(prompt, list):
        prompt = "\n".join(str(message["content"]) for message in prompt)
    return AuditRow(
        prompt=str(prompt or question_of({"prompt": "", **row})),
        gold=gold,
        data_source=str(row.get("data_source") or ""),
        extra_info=one_turn(
            json.loads(json.dumps(info if isinstance(info, Mapping) else {}, default=str))
        ),
    )
