"""Do the steps of verl's examples/data_preprocess/gsm8k.py, as a peer to measure.

The libraries and steps are the same, written in our own code: `datasets` reads the hub's files, maps
every row in Python and writes parquet. The script of verl 0.9.1 and earlier also imports
`verl.utils.hdfs_io`, and with it torch; `--import-verl` does the same.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import datasets

parser = argparse.ArgumentParser()
parser.add_argument("source", type=Path, help="folder of GSM8K with the files of the hub")
parser.add_argument("out", type=Path, help="folder for the output and the cache")
parser.add_argument("--import-verl", action="store_true", help="import verl first")
options = parser.parse_args()

if options.import_verl:
    import verl.utils.hdfs_io  # noqa: F401

GOLD = re.compile(r"#### (-?[0-9.,]+)")
INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'


def to_row(raw: dict[str, str], index: int, split: str) -> dict[str, object]:
    """Convert a row as verl's script does."""
    gold = GOLD.search(raw["answer"])
    assert gold is not None
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"{raw['question']} {INSTRUCTION}"}],
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
