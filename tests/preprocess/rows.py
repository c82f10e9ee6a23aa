"""Rows and files that several tests of data write."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from hypothesis import strategies as st

from rewardkit.row import build_row, read_rows

#: Values that JSON can have.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def verl_row(i=0, **changes):
    fields = {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"question {i}"}],
        "ability": "math",
        "ground_truth": str(i),
        "index": i,
        "split": "train",
        "question": f"question {i}",
        "answer": f"so\n#### {i}",
        "scorer": "gsm8k",
    }
    return build_row(**(fields | changes))


def jsonl(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_file(path, rows):
    """Write rows, or a table, in the format that the file's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    elif path.suffix == ".jsonl":
        jsonl(path, *rows)
    else:
        path.write_text(json.dumps(rows, indent=1))
    return path


def dropped(out):
    """The entries of OUT.dropped.jsonl."""
    lines = out.with_name(f"{out.name}.dropped.jsonl").read_text().splitlines()
    return list(map(json.loads, lines))


def infos(parquet, name):
    """A field of `extra_info` in all rows."""
    return [row["extra_info"][name] for row in read_rows(parquet)]


def golds(parquet):
    return [row["reward_model"]["ground_truth"] for row in read_rows(parquet)]


def write_card(folder, columns, **more):
    """Write the card of a dataset, and return its path."""
    fields = {
        "name": "sums",
        "title": "Sums",
        "data_source": "acme/sums",
        "ability": "math",
        "template": "boxed",
        "scorer": "math",
        "licence": "ours",
        "columns": columns,
        "splits": {"train": {"rows": 3, "files": "sums.jsonl"}},
        **more,
    }
    card = folder / f"{fields['name']}.md"
    card.write_text(f"---\n{yaml.safe_dump(fields, allow_unicode=True)}---\n# A card\n")
    return str(card)
