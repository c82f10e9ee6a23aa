"""`rewardkit mix` as a user meets it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def parts(sample, tmp_path):
    """Write a.parquet (64 rows) and b.parquet (40; a uuid index, a numeric gold and a leak)."""
    sample(tmp_path / "a.parquet")
    rows = [
        {
            "data_source": "x/y",
            "prompt": [{"role": "user", "content": f"What is {i} + 0?\nAnswer after ####."}],
            "reward_model": {"style": "rule", "ground_truth": i},
            "extra_info": {"index": f"uuid-{i}", "scorer": "gsm8k"},
            "__index_level_0__": i,
        }
        for i in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    return "a.parquet:0.6", "b.parquet:0.4"


def test_a_mix_prints_a_table_and_passes_check(run, parts):
    done = run("mix", *parts, "--rows", "50", "--seed", "3", "--out", "train.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert "train.parquet: 50 rows, seed 3" in words
    assert "a.parquet 0.6 60.0% 64 30 1" in words
    assert "b.parquet: dropped field __index_level_0__ (20 rows)" in words
    assert "b.parquet: extra_info.index was str: kept as source_id (20 rows)" in words
    assert "50 rows, all good" in run("check", "train.parquet").stdout
