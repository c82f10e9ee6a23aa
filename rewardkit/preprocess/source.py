"""Where the rows of a dataset come from: a path, the local cache, ModelScope or Hugging Face."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Literal, TypeAlias

from rewardkit import registry
from rewardkit.errors import SourceError, UsageError, call_catching
from rewardkit.file_kinds import (
    ROW_SUFFIXES,
    is_row_file,
    missing_file,
    require_regular_file,
    row_suffix,
)
from rewardkit.preprocess.card import Card, HubCopy
from rewardkit.row_files import saved_files, saved_splits

Hub: TypeAlias = Literal["huggingface", "modelscope"]

#: The packaged samples of the built-in datasets, one folder each. A plug-in has a folder of the
#: same name beside its module.
SAMPLES = Path(__file__).parent / "datasets" / "sample"


@dataclass(frozen=True)
class Source:
    """The files of one split."""

    files: tuple[Path, ...]
    origin: str
    revision: str = ""


def find_source(card: Card, split: str, *, path: Path | None, hub: Hub, sample: bool) -> Source:
    """Return the files of a split: the sample, `path`, the local Hugging Face cache, or the hub."""
    if sample and path is not None:
        raise UsageError("--sample and --source exclude each other.")
    if sample:
        return Source(_sample_files(card, split), "sample")
    if path is not None:
        return Source(files_in_path(path, split, card.splits[split].files), "path")
    return cached_source(card, split) or _download(card, split, hub)


def cached_source(card: Card, split: str) -> Source | None:
    """Return the files of a split in the local Hugging Face cache, if they are there."""
    copy = card.hub_copy(split)
    return _in_hub_cache(copy) or _in_datasets_cache(copy)


def is_unreachable(error: SourceError) -> bool:
    """Return whether a download failed because there was no answer of the hub."""
    cause = error.__cause__
    while cause is not None:
        if getattr(cause, "response", None) is not None:
            return False
        cause = cause.__cause__
    return isinstance(error.__cause__, OSError)


def _sample_files(card: Card, split: str) -> tuple[Path, ...]:
    folder = SAMPLES / card.name
    if not folder.is_dir() and (plugin := registry.home("datasets", card.name)):
        folder = plugin / SAMPLES.name / card.name
    files = tuple(sorted(folder.glob(f"{split}.*")))
    if not files:
        raise SourceError(f"{card.name} has no packaged sample of {split!r}. Use --source PATH.")
    return files


def files_in_path(path: Path, split: str, layouts: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of a split: a file itself, or those in a folder, by the hub's own `layouts`."""
    if path.is_dir():
        return _files_in_folder(path, split, layouts)
    require_regular_file(path)
    if not path.is_file():
        raise SourceError(missing_file(path, "file or folder"))
    if not is_row_file(path):
        raise SourceError(f"{path}: not a {', '.join(ROW_SUFFIXES)} file.")
    return (path,)


def _files_in_folder(folder: Path, split: str, layouts: Sequence[str]) -> tuple[Path, ...]:
    saved = folder / split if (folder / "dataset_dict.json").is_file() else folder
    if (saved / "state.json").is_file():  # written by `save_to_disk`; cache-*.arrow is not its data
        return tuple(saved_files(saved))
    for layout in layouts:
        if files := sorted(folder.glob(layout)):
            return tuple(files)
    split_name = re.compile(rf"(?:^|[-_.]){re.escape(split)}(?:[-_.]|$)")
    paths = [
        file
        for file in sorted(folder.rglob("*"))
        if split_name.search(file.stem)
        and is_row_file(file)
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    suffix = min(map(row_suffix, paths), key=ROW_SUFFIXES.index, default="")
    files = [file for file in paths if row_suffix(file) == suffix]
    if len({file.parent for file in files}) > 1:
        names = ", ".join(str(file) for file in files[:4])
        raise SourceError(
            f"{folder}: several folders have files of {split!r}: {names}. Give --source one of them."
        )
    if files:
        return tuple(files)
    if any(saved.glob("data-*-of-*.arrow")):  # of `save_to_disk`, without state.json
        return tuple(saved_files(saved))
    if splits := saved_splits(folder):
        raise SourceError(f"{folder}: no split {split!r}. Add --split {' or '.join(splits)}.")
    expected = "".join(f"{layout} or " for layout in layouts)
    raise SourceError(
        f"{folder}: no {split!r} file here. Expected {expected}a parquet, jsonl or arrow file "
        f"with {split!r} in its name."
    )


def _in_hub_cache(copy: HubCopy) -> Source | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not copy.huggingface:
        return None
    try:
        folder = snapshot_download(copy.huggingface, repo_type="dataset", local_files_only=True)
    except LocalEntryNotFoundError:
        return None
    return _snapshot_source(Path(folder), copy, "cache", Path(folder).name)


def _in_datasets_cache(copy: HubCopy) -> Source | None:
    """Return what `datasets.load_dataset` cached: Arrow files in one folder per configuration."""
    from huggingface_hub.constants import HF_HOME

    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")
    folder = cache.expanduser() / copy.huggingface.replace("/", "___")
    inner, _, name = copy.files.rpartition("/")
    config = "default" if inner in ("", "data", "train") else inner
    split_name = re.match("train|test|validation|dev", name)
    split = split_name[0] if split_name else "train"  # `datasets` calls any other file train
    files = sorted(folder.glob(f"{config}/*/*/*-{split}*.arrow")) if copy.huggingface else []
    return Source(tuple(files), "cache", files[0].parent.name) if files else None


def _download_huggingface(copy: HubCopy) -> Source | None:
    from huggingface_hub import snapshot_download

    folder = snapshot_download(copy.huggingface, repo_type="dataset", allow_patterns=[copy.files])
    return _snapshot_source(Path(folder), copy, "huggingface", Path(folder).name)


def _download_modelscope(copy: HubCopy) -> Source | None:
    try:
        from modelscope.hub.snapshot_download import dataset_snapshot_download
    except ImportError as error:
        raise SourceError(
            "--hub modelscope needs a package: pip install 'rewardkit[modelscope]'."
        ) from error
    folder = dataset_snapshot_download(copy.modelscope, allow_patterns=[copy.files])
    return _snapshot_source(Path(folder), copy, "modelscope", "")


def _snapshot_source(folder: Path, copy: HubCopy, origin: str, revision: str) -> Source | None:
    files = tuple(sorted(folder.glob(copy.files)))
    return Source(files, origin, revision) if files else None


def _download(card: Card, split: str, hub: Hub) -> Source:
    copy = card.hub_copy(split)
    repository, download = copy.huggingface, _download_huggingface
    if hub == "modelscope":
        repository, download = copy.modelscope, _download_modelscope
    if not repository:
        raise _not_found(card, split, hub, "the dataset is not on this hub")
    source = call_catching(download, copy)  # the hubs' clients raise errors of many families
    if isinstance(source, SourceError):
        raise source
    if isinstance(source, Exception):
        reason = shorten(str(source).partition("\n")[0], 240, placeholder=" ...")
        raise _not_found(card, split, hub, reason or type(source).__name__) from source
    if source is None:
        raise _not_found(card, split, hub, f"the repository has no {copy.files}")
    return source


def _not_found(card: Card, split: str, hub: Hub, reason: str) -> SourceError:
    copy = card.hub_copy(split)
    repositories = {"huggingface": copy.huggingface, "modelscope": copy.modelscope}
    other = "huggingface" if hub == "modelscope" else "modelscope"
    remedies = [
        "Ways to get the rows:",
        "  --source PATH        a file in any format that prep reads, or a folder, copied here",
    ]
    if repositories[other]:
        remedies.append(f"  --hub {other:<14} the same dataset on the other hub")
    if copy.huggingface:
        remedies.append("  HF_ENDPOINT=URL      a mirror of Hugging Face")
        remedies.append(f"  HF_HOME=DIR          a Hugging Face cache with {copy.huggingface}")
    remedies.append("  --sample             the packaged sample, to try things out")
    failure = f"could not download {repositories[hub] or 'it'} from {hub} ({reason})"
    message = f"{card.name}: not in the local cache, and {failure}."
    if card.gated and copy.huggingface:
        message += f" It is gated: {card.how_to_get_access(split)}."
    return SourceError(message, "\n".join(remedies))
