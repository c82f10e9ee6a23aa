"""What verl's examples/data_preprocess/gsm8k.py does, as a peer to measure.

Same libraries and same steps, in our words: `datasets` reads the hub's files, maps every row in
Python and writes parquet. The script of verl 0.9.1 and before also imports `verl.utils.hdfs_io`,
and with it torch; `--import-verl` does as well.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import datasets

parser = argparse.ArgumentParser()
parser.add_argument("source", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--import-verl", action="store_true")
options = parser.parse_args()

if options.import_verl:
    import verl.utils.hdfs_io  # noqa: F401

GOLD = re.compile(r"#### (-?[0-9.,]+)")
ASK = 'Let\'s think step by step and output the final answer after "####".'


def to_row(raw: dict[str, str], index: int, split: str) -> dict[str, object]:
    """The row verl's script writes."""
    gold = GOLD.search(raw["answer"])
    assert gold is not None
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"{raw['question']} {ASK}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": gold[1].replace(",", "")},
        "extra_info": {
            "split": split,
            "index": index,
            "answer": raw["answer"],
            "question": raw["question"],
        },
    }


files = {
    split: str(options.source / f"main/{split}-00000-of-00001.parquet")
    for split in ("train", "test")
}
loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(options.out / "cache"))
for split, rows in loaded.items():
    mapped = rows.map(
        to_row, with_indices=True, fn_kwargs={"split": split}, remove_columns=rows.column_names
    )
    mapped.to_parquet(str(options.out / f"{split}.parquet"))
