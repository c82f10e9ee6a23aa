"""Where a dataset's rows come from: a path, the local cache, ModelScope or Hugging Face."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from rewardkit.errors import DataError, RewardkitError, SourceError, UsageError
from rewardkit.preprocess.card import Card
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.base import guarded

Hub: TypeAlias = Literal["huggingface", "modelscope"]
Raw: TypeAlias = dict[str, Any]

SAMPLES = Path(__file__).with_name("sample")
_SUFFIXES = (".parquet", ".jsonl", ".arrow")


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
        return Source((SAMPLES / card.name / f"{split}.jsonl",), "sample")
    if path is not None:
        return Source(_in_path(path, card, split), "path")
    if found := _in_hub_cache(card, split) or _in_datasets_cache(card, split):
        return found
    download = _from_modelscope if hub == "modelscope" else _from_huggingface
    return _downloaded(download, card, split, hub)


def read(source: Source, columns: Sequence[str]) -> Iterator[Raw]:
    """The raw rows of a source, in order; only `columns` are kept.

    Raises:
        DataError: a file is broken, or lacks one of the columns; the message says where.
    """
    readers = {".parquet": _read_parquet, ".jsonl": _read_jsonl, ".arrow": _read_arrow}
    for file in source.files:
        yield from readers[file.suffix](file, list(columns))


def _in_path(path: Path, card: Card, split: str) -> tuple[Path, ...]:
    if path.is_dir():
        return _in_folder(path, card, split)
    if not path.is_file():
        raise SourceError(f"{path}: no such file or folder.")
    if path.suffix not in _SUFFIXES:
        raise SourceError(f"{path}: not a {', '.join(_SUFFIXES)} file.")
    return (path,)


def _in_folder(folder: Path, card: Card, split: str) -> tuple[Path, ...]:
    """The hub's own layout if it is there, else the files that have the split in their name."""
    if as_on_hub := sorted(folder.glob(card.splits[split].files)):
        return tuple(as_on_hub)
    named = re.compile(rf"(?:^|[-_.]){re.escape(split)}(?:[-_.]|$)")
    for suffix in _SUFFIXES:
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
        f"{folder}: no {split!r} file here. Expected {card.splits[split].files}, or a parquet or "
        f"jsonl file with {split!r} in its name."
    )


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _in_hub_cache(card: Card, split: str) -> Source | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = snapshot_download(card.huggingface, repo_type="dataset", local_files_only=True)
    except LocalEntryNotFoundError:
        return None
    return _snapshot(Path(folder), card, split, "cache", Path(folder).name)


def _in_datasets_cache(card: Card, split: str) -> Source | None:
    """What `datasets.load_dataset` left: Arrow files in a folder per configuration."""
    from huggingface_hub.constants import HF_HOME

    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")
    folder = cache.expanduser() / card.huggingface.replace("/", "___")
    config = Path(card.splits[split].files).parts[0]
    found = sorted(folder.glob(f"{config}/*/*/*-{split}*.arrow"))
    return Source(tuple(found), "cache", found[0].parent.name) if found else None


def _from_huggingface(card: Card, split: str) -> Source | None:
    from huggingface_hub import snapshot_download

    folder = snapshot_download(
        card.huggingface, repo_type="dataset", allow_patterns=[card.splits[split].files]
    )
    return _snapshot(Path(folder), card, split, "huggingface", Path(folder).name)


def _from_modelscope(card: Card, split: str) -> Source | None:
    try:
        from modelscope.hub.snapshot_download import dataset_snapshot_download
    except ImportError as error:
        raise SourceError(
            "--hub modelscope needs a package: pip install 'rewardkit[modelscope]'."
        ) from error
    folder = dataset_snapshot_download(card.modelscope, allow_patterns=[card.splits[split].files])
    return _snapshot(Path(folder), card, split, "modelscope", "")


def _snapshot(folder: Path, card: Card, split: str, origin: str, revision: str) -> Source | None:
    files = tuple(sorted(folder.glob(card.splits[split].files)))
    return Source(files, origin, revision) if files else None


def _downloaded(
    download: Callable[[Card, str], Source | None], card: Card, split: str, hub: Hub
) -> Source:
    found = guarded(download, card, split)  # the hubs' clients raise errors of many families
    if isinstance(found, SourceError):
        raise found
    if isinstance(found, Exception):
        reason = str(found).partition("\n")[0][:120] or type(found).__name__
        raise SourceError(_ways_out(card, hub, reason)) from found
    if found is None:
        raise SourceError(_ways_out(card, hub, f"it has no {card.splits[split].files}"))
    return found


def _ways_out(card: Card, hub: Hub, reason: str) -> str:
    where = card.modelscope if hub == "modelscope" else card.huggingface
    other = "huggingface" if hub == "modelscope" else "modelscope"
    return (
        f"{card.name}: not in the local cache, and {hub} did not give {where} ({reason}). "
        "Ways out:\n"
        "  --source PATH        a parquet or jsonl file, or a folder of them, copied here\n"
        f"  --hub {other:<14} the same dataset on the other hub\n"
        "  HF_ENDPOINT=URL      a mirror of Hugging Face\n"
        f"  HF_HOME=DIR          a Hugging Face cache that holds {card.huggingface}\n"
        "  --sample             the packaged sample, to try things out"
    )


def _read_parquet(file: Path, columns: list[str]) -> Iterator[Raw]:
    with open_parquet(file) as parquet:
        _require(file, columns, parquet.schema_arrow.names)
        for batch in parquet.iter_batches(BATCH_ROWS, columns=columns):
            yield from batch.to_pylist()


def _read_arrow(file: Path, columns: list[str]) -> Iterator[Raw]:
    try:
        with pa.memory_map(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
            _require(file, columns, reader.schema.names)
            for batch in reader:
                yield from batch.select(columns).to_pylist()
    except pa.ArrowException as error:
        raise DataError(f"{file}: not a readable Arrow stream ({error})") from error


def _read_jsonl(file: Path, columns: list[str]) -> Iterator[Raw]:
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    row = _parse_line(f"{file}:{number}", line)
                    _require(f"{file}:{number}", columns, row.keys())
                    yield {column: row[column] for column in columns}
    except RewardkitError:
        raise
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}.") from error


def _parse_line(where: str, line: bytes) -> Raw:
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start}).") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}).") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    return row


def _require(where: object, columns: Sequence[str], present: Any) -> None:
    if missing := [column for column in columns if column not in present]:
        raise DataError(
            f"{where}: has no {' and no '.join(repr(c) for c in missing)}; it has "
            f"{', '.join(sorted(present)) or 'nothing'}."
        )
