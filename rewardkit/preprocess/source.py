"""The raw rows of a dataset, and where they come from: a path, the local cache, or a hub."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit import registry
from rewardkit.errors import DataError, SourceError, UsageError, call_catching
from rewardkit.file_kinds import (
    ROW_SUFFIXES,
    is_row_file,
    missing_file,
    require_regular_file,
    row_suffix,
)
from rewardkit.preprocess.card import Card, HubCopy
from rewardkit.preprocess.column_map import top_level, value_at_path
from rewardkit.registry import did_you_mean
from rewardkit.row import BATCH_ROWS, Row, open_parquet
from rewardkit.row_files import block_of, rows_in, saved_files, saved_splits, select_rows

Hub: TypeAlias = Literal["huggingface", "modelscope"]

#: The packaged samples of the built-in datasets, one folder each. A plug-in has a folder of the
#: same name beside its module.
SAMPLES = Path(__file__).parent / "datasets" / "sample"

#: Rows whose `repeats` columns are compared at once; more rows are faster and need more memory.
_SCAN_ROWS = 131_072

#: Columns whose unread text is counted.
MAX_UNREAD = 20

#: Separates the parts of a key; no id or answer contains it.
_SEPARATOR = "\x1f"


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


@dataclass
class RawRows:
    """The raw rows of files, in order; can be iterated more than once.

    Iterating yields `(index, row)`: the place of the row among all rows, and its columns. A row of
    JSON that lacks a column of the rows before it in its file has a null there.

    Attributes:
        files: files that `rows_in` reads.
        layouts: the columns to read, one sequence for each layout that a file may have.
        repeats: dotted paths. A row that equals an earlier one in all of them is a copy and is
            skipped. A file without one of these columns has no copies.
        noted: columns of which a note tells already; None to count no text that is not read.
        read: number of rows that the last iteration has read, copies included.
        unread_text: number of rows with text in each column that is neither read nor noted.
    """

    files: Sequence[Path]
    layouts: Sequence[Sequence[str]]
    repeats: Sequence[str] = ()
    noted: frozenset[str] | None = None
    read: int = 0
    unread_text: Counter[str] = field(default_factory=Counter)
    _keys: set[str] = field(default_factory=set)
    _layout: Sequence[str] = ()

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        self.read = 0
        self._keys.clear()
        self.unread_text.clear()
        for file in self.files:
            start, self._layout = self.read, ()
            if self.repeats and file.suffix.lower() == ".parquet":
                with open_parquet(file) as parquet:
                    paths = {parquet.schema.column(i).path for i in range(len(parquet.schema))}
                    if paths.issuperset(self.repeats):
                        for place, row in self._distinct_rows(file, parquet):
                            self.read = start + place + 1
                            yield start + place, row
                        self.read = start + parquet.metadata.num_rows
                        continue
            yield from self._rows_of(file)

    def _rows_of(self, file: Path) -> Iterator[tuple[int, Row]]:
        names, columns, unread = None, list[str](), list[str]()
        for where, raw in rows_in(file, self._columns_to_read):
            if raw.keys() != names:
                names, columns = raw.keys(), self._columns(where, raw)
                unread = self._unread(raw, columns)
            if unread:
                self._count_unread(raw, unread)
            self.read += 1
            values = [value_at_path(raw, path) for path in self.repeats]
            is_whole = bool(values) and None not in values
            if not self._is_repeated(_SEPARATOR.join(map(str, values)) if is_whole else None):
                yield self.read - 1, {column: raw.get(column) for column in columns}

    def _count_unread(self, raw: Row, unread: Sequence[str]) -> None:
        from rewardkit.preprocess.column_guess import has_text

        for name in unread:
            is_counted = name in self.unread_text or len(self.unread_text) < MAX_UNREAD
            if is_counted and has_text(name, raw[name]):
                self.unread_text[name] += 1

    def _columns(self, where: object, present: Iterable[str]) -> list[str]:
        """Return the columns of the first layout that is present, else of the row before."""
        counts = Counter(iter(present))
        names = set(counts)
        for layout in self.layouts:
            if names.issuperset(layout):
                if repeated := [column for column in layout if counts[column] > 1]:
                    raise DataError(f"{where}: there are several columns {repeated[0]!r}.")
                self._layout = layout
                return list(layout)
        if self._layout:
            return list(self._layout)
        nearest = min(self.layouts, key=lambda layout: len(set(layout) - names))
        absent = [column for column in nearest if column not in names]
        missing = " and no ".join(map(repr, absent))
        columns = ", ".join(sorted(names)) or "nothing"
        near = next(filter(None, (did_you_mean(name, list(names)) for name in absent)), "")
        raise DataError(f"{where}: has no {missing}; it has {columns}.{near}")

    def _columns_to_read(self, where: object, present: Iterable[str]) -> list[str]:
        names = list(present)
        columns = self._columns(where, names)
        unread = [name for name in self._unread(names, columns) if names.count(name) == 1]
        keys = [name for name in (top_level(path) for path in self.repeats) if name in names]
        return list(dict.fromkeys((*columns, *keys, *unread)))

    def _unread(self, present: Iterable[str], columns: Sequence[str]) -> list[str]:
        noted = self.noted
        return [] if noted is None else [n for n in present if n not in noted and n not in columns]

    def _is_repeated(self, key: str | None) -> bool:
        """Return whether a key occurred before, and remember it; None never counts as repeated."""
        before = len(self._keys)
        if key is not None:
            self._keys.add(key)
        return key is not None and len(self._keys) == before

    def _distinct_rows(self, file: Path, parquet: pq.ParquetFile) -> Iterator[tuple[int, Row]]:
        """Yield the rows that are no copies, and their places; of the others only keys are read."""
        columns = self._columns(file, parquet.schema_arrow.names)
        for group, (start, indices) in enumerate(self._first_indices(parquet)):
            if indices:  # else the row group is not read
                batches = parquet.iter_batches(BATCH_ROWS, [group], columns)
                rows = select_rows((block_of(file, batch) for batch in batches), indices)
                yield from ((start + index, row) for index, row in rows)

    def _first_indices(self, parquet: pq.ParquetFile) -> list[tuple[int, list[int]]]:
        """Return for each row group its first row, and the indices in it of rows that are not copies."""
        firsts = list[tuple[int, list[int]]]()
        total, paths = 0, list(self.repeats)
        for group in range(parquet.num_row_groups):
            start, indices = total, list[int]()
            for batch in parquet.iter_batches(_SCAN_ROWS, row_groups=[group], columns=paths):
                new = [index for key, index in _keys(batch, paths) if not self._is_repeated(key)]
                indices += sorted(total - start + index for index in new)
                total += batch.num_rows
            firsts.append((start, indices))
        return firsts


def _keys(batch: pa.RecordBatch, paths: Sequence[str]) -> Iterator[tuple[str | None, int]]:
    """Yield the distinct keys of a batch with their first places.

    A row with a null in its key has the key None; each of these rows is yielded.
    """
    parts = [pc.struct_field(batch[p.split(".")[0]], p.split(".")[1:]) for p in paths]
    key = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), _SEPARATOR)
    yield from ((None, at) for at in pc.indices_nonzero(key.is_null()).to_pylist())
    table = pa.table({"key": key, "at": range(len(key))}).group_by("key", use_threads=False)
    firsts = table.aggregate([("at", "min")])
    for name, at in zip(firsts["key"].to_pylist(), firsts["at_min"].to_pylist(), strict=True):
        if name is not None:
            yield name, at
