"""Evaluation sets to check training rows against: datasets by name, and files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.base import Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.contamination.overlap import EvalItem
from rewardkit.preprocess.load import card_of, load_dataset
from rewardkit.preprocess.raw_rows import RawRows
from rewardkit.preprocess.source import Hub, find_source
from rewardkit.registry import is_path
from rewardkit.row import question_of, read_rows


def eval_items(spec: str, *, hub: Hub = "huggingface") -> Iterator[EvalItem]:
    """The problems of an evaluation set.

    Args:
        spec: a dataset's name (`math-500`), one of its splits (`aime:2024`), either with the place
            of its rows (`aime:2024=/data/aime24`), or a verl parquet. Of a dataset every split but
            `train` counts, unless that is all it has.
        hub: where rows are downloaded from that are not on this machine.

    Raises:
        SourceError: the rows were not found.
        DataError: they cannot be read, or there are none.
    """
    name, _, path = spec.partition("=")
    if not path and Path(name).is_file() and not name.endswith((".parquet", ".py")):
        raise UsageError(f"--against {name}: make a parquet of it first, with rewardkit prep.")
    if name.endswith(".parquet") and not path:
        items = _of_parquet(Path(name))
    else:
        items = _of_dataset(name, Path(path) if path else None, hub)
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise DataError(f"{spec}: no problems to check against.")


def _of_parquet(path: Path) -> Iterator[EvalItem]:
    for place, row in enumerate(read_rows(path)):
        if "prompt" not in row:
            raise DataError(f"{path}: has no 'prompt': not a verl parquet.")
        yield EvalItem(path.stem, str(place), question_of(row))


def _of_dataset(name: str, path: Path | None, hub: Hub) -> Iterator[EvalItem]:
    name, _, asked = (name, "", "") if is_path(name) else name.partition(":")
    dataset = load_dataset(name)
    card = card_of(dataset)
    splits = [asked] if asked else _held_out(card)
    if asked and asked not in card.splits:
        raise UnknownNameError(f"{name} has no split {asked!r}. It has {', '.join(card.splits)}.")
    if path is not None and path.is_file() and len(splits) > 1:
        raise UsageError(f"{name} has several splits: write {name}:{splits[0]}={path}.")
    for split in splits:
        try:
            source = find_source(card, split, path=path, hub=hub, sample=False)
        except SourceError as error:
            raise SourceError(
                f"{error.reason} Say where the rows are: --against {name}:{split}=PATH."
            ) from error
        for index, raw in RawRows(source.files, card.columns, dataset.repeats):
            problem = dataset.to_problem(raw)
            if isinstance(problem, Problem):
                yield EvalItem(f"{card.name} {split}", str(index), problem.question)


def _held_out(card: Card) -> list[str]:
    return [split for split in card.splits if split != "train"] or list(card.splits)
