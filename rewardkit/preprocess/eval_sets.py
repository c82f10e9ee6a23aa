"""The evaluation sets that training rows are checked against: datasets by name, and verl parquets.

`all-eval` is every evaluation set that there is.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path, PurePath

from rewardkit import registry
from rewardkit.checks.overlap import EvalItem
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.file_kinds import ROW_SUFFIXES, is_row_file, stem_and_suffix
from rewardkit.preprocess.base import Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.column_guess import require_parquet
from rewardkit.preprocess.load import (
    ALL,
    CARD_SUFFIX,
    card_of,
    default_suite_folder,
    held_out_splits,
    load_dataset,
    prepared_path,
    read_set_name,
    set_name,
)
from rewardkit.preprocess.source import (
    Hub,
    RawRows,
    cached_source,
    files_in_path,
    find_source,
    is_unreachable,
)
from rewardkit.row import METADATA_KEY, open_parquet, question_of, read_rows

#: Words that files of many repositories have in their names.
_COMMON_WORDS = frozenset(
    "all data dev main problems questions test train val valid validation".split()
)


@dataclass(frozen=True)
class EvalSet:
    """A split of a dataset, with the path of its rows if the user gives one, or a verl parquet."""

    dataset: str
    split: str
    path: Path | None


@dataclass(frozen=True)
class EvalSets:
    """The problems of several evaluation sets."""

    items: Sequence[EvalItem]
    missing: Mapping[str, str]


def names_all(spec: str) -> bool:
    """Return whether a text of `--against` names all evaluation sets."""
    return spec.partition("=")[0] == ALL


def read_eval_sets(
    specs: Sequence[str], *, hub: Hub = "huggingface", broken: Mapping[str, str] | None = None
) -> EvalSets:
    """Read evaluation sets; one that is named twice, or is in `all-eval` too, is read once.

    Args:
        specs: as for `read_spec`; or `all-eval` for every held-out split of the datasets for
            evaluation and the test splits of the others, or `all-eval=FOLDER`. The rows of its
            sets come from the folder (`find_in_folder`), or from where those of single sets do.
        hub: the hub to download rows from that are not on this machine.
        broken: datasets that cannot be imported, with the reasons; `all-eval` leaves them out.
    """
    everything = [spec for spec in specs if names_all(spec)]
    specs = [spec for spec in specs if spec not in everything]
    named = list(dict.fromkeys(chain.from_iterable(map(read_spec, specs))))
    items = [item for each in named for item in _items_of_named(each, hub)]
    if not everything:
        return EvalSets(items, {})
    folders = [Path(spec.partition("=")[2]) for spec in everything if "=" in spec]
    if len(folders) > 1:
        raise UsageError(f"--against {ALL}: give one folder, not {len(folders)}.")
    if folders and not folders[0].is_dir():
        raise SourceError(f"--against {ALL}={folders[0]}: no such folder.")
    missing = dict(broken or {})
    known = {(each.dataset, each.split) for each in named}
    items += _items_of_others(folders[0] if folders else None, known, hub, missing)
    if missing and not items:
        name, reason = next(iter(missing.items()))
        place = folders[0] if folders else f"a folder for --against {ALL}=FOLDER"
        raise SourceError(
            f"--against {everything[0]}: none of {len(missing)} sets could be read. The first is "
            f"{name}: {reason}. Copy the sets into {place}, each under its name, as {name}.parquet."
        )
    return EvalSets(items, missing)


def read_spec(spec: str) -> list[EvalSet]:
    """Return the sets that a text names.

    Args:
        spec: a dataset's name (`math-500`), one of its splits (`aime2024`), either of them with
            the path of its rows (`aime2024=/data/aime24`), or a verl parquet. The name of a
            dataset means all splits except `train`, or `train` if it has no other.
    """
    text, _, path = spec.partition("=")
    if text.endswith(".parquet") and not path:
        return [EvalSet("", "", Path(text))]
    if not path:
        _require_name(text)
    try:
        name = read_set_name(text)
    except UnknownNameError as error:
        hint = " Write rows of your own with rewardkit prep, and name the parquet: --against FILE.parquet."
        if path.endswith(".parquet"):
            hint = f" A verl parquet needs no name: --against {path}."
        raise UnknownNameError(f"{error}{hint if path else ''}") from error
    card = card_of(load_dataset(name.dataset))
    splits = [name.split] if name.split else held_out_splits(card)
    if splits[0] not in card.splits:
        raise UnknownNameError(f"{text}: the splits of {card.name} are {', '.join(card.splits)}.")
    if path and Path(path).is_file() and len(splits) > 1:
        raise UsageError(f"{text} has several splits. Write {set_name(card, splits[0])}={path}.")
    return [EvalSet(name.dataset, split, Path(path) if path else None) for split in splits]


def evaluation_splits(card: Card) -> list[str]:
    """Return the splits of a dataset that are evaluation sets."""
    if card.use == "evaluation":
        return held_out_splits(card)
    return ["test"] if "test" in card.splits else []


def find_in_folder(folder: Path, card: Card, split: str) -> Sequence[Path]:
    """Return the files of a set in a folder of many sets; none if the set is not there.

    They are a file or folder that has the name of the set, whatever its case and separators
    (`aime2024.parquet`, `AIME_2024/`), or a folder that has the name of the dataset; or they have
    the names that the card gives to the repository's files, unless other repositories have such
    files too (`test.jsonl`).
    """
    entries = {
        _letters(stem_and_suffix(entry)[0] if entry.is_file() else entry.name): entry
        for entry in sorted(folder.iterdir())
        if entry.is_dir() or is_row_file(entry)
    }
    name, patterns = set_name(card, split), card.splits[split].files
    own = entries.get(_letters(name)) or entries.get(_letters(card.name + split))
    others = [pattern for each in card.splits.values() for pattern in each.files]
    is_of_others = own and _fits(own, others) and not _fits(own, patterns)
    if own and own.is_file() and not is_of_others:
        return (own,)
    if own and own.is_dir() and (name != card.name or len(card.splits) == 1):
        files = _data_files(own.iterdir())
        return files if len(files) == 1 else files_in_path(own, split, patterns)
    if (home := entries.get(_letters(card.name))) and home.is_dir():
        return files_in_path(home, split, patterns)
    for pattern in patterns:
        words = re.findall("[a-z]+", PurePath(pattern).stem.lower())
        if not _COMMON_WORDS.issuperset(words):  # the name tells the repository from others
            for path in (pattern, PurePath(pattern).name):
                if files := _data_files(folder.glob(path)):
                    return files
    return ()


def _items_of_others(
    folder: Path | None, known: Container[tuple[str, str]], hub: Hub, missing: dict[str, str]
) -> list[EvalItem]:
    """Return the problems of all sets but those known, and note the missing sets with the reasons."""
    items = list[EvalItem]()
    silence: SourceError | None = None  # of a hub that does not answer, which is not asked again
    for name in [name for name in registry.known("datasets") if name not in missing]:
        card = card_of(load_dataset(name))
        for split in evaluation_splits(card):
            if (name, split) in known:
                continue
            try:
                items += _items_of(EvalSet(name, split, None), hub, folder, silence)
            except SourceError as error:
                reason = error.reason
                if is_unreachable(error):
                    silence, reason = error, f"not on this machine, and {hub} does not answer"
                if card.gated and error.__cause__:
                    reason = f"gated: {card.how_to_get_access(split)}"
                missing[set_name(card, split)] = reason.rstrip(".")
            except DataError as error:
                missing[set_name(card, split)] = str(error).rstrip(".")
    return items


def _fits(file: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(file.name, PurePath(pattern).name) for pattern in patterns)


def _data_files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if is_row_file(path) and path.is_file())


def _letters(name: str) -> str:
    return re.sub("[-_. ]", "", name.lower())


def _require_name(text: str) -> None:
    """Require that a text names no file of raw rows, whose columns nobody has named."""
    file = Path(text)
    if file.suffix.lower() in ROW_SUFFIXES and not file.exists():
        raise SourceError(f"--against {text}: no such file.")
    if not file.is_file() or text.endswith((".py", CARD_SUFFIX)):
        return
    try:
        require_parquet(text)
    except DataError as error:
        hint = f"If it has the rows of a dataset in rewardkit list, write --against NAME={text}."
        raise DataError(f"{error}\n{hint}") from error
    raise DataError(f"{text}: not a verl parquet. Write one with rewardkit prep.")


def _items_of_named(each: EvalSet, hub: Hub) -> list[EvalItem]:
    try:
        return _items_of(each, hub)
    except SourceError as error:
        if not each.dataset:
            raise
        card = card_of(load_dataset(each.dataset))
        name = set_name(card, each.split) if each.dataset == card.name else each.dataset
        raise SourceError(
            f"{error.reason} Say where the rows are: --against {name}=PATH."
        ) from error


def _items_of(
    each: EvalSet, hub: Hub, folder: Path | None = None, silence: SourceError | None = None
) -> list[EvalItem]:
    """Return the problems of a set, whose rows are in its path, in `folder` or where `prep` finds them.

    With the `silence` of a hub, nothing is downloaded.
    """
    if each.path and not each.dataset:
        name, items = str(each.path), list(_verl_items([each.path], each.path.stem))
    else:
        dataset = load_dataset(each.dataset)
        card = card_of(dataset)
        name = set_name(card, each.split)
        files = find_in_folder(folder, card, each.split) if folder else ()
        if not each.path and not files:
            cached = cached_source(card, each.split)
            prepared = prepared_path(default_suite_folder(), card, each.split)
            files = cached.files if cached else [prepared] if prepared.is_file() else ()
        if silence and not files:
            raise silence
        files = files or find_source(card, each.split, path=each.path, hub=hub, sample=False).files
        if all(_is_verl_parquet(file, card) for file in files):
            items = list(_verl_items(files, name))
        else:
            raws = RawRows(files, card.columns, dataset.repeats)
            problems = ((index, dataset.to_problem(raw)) for index, raw in raws)
            items = [
                EvalItem(name, str(index), problem.question)
                for index, problem in problems
                if isinstance(problem, Problem)
            ]
    if not items:
        raise DataError(f"--against {name}: the evaluation set has no problems.")
    return items


def _verl_items(files: Iterable[Path], name: str) -> Iterator[EvalItem]:
    for file in files:
        for index, row in enumerate(read_rows(file)):
            if "prompt" not in row:
                raise DataError(f"{file}: not a verl parquet, because it has no column 'prompt'.")
            yield EvalItem(name, str(index), question_of(row))


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
