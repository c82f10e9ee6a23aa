"""Read the sets of labelled cases as calls of our scorers and the peers', in two halves.

A set is split in two by a hash of its question, or else of its gold: we may look at the
misses of `build` while we write the package, and `held` is only measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

HALVES = ("build", "held")

#: The sets and their answer format; `stated` letters stand in a sentence.
SETS = {
    "hardverify": "boxed",
    "tests": "any",
    "exploits": "any",
    "redteam": "any",
    "redteam3": "any",
    "redteam3_adaptive": "any",
    "peer_suites": "any",
    "mathverify_issues": "any",
    "physics_pairs": "boxed",
    "mathv_free": "boxed",
    "mathvista_free": "free",
    "tabmwp": "free",
    "real_gsm8k_openai": "hashes",
    "real_gsm8k_abel": "hashes",
    "real_gsm8k_gsmplus": "hashes",
    "real_zeroeval_gsm8k": "hashes",
    "real_mrgsm8k": "hashes",
    "real_tora_rho": "boxed",
    "real_math_qwen25": "boxed",
    "real_math500_pairs": "boxed",
    "mathl5_pairs": "boxed",
    "real_mcq_gaokao": "letters",
    "real_mcq_mmlupro": "letters",
    "mathv_choice": "stated",
    "mathvista_choice": "stated",
    "mrben_letters": "stated",
    "real_financemath": "free",
}

#: Scorer and options of sets that are not for `math` and whose rows do not name a scorer.
SCORERS: dict[str, tuple[str, dict[str, Any]]] = {
    "mathvista_choice": ("mcq", {"final_letter": True}),
    "mathv_choice": ("mcq", {"final_letter": True}),
    "mrben_letters": ("mcq", {"final_letter": True}),
}

#: Kinds of cases whose `pred` is the whole response.
WHOLE_RESPONSE_KINDS = {"mv_text", "response", "mcq_text", "list", "mcq"}


class Case(NamedTuple):
    """A labelled response, every gold it may match, and the scorer call for it."""

    id: str
    response: str
    bare: str | None
    golds: tuple[str, ...]
    label: bool
    choice: bool
    half: str
    scorer: str
    options: dict[str, Any]
    extra_info: dict[str, Any]


def load(path: Path) -> list[Case]:
    """Read the labelled cases of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [to_case(row, path.stem) for row in rows if row["label"] is not None]


def to_case(row: Mapping[str, Any], name: str) -> Case:
    """Convert a row of the set `name`."""
    response = row.get("solution_str")
    if response is None:
        pred = str(row["pred"])
        response = pred if row["kind"] in WHOLE_RESPONSE_KINDS else f"\\boxed{{{pred}}}"
    gold = row["ground_truth"]
    golds = [str(g) for g in gold] if isinstance(gold, list) else [str(gold)]
    if name.startswith("real_zeroeval_gsm"):
        golds = [g.removeprefix("# ") for g in golds]
    choice = SETS[name] in ("letters", "stated") or str(row["kind"]).startswith("mcq")
    bare = str(row["pred"]) if str(row["kind"]).startswith("equiv") else None
    scorer, options = SCORERS.get(name, ("math", {}))
    return Case(
        id=str(row["id"]),
        response=str(response),
        bare=bare,
        golds=tuple(golds),
        label=bool(row["label"]),
        choice=choice,
        half=half_of(row),
        scorer=row.get("scorer") or scorer,
        options=options | (row.get("options_of_scorer") or {}),
        extra_info=extra_info_of(row),
    )


def extra_info_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a scorer may read, other than the gold."""
    fields = {key: row[key] for key in ("options", "question", "precision") if row.get(key)}
    return fields | (row.get("extra_info") or {})


def half_of(row: Mapping[str, Any]) -> str:
    """Return `build` or `held`, the same for all responses to one question."""
    question = row.get("question") or row.get("question_id")
    question = question or (row.get("extra_info") or {}).get("question")
    key = str(question or row.get("ground_truth", row.get("gold")))
    return HALVES[int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2]
