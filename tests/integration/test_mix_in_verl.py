"""Real verl loads the mix of files that it cannot load together."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.preprocess.mix import MixPart, mix


def rows(n, **fields):
    for i in range(n):
        yield {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": f"What is {i} + 0? Answer after ####."}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(i)},
            "extra_info": {"index": i, "split": "train"},
        } | {name: make(i) for name, make in fields.items()}


#: Fields of existing files that `datasets.concatenate_datasets` cannot align with ours.
KINDS = {
    "uuid index": {"extra_info": lambda i: {"index": f"uuid-{i}"}},
    "number as gold": {"reward_model": lambda i: {"style": "rule", "ground_truth": i}},
    "list as gold": {"reward_model": lambda i: {"style": "rule", "ground_truth": [str(i)]}},
    "text as prompt": {"prompt": lambda i: f"What is {i} + 0? Answer after ####."},
}


def write(path, dicts):
    pq.write_table(pa.Table.from_pylist(list(dicts)), path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_verl_cannot_list_together_load_after_a_mix(kind, parquet, tmp_path, load):
    other = write(tmp_path / "other.parquet", rows(16, **KINDS[kind]))
    with pytest.raises((ValueError, TypeError), match="align"):
        load(parquet, other)
    mix([MixPart(parquet), MixPart(other)], tmp_path / "mix.parquet", rows=32)
    loaded = load(tmp_path / "mix.parquet")
    assert len(loaded) == 32
    assert all(type(row["extra_info"]["index"]) is int for row in loaded)
    assert all(type(row["reward_model"]["ground_truth"]) is str for row in loaded)
    assert all(row["raw_prompt"][-1]["content"] for row in loaded)
    assert len(load(parquet, tmp_path / "mix.parquet")) == 64 + 32


def test_a_mix_of_images_and_text_loads(parquet, tmp_path, load):
    """Rows without an image have a null, which verl reads as no image."""
    images = tmp_path / "images.parquet"
    rewardkit.prep("geometry3k", images, sample=True, split="train")
    mix([MixPart(parquet, 64), MixPart(images, 1)], tmp_path / "mix.parquet", rows=65)
    loaded = load(tmp_path / "mix.parquet", processor=object())
    contents = [row["raw_prompt"][-1]["content"] for row in loaded]
    with_image = [content for content in contents if isinstance(content, list)]
    assert (len(contents), len(with_image)) == (65, 1)
    assert with_image[0][0]["image"].size > (1, 1)


def test_dapo_aime_and_ours_load_as_one_mix(shared, parquet, tmp_path, load):
    """The mix has GSM8K, DAPO with its uuid index, and AIME with a null split and an extra column."""
    dapo = shared / "data/dapo-math-17k/data/dapo-math-17k-dedup.parquet"
    aime = shared / "data/aime_2024/BytedTsinghua-SIA/data/aime-2024.parquet"
    with pytest.raises(ValueError, match="align|Feature type"):
        load(parquet, dapo)
    parts = [MixPart(parquet, 2), MixPart(dapo, 7), MixPart(aime, 1)]
    mix(parts, tmp_path / "mix.parquet", rows=100)
    sources = Counter(row["data_source"] for row in load(tmp_path / "mix.parquet"))
    assert sources == {"openai/gsm8k": 20, "math_dapo": 80}
