"""`all-eval`: every evaluation set that there is, and those of them that cannot be had."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from rewardkit import registry
from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.file_kinds import stem_and_suffix
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.contamination.eval_sets import (
    items_in_files,
    items_of,
    local_files,
    read_spec,
)
from rewardkit.preprocess.contamination.overlap import EvalItem
from rewardkit.preprocess.file_rows import is_row_file
from rewardkit.preprocess.load import card_of, load_dataset
from rewardkit.preprocess.set_names import ALL, held_out_splits, set_name
from rewardkit.preprocess.source import (
    Hub,
    find_source,
    is_unreachable,
)

#: Words that files of many repositories have in their names.
_COMMON_WORDS = frozenset(
    "all data dev main problems questions test train val valid validation".split()
)


@dataclass(frozen=True)
class EvalSets:
    """The problems of several evaluation sets.

    Attributes:
        items: the problems.
        missing: the sets of `all-eval` that could not be read, each with the reason.
    """

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
        specs: as for `eval_items`; or `all-eval` for every held-out split of the datasets for
            evaluation and the test splits of the others, or `all-eval=FOLDER`. The rows of its
            sets come from the folder (`find_in_folder`), or from where those of single sets do.
        hub: the hub to download rows from that are not on this machine.
        broken: datasets that cannot be imported, with the reasons; `all-eval` leaves them out.

    Raises:
        SourceError: the rows of a set were not found, or those of no set of `all-eval`.
        DataError: the rows of a set cannot be read, or there are none.
    """
    named = list(
        dict.fromkeys(each for spec in specs if not names_all(spec) for each in read_spec(spec))
    )
    items = [item for each in named for item in items_of(each, hub)]
    everything = [spec for spec in specs if names_all(spec)]
    if not everything:
        return EvalSets(items, {})
    missing = dict(broken or {})
    known = {(each.dataset, each.split) for each in named}
    items += _all_items(_folder(everything), known, hub, missing)
    if missing and not items:
        name, reason = next(iter(missing.items()))
        raise SourceError(
            f"--against {everything[0]}: none of {len(missing)} sets could be read. The first is "
            f"{name}: {reason}. Copy the sets into a folder: --against {ALL}=FOLDER."
        )
    return EvalSets(items, missing)


def _folder(specs: Sequence[str]) -> Path | None:
    """Return the folder of `all-eval=FOLDER`."""
    folders = [Path(spec.partition("=")[2]) for spec in specs if "=" in spec]
    if len(folders) > 1:
        raise UsageError(f"--against {ALL}: give one folder, not {len(folders)}.")
    if folders and not folders[0].is_dir():
        raise SourceError(f"--against {ALL}={folders[0]}: no such folder.")
    return folders[0] if folders else None


def _all_items(
    folder: Path | None, known: AbstractSet[tuple[str, str]], hub: Hub, missing: dict[str, str]
) -> Iterator[EvalItem]:
    """Yield the problems of all sets but those known, and note the missing sets with the reasons."""
    silence: SourceError | None = None  # of a hub that does not answer, which is not asked again
    for name in [name for name in registry.known("datasets") if name not in missing]:
        dataset = load_dataset(name)
        card = card_of(dataset)
        for split in evaluation_splits(card):
            if (name, split) in known:
                continue
            try:
                files = find_in_folder(folder, card, split) or local_files(card, split)
                if silence and not files:
                    raise silence
                files = files or find_source(card, split, path=None, hub=hub, sample=False).files
                yield from list(items_in_files(dataset, split, files))
            except SourceError as error:
                silence = error if is_unreachable(error) else silence
                missing[set_name(card, split)] = _reason(card, split, hub, error)
            except DataError as error:
                missing[set_name(card, split)] = str(error).rstrip(".")


def _reason(card: Card, split: str, hub: Hub, error: SourceError) -> str:
    """Return in a few words why a set could not be read; the same words for the same reason."""
    if card.gated and error.__cause__:
        return f"gated: {card.how_to_get_access(split)}"
    if is_unreachable(error):
        return f"not on this machine, and {hub} does not answer"
    return error.reason.rstrip(".")


def evaluation_splits(card: Card) -> list[str]:
    """Return the splits of a dataset that are evaluation sets."""
    if card.use == "evaluation":
        return held_out_splits(card)
    return ["test"] if "test" in card.splits else []


def find_in_folder(folder: Path | None, card: Card, split: str) -> Sequence[Path]:
    """Return the files of a set in a folder of many sets; none if the set is not there.

    They are a file or folder that has the name of the set, whatever its case and separators
    (`aime2024.parquet`, `AIME_2024/`), or a folder that has the name of the dataset; or they have
    the names that the card gives to the repository's files, unless other repositories have such
    files too (`test.jsonl`).

    Raises:
        SourceError: a folder with the name of the set has no file of it.
    """
    if folder is None:
        return ()
    entries = {
        _letters(stem_and_suffix(entry)[0] if entry.is_file() else entry.name): entry
        for entry in sorted(folder.iterdir())
        if entry.is_dir() or is_row_file(entry)
    }
    name = set_name(card, split)
    own = entries.get(_letters(name)) or entries.get(_letters(card.name + split))
    if own and own.is_file() and not _is_of_another_split(own, card, split):
        return (own,)
    if own and own.is_dir() and (name != card.name or len(card.splits) == 1):
        files = _data_files(own.iterdir())
        return files if len(files) == 1 else _files_of_split(own, card, split)
    if (home := entries.get(_letters(card.name))) and home.is_dir():
        return _files_of_split(home, card, split)
    for pattern in filter(_is_telling, card.splits[split].files):
        for path in (pattern, PurePath(pattern).name):
            if files := _data_files(folder.glob(path)):
                return files
    return ()


def _is_of_another_split(file: Path, card: Card, split: str) -> bool:
    """Return whether the card gives a file's name to another split, and not to this one."""
    splits = [
        name
        for name, entry in card.splits.items()
        if any(fnmatchcase(file.name, PurePath(pattern).name) for pattern in entry.files)
    ]
    return bool(splits) and split not in splits


def _files_of_split(home: Path, card: Card, split: str) -> Sequence[Path]:
    return find_source(card, split, path=home, hub="huggingface", sample=False).files


def _data_files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if is_row_file(path) and path.is_file())


def _letters(name: str) -> str:
    return re.sub("[-_. ]", "", name.lower())


def _is_telling(pattern: str) -> bool:
    """Return whether the pattern of a file's name tells the repository from others."""
    words = re.findall("[a-z]+", PurePath(pattern).stem.lower())
    return not _COMMON_WORDS.issuperset(words)
