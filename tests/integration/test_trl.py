"""TRL's GRPOTrainer trains with our scorers on our parquet, on the CPU.

The rewards of known responses are checked in TRL's log and in its table of completions. The model is
random and tiny; the test fixes its responses, so that the rewards are known.
"""

from __future__ import annotations

import importlib
from itertools import islice
from math import isnan
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rewardkit.adapters.trl import reward
from rewardkit.row import read_rows


@pytest.fixture(scope="module")
def trl():
    trl = pytest.importorskip("trl", reason="trl is not installed; verl-0.9.1.txt has it")
    # Rehearsals need vLLM 0.28, of which this TRL imports names that it no longer has.
    importlib.import_module("trl.import_utils").is_vllm_available = lambda *_, **__: False
    return trl


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    from rewardkit.launch.rehearsal.hooks.tiny_model import write_model  # imports torch

    write_model(folder, positions=1024)
    return str(folder)


@pytest.fixture(scope="module")
def trained(trl, model_dir, parquet, tmp_path_factory):
    """A trainer after a step on two prompts with four responses each, of which two are right.

    The gold of the second prompt cannot be scored.
    """
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, Qwen2ForCausalLM

    rows = list(islice(read_rows(parquet), 2))
    gold = rows[0]["reward_model"]["ground_truth"]
    rows[1]["reward_model"]["ground_truth"] = "many"
    tokenizer = AutoTokenizer.from_pretrained(model_dir)

    class FixedResponses(Qwen2ForCausalLM):
        """The tiny model with fixed responses, ended and padded."""

        def generate(self, input_ids, **_):
            texts = [f"so #### {gold}", "so #### 1e9", f"#### {gold}", "no idea"]
            responses = [tokenizer(t)["input_ids"] + [tokenizer.eos_token_id] for t in texts * 2]
            width = max(map(len, responses))
            padded = [ids + [tokenizer.pad_token_id] * (width - len(ids)) for ids in responses]
            return torch.cat([input_ids, torch.tensor(padded)], dim=1)

    out = {"output_dir": str(tmp_path_factory.mktemp("out")), "save_strategy": "no"}
    sizes = {"per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 32}
    logged = {"logging_steps": 1, "log_completions": True, "report_to": [], "disable_tqdm": True}
    config = trl.GRPOConfig(
        **out, **sizes, **logged, use_cpu=True, max_steps=1, shuffle_dataset=False
    )
    model, data = FixedResponses.from_pretrained(model_dir), Dataset.from_list(rows)
    given = {"args": config, "train_dataset": data, "processing_class": tokenizer}
    trainer = trl.GRPOTrainer(model=model, reward_funcs=[reward("gsm8k"), reward()], **given)
    trainer.train()
    return trainer


def test_trls_log_has_the_rewards_of_known_responses(trained):
    (log,) = [entry for entry in trained.state.log_history if "reward" in entry]
    assert log["rewards/gsm8k/mean"] == log["rewards/rewardkit/mean"] == 0.5  # without None
    assert log["reward"] == 1.0  # the sum of two functions
    assert log["gsm8k/acc"] == 0.25
    assert log["gsm8k/error"] == 0.5
    assert log["grad_norm"] > 0


def test_each_completion_has_its_reward_and_those_without_a_gold_have_no_advantage(trained):
    (table,) = Path(trained.args.output_dir).rglob("completions_*.parquet")
    rows = pq.read_table(table).to_pylist()
    starts = ["so ####", "so #### 1e9", "####", "no idea"] * 2
    for row, text in zip(rows, starts, strict=True):
        assert _text(row["completion"]).startswith(text)
    for name in ("gsm8k", "rewardkit"):
        assert [row[name] for row in rows[:4]] == [1.0, 0.0, 1.0, 0.0]
        assert all(row[name] is None or isnan(row[name]) for row in rows[4:])
    assert [row["gsm8k_pred"] for row in rows][1:4] == ["1", rows[0]["gsm8k_pred"], ""]
    signs = [(row["advantage"] > 0) - (row["advantage"] < 0) for row in rows]
    assert signs == [1, -1, 1, -1, 0, 0, 0, 0]


def _text(completion):
    """Return the text of a completion: TRL 1.12 has texts in its table, 1.16 has messages."""
    return completion if isinstance(completion, str) else completion[0]["content"]


def test_openrlhf_gets_tensors():
    """This test is here because torch is installed."""
    import torch

    from rewardkit.adapters import openrlhf

    result = openrlhf.reward("gsm8k")(["p#### 4<|im_end|>", "p#### 5"], ["p", "p"], ["4", "4"])
    for tensor in (result["rewards"], result["scores"], result["extra_logs"]["acc"]):
        assert (tensor.dtype, tensor.tolist()) == (torch.float32, [1.0, 0.0])
