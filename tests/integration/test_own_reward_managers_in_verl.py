"""The examples of docs/how-to/custom-reward-manager.md and turn-rewards.md run in real verl 0.9."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardkit.scorers.load import location
from tests.integration.conftest import RESPONSE, VERL, make_batch, read_outputs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(
    not VERL.startswith("0.9"), reason="these keys and classes are those of 0.9"
)


def overrides_of(page):
    """Return the overrides in the first block of a page, with the paths of this tree."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    block = re.search(r"```bash\n(.*?)```", text, re.DOTALL)[1].replace("$PWD", str(ROOT))
    gsm8k = "reward.custom_reward_function.path=" + str(location("gsm8k"))
    block = re.sub(r"\$\(rewardkit path .*?\)", gsm8k, block)
    return [word for word in block.split() if re.match(r"[+\w.]+=", word) and "PYTHON" not in word]


# ---------------------------------------------------------------- a custom reward manager


def test_a_response_that_is_cut_off_earns_nothing(compose, tokenizer, parquet):
    """The answer of every row is correct; those of odd rows fill the whole response."""
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    def respond(row):
        answer = f"#### {row['reward_model']['ground_truth']}"
        return answer.ljust(RESPONSE - 1) if row["extra_info"]["index"] % 2 else answer

    config = compose(*overrides_of("custom-reward-manager.md"))
    data = make_batch(config, tokenizer, [parquet], respond)
    data.batch["responses"][data.batch["responses"] == tokenizer.eos_token_id] = ord("y")

    async def run():
        return read_outputs(await RewardLoopWorker(config).compute_score_batch(data))

    rewards, extras = asyncio.run(run())
    assert {extra["acc"] for extra in extras} == {1.0}
    for i, (reward, extra) in enumerate(zip(rewards, extras, strict=True)):
        assert extra["cut_off"] == (extra["tokens"] == RESPONSE) == i % 2
        assert reward == 1.0 - extra["cut_off"]
    assert {frozenset(extra) for extra in extras} == {frozenset(extras[0])}


def test_a_misspelt_class_ends_before_training(compose):
    from verl.trainer.ppo.reward import resolve_reward_manager_cls

    config = compose(*overrides_of("custom-reward-manager.md"), "reward.reward_manager.name=Cut")
    with pytest.raises(AttributeError, match="Cut"):
        resolve_reward_manager_cls(config)


# ---------------------------------------------------------------- rewards by turn

TURNS = ["#### 4, but check: ", "#### 5. So ", "#### 4"]
TOOL = "<the tool says 3>"


def output_of(tokenizer, turns):
    """Return what verl's loop returns for turns of the model with answers of a tool between them."""
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

    response, mask = [], []
    for number, turn in enumerate(turns):
        for text, bit in ([(TOOL, 0)] if number else []) + [(turn, 1)]:
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            response += ids
            mask += [bit] * len(ids)
    prompt = tokenizer("What is 2 + 2?", add_special_tokens=False)["input_ids"]
    return AgentLoopOutput(
        prompt_ids=prompt,
        response_ids=response,
        response_mask=mask,
        num_turns=2 * len(turns),
        metrics=AgentLoopMetrics(),
        extra_fields={"turn_scores": [], "tool_rewards": []},
    )


@pytest.fixture
def train_on(compose, tokenizer, monkeypatch):
    """Let verl's V1 worker run the loop of the page, ask its reward worker, and store the result."""
    import hydra
    import transfer_queue
    from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
    from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

    monkeypatch.syspath_prepend(EXAMPLES)
    stored = []

    async def store(*, fields, **_):
        stored.append(fields)

    monkeypatch.setattr(transfer_queue, "async_kv_batch_put", store)
    worker = object.__new__(AgentLoopWorkerTQ.__ray_metadata__.modified_class)
    worker.processor, worker.distillation_enabled = None, False
    worker.mm_processor_kwargs = {}

    async def run(turns):
        async def run_loop(self, sampling_params, **_):
            return output_of(tokenizer, turns)

        monkeypatch.setattr(ToolAgentLoop, "run", run_loop)
        config = compose(*overrides_of("turn-rewards.md"))
        rewards = RewardLoopWorker(config)
        call = SimpleNamespace(remote=rewards.compute_score)
        worker.reward_loop_worker_handles = [SimpleNamespace(compute_score=call)]
        loop = object.__new__(hydra.utils.get_class("turn_rewards.TurnRewardLoop"))
        loop.tokenizer = tokenizer
        output = await loop.run({})
        row = {"uid": "u", "session_id": 0, "global_steps": 1, "data_source": "openai/gsm8k"}
        row["raw_prompt"] = [{"role": "user", "content": "What is 2 + 2?"}]
        row |= {"reward_model": {"ground_truth": "4"}, "extra_info": {"index": 0}}
        await worker._agent_loop_postprocess(output, validate=False, **row)
        return stored[-1]

    return lambda turns: asyncio.run(run(turns))


def rewards_of(fields):
    """Return the rewards of the tokens, and the indices of those that are not 0."""
    rewards = fields["rm_scores"][0]
    return rewards, rewards.nonzero().flatten().tolist()


def test_each_turn_has_its_reward_on_its_last_token(train_on, tokenizer):
    rewards, indices = rewards_of(train_on(TURNS))
    ids = tokenizer(TURNS[0] + TOOL + TURNS[1] + TOOL + TURNS[2], add_special_tokens=False)
    ends = [len(TURNS[0]), len(TURNS[0] + TOOL + TURNS[1]), len(ids["input_ids"])]
    assert [index + 1 for index in indices] == ends
    assert rewards[indices].tolist() == [1.0, -1.0, 1.0]
    assert rewards.sum() == 1.0


def test_one_turn_has_the_reward_where_verl_puts_it(train_on):
    rewards, indices = rewards_of(train_on(["#### 4"]))
    assert (indices, rewards.sum()) == ([len("#### 4") - 1], 1.0)


def test_verl_logs_the_keys_of_the_reward_without_the_list(train_on):
    fields = train_on(TURNS)
    assert set(fields["extra_fields"][0]["reward_extra_info"]) == {"score", "acc"}


def advantages(compose, estimator, rewards, mask):
    """Return the advantages of two responses in verl: one with these rewards, one with none."""
    import numpy as np
    import torch
    from verl.protocol import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    both = torch.stack([rewards, torch.zeros_like(rewards)])
    tensors = {"token_level_rewards": both, "response_mask": mask.expand(2, -1)}
    tensors["values"] = torch.zeros_like(both)
    uid = np.array(["a", "a"], dtype=object)
    data = DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid})
    config = compose(f"algorithm.adv_estimator={estimator}").algorithm
    data = compute_advantage(data, adv_estimator=estimator, gamma=1.0, lam=0.9, config=config)
    return data.batch["advantages"][0]


@pytest.mark.parametrize(
    ("estimator", "by_turn"),
    [("gae", True), ("reinforce_plus_plus", True), ("grpo", False), ("rloo", False)],
)
def test_estimators_that_sum_the_rewards_see_no_turns(train_on, compose, estimator, by_turn):
    fields = train_on(TURNS)
    mask = fields["response_mask"][0]
    result = advantages(compose, estimator, fields["rm_scores"][0], mask)[mask.bool()]
    assert (len({round(value, 4) for value in result.tolist()}) > 1) == by_turn
