"""The evaluation sets that training rows are checked against: datasets by name, and files."""

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
    """Yield the problems of an evaluation set.

    Args:
        spec: a dataset's name (`math-500`), one of its splits (`aime:2024`), either of them with
            the path of its rows (`aime:2024=/data/aime24`), or a verl parquet. The name of a
            dataset means all splits except `train`, or `train` if it has no other.
        hub: the hub to download rows from that are not on this machine.

    Raises:
        SourceError: the rows were not found.
        DataError: the rows cannot be read, or there are none.
    """
    name, _, path = spec.partition("=")
    if not path and Path(name).is_file() and not name.endswith((".parquet", ".py")):
        raise UsageError(f"--against {name}: not a verl parquet. Write one with rewardkit prep.")
    if name.endswith(".parquet") and not path:
        items = _parquet_items(Path(name))
    else:
        items = _dataset_items(name, Path(path) if path else None, hub)
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise DataError(f"--against {spec}: the evaluation set has no problems.")


def _parquet_items(path: Path) -> Iterator[EvalItem]:
    for place, row in enumerate(read_rows(path)):
        if "prompt" not in row:
            raise DataError(f"{path}: not a verl parquet, because it has no column 'prompt'.")
        yield EvalItem(path.stem, str(place), question_of(row))


def dataset_name(spec: str) -> str:
    """Return the dataset of an evaluation set; a parquet's own path for a parquet."""
    return _name_and_split(spec.partition("=")[0])[0]


def _name_and_split(name: str) -> tuple[str, str]:
    """`aime:2024` -> `aime`, `2024`; a path has no split."""
    dataset, _, split = (name, "", "") if is_path(name) else name.partition(":")
    return dataset, split


def _dataset_items(name: str, path: Path | None, hub: Hub) -> Iterator[EvalItem]:
    name, split_name = _name_and_split(name)
    dataset = load_dataset(name)
    card = card_of(dataset)
    splits = [split_name] if split_name else _held_out_splits(card)
    if split_name and split_name not in card.splits:
        raise UnknownNameError(
            f"{name} has no split {split_name!r}. It has {', '.join(card.splits)}."
        )
    if path is not None and path.is_file() and len(splits) > 1:
        raise UsageError(f"{name} has several splits. Write {name}:{splits[0]}={path}.")
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


def _held_out_splits(card: Card) -> list[str]:
    return [split for split in card.splits if split != "train"] or list(card.splits)
