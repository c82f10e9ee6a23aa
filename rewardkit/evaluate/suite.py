"""Suites: sets of questions by name, prepared if they are missing, evaluated one after another."""

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from rewardkit.errors import SourceError, UsageError
from rewardkit.evaluate.evaluation import OWN_SCORERS, EvaluationReport, evaluate
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.preprocess.load import (
    card_of,
    evaluation_split,
    is_split_of_dataset,
    load_dataset,
    prepared_path,
    read_set_name,
)
from rewardkit.preprocess.prep import prep
from rewardkit.preprocess.source import Hub
from rewardkit.responses.score import ScoringPlan


@dataclass(frozen=True)
class SuiteMember:
    """A set of questions: its rows, which may not exist yet, and responses per question.

    `dataset` is its name in the registry, with a split; "" for a parquet of the user's.
    """

    name: str
    parquet: Path
    n: int
    _: KW_ONLY
    dataset: str = ""
    split: str = ""


def parse_suite(text: str, folder: Path, n: int) -> list[SuiteMember]:
    """Return the sets that a text names, with n responses per question where the name does not say.

    The names are separated by commas: of sets as `read_set_name` reads them (a dataset's name alone
    stands for its test split, or its only one), or paths of parquets; `:32` after a name sets its n.
    """
    members = [_parse_member(name, folder, n) for name in names_in_suite(text)]
    names = [member.name for member in members]
    if not members:
        raise UsageError("--suite: name the sets, as in aime2024,math-500,gsm8k.")
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--suite: two sets are called {duplicate}; name each set once.")
    return members


def names_in_suite(text: str) -> list[str]:
    """Return the names in the text of `--suite`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse_member(text: str, folder: Path, n: int) -> SuiteMember:
    name, _, own_n = text.rpartition(":")
    if name and own_n.isdecimal() and not is_split_of_dataset(text):
        if not re.fullmatch("[1-9][0-9]{0,5}", own_n):
            raise UsageError(f"--suite {text}: n must be between 1 and 999999.")
        return replace(_parse_member(name, folder, n), n=int(own_n))
    if text.endswith(".parquet"):
        return SuiteMember(Path(text).stem, Path(text), n)
    set_ = read_set_name(text)
    card = card_of(load_dataset(set_.dataset))
    split = set_.split or evaluation_split(card)
    parquet = prepared_path(folder, card, split)
    return SuiteMember(parquet.stem, parquet, n, dataset=set_.dataset, split=split)


def prepare_member(
    member: SuiteMember, hub: Hub, jobs: int, progress: Callable[[int], object] = lambda _: None
) -> bool:
    """Write a set's parquet if it is missing, and return whether it was missing."""
    if member.parquet.is_file():
        return False
    if not member.dataset:
        raise SourceError(f"{member.parquet}: no such file.")
    try:
        prep(
            member.dataset,
            member.parquet,
            split=member.split,
            hub=hub,
            jobs=jobs,
            progress=progress,
        )
    except SourceError as error:
        raise SourceError(
            f"{error.reason} Provide the file and run: rewardkit prep {member.dataset} --split "
            f"{member.split} --source FILE --out {member.parquet}, or use another source: --hub "
            f"{'huggingface' if hub == 'modelscope' else 'modelscope'}, HF_ENDPOINT=URL."
        ) from error
    return True


def evaluate_suite(
    suite: Sequence[SuiteMember],
    generation: GenerationConfig,
    out: Path,
    plan: ScoringPlan = OWN_SCORERS,
    *,
    overwrite: bool = False,
    **options: Any,
) -> dict[str, EvaluationReport]:
    """Evaluate prepared sets with `evaluate`, each with its own n, to NAME.jsonl in the folder `out`.

    Of a finished set only what is missing is generated, unless `overwrite` is set.
    """
    if out.is_file() or out.suffix == ".jsonl":
        raise UsageError(f"--out {out}: --suite writes several files; name a folder.")
    return {
        member.name: evaluate(
            member.parquet,
            replace(generation, n=member.n),
            out / f"{member.name}.jsonl",
            plan,
            overwrite=overwrite,
            resume=not overwrite,
            name=member.name,
            **options,
        )
        for member in suite
    }
