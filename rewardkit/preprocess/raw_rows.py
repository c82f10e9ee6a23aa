"""The raw rows of a dataset's files: the columns that it needs, and copies left out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.errors import DataError
from rewardkit.preprocess.column_guess import has_text
from rewardkit.preprocess.column_map import value_at_path
from rewardkit.registry import did_you_mean
from rewardkit.row import BATCH_ROWS, Row, open_parquet
from rewardkit.row_files import block_of, rows_in, select_rows

#: Rows whose `repeats` columns are compared at once; more rows are faster and need more memory.
_SCAN_ROWS = 131_072

#: Columns whose unread text is counted.
MAX_UNREAD = 20

#: Separates the parts of a key; no id or answer contains it.
_SEPARATOR = "\x1f"


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
            for name in unread:
                is_counted = name in self.unread_text or len(self.unread_text) < MAX_UNREAD
                if is_counted and has_text(name, raw[name]):
                    self.unread_text[name] += 1
            self.read += 1
            values = [value_at_path(raw, path) for path in self.repeats]
            is_whole = bool(values) and None not in values
            if not self._is_repeated(_SEPARATOR.join(map(str, values)) if is_whole else None):
                yield self.read - 1, {column: raw.get(column) for column in columns}

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
        keys = [name for name in (path.partition(".")[0] for path in self.repeats) if name in names]
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
