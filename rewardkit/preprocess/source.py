"""The raw rows of a dataset, and where they come from: a path, the local cache, or a hub."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Literal, TypeAlias, get_args

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
    row_files_below,
    row_suffix,
)
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.column_map import top_level, value_at_path
from rewardkit.registry import did_you_mean
from rewardkit.row import Row, open_parquet
from rewardkit.row_files import rows_at, rows_in, saved_files, saved_splits

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
    repository, pattern = card.repository(split), card.splits[split].files[0]
    if not repository:
        return None
    source = _from_huggingface(repository, pattern, is_local=True)
    return source or _in_datasets_cache(repository, pattern)


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
    paths = [file for file in row_files_below(folder) if split_name.search(file.stem)]
    suffix = min(map(row_suffix, paths), key=ROW_SUFFIXES.index, default="")
    files = [file for file in paths if row_suffix(file) == suffix]
    if len({file.parent for file in files}) > 1:
        names = ", ".join(str(file) for file in files[:4])
        raise SourceError(
            f"{folder}: several folders have files of {split!r}: {names}. Give --source one of them."
        )
    if files:
        return tuple(files)
    if splits := saved_splits(folder):
        raise SourceError(f"{folder}: no split {split!r}. Add --split {' or '.join(splits)}.")
    expected = "".join(f"{layout} or " for layout in layouts)
    raise SourceError(
        f"{folder}: no {split!r} file here. Expected {expected}a parquet, jsonl or arrow file "
        f"with {split!r} in its name."
    )


def _from_huggingface(repository: str, files: str, *, is_local: bool) -> Source | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    options = {"local_files_only": True} if is_local else {"allow_patterns": [files]}
    try:
        folder = Path(snapshot_download(repository, repo_type="dataset", **options))
    except LocalEntryNotFoundError:
        if is_local:
            return None
        raise
    return _snapshot(folder, files, "cache" if is_local else "huggingface", folder.name)


def _from_modelscope(repository: str, files: str) -> Source | None:
    try:
        from modelscope.hub.snapshot_download import dataset_snapshot_download
    except ImportError as error:
        raise SourceError(
            "--hub modelscope needs a package: pip install 'rewardkit[modelscope]'."
        ) from error
    folder = dataset_snapshot_download(repository, allow_patterns=[files])
    return _snapshot(Path(folder), files, "modelscope")


def _snapshot(folder: Path, pattern: str, origin: str, revision: str = "") -> Source | None:
    files = tuple(sorted(folder.glob(pattern)))
    return Source(files, origin, revision) if files else None


def _in_datasets_cache(repository: str, pattern: str) -> Source | None:
    """Return what `datasets.load_dataset` cached: Arrow files in one folder per configuration."""
    from huggingface_hub.constants import HF_HOME

    cache = Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")
    folder = cache.expanduser() / repository.replace("/", "___")
    inner, _, name = pattern.rpartition("/")
    config = "default" if inner in ("", "data", "train") else inner
    split_name = re.match("train|test|validation|dev", name)
    split = split_name[0] if split_name else "train"  # `datasets` calls any other file train
    files = sorted(folder.glob(f"{config}/*/*/*-{split}*.arrow"))
    return Source(tuple(files), "cache", files[0].parent.name) if files else None


def _download(card: Card, split: str, hub: Hub) -> Source:
    repositories = {name: card.repository(split, name) for name in get_args(Hub)}
    pattern = card.splits[split].files[0]
    download = (
        _from_modelscope if hub == "modelscope" else partial(_from_huggingface, is_local=False)
    )
    reason, failure = "the dataset is not on this hub", None
    if repositories[hub]:
        # the hubs' clients raise errors of many families
        source = call_catching(download, repositories[hub], pattern)
        if isinstance(source, Source):
            return source
        if isinstance(source, SourceError):
            raise source
        reason, failure = f"the repository has no {pattern}", source
    if failure:
        first_line = shorten(str(failure).partition("\n")[0], 240, placeholder=" ...")
        reason = first_line or type(failure).__name__
    remedies = [
        "Ways to get the rows:",
        "  --source PATH        a file in any format that prep reads, or a folder, copied here",
    ]
    other = "huggingface" if hub == "modelscope" else "modelscope"
    if repositories[other]:
        remedies.append(f"  --hub {other:<14} the same dataset on the other hub")
    if repositories["huggingface"]:
        remedies.append("  HF_ENDPOINT=URL      a mirror of Hugging Face")
        remedies.append(
            f"  HF_HOME=DIR          a Hugging Face cache with {repositories['huggingface']}"
        )
    remedies.append("  --sample             the packaged sample, to try things out")
    message = (
        f"{card.name}: not in the local cache, and could not download "
        f"{repositories[hub] or 'it'} from {hub} ({reason})."
    )
    if card.gated and repositories["huggingface"]:
        message += f" It is gated: {card.how_to_get_access(split)}."
    raise SourceError(message, "\n".join(remedies)) from failure


@dataclass
class RawRows:
    """The raw rows of files, in order, each with its index among all; can be iterated more than once.

    A row of JSON that lacks a column of the rows before it in its file has a null there.

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
            self._layout = ()
            if self.repeats and file.suffix.lower() == ".parquet":
                with open_parquet(file) as parquet:
                    paths = {parquet.schema.column(i).path for i in range(len(parquet.schema))}
                    if paths.issuperset(self.repeats):
                        yield from self._distinct_rows(file, parquet)
                        continue
            yield from self._rows_of(file)

    def _rows_of(self, file: Path) -> Iterator[tuple[int, Row]]:
        from rewardkit.preprocess.column_guess import has_text

        names, columns, unread = None, list[str](), list[str]()
        for where, raw in rows_in(file, self._columns_to_read):
            if raw.keys() != names:
                names, columns = raw.keys(), self._columns(where, raw)
                unread = self._unread(raw, columns)
            for name in unread:
                is_counted = name in self.unread_text or len(self.unread_text) < MAX_UNREAD
                if is_counted and has_text(name, raw[name]):
                    self.unread_text[name] += 1
            self.read += 1
            values = [value_at_path(raw, path) for path in self.repeats]
            key = _SEPARATOR.join(map(str, values)) if values and None not in values else None
            if not self._is_repeated(key):
                yield self.read - 1, {column: raw.get(column) for column in columns}

    def _columns(self, where: object, present: Iterable[str]) -> list[str]:
        """Return the columns of the first layout that is present, else of the row before."""
        counts = Counter(iter(present))
        for layout in self.layouts:
            if counts.keys() >= set(layout):
                if repeated := [column for column in layout if counts[column] > 1]:
                    raise DataError(f"{where}: there are several columns {repeated[0]!r}.")
                self._layout = layout
                break
        if self._layout:
            return list(self._layout)
        nearest = min(self.layouts, key=lambda layout: len(set(layout) - counts.keys()))
        absent = [column for column in nearest if column not in counts]
        missing = " and no ".join(map(repr, absent))
        columns = ", ".join(sorted(counts)) or "nothing"
        near = next(filter(None, (did_you_mean(name, list(counts)) for name in absent)), "")
        raise DataError(f"{where}: has no {missing}; it has {columns}.{near}")

    def _columns_to_read(self, where: object, present: Iterable[str]) -> list[str]:
        names = list(present)
        columns = self._columns(where, names)
        unread = [name for name in self._unread(names, columns) if names.count(name) == 1]
        keys = [name for name in map(top_level, self.repeats) if name in names]
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
        """Yield the rows that are not copies; of the others only the keys are read."""
        columns, start = self._columns(file, parquet.schema_arrow.names), self.read
        firsts, total, paths = list[int](), 0, list(self.repeats)
        for batch in parquet.iter_batches(_SCAN_ROWS, columns=paths):
            new = [index for key, index in _keys(batch, paths) if not self._is_repeated(key)]
            firsts += sorted(total + index for index in new)
            total += batch.num_rows
        for index, row in rows_at([file], firsts, lambda *_: columns):
            self.read = start + index + 1
            yield start + index, row
        self.read = start + total


def _keys(batch: pa.RecordBatch, paths: Sequence[str]) -> Iterator[tuple[str | None, int]]:
    """Yield the distinct keys of a batch, each with the index of its first row.

    A row with a null in its key has the key None; each of these rows is yielded.
    """
    parts = [pc.struct_field(batch[top_level(p)], p.split(".")[1:]) for p in paths]
    key = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), _SEPARATOR)
    yield from ((None, index) for index in pc.indices_nonzero(key.is_null()).to_pylist())
    table = pa.table({"key": key, "index": range(len(key))}).group_by("key", use_threads=False)
    firsts = table.aggregate([("index", "min")])
    for name, index in zip(firsts["key"].to_pylist(), firsts["index_min"].to_pylist(), strict=True):
        if name is not None:
            yield name, index
