"""The evaluation sets that training rows are checked against: datasets by name, and verl parquets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.base import Dataset, Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.column_messages import require_parquet
from rewardkit.preprocess.contamination.overlap import EvalItem
from rewardkit.preprocess.file_rows import READERS
from rewardkit.preprocess.load import CARD_SUFFIX, card_of, load_dataset
from rewardkit.preprocess.raw_rows import RawRows
from rewardkit.preprocess.set_names import (
    default_suite_folder,
    held_out_splits,
    prepared_path,
    read_set_name,
    set_name,
)
from rewardkit.preprocess.source import Hub, cached_source, find_source
from rewardkit.row import METADATA_KEY, open_parquet, question_of, read_rows


@dataclass(frozen=True)
class EvalSet:
    """An evaluation set that is named by the user.

    Attributes:
        dataset: name of the dataset, or the path of a card or of a plug-in; "" for a verl parquet.
        split: split of the dataset; "" for a verl parquet.
        path: the verl parquet; or the file or folder with the rows, None for the cache and the hub.
    """

    dataset: str
    split: str
    path: Path | None


def eval_items(spec: str, *, hub: Hub = "huggingface") -> Iterator[EvalItem]:
    """Yield the problems of an evaluation set.

    Args:
        spec: a dataset's name (`math-500`), one of its splits (`aime2024`), either of them with
            the path of its rows (`aime2024=/data/aime24`), or a verl parquet. The name of a
            dataset means all splits except `train`, or `train` if it has no other.
        hub: the hub to download rows from that are not on this machine.

    Raises:
        SourceError: the rows were not found.
        DataError: the rows cannot be read, or there are none.
    """
    for each in read_spec(spec):
        yield from items_of(each, hub)


def read_spec(spec: str) -> list[EvalSet]:
    """Return the sets that a text names, as for `eval_items`.

    Raises:
        UnknownNameError: no dataset, or no split of it, has this name.
        UsageError: a file cannot have the rows of several splits.
        SourceError, DataError: a file is missing, or it is not a verl parquet.
    """
    text, _, path = spec.partition("=")
    if text.endswith(".parquet") and not path:
        return [EvalSet("", "", Path(text))]
    if not path:
        _require_name(text)
    try:
        name = read_set_name(text)
    except UnknownNameError as error:
        hint = ""
        if path.endswith(".parquet"):
            hint = f" A verl parquet needs no name: --against {path}."
        elif path:
            hint = (
                " Write rows of your own with rewardkit prep, and name the parquet: "
                "--against FILE.parquet."
            )
        raise UnknownNameError(f"{error}{hint}") from error
    card = card_of(load_dataset(name.dataset))
    splits = [name.split] if name.split else held_out_splits(card)
    if splits[0] not in card.splits:
        raise UnknownNameError(f"{text}: the splits of {card.name} are {', '.join(card.splits)}.")
    if path and Path(path).is_file() and len(splits) > 1:
        raise UsageError(f"{text} has several splits. Write {set_name(card, splits[0])}={path}.")
    return [EvalSet(name.dataset, split, Path(path) if path else None) for split in splits]


def _require_name(text: str) -> None:
    """Require that a text names no file of raw rows, whose columns nobody has named.

    Raises:
        SourceError: there is no such file.
        DataError: the message says how to name the file's set, or what to write.
    """
    file = Path(text)
    if file.suffix.lower() in READERS and not file.exists():
        raise SourceError(f"--against {text}: no such file.")
    if not file.is_file() or text.endswith((".py", CARD_SUFFIX)):
        return
    try:
        require_parquet(text)
    except DataError as error:
        hint = f"If it has the rows of a dataset in rewardkit list, write --against NAME={text}."
        raise DataError(f"{error}\n{hint}") from error
    raise DataError(f"{text}: not a verl parquet. Write one with rewardkit prep.")


def items_of(each: EvalSet, hub: Hub) -> Iterator[EvalItem]:
    """Yield the problems of one set; errors are those of `eval_items`."""
    if not each.dataset and each.path:
        yield from _require_items(_verl_items(each.path, each.path.stem), str(each.path))
        return
    dataset = load_dataset(each.dataset)
    card = card_of(dataset)
    try:
        files = () if each.path else local_files(card, each.split)
        files = files or find_source(card, each.split, path=each.path, hub=hub, sample=False).files
    except SourceError as error:
        name = set_name(card, each.split) if each.dataset == card.name else each.dataset
        raise SourceError(
            f"{error.reason} Say where the rows are: --against {name}=PATH."
        ) from error
    yield from items_in_files(dataset, each.split, files)


def local_files(card: Card, split: str) -> Sequence[Path]:
    """Return the files of a set on this machine: in the local cache, or among the prepared sets."""
    if cached := cached_source(card, split):
        return cached.files
    prepared = prepared_path(default_suite_folder(), card, split)
    return [prepared] if prepared.is_file() else ()


def items_in_files(dataset: Dataset, split: str, files: Sequence[Path]) -> Iterator[EvalItem]:
    """Yield the problems of a dataset's files, which may be verl parquets.

    Raises:
        DataError: the rows cannot be read, or there are none.
    """
    card = card_of(dataset)
    name = set_name(card, split)
    if all(_is_verl_parquet(file, card) for file in files):
        parts = [_verl_items(file, name) for file in files]
    else:
        parts = [_raw_items(dataset, name, RawRows(files, card.columns, dataset.repeats))]
    yield from _require_items(chain.from_iterable(parts), name)


def _require_items(items: Iterator[EvalItem], name: str) -> Iterator[EvalItem]:
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise DataError(f"--against {name}: the evaluation set has no problems.")


def _raw_items(dataset: Dataset, name: str, raws: RawRows) -> Iterator[EvalItem]:
    for index, raw in raws:
        problem = dataset.to_problem(raw)
        if isinstance(problem, Problem):
            yield EvalItem(name, str(index), problem.question)


def _verl_items(path: Path, name: str) -> Iterator[EvalItem]:
    for place, row in enumerate(read_rows(path)):
        if "prompt" not in row:
            raise DataError(f"{path}: not a verl parquet, because it has no column 'prompt'.")
        yield EvalItem(name, str(place), question_of(row))


def _is_verl_parquet(file: Path, card: Card) -> bool:
    """Return whether a file has prepared rows; a published file may have columns like verl's."""
    if file.suffix.lower() != ".parquet":
        return False
    with open_parquet(file) as parquet:
        schema = parquet.schema_arrow
    if METADATA_KEY in (schema.metadata or {}):
        return True
    is_published = any(set(layout) <= set(schema.names) for layout in card.columns)
    return "prompt" in schema.names and not is_published
