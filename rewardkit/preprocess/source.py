"""Where a dataset's rows come from: a path, the local cache, ModelScope or Hugging Face."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Literal, TypeAlias

from rewardkit.errors import SourceError, UsageError, call_catching
from rewardkit.preprocess.card import Card, Hosted
from rewardkit.preprocess.read import READERS
from rewardkit.registry import home

Hub: TypeAlias = Literal["huggingface", "modelscope"]

SAMPLES = Path(__file__).parent / "datasets" / "sample"


@dataclass(frozen=True)
class Source:
    """The files of one split.

    Attributes:
        files: in the order they are read.
        origin: where they were found: `sample`, `path`, `cache`, or the hub's name.
        revision: the hub's commit, "" if unknown.
    """

    files: tuple[Path, ...]
    origin: str
    revision: str = ""


def find(card: Card, split: str, *, path: Path | None, hub: Hub, sample: bool) -> Source:
    """The files of a split: the sample, `path`, the local Hugging Face cache, or the hub.

    Raises:
        UsageError: `path` and `sample` are both given.
        SourceError: nothing was found; the message names the ways out.
    """
    if sample and path is not None:
        raise UsageError("--sample and --source exclude each other.")
    if sample:
        folder = (home("datasets", card.name) or SAMPLES.parent) / SAMPLES.name / card.name
        files = tuple(sorted(folder.glob(f"{split}.*")))
        if not files:
            raise SourceError(
                f"{card.name} has no packaged sample of {split!r}; use --source PATH."
            )
        return Source(files, "sample")
    if path is not None:
        return Source(_in_path(path, card, split), "path")
    hosted = card.hosted(split)
    found = _in_hub_cache(hosted) or _in_datasets_cache(hosted)
    return found or _downloaded(card.name, hosted, hub)


def _in_path(path: Path, card: Card, split: str) -> tuple[Path, ...]:
    if path.is_dir():
        return _in_folder(path, card, split)
    if not path.is_file():
        raise SourceError(f"{path}: no such file or folder.")
    if path.suffix.lower() not in READERS:
        raise SourceError(f"{path}: not a {', '.join(READERS)} file.")
    return (path,)


def _in_folder(folder: Path, card: Card, split: str) -> tuple[Path, ...]:
    """The hub's own layout if it is there, else the files that have the split in their name."""
    for layout in card.splits[split].files:
        if as_on_hub := sorted(folder.glob(layout)):
            return tuple(as_on_hub)
    named = re.compile(rf"(?:^|[-_.]){re.escape(split)}(?:[-_.]|$)")
    for suffix in READERS:
        files = [
            file
            for file in sorted(folder.rglob(f"*{suffix}"))
            if named.search(file.stem) and file.is_file() and not _hidden(file.relative_to(folder))
        ]
        if len({file.parent for file in files}) > 1:
            listed = ", ".join(str(file) for file in files[:4])
            raise SourceError(f"{folder}: several folders hold {split!r}: {listed}. Name one.")
        if files:
            return tuple(files)
    raise SourceError(
        f"{folder}: no {split!r} file here. Expected {' or '.join(card.splits[split].files)}, or a "
        f"parquet or jsonl file with {split!r} in its name."
    )


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _in_hub_cache(hosted: Hosted) -> Source | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not hosted.huggingface:
        return None
    try:
        folder = snapshot_download(hosted.huggingface, repo_type="dataset", local_files_only=True)
    except LocalEntryNotFoundError:
        return None
    return _snapshot(Path(folder), hosted, "cache", Path(folder).name)


def _in_datasets_cache(hosted: Hosted) -> Source | None:
    """What `datasets.load_dataset` left: Arrow files in a folder per configuration."""
    from huggingface_hub.constants import HF_HOME

    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")
    folder = cache.expanduser() / hosted.huggingface.replace("/", "___")
    inner, _, name = hosted.files.rpartition("/")
    config = "default" if inner in ("", "data", "train") else inner
    named = re.match("train|test|validation", name)
    split = named[0] if named else "train"  # where the hub puts a file of any other name
    found = sorted(folder.glob(f"{config}/*/*/*-{split}*.arrow")) if hosted.huggingface else []
    return Source(tuple(found), "cache", found[0].parent.name) if found else None


def _from_huggingface(hosted: Hosted) -> Source | None:
    from huggingface_hub import snapshot_download

    folder = snapshot_download(
        hosted.huggingface, repo_type="dataset", allow_patterns=[hosted.files]
    )
    return _snapshot(Path(folder), hosted, "huggingface", Path(folder).name)


def _from_modelscope(hosted: Hosted) -> Source | None:
    try:
        from modelscope.hub.snapshot_download import dataset_snapshot_download
    except ImportError as error:
        raise SourceError(
            "--hub modelscope needs a package: pip install 'rewardkit[modelscope]'."
        ) from error
    folder = dataset_snapshot_download(hosted.modelscope, allow_patterns=[hosted.files])
    return _snapshot(Path(folder), hosted, "modelscope", "")


def _snapshot(folder: Path, hosted: Hosted, origin: str, revision: str) -> Source | None:
    files = tuple(sorted(folder.glob(hosted.files)))
    return Source(files, origin, revision) if files else None


def _downloaded(name: str, hosted: Hosted, hub: Hub) -> Source:
    download = _from_modelscope if hub == "modelscope" else _from_huggingface
    if not (hosted.modelscope if hub == "modelscope" else hosted.huggingface):
        raise SourceError(_ways_out(name, hosted, hub, "it is not there"))
    found = call_catching(download, hosted)  # the hubs' clients raise errors of many families
    if isinstance(found, SourceError):
        raise found
    if isinstance(found, Exception):
        reason = shorten(str(found).partition("\n")[0], 240, placeholder=" ...")
        reason = reason or type(found).__name__
        raise SourceError(_ways_out(name, hosted, hub, reason)) from found
    if found is None:
        raise SourceError(_ways_out(name, hosted, hub, f"it has no {hosted.files}"))
    return found


def _ways_out(name: str, hosted: Hosted, hub: Hub, reason: str) -> str:
    where = {"huggingface": hosted.huggingface, "modelscope": hosted.modelscope}
    other = "huggingface" if hub == "modelscope" else "modelscope"
    gave = f"{hub} did not give {where[hub] or 'it'} ({reason})"
    ways = [
        f"{name}: not in the local cache, and {gave}. Ways out:",
        "  --source PATH        a parquet, jsonl, json or csv file, or a folder, copied here",
    ]
    if where[other]:
        ways.append(f"  --hub {other:<14} the same dataset on the other hub")
    if hosted.huggingface:
        ways.append("  HF_ENDPOINT=URL      a mirror of Hugging Face")
        ways.append(f"  HF_HOME=DIR          a Hugging Face cache that holds {hosted.huggingface}")
    return "\n".join([*ways, "  --sample             the packaged sample, to try things out"])
