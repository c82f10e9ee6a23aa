"""A run on mathematics, programs, instructions, calls and SQL in one parquet, judged by `auto`, in real verl 0.9.1."""

from __future__ import annotations

import json

import rewardkit
from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.preprocess.mix import MixPart, mix
from rewardkit.scorers.load import location
from tests.integration.conftest import needs_rehearsal

#: A dataset of each kind, and the `data_source` of its rows.
DATASETS = {
    "gsm8k": "openai/gsm8k",
    "humaneval": "openai/openai_humaneval",
    "ifeval": "google/IFEval",
    "xlam-60k": "Salesforce/xlam-function-calling-60k",
    "spider": "xlangai/spider",
}


@needs_rehearsal
def test_a_grpo_run_on_every_kind_of_reward_logs_each_source(plan, tmp_path, cli):
    paths = [tmp_path / f"{name}.parquet" for name in DATASETS]
    for name, path in zip(DATASETS, paths, strict=True):
        rewardkit.prep(name, path, sample=True)
    mix([MixPart(path, 1) for path in paths], tmp_path / "mix.parquet", rows=40)
    result = rehearse(plan(location("auto"), data=tmp_path / "mix.parquet"), folder=tmp_path / "r")
    assert result.ok, result.checks
    sources = {*DATASETS.values()}
    (line,) = [
        line
        for line in (tmp_path / "r/metrics.jsonl").read_text().splitlines()
        if "val-core" in line
    ]
    metrics = json.loads(line)["data"]
    assert [metrics[f"val-aux/{source}/error/mean@1"] for source in sources] == [0.0] * 5
    done = cli("logs", "r", cwd=tmp_path)
    assert not [source for source in sources if source not in done.stdout]
