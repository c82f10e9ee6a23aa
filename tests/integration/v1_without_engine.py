"""verl 0.9's own V1 training without an engine: its driver, task runner, agent loops, reward workers
and replay buffer, with a model that answers at once and an update that does nothing.

`main` prints a line for each step: `step 1: 8 scores, mean 0.500`. Import this module to run it: Ray
finds the classes of an importable module by name, and cannot find those of `__main__`.
"""

from __future__ import annotations

from pathlib import Path

import ray
import transfer_queue
import verl
from hydra import compose, initialize_config_dir
from verl.experimental.reward_loop import RewardLoopManager
from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.workers.rollout.replica import TokenOutput


class Model:
    """The client of a model server that answers every prompt with `####` and a number."""

    async def generate(self, *, prompt_ids, **_):
        number = sum(prompt_ids) % 10
        return TokenOutput(token_ids=list(f"#### {number}".encode()))


class TrainerWithoutEngine(PPOTrainerSync):
    """verl's synchronous trainer up to the rewards of a batch."""

    def _setup(self):
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        self.global_steps = 0
        self.reward_loop_manager = RewardLoopManager(config=self.config)

    def _do_nothing(self, *_, **__):
        pass

    on_init_end = on_step_end = on_sample_end = _compute_metrics = _do_nothing

    def get_llm_client(self):
        return Model()

    def get_teacher_client(self):
        return None

    def _step_once(self, metrics, timing_raw, sample_batch_size):
        batch, _ = self.replay_buffer.sample(
            global_steps=self.global_steps, partition_id="train", batch_size=sample_batch_size
        )
        data = transfer_queue.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=["rm_scores"]
        )
        scores = data["rm_scores"].sum(dim=1).tolist()
        mean = sum(scores) / len(scores)
        print(f"step {self.global_steps}: {len(scores)} scores, mean {mean:.3f}", flush=True)
        return batch


class TaskRunner(TaskRunnerV1.__ray_metadata__.modified_class):
    """verl's task runner with the trainer above."""

    def run(self, config):
        trainer_base.TRAINER_REGISTRY["sync"] = TrainerWithoutEngine
        super().run(config)


def main(address, folder, *overrides):
    """Train with verl's driver function in a running Ray cluster.

    Args:
        address: the cluster's address.
        folder: a folder with a tiny model in `model`; verl's cache is written to it.
        overrides: overrides of verl's configuration.
    """
    folder = Path(folder)
    fixed = [
        f"actor_rollout_ref.model.path={folder / 'model'}",
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "reward.num_workers=1",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "trainer.logger=[console]",
        "trainer.save_freq=-1",
        "trainer.val_before_train=False",
        "+data.cache_dir=" + str(folder / "cache"),
        "data.filter_overlong_prompts=False",
        "data.dataloader_num_workers=0",
    ]
    with initialize_config_dir(
        config_dir=str(Path(verl.__file__).parent / "trainer/config"), version_base=None
    ):
        config = compose("ppo_trainer", overrides=[*fixed, *overrides])
    ray.init(address=address)
    run_ppo(config, ray.remote(TaskRunner))
