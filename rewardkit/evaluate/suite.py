"""Suites: several sets of questions by name, prepared where they are missing, asked one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from rewardkit import registry
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.evaluate.generate import Generation
from rewardkit.evaluate.judge import Outcome, judged_by
from rewardkit.evaluate.metrics import Figures
from rewardkit.evaluate.questions import count, questions
from rewardkit.evaluate.results import result_lines
from rewardkit.evaluate.run import Judging, Report, evaluate
from rewardkit.preprocess.pipeline import card_of, load_dataset, prep
from rewardkit.preprocess.source import Hub


@dataclass(frozen=True)
class Member:
    """A set of questions.

    Attributes:
        name: of its files.
        parquet: where its rows are, or will be.
        n: responses to each question.
        dataset: whose rows they are, by its name in the registry; "" for a parquet of the user's.
        split: of the dataset.
    """

    name: str
    parquet: Path
    n: int
    dataset: str = ""
    split: str = ""


def default_folder() -> Path:
    """Where prepared sets are kept: `rewardkit/suite` in the user's cache (XDG_CACHE_HOME)."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "rewardkit" / "suite"


def members(text: str, folder: Path, n: int) -> list[Member]:
    """The sets that a text names.

    Args:
        text: names with commas between: a dataset (`gsm8k`: its test split), a dataset with a split
            (`aime2024`, `math-train`), or a parquet's path; `:32` after one is its own n.
        folder: of prepared sets.
        n: responses to each question where the name says none.

    Raises:
        UnknownNameError: no such dataset.
        UsageError: it has no test split and none is named, or a set is named twice.
    """
    found = [_member(each.strip(), folder, n) for each in text.split(",") if each.strip()]
    names = [member.name for member in found]
    if not found:
        raise UsageError("--suite: name the sets, as in aime2024,math-500,gsm8k.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--suite: two sets are called {twice}; name each once.")
    return found


def _member(text: str, folder: Path, n: int) -> Member:
    name, _, own = text.rpartition(":")
    if name and own.isdigit() and int(own[:9]) == 0:
        raise UsageError(f"--suite {text}: n is at least 1.")
    if name and re.fullmatch("[1-9][0-9]{0,5}", own):
        return replace(_member(name, folder, n), n=int(own))
    if text.endswith(".parquet"):
        return Member(Path(text).stem, Path(text), n)
    dataset, split = _dataset(text)
    return Member(text, folder / f"{text}.parquet", n, dataset, split)


def _dataset(text: str) -> tuple[str, str]:
    """Dataset and split of a name; the longest dataset that it may be counts."""
    if text in registry.known("datasets"):
        return text, _test_split(text)
    for dataset in sorted(registry.known("datasets"), key=len, reverse=True):
        rest = text.removeprefix(dataset).lstrip("-_")
        if text.startswith(dataset) and rest in card_of(load_dataset(dataset)).splits:
            return dataset, rest
    for dataset in registry.known("datasets"):
        if text.startswith(dataset):
            raise UnknownNameError(f"--suite {text}: {_choices(dataset)}")
    registry.target("datasets", text)  # says that there is none, and which are near
    raise AssertionError(text)


def _test_split(dataset: str) -> str:
    splits = list(card_of(load_dataset(dataset)).splits)
    if "test" in splits:
        return "test"
    raise UsageError(f"--suite {dataset}: it has no test split; {_choices(dataset)}")


def _choices(dataset: str) -> str:
    splits = card_of(load_dataset(dataset)).splits
    return f"name one: {' or '.join(f'{dataset}-{split}' for split in splits)}."


def prepare(
    member: Member, hub: Hub, jobs: int, progress: Callable[[int], object] = lambda _: None
) -> bool:
    """Write a set's parquet if it is missing; whether it was.

    Raises:
        SourceError: its rows are nowhere to be found; how to bring them is said.
        DataError: they cannot be read, or a parquet of the user's is not there.
    """
    if member.parquet.is_file():
        return False
    if not member.dataset:
        raise DataError(f"{member.parquet}: no such file.")
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
        found = str(error).partition("\n")[0].partition(". Ways out")[0]
        raise SourceError(
            f"{found}. Bring its file and run: rewardkit prep {member.dataset} --split "
            f"{member.split} --source FILE --out {member.parquet}, or look elsewhere: --hub "
            f"{'huggingface' if hub == 'modelscope' else 'modelscope'}, HF_ENDPOINT=URL."
        ) from error
    return True


def evaluate_all(
    suite: Sequence[Member],
    generation: Generation,
    out: Path,
    judging: Judging,
    *,
    overwrite: bool = False,
    start: Callable[[str, int, int], object] = lambda _name, _have, _all: None,
    progress: Callable[[int, int], object] = lambda _responses, _tokens: None,
) -> dict[str, Report]:
    """Evaluate every set; see `evaluate`. Sets whose file is finished are read, not asked again.

    Args:
        suite: prepared sets.
        generation: what is asked; each set has its own n.
        out: a folder, that gets NAME.jsonl for each.
        judging: how responses are judged.
        overwrite: ask again.
        start: called with a set's name, and as by `evaluate`.
        progress: as by `evaluate`.

    Raises:
        DataError: a finished file is of another model, sampling, n or scorer, or of other rows.
    """
    if out.is_file() or out.suffix == ".jsonl":
        raise UsageError(f"--out {out}: with --suite and --watch, name a folder.")
    reports = {}
    for member in suite:
        asked, path = replace(generation, n=member.n), out / f"{member.name}.jsonl"
        if path.exists() and not overwrite:
            reports[member.name] = finished(member.parquet, asked, path, judging)
            continue

        def begin(have: int, wanted: int, name: str = member.name) -> None:
            start(name, have, wanted)

        reports[member.name] = evaluate(
            member.parquet,
            asked,
            path,
            judging,
            overwrite=overwrite,
            start=begin,
            progress=progress,
        )
    return reports


def finished(parquet: Path, generation: Generation, path: Path, judging: Judging) -> Report:
    """The report of a file that an earlier run finished.

    Raises:
        DataError: it is of another model, sampling, n or scorer, or of other rows than the
            parquet's.
    """
    expected = {**generation.key(), "scorer": judged_by(judging.plan())}
    found, rows = Figures(), []
    for _, lines in groupby(result_lines(path), lambda each: each[1].question):
        outcomes: list[Outcome] = []
        for line, outcome in lines:
            for name, value in expected.items():
                if line.get(name) != value:
                    raise _other(path, f"{name} ({str(line.get(name))[:200]})")
            outcomes.append(outcome)
        rows.append((line.get("prompt_sha256"), line["ground_truth"], line["data_source"]))
        if len(outcomes) != generation.n:
            raise _other(path, f"n ({len(outcomes)})")
        found.add(outcomes)
    if rows != [(each.digest, each.ground_truth, each.data_source) for each in questions(parquet)]:
        raise _other(path, f"rows than those of {parquet}")
    return Report(parquet, count(parquet), found)


def _other(path: Path, what: str) -> DataError:
    return DataError(
        f"{path} is of another {what}: name another --out. With another scorer, judge what is there "
        f"again: rewardkit eval responses PARQUET {path} --scorer NAME --out NEW.jsonl"
    )
