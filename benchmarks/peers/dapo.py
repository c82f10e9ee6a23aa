"""Reduce DAPO-Math-17k's 1,791,700 rows to the distinct ones, as peers to measure.

    python benchmarks/peers/dapo.py NAME SOURCE OUT

The steps of each peer are written in our own code. `build` makes the published file from its distinct
rows. Caches are written beside OUT.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

COPIES = 100
GROUPS = 20


def build(source: Path, out: Path) -> None:
    """Write every row a hundred times, in random order, in as many row groups as the hub's file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(source).replace_schema_metadata(None)
    order = list(range(table.num_rows)) * COPIES
    random.Random(0).shuffle(order)
    size = -(-len(order) // GROUPS)
    with pq.ParquetWriter(out, table.schema) as writer:
        for start in range(0, len(order), size):
            rows = table.take(pa.array(order[start : start + size]))
            writer.write_table(rows, row_group_size=size)


def bare(source: Path, out: Path) -> None:
    """Read the prompts' text first, then whole rows only for new prompts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    seen = pa.array([], pa.string())
    with pq.ParquetFile(source) as file, pq.ParquetWriter(out, file.schema_arrow) as writer:
        for group in range(file.num_row_groups):
            firsts: list[int] = []
            for start, batch in _batches(file, group, ["prompt.list.element.content"]):
                text = pc.struct_field(batch["prompt"].flatten(), "content")
                at = pc.indices_nonzero(pc.invert(pc.is_in(text, value_set=seen)))
                new = pa.table({"text": text.take(at), "at": at})
                new = new.group_by("text", use_threads=False).aggregate([("at", "min")])
                firsts += sorted(start + place for place in new["at_min"].to_pylist())
                seen = pa.concat_arrays([seen, *new["text"].chunks])
            for start, batch in _batches(file, group, None) if firsts else ():
                places = [p - start for p in firsts if start <= p < start + batch.num_rows]
                writer.write_batch(batch.take(pa.array(places, pa.int32())))


def _batches(file: Any, group: int, columns: list[str] | None) -> Iterator[tuple[int, Any]]:
    start = 0
    for batch in file.iter_batches(32_768, row_groups=[group], columns=columns):
        yield start, batch
        start += batch.num_rows


def pandas(source: Path, out: Path) -> None:
    """Load the whole file as a frame; `drop_duplicates` on the prompt's text."""
    import pandas as pd

    rows = pd.read_parquet(source)
    rows["text"] = [prompt[0]["content"] for prompt in rows["prompt"]]
    rows.drop_duplicates(subset="text").drop(columns="text").to_parquet(out)


def filter_seen(source: Path, out: Path) -> None:
    """Use `datasets.filter` row by row with a set of seen prompts; correct in one process only."""
    seen: set[str] = set()

    def is_new(row: Mapping[str, Any]) -> bool:
        before = len(seen)
        seen.add(row["prompt"][0]["content"])
        return len(seen) > before

    _load(source, out).filter(is_new).to_parquet(str(out))


def open_r1(source: Path, out: Path) -> None:
    """Do the steps of open-r1's script: rows to text with `datasets.map`, pandas, `drop_duplicates`."""
    import datasets

    def to_text(row: Mapping[str, Any]) -> dict[str, Any]:
        return {"prompt": row["prompt"][0]["content"], "gold": row["reward_model"]["ground_truth"]}

    loaded = _load(source, out)
    texts = loaded.map(to_text, remove_columns=loaded.column_names).to_pandas()
    firsts = texts.drop_duplicates(subset="prompt").reset_index(drop=True)
    datasets.Dataset.from_pandas(firsts).to_parquet(str(out))


def verl(source: Path, out: Path) -> None:
    """Do the steps of verl's script for DAPO with a tool: `datasets.map`, and no row is dropped."""
    import verl.utils.hdfs_io  # noqa: F401 - the script imports it, and with it torch

    def with_tool(row: dict[str, Any], _: int) -> dict[str, Any]:
        create = {"create_kwargs": {"ground_truth": row["reward_model"]["ground_truth"]}}
        tools = {"need_tools_kwargs": True, "tools_kwargs": {"code_interpreter": create}}
        return {**row, "extra_info": {**row["extra_info"], **tools}}

    _load(source, out).map(with_tool, with_indices=True).to_parquet(str(out))


def _load(source: Path, out: Path) -> Any:
    import datasets

    cache = str(out.parent / "cache")
    return datasets.load_dataset("parquet", data_files=str(source), split="train", cache_dir=cache)


JOBS: Mapping[str, Callable[[Path, Path], None]] = {
    job.__name__: job for job in (build, bare, pandas, filter_seen, open_r1, verl)
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
