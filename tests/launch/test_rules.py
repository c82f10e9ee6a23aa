"""Each rule has a finding for a plan that breaks it and none for a plan that does not."""

import json
import re
from dataclasses import fields, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.finding import Finding
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import Plan, make_plan
from rewardkit.launch.recipe import built_in, deep_merge, load_tree, read_recipe
from rewardkit.launch.rules import CHECKED_ELSEWHERE, RULES, check_rules
from rewardkit.launch.rules.facts import GIB, MachineFacts, RunFacts, device_memory, read_facts
from rewardkit.launch.rules.rule import CODE
from rewardkit.launch.verl.hydra_values import parse_value
from rewardkit.launch.verl.releases import known_releases, release_of, renames, snapshots
from tests.launch.conftest import SMALLEST
from tests.tables import every

A, M = "actor_rollout_ref.actor", "actor_rollout_ref.model"
F, R = "actor_rollout_ref.ref", "actor_rollout_ref.rollout"

#: Short names of keys in the examples.
KEYS = {"A": A, "M": M, "F": F, "R": R} | {
    "ACTOR_PP": f"{A}.megatron.pipeline_model_parallel_size",
    "ACTOR_TP": f"{A}.megatron.tensor_model_parallel_size",
    "ADAM": f"{A}.optim.override_optimizer_config",
    "AGG": f"{A}.loss_agg_mode",
    "BALANCE": "trainer.balance_batch",
    "CRITIC_MINI": "critic.ppo_mini_batch_size",
    "FUSION": f"{A}.megatron.override_transformer_config.gradient_accumulation_fusion",
    "GRAPHS": f"{R}.cudagraph_capture_sizes",
    "RESUMED": "trainer.resume_from_path",
    "TRACED": f"{R}.trace.max_samples_per_step_per_worker",
    "WARMUP": f"{A}.optim.lr_scheduler_type",
    "WEIGHTS": "algorithm.gdpo_reward_weights",
    "BATCH": "data.train_batch_size",
    "BUFFER": "dapo.overlong_buffer",
    "BYPASS": "algorithm.rollout_correction.bypass_mode",
    "JUDGE": "reward.reward_model",
    "KL": f"{A}.use_kl_loss",
    "LAST": f"{A}.megatron.override_transformer_config.num_layers_in_last_pipeline_stage",
    "LOG_PROB": f"{R}.log_prob_micro_batch_size_per_gpu",
    "MANAGER": "reward.reward_manager.name",
    "MICRO": f"{A}.ppo_micro_batch_size_per_gpu",
    "MINI": f"{A}.ppo_mini_batch_size",
    "OVERLONG": "reward.reward_kwargs.overlong_buffer_cfg",
    "REPLAY": f"{A}.megatron.router_replay.mode",
    "ENGINE": f"{R}.engine_kwargs",
    "FOLDER": "trainer.default_local_dir",
    "G": f"{A}.megatron",
    "LENGTH": "data.max_response_length",
    "LIMIT": "reward.reward_kwargs.max_resp_len",
    "METRIC": "dapo.dynamic_sampling.metric",
    "RESUME": "trainer.resume_mode",
    "SAMPLING": "dapo.dynamic_sampling",
    "VAL": f"{R}.val_kwargs",
    "SHARE": f"{R}.gpu_memory_utilization",
    "TOKENS": f"{A}.ppo_max_token_len_per_gpu",
    "TOTAL": f"{A}.ppo_micro_batch_size",
    "TP": f"{R}.tensor_model_parallel_size",
    "TRANSFORMER": f"{A}.megatron.override_transformer_config",
    "ULYSSES": f"{A}.ulysses_sequence_parallel_size",
}

#: Words that stand for several settings.
GROUPS = {
    "COLOCATED": "JUDGE.enable_resource_pool=False",
    "DAPO": "algorithm=dapo",
    "EXPERTS": "ENGINE.vllm.enable_expert_parallel=True",
    "PICTURES": "data.image_key=pictures",
    "SAME": "data.val=[/data/train.parquet]",
    "SEPARATED": "trainer.v1.trainer_mode=separate_async",
    "VERL": "reward.scorer=verl",
    "DYNAMIC": "A.use_dynamic_bsz=True",
    "GDPO": "algorithm.adv_estimator=gdpo algorithm.gdpo_reward_keys=[correct,format] trainer.use_v1=False",
    "LONG": "data.max_prompt_length=2048 data.max_response_length=16384",
    "MEGATRON": "strategy=megatron",
    "NPU": "devices=npu devices_per_node=16",
    "OFFLOADED": "G.param_offload=True G.optimizer_offload=True",
    "OWN": "reward.scorer=/shared/mine.py:compute_score",
    "PADDED_CRITIC": "critic.fsdp.ulysses_sequence_parallel_size=2 critic.model.use_remove_padding=False",
    "POOL": "JUDGE.enable=True JUDGE.model_path=/models/judge JUDGE.rollout.name=vllm "
    "JUDGE.enable_resource_pool=True JUDGE.nnodes=1 JUDGE.n_gpus_per_node=4",
    "SAMPLED": "algorithm=dapo METRIC=acc",
    "SEPARATE": "trainer.v1.trainer_mode=separate_async R.checkpoint_engine.backend=nccl R.nnodes=1",
    "SEVEN": "layers=28 heads=28 kv_heads=4 experts=0 parameters=7600000000",
    "TRTLLM": "R.name=trtllm R.expert_parallel_size=2 +R.moe_tensor_parallel_size=2",
    "VALIDATED": "trainer.test_freq=10",
}

#: Rule, a plan that breaks it, a plan that does not (after a +, what it has besides), part of the message. A
#: word is a setting of verl, a field of the recipe, a fact (`here.` is before those of the machine) or `verl`.
EXAMPLES = [
    ("L-01", "KL=False", "", "GRPO has True"),
    ("L-01", "algorithm.adv_estimator=rloo", "", "rloo, but GRPO has grpo"),
    ("L-02", "DAPO KL=True", "DAPO", "DAPO has False"),
    ("L-03", "algorithm=ppo algorithm.use_kl_in_reward=False", "algorithm=ppo", "PPO has True"),
    ("L-04", "algorithm.kl_ctrl.kl_coef=0.01", "+ algorithm=ppo", "0.01 has no effect, because"),
    ("L-04", "A.kl_loss_coef=0.01 KL=False", "KL=False", "0.01 has no effect"),
    ("L-05", "algorithm.use_kl_in_reward=True", "", "True counts the KL twice, because"),
    ("L-06", "DAPO dapo.clip_ratio_high=0.2", "DAPO", "the plan clips at 0.2 and 0.2, but DAPO"),
    ("L-06", "A.clip_ratio_high=0.3", "", "GRPO clips at 0.2 and 0.2"),
    ("L-06", "A.clip_ratio=0.1", "A.clip_ratio=0.2", "0.1 has no effect"),
    ("L-07", "A.clip_ratio_c=1.0", "", "1 makes verl stop: the bound must be more than 1"),
    ("L-07", "DAPO dapo.clip_ratio_c=20.0", "+ dapo.clip_ratio_c=3.0", "the DAPO recipes have 10"),
    ("L-08", "DAPO MANAGER=naive", "DAPO", "naive, but DAPO has dapo"),
    ("L-08", "DAPO BUFFER.len=100 MANAGER=naive", "DAPO BUFFER.len=100", "naive ignores the"),
    ("L-09", "AGG=seq-mean-token-sum", "AGG=seq-mean-token-mean", "seq-mean-token-sum"),
    ("L-09", "DAPO AGG=seq-mean-token-mean", "DAPO", "seq-mean-token-mean gives"),
    ("L-10", "R.n=1", "+ algorithm=ppo", "1 response per prompt leaves grpo nothing to compare"),
    ("L-10", "DAPO R.n=3", "", "Set {R}.n=8"),  # more cost, and do not help
    ("L-10", "R.n=2", "", "2 responses per prompt make the advantage coarse"),
    ("L-11", "LONG", "+ R.max_num_batched_tokens=18432", "18432 tokens"),
    ("L-11", "R.max_num_batched_tokens=4096", "R.max_num_batched_tokens=1024", "4096 is less than"),
    ("L-12", "R.max_num_batched_tokens=2048", "", "2048 tokens at once leave the device idle most"),
    ("L-13", "R.enable_chunked_prefill=False", "", "False stops vLLM's decoding while it reads a"),
    ("L-14", "SEVEN TP=1 memory=24GIB", "+ TP=2", "do not fit 1 x 12 GiB. Set {TP}=2, or raise"),
    # 235B parameters take 438 GiB; eight devices have 512 GiB for the rollout.
    *(("L-14", f"TP=16 SHARE=0.8 memory=80GIB nodes=2 model={model}", "+ model=Qwen3-235B-A22B",
       "16 is more than 8") for model in ("Qwen3-30B-A3B", "mine")),
    ("L-14", "nodes=2 TP=16", "+ TP=8", "16 is more than 8: the devices wait for each other"),
    ("L-15", "SHARE=0.88", "", "0.88 leaves little"),
    ("L-15", "A.fsdp_config.param_offload=True SHARE=0.4", "+ SHARE=0.8", "0.4 is little, because"),
    ("L-15", "SHARE=40", "", "40 is not a fraction between 0 and 1"),
    ("L-16", "LONG", "+ DYNAMIC", "False gives each pass the same number of rows, whether of 10"),
    ("L-16", "DYNAMIC R.log_prob_use_dynamic_bsz=False", "", "False makes verl 0.9.1 stop"),
    ("L-17", "LONG DYNAMIC", "+ ULYSSES=2", "16384 x sequence parallel 1 is less than prompt +"),
    ("L-17", "LONG DYNAMIC TOKENS=18432 F.log_prob_max_token_len_per_gpu=9000", "+ KL=False",
     "Set {F}.log_prob_max_token_len_per_gpu=18432"),
    ("L-17", "LONG DYNAMIC algorithm=ppo critic.ppo_max_token_len_per_gpu=9000",
     "LONG DYNAMIC algorithm=ppo TOKENS=18432", "16384 x sequence parallel 1"),
    ("L-18", "BATCH=128", "BATCH=256", "256 is more than {BATCH}=128"),
    ("L-18", "MICRO=3", "+ DYNAMIC", "3 does not divide the 256 rows"),
    ("L-18", "MICRO=21 R.n=5", "+ MICRO=20", "Set {MICRO}=20."),
    ("L-19", "BATCH=257 R.n=5", "+ DYNAMIC", "Set {BATCH}=264"),
    ("L-19", "BATCH=257 R.n=5 train_rows=260", "BATCH=256 R.n=5", "Set {BATCH}=256"),
    ("L-19", "MINI=4 R.n=5", "+ MINI=8", "4 x n 5 = 20 does not divide by 8 copies"),
    ("L-19", "LOG_PROB=3", "", "3 does not divide the 1024 rows"),
    ("L-19", "MEGATRON ACTOR_TP=2 ACTOR_PP=2 BATCH=257 R.n=5", "+ BATCH=258", "2 copies x micro"),
    ("L-20", "MINI=32", "MINI=64", "32 makes more than 16 updates per step: the later ones are"),
    ("L-20", "MINI=400", "MINI=512", "the last update has fewer prompts"),
    ("L-25", "data.truncation=error", "+ fits_prompts=True", "False lets verl 0.9.1 cut long"),
    ("L-25", "model=/m/Qwen2.5-VL-7B", "model=/m/Qwen2.5-7B", "with images"),
    ("L-26", "R.temperature=0.6", "", "0.6 changes the distribution: the responses are not those"),
    ("L-26", "R.top_p=0.95", "", "0.95 changes the distribution: the responses are not those of"),
    ("L-26", "R.top_k=0", "", "Set {R}.top_k=-1"),
    ("L-27", "VALIDATED model=/m/Qwen3-8B", "+ VAL.do_sample=True VAL.temperature=1.0",
     "a thinking model repeats"),
    ("L-27", "VAL.do_sample=True R.temperature=0", "R.temperature=0", "True makes verl"),
    ("L-27", "VALIDATED VAL.do_sample=True", "VALIDATED model=/m/Qwen3-4B-Instruct-2507",
     "0 samples nothing, although do_sample is True"),
    ("L-27", "VALIDATED val_rows=30", "+ val_rows=500", "with 1 response to each of 30 rows the"),
    ("L-28", "R.response_length=1024", "+ LENGTH=1024", "1024 wins over {LENGTH}=512"),
    ("L-29", "R.name=hf", "", "verl 0.9.1 has no rollout engine 'hf'; it has sglang, trtllm, vllm"),
    ("L-30", "ENGINE.vllm.pipeline_parallel_size=2", "ENGINE.vllm.swap_space=4", "verl's rollout"),
    ("L-30", "ENGINE.sglang.attention_backend=fa3", "+ R.name=sglang", "it has no effect"),
    ("L-30", "R.pipeline_model_parallel_size=2", "", "vllm has no pipeline"),
    ("L-31", "nodes=4 EXPERTS TP=32", "EXPERTS", "over 32 devices"),
    ("L-32", "SHARE=0.95", "", "False makes CUDA graphs, which need memory besides the rollout's"),
    ("L-33", "GRAPHS=[1,2] R.enforce_eager=True",
     "GRAPHS=[1,2]", "it has no effect, because {R}.enforce_eager is True"),
    ("L-34", "LONG", "+ NPU", "False keeps the logits of all 18432 tokens in memory"),
    ("L-35", "MEGATRON G.use_mbridge=False", "MEGATRON", "False makes verl 0.9.1 stop"),
    ("L-35", "MEGATRON verl=0.7.1 G.use_mbridge=False", "+ G.use_mbridge=True", "False converts"),
    ("L-36", "MEGATRON ACTOR_TP=2 F.megatron.tensor_model_parallel_size=4", "MEGATRON ACTOR_TP=2", "4, but the actor has 2 on the same"),
    ("L-36", "A.fsdp_config.param_offload=True", "+ F.fsdp_config.param_offload=True",
     "False keeps the reference on the device, although the actor is offloaded"),
    ("L-37", "MEGATRON ACTOR_TP=3", "+ ACTOR_TP=2", "TP x PP x CP = 3 does not divide 8"),
    ("L-37", "TP=3", "", "3 does not divide 8 devices"),
    ("L-37", "SEVEN TP=8", "+ TP=4", "28 attention heads. Set {TP}=4"),
    ("L-37", "MEGATRON ACTOR_TP=2 ACTOR_PP=2 G.expert_model_parallel_size=4",
     "+ G.expert_tensor_parallel_size=1", "EP x ETP x PP = 16 does not divide 8"),
    ("L-37", "MEGATRON nodes=2 ACTOR_TP=16", "+ ACTOR_TP=8", "8 devices of a node"),
    ("L-38", "SEVEN memory=8GIB", "+ memory=24GIB", "take about 14 GiB of a device's 8 GiB"),
    ("L-38", "SEVEN MEGATRON ACTOR_TP=2 memory=24GIB", "+ ACTOR_TP=4 ACTOR_PP=2", "take about"),
    ("L-39", "A.optim.lr=0.001", "A.optim.lr=1e-06", "0.001 is far"),
    ("L-40", "MEGATRON ADAM.optimizer_cpu_offload=True",
     "+ ADAM.optimizer_offload_fraction=1 ADAM.overlap_cpu_optimizer_d2h_h2d=True ADAM.use_precision_aware_optimizer=True",
     "optimizer_cpu_offload without optimizer_offload_fraction"),
    ("L-41", "MEGATRON G.param_offload=True", "+ G.optimizer_offload=True", "False takes memory"),
    ("L-41", "MEGATRON verl=0.8.0 OFFLOADED", "+ G.grad_offload=True", "grad_offload=True"),
    ("L-41", "MEGATRON verl=0.10.0.dev0 OFFLOADED", "MEGATRON OFFLOADED", "grad_offload=True"),
    ("L-42", "LONG MEGATRON", "+ TRANSFORMER.recompute_granularity=full", "16384 tokens"),
    ("L-43", "MEGATRON G.expert_model_parallel_size=2", "+ TRANSFORMER.moe_router_dtype=fp32",
     "it is not set, so training chooses experts in bfloat16, and others than the rollout"),
    ("L-44", "MEGATRON FUSION=False", "+ FUSION=True", "slower"),
    ("L-45", "SEVEN MEGATRON ACTOR_PP=8", "+ LAST=7", "28 layers do not divide over 8 stages"),
    ("L-45", "MEGATRON ACTOR_PP=8 LAST=6 layers=94", "+ LAST=10", "Set {LAST}=10"),
    ("L-45", "MEGATRON ACTOR_PP=2 layers=61",
     "+ TRANSFORMER.account_for_loss_in_pipeline_split=True", "61 layers"),
    ("L-46", "A.kl_loss_coef=0", "", "0 makes verl load a reference model that has no effect"),
    ("L-46", "A.kl_loss_coef=0.5", "A.kl_loss_coef=0.01", "0.5 leaves"),
    ("L-47", "A.kl_loss_type=mse", "A.kl_loss_type=k3", "mse varies"),
    ("L-48", "A.entropy_coeff=0.001", "", "0.001 is unusual: all recipes have 0"),
    ("L-49", "DAPO BUFFER.len=512", "+ BUFFER.len=511", "a buffer of 512 tokens penalises every"),
    ("L-49", "DAPO BUFFER.len=9 OVERLONG.len=0", "DAPO BUFFER.len=9", "a buffer of 0 tokens"),
    ("L-49", "OVERLONG.enable=True OVERLONG.len=9", "+ OVERLONG.log=False LIMIT=512", "it is not"),
    ("L-49", "OVERLONG.enable=True OVERLONG.len=9 OVERLONG.log=False", "DAPO BUFFER.len=9",
     "it is not set, and verl cannot make the reward manager without it"),
    ("L-49", "DAPO BUFFER.len=9 LIMIT=400", "+ LIMIT=512", "400 moves the penalty's start"),
    ("L-50", "SAMPLED algorithm.filter_groups.metric=null", "SAMPLED", "not set"),
    ("L-50", "DAPO METRIC=seq_reward", "+ METRIC=acc", "verl 0.9.1 has no"),
    *(("L-50", f"DAPO verl={verl} METRIC={metric}", "+ METRIC=acc", f"no metric {metric} and")
      for verl in ("0.9.0", "0.10.0.dev0") for metric in ("reward", "seq_final_reward")),
    ("L-53", "NPU trainer.device=cuda", "NPU", "cuda does not match the recipe's devices, npu"),
    ("L-53", "trainer.device=npu", "", "Set trainer.device=cuda"),
    ("ascend", "cluster.target=ascend", "+ NPU", "Set devices: npu"),
    ("L-54", "NPU F.use_torch_compile=True", "NPU", "True does not work: NPU needs False"),
    ("L-55", "NPU env.TASK_QUEUE_ENABLE=1 R.enforce_eager=True", "NPU R.enforce_eager=True",
     "Set env.TASK_QUEUE_ENABLE=2"),
    ("L-57", "LONG", "+ ULYSSES=4", "16384 tokens"),
    ("L-57", "ULYSSES=3", "ULYSSES=2", "3 does not divide 8"),
    ("L-57", "SEVEN ULYSSES=8", "+ ULYSSES=4", "28 attention heads"),
    ("L-57", "ULYSSES=4 heads=12 kv_heads=6", "+ kv_heads=2", "6 key-value heads"),
    ("L-59", "LONG M.enable_gradient_checkpointing=False", "LONG", "every layer"),
    ("L-60", "MICRO=4", "+ LOG_PROB=8", "4 rows fit with gradients, but {LOG_PROB}=1 without"),
    ("L-61", "SEVEN TP=4 memory=80GIB", "+ TP=1", "14 GiB of weights leave room on 2"),
    ("L-62", "trainer.test_freq=-100", "VALIDATED", "with -100 the run never validates"),
    ("L-62", "VALIDATED SAME",
     "SAME trainer.test_freq=-1 trainer.val_only=True",
     "/data/train.parquet is a file for training and for validation"),
    ("L-62", "data.val=[]", "VALIDATED", "nothing is validated"),
    ("L-63", "", "trainer.save_freq=100", "with -1 the run never saves the trained model"),
    ("L-63", "trainer.save_freq=5", "+ trainer.max_actor_ckpt_to_keep=2", "every 5 steps"),
    ("L-64", "RESUME=always", "RESUME=disable", "'always'"),
    ("L-64", "RESUME=resume_path", "+ RESUMED=/c/global_step_9", "it is not set"),
    ("L-64", "RESUME=resume_path RESUMED=/c/latest",
     "RESUMED=/c/latest", "/c/latest has no global_step_N, from which verl reads"),
    ("L-65", "trainer.logger=[console,wandbb]", "", "verl 0.9.1 has no logger wandbb; it has"),
    ("L-66", "VALIDATED trainer.logger=[console,wandb]", "+ trainer.logger=[console]",
     "with 0 the shared logger shows metrics and no responses"),
    ("L-67", "", "trainer.project_name=mine", "verl_examples"),
    ("L-68", "train_rows=1000", "train_rows=1024", "1024 is more than the 1000 training rows: the"),
    ("L-68", "R.n=5 train_rows=1003", "+ train_rows=1024", "the run has no step. Set {BATCH}=1000"),
    ("L-68", "R.n=5 train_rows=7", "+ train_rows=1024", "Prepare 8 rows or more"),
    ("L-68", "BATCH=256 trainer.save_freq=500 train_rows=3000", "+ train_rows=7473", "500 is more"),
    ("L-69", "MICRO=40 R.n=5 LENGTH=1024", "+ MICRO=20", "Set {MICRO}=20, or"),  # 21 fit, 20 divide
    ("L-69", "LONG MICRO=2", "+ MICRO=1", "2 rows of 18432 tokens make passes of 36864 tokens"),
    ("L-73", "data.shuffle=False", "data.shuffle=True", "False reads the rows in the file's order"),
    ("L-74", "data.prompt_key=question", "data.prompt_key=prompt", "question"),
    ("L-75", "model=/m/Qwen2.5-VL-7B PICTURES", "PICTURES", "pictures"),
    ("L-75", "verl=0.8.0 vision=True", "+ ENGINE.vllm.mm_processor_cache_gb=0",
     "mm_processor_cache_gb=0"),
    ("L-77", "NPU cluster.workdir=/home/verl", "+ cluster.workdir=/homes/verl", "vLLM does not"),
    ("L-78", "nodes=2", "+ FOLDER=/shared/c", "verl's default is another"),
    ("L-78", "nodes=2 FOLDER=ckpt", "FOLDER=ckpt", "ckpt is another folder on each of the 2 nodes"),
    ("reward-manager", "MANAGER=rate_limitd", "MANAGER=rate_limited reward.max_concurrent=8",
     "no reward manager 'rate_limitd' and stops. Did you mean 'rate_limited'?"),
    ("reward-manager", "verl=0.7.1 MANAGER=prime", "", "Set {MANAGER}=remote."),
    ("rate-limit", "MANAGER=rate_limited", "+ reward.max_concurrent=8", "each reward worker"),
    ("rate-limit", "MANAGER=rate_limited reward.max_concurrent=8 reward.max_rpm=500",
     "+ reward.num_workers=1", "together they reach 4000 a minute"),
    ("rate-limit", "reward.max_concurrent=8", "+ MANAGER=rate_limited", "the reward manager naive"),
    ("remote-reward", "MANAGER=remote", "+ reward.num_workers=4", "verl reserves 64 cores for"),
    ("remote-reward", "reward.scorer=judge MANAGER=remote reward.num_workers=2",
     "reward.scorer=judge MANAGER=naive", "the scorer judge is async, which remote refuses"),
    ("gdpo", "GDPO trainer.use_v1=True", "GDPO", "does not give the parts to GDPO and stops"),
    ("gdpo", "GDPO algorithm.gdpo_reward_keys=[]", "GDPO verl=0.7.1", "stops at the first step"),
    ("gdpo", "GDPO WEIGHTS=[1.0]", "+ WEIGHTS=[1.0,0.1]", "1 weights for 2 keys"),
    ("gdpo", "GDPO algorithm.use_kl_in_reward=True", "GDPO KL=True", "GDPO reads the parts of the"),
    ("gdpo", "GDPO algorithm.norm_adv_by_std_in_grpo=False", "GDPO", "a part's weight counts"),
    ("gdpo", "GDPO algorithm.adv_estimator=grpo", "GDPO", "grpo does not read it"),
    ("reward-model", "OWN POOL JUDGE.model_path=null", "OWN POOL", "verl loads the reward model"),
    ("reward-model",
     "OWN POOL JUDGE.rollout.name=null",
     "OWN POOL", "Set {JUDGE}.rollout.name=vllm."),
    ("reward-model", "POOL VERL JUDGE.rollout.name=trtllm", "POOL VERL", "cannot ask a reward model on"),
    ("reward-model", "POOL reward.scorer=gsm8k", "OWN POOL", "nothing asks: the scorer gsm8k does"),
    ("reward-model", "OWN POOL JUDGE.enable=False", "OWN POOL", "reserves devices that stay idle"),
    ("reward-model", "OWN JUDGE.model_path=/models/judge", "OWN", "it has no effect, because"),
    ("reward-model", "OWN POOL COLOCATED", "POOL COLOCATED VERL", "fails where a"),
    ("reward-model", "OWN POOL COLOCATED", "+ trainer.use_v1=False",
     "Set {JUDGE}.enable_resource_pool=True"),
    ("reward-model", "POOL DAPO COLOCATED VERL METRIC=reward",
     "POOL DAPO VERL METRIC=reward", "which dynamic sampling needs before"),
    ("reward-model", "POOL COLOCATED VERL SEPARATED",
     "POOL VERL SEPARATED", "separate_async has no"),
    ("reward-model-pool", "OWN POOL JUDGE.nnodes=0", "OWN JUDGE.nnodes=0", "0 gives the reward"),
    ("reward-model-pool", "OWN POOL JUDGE.n_gpus_per_node=1",
     "OWN POOL COLOCATED trainer.use_v1=False", "a replica of the reward model takes 2 devices"),
    ("reward-model-pool", "NPU OWN POOL cluster.target=slurm", "NPU OWN POOL COLOCATED",
     "the pool comes on top of the recipe's devices: 4 + 16"),
    ("context", "LONG context=16384", "+ context=32768", "prompt + response = 18432 tokens, and"),
    ("micro-batch", "MICRO=null", "+ DYNAMIC", "Set {A}.use_dynamic_bsz=True, or {MICRO}=1 or"),
    ("micro-batch", "MICRO=null LOG_PROB=null", "MICRO=???", "{MICRO}=1 and {LOG_PROB}=1 or more"),
    ("micro-batch", "TOTAL=256", "+ DYNAMIC", "it is set, and so is {TOTAL}: verl 0.9.1 stops"),
    ("micro-batch", "MICRO=null TOTAL=256", "+ verl=0.7.1", "it is not set, and batches are cut"),
    ("micro-batch", "algorithm=ppo", "+ critic.use_dynamic_bsz=True",
     "critic.ppo_micro_batch_size_per_gpu=1 or more"),
    ("global-micro-batch", "verl=0.7.1 MICRO=null TOTAL=100", "+ TOTAL=128", "100 does not divide"),
    ("global-micro-batch", "verl=0.7.1 MICRO=null TOTAL=4", "+ TOTAL=8", "4 rows are fewer than"),
    ("critic-batch", "algorithm=ppo CRITIC_MINI=2048",
     "CRITIC_MINI=2048", "2048 is more than {BATCH}=1024"),
    ("critic-batch", "PADDED_CRITIC verl=0.7.1 algorithm=ppo", "PADDED_CRITIC algorithm=ppo",
     "False makes verl stop, because critic.ulysses_sequence_parallel_size is 2"),
    ("accepted-value", "verl=0.8.0 AGG=token-sum", "AGG=token-sum", "verl 0.8.0 does not know"),
    ("accepted-value", "algorithm.adv_estimator=grpoo", "+ OWN", "verl 0.9.1 does not know grpoo"),
    ("accepted-value", "WARMUP=linear", "WARMUP=cosine", "it knows constant, cosine"),
    ("bounds", "TRACED=-1", "TRACED=0", "-1 is less than 0"),
    ("bounds", "trainer.v1.sampler.max_off_policy_threshold=0", "+ trainer.use_v1=False",
     "0 is less than 1"),
    ("async-batch", "SEPARATE BATCH=512", "SEPARATE", "512 is not"),
    ("async-batch", "SEPARATE R.checkpoint_engine.backend=naive", "SEPARATE trainer.use_v1=False", "naive cannot send the"),
    ("expert-parallel", "R.expert_parallel_size=4", "+ R.name=trtllm", "4 is not TP x DP = "),
    ("expert-parallel", "+R.moe_tensor_parallel_size=2", "+ R.name=trtllm", "2 is possible for"),
    ("expert-parallel", "TRTLLM TP=2", "+ TP=4", "2 x expert parallel 2 is not TP = 2"),
    ("lora-rank", "M.lora_rank=600", "", "600 is more than 512, vLLM's largest rank"),
    ("router-replay", "MEGATRON REPLAY=R2 BYPASS=True", "+ REPLAY=R3", "True makes verl 0.9.1"),
    ("router-replay", "MEGATRON G.dynamic_context_parallel=True", "MEGATRON", "it is not"),
    ("L-25", "verl=0.7.1", "+ data.filter_overlong_prompts=True", "False lets a prompt over the"),
    ("L-50", "DAPO verl=0.8.0 METRIC=reward", "DAPO METRIC=reward", "verl 0.8.0"),
    ("L-50", "SAMPLED verl=0.8.0 SAMPLING.gen_batch_size=100 SAMPLING.max_num_gen_batches=5",
     "+ SAMPLING.gen_batch_size=2048", "5 rounds of 100 prompts never fill a batch of 1024"),
    ("L-50", "SAMPLED verl=0.7.1 SAMPLING.gen_batch_size=512",
     "SAMPLED SAMPLING.gen_batch_size=512", "512 is less than the batch of 1024"),
    ("L-58", "ULYSSES=2 M.use_remove_padding=False", "ULYSSES=2", "False makes verl stop, because"),
    ("L-59", "LONG M.use_remove_padding=False", "LONG", "False pads every sequence to 18432"),
    ("L-70", "verl=0.8.0 BALANCE=False", "BALANCE=False", "devices wait"),
    ("ports", "cluster.port=10002", "", "Ray refuses 10002"),
    ("ports", "cluster.dashboard_port=19999", "", "Set it to 8265"),
    ("packages", "here.has_verl=False", "here.has_verl=True", "verl is not installed"),
    ("packages", "NPU here.has_verl=False", "NPU", "--no-deps verl beside CANN"),
    ("packages", "here.has_transfer_queue=False", "+ trainer.use_v1=False", "pip install"),
    ("packages", "here.new_trl=1.16.0", "+ MEGATRON", "imports trl.experimental.ppo"),
    ("packages", "SAMPLED verl=0.8.0 here.has_dapo_recipe=False",
     "SAMPLED here.has_dapo_recipe=False", ". has no recipe/dapo"),
    ("devices", "here.devices=1", "here.devices=8", "the recipe needs 8 GPU, and this machine has"),
    ("cpus", "here.cores=8 here.reserved_cores=12", "+ here.cores=12", "num_cpus=12"),
    ("sandbox", "reward.custom_reward_function.reward_kwargs.backend=sandbox_fusion",
     "reward.custom_reward_function.reward_kwargs.backend=local", "isolation: none"),
    ("cpus", "ray_kwargs.ray_init.num_cpus=6 here.cores=64 here.reserved_cores=12",
     "+ ray_kwargs.ray_init.num_cpus=12 here.cores=8", "ray_kwargs.ray_init.num_cpus is 6"),
    ("L-50", "SAMPLED reward_keys=[extra,score]", "+ reward_keys=[acc,score]", "auto returns"),
    *(("L-50", f"SAMPLED verl={verl} reward_keys=[fit]", "", f"metric={total}.")
      for verl, total in (("0.8.0", "seq_reward"), ("0.9.0", "score"), ("0.10.0.dev0", "score"))),
    ("gdpo", "GDPO numeric_keys=[correct,form]", "+ numeric_keys=[correct,format]", "no number"),
    ("reward-manager", "OWN verl=0.7.1 MANAGER=my_own",
     "OWN MANAGER=MyOwn reward.reward_manager.source=importlib", "unless your reward file"),
]  # fmt: skip

FACTS = {each.name for each in fields(RunFacts)}
FIELDS = {"algorithm", "data.train", "data.val", "devices", "devices_per_node", "model", "nodes"}
FIELDS |= {"reward.scorer", "strategy"}


def pairs(text):
    """Yield the names and values of the words of an example."""
    for word in text.split():
        if word in GROUPS:
            yield from pairs(GROUPS[word])
        elif word != "+":
            name, _, value = word.partition("=")
            name = re.sub(r"^(\+?)([A-Z_]+)\b", lambda match: match[1] + KEYS[match[2]], name)
            yield name, int(value[:-3]) * GIB if value.endswith("GIB") else parse_value(value)


def plan_and_facts(text, overrides=(), release=None):
    """Return the plan of the smallest recipe with what an example says, and the facts that it names."""
    tree, facts, machine = SMALLEST, {}, {"reserved_for": "3 x 8 GPU"}
    for name, value in pairs(text):
        section, _, rest = name.partition(".")
        if name == "verl":
            release = release or value
        elif section == "here":
            machine[rest] = value
        elif name == "memory":
            facts["device_bytes"] = value
        elif name in FACTS:
            facts[name] = value
        elif name in FIELDS or section in {"cluster", "dapo", "env"}:
            for part in reversed(name.split(".")):
                value = {part: value}  # noqa: PLW2901
            tree = deep_merge(tree, value)
        else:
            tree = deep_merge(tree, {"verl": {name: value}})
    settings = parse_overrides(overrides, "the command line")
    plan = make_plan(read_recipe(tree, "my.yaml"), release or "0.9.1", settings)
    return plan, RunFacts(**facts, machine=MachineFacts(**machine))


def findings_of(text, overrides=()):
    return {finding.rule: finding for finding in check_rules(*plan_and_facts(text, overrides))}


@every(("rule", "breaking", "fixed", "message"), EXAMPLES)
def test_a_rule_finds_the_plan_that_breaks_it_and_not_the_fixed_one(rule, breaking, fixed, message):
    finding = findings_of(breaking).get(rule)
    assert finding, f"{rule} has no finding"
    assert message.format(**KEYS) in str(finding)
    assert finding.where
    assert finding.fix.endswith(".")
    assert "\n" not in str(finding)
    source = next(r.source for r in RULES if r.id == rule)
    assert finding.source == source or finding.source.startswith(source.removesuffix(CODE))
    assert rule not in findings_of(f"{breaking} {fixed}" if fixed[:1] == "+" else fixed)


#: A dotted name in a sentence, which is not part of a path.
DOTTED = re.compile(r"(?<![\w./-])[a-z_]\w*(?:\.\w+)+")


@pytest.mark.full
@every("verl", known_releases())
def test_a_finding_names_only_keys_that_the_planned_release_reads(verl):
    variants = [release_of(v, megatron=m) for v in known_releases() for m in (False, True)]
    keys = {key for release in variants for key in release.keys}
    keys |= {key.rstrip(".") for entry in renames() for key in (entry.new, entry.old)}
    known = {key[:i] for key in keys for i, char in enumerate(f"{key}.") if char == "."}
    for rule, breaking, *_ in EXAMPLES:
        plan, facts = plan_and_facts(breaking, release=verl)
        for finding in check_rules(plan, facts):
            for name in DOTTED.findall(str(finding)):
                if name in known or any(release.accepts_unlisted(name) for release in variants):
                    reads = plan.release.lists(name) or plan.release.accepts_unlisted(name)
                    assert reads, (rule, name)
                    assert plan.release.ignored(name) is None, (rule, name)


OWN_SIZE = "fsdp_config.ulysses_sequence_parallel_size"
DEPRECATED = f"{A}.ulysses_sequence_parallel_size"
CRITIC = "data.max_prompt_length=2048 LENGTH=38912 TOKENS=40960 DYNAMIC algorithm=ppo"


@every(("plan", "rule", "key", "fix"), [
    ("verl=0.8.0 DAPO SAMPLING.metric=acc BUFFER.len=600", "L-49",
     "reward_model.overlong_buffer.len", "Set reward_model.overlong_buffer.len=102."),
    ("verl=0.7.1 LONG", "L-57", DEPRECATED, f"Set {DEPRECATED}=8."),
    ("verl=0.8.0 LONG", "L-57", f"{A}.{OWN_SIZE}", f"Set {A}.{OWN_SIZE}=8 and {F}.{OWN_SIZE}=8."),
    ("verl=0.9.1 LONG", "L-57", f"{A}.{OWN_SIZE}", f"Set {A}.{OWN_SIZE}=8 and {F}.{OWN_SIZE}=8."),
    ("ULYSSES=3", "L-57", DEPRECATED,
     f"Set {A}.{OWN_SIZE}=2 and {F}.{OWN_SIZE}=2, and leave {DEPRECATED} out."),
    (f"verl=0.8.0 {CRITIC}", "L-17", "critic.ppo_max_token_len_per_gpu",
     "Set critic.ppo_max_token_len_per_gpu=40960, or more."),
    (CRITIC, "L-17", "critic.ppo_infer_max_token_len_per_gpu",
     "Set critic.ppo_infer_max_token_len_per_gpu=40960, or more."),
    ("LONG DYNAMIC", "L-17", f"{A}.ppo_max_token_len_per_gpu", ""),
])  # fmt: skip
def test_a_finding_names_the_keys_of_the_release_and_its_fix_removes_it(plan, rule, key, fix):
    finding = findings_of(f"M.use_remove_padding=True {plan}")[rule]
    assert finding.where == key
    assert finding.fix == fix or not fix
    sets = re.findall(r"[\w.]+=\d+", finding.fix)
    rest = plan.replace("ULYSSES=3", "")
    assert rule not in findings_of(f"M.use_remove_padding=True {rest}", sets)


def test_every_rule_has_an_example_and_those_of_the_inventory_are_checked_somewhere():
    checked = [rule.id for rule in RULES]
    assert len(checked) == len(set(checked))
    assert {*checked} == {rule for rule, *_ in EXAMPLES}
    inventory = {f"L-{number:02}" for number in range(1, 79)}
    assert inventory - {"L-21"} <= {*checked, *CHECKED_ELSEWHERE}  # L-21 was about verl before 0.7
    assert not set(checked) & set(CHECKED_ELSEWHERE)


@every("verl", [*known_releases(), *snapshots()])
@every("name", built_in())
def test_no_rule_raises_on_a_built_in_recipe_and_none_finds_an_error(name, verl):
    tree = load_tree(name)
    for variant in (None, *(tree.get("sweep") or {})):
        plan = make_plan(read_recipe(tree, name, variant), verl)
        findings = check_rules(plan, read_facts(plan))
        assert [str(f) for f in findings if f.severity == "error"] == []
        assert len({finding.rule for finding in findings}) == len(findings)


#: Rows of the built-in recipes' files, as the datasets are today.
ROWS = {"gsm8k": (7473, 1319), "7b-grpo": (17391, 530), "geometry3k": (2101, 601)}
ROWS |= {"235b": (17391, 30), "32b-dapo": (17391, 30), "dianjin": (25000, 500)}


@pytest.mark.full
@every("devices", ["gpu", "npu"])
@every("verl", known_releases())
@every("name", built_in())
def test_a_built_in_recipe_has_no_warning_about_itself(name, verl, devices):
    tree = {**load_tree(name), "devices": devices}
    if devices == "gpu":  # on GPUs the target ascend has a warning of its own
        tree["cluster"] = {**tree.get("cluster", {}), "target": "script"}
    train, val = next(rows for part, rows in ROWS.items() if part in name)
    for variant in (None, *(tree.get("sweep") or {})):
        plan = make_plan(read_recipe(tree, name, variant), verl)
        facts = replace(read_facts(plan), train_rows=train, val_rows=val)
        serious = [f for f in check_rules(plan, facts) if f.severity != "info"]
        assert [str(finding) for finding in serious] == []


class RecordingPlan(Plan):
    """A plan that records which settings the rules read."""

    keys: ClassVar[set[str]] = set()

    def get(self, key, default=None):
        self.keys.add(key)
        return super().get(key, default)


SEVEN = plan_and_facts("SEVEN")[1]


TREES = [read_recipe(load_tree(name), name) for name in built_in()]
PLANS = [make_plan(tree, verl) for tree in TREES for verl in ("0.9.1", "0.7.1")]
for plan in PLANS:
    check_rules(RecordingPlan(**{name: getattr(plan, name) for name in vars(plan)}), SEVEN)
READ = sorted(RecordingPlan.keys)
ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    st.sampled_from(["${data.train_batch_size}", "${no.such}", "1e-6", "", "???"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
COUNTS = "layers heads kv_heads parameters context device_bytes val_rows".split()
RUN_FACTS = st.builds(
    RunFacts,
    **{name: st.none() | st.integers(1, 2**40) for name in COUNTS},
    train_rows=st.none() | st.integers(1, 10**9),
    experts=st.none() | st.integers(0, 512),
    vision=st.none() | st.booleans(),
)


def with_values(plan, values):
    """Return a plan with settings of any type, which no recipe could have."""
    by_name = {plan.release.name_of(key): value for key, value in values.items()}
    return replace(plan, settings={**plan.settings, **values}, config={**plan.config, **by_name})


@given(st.sampled_from(PLANS), st.dictionaries(st.sampled_from(READ), ODD, max_size=12), RUN_FACTS)
def test_no_rule_raises_on_any_value(plan, odd, facts):
    for finding in check_rules(with_values(plan, odd), facts):
        assert isinstance(finding, Finding)
        assert finding.text


SMALL = json.loads("""{
    "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2,
    "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": true,
    "max_position_embeddings": 32768}""")
MIXTURE = json.loads("""{
    "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "head_dim": 128,
    "num_key_value_heads": 4, "moe_intermediate_size": 768, "intermediate_size": 6144,
    "num_experts": 128, "vocab_size": 151936}""")
VISION = {"text_config": SMALL, "vision_config": {"depth": 32}}
INDEX = {"metadata": {"total_size": 2_000_000}}


@every(("config", "index", "known", "parameters", "vision"), [
    (SMALL, {}, (24, 14, 2, 0), 494e6, False),  # Qwen2.5-0.5B, norms and biases aside
    (VISION, {}, (24, 14, 2, 0), 494e6, True),  # its language model
    ({**SMALL, "torch_dtype": "bfloat16"}, INDEX, (24, 14, 2, 0), 1_000_000, False),
    (MIXTURE, {}, (48, 32, 4, 128), 30.5e9, False),  # Qwen3-30B-A3B, with all experts
])  # fmt: skip
def test_the_facts_of_a_model(tmp_path, config, index, known, parameters, vision):
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    facts = read_facts(plan_and_facts(f"model={tmp_path}")[0])
    assert (facts.layers, facts.heads, facts.kv_heads, facts.experts) == known
    assert facts.vision == vision
    assert facts.parameters == pytest.approx(parameters, rel=0.01)
    assert facts.context == (32768 if config != MIXTURE else None)


@every("text", ["", "[]", "{", "null", '{"num_hidden_layers": "24"}', "\udcff"])
def test_an_unusable_configuration_gives_no_facts(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    facts = read_facts(plan_and_facts(f"model={tmp_path}")[0])
    assert (facts.layers, facts.parameters) == (None, None)


NAMES = st.sampled_from([*SMALL, "text_config", "num_experts", "rope_scaling"])
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(LEAF, lambda part: st.lists(part, max_size=2) | st.dictionaries(NAMES, part))


@given(st.dictionaries(NAMES, JSON))
def test_no_model_configuration_makes_a_rule_raise(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("model")
    plan = replace(PLANS[0], recipe=PLANS[0].recipe.model_copy(update={"model": str(folder)}))
    (folder / "config.json").write_text(json.dumps(config))
    check_rules(plan, read_facts(plan))


MEMORY = {
    "1 node x 8 GPU of 80 GB": 80, "1 GPU of 24 GB or more": 24, "2 x A800": 80, "8 x H200": 141,
    "4 nodes x 16 NPU (Atlas 800T A3)": 64, "16 NPU": None, "": None,
}  # fmt: skip


def test_the_memory_of_a_device_is_read_from_the_recipe():
    for hardware, gib in MEMORY.items():
        assert device_memory(hardware) == (gib and gib * GIB), hardware
