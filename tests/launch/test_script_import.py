"""A launch script becomes a recipe with its effect; findings name what a release ignores."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import RewardkitError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight import preflight
from rewardkit.launch.recipe import Recipe, read_recipe
from rewardkit.launch.script_import.importer import import_script, recipe_text
from rewardkit.launch.script_import.recipe_writer import write_yaml
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import LATEST, release_of
from rewardkit.strict_yaml import read_yaml
from tests.tables import every

MAIN = "verl.trainer.main_ppo"
DAPO = "recipe.dapo.main_dapo"
A = "actor_rollout_ref.actor"
R = "actor_rollout_ref.rollout"
F = "actor_rollout_ref.ref"
M = "actor_rollout_ref.model"
T = f"{A}.megatron.override_transformer_config"
O = f"{A}.optim.override_optimizer_config"  # noqa: E741 - one letter as the others

#: Start of the command and settings of the published runs, by the name of their source's chapter.
PUBLISHED = {
    "7b-grpo-megatron": (
        f"{MAIN} --config-path=config --config-name='ppo_megatron_trainer.yaml'",
        f"""
        algorithm.adv_estimator=grpo data.train_files=/d/train.parquet
        data.val_files=/d/test.parquet data.train_batch_size=32 data.max_prompt_length=1024
        data.max_response_length=15360 data.filter_overlong_prompts=True data.truncation=error
        {M}.path=Qwen/Qwen2.5-7B {A}.optim.lr=1e-6 {A}.ppo_mini_batch_size=16
        {A}.ppo_micro_batch_size_per_gpu=1 {A}.megatron.pipeline_model_parallel_size=2
        {A}.megatron.tensor_model_parallel_size=2 {A}.use_kl_loss=True {A}.kl_loss_coef=0.001
        {A}.kl_loss_type=low_var_kl {A}.entropy_coeff=0 {M}.enable_gradient_checkpointing=True
        {R}.log_prob_micro_batch_size_per_gpu=1 {R}.tensor_model_parallel_size=2 {R}.name=vllm
        {R}.gpu_memory_utilization=0.45 {R}.n=3 {F}.log_prob_micro_batch_size_per_gpu=1
        {F}.megatron.pipeline_model_parallel_size=2 {F}.megatron.tensor_model_parallel_size=2
        algorithm.use_kl_in_reward=False trainer.critic_warmup=0
        trainer.logger=[console,wandb] trainer.project_name=verl_grpo_dapo17k
        trainer.experiment_name=qwen2_7b_base_use_kl_loss_megatron trainer.n_gpus_per_node=8
        trainer.nnodes=1 trainer.save_freq=100 trainer.test_freq=5 trainer.total_epochs=15""",
    ),
    "32b-dapo-fsdp2-npu": (
        DAPO,
        f"""
        data.train_files=/d/dapo.parquet data.val_files=/d/dapo.parquet data.prompt_key=prompt
        data.truncation=left data.max_prompt_length=2048 data.max_response_length=20480
        data.gen_batch_size=64 data.train_batch_size=64 {R}.n=16 algorithm.adv_estimator=grpo
        algorithm.use_kl_in_reward=False algorithm.kl_ctrl.kl_coef=0.0 {A}.use_kl_loss=False
        {A}.kl_loss_coef=0.0 {A}.clip_ratio_low=0.2 {A}.clip_ratio_high=0.28 {A}.clip_ratio_c=10.0
        algorithm.filter_groups.enable=False algorithm.filter_groups.max_num_gen_batches=10
        algorithm.filter_groups.metric=acc {M}.use_remove_padding=True {A}.use_dynamic_bsz=True
        {F}.log_prob_use_dynamic_bsz=True {R}.log_prob_use_dynamic_bsz=True
        {A}.ppo_max_token_len_per_gpu=5632 {F}.log_prob_max_token_len_per_gpu=5632
        {R}.log_prob_max_token_len_per_gpu=5632 {M}.path=/m/Qwen3-32B
        {M}.enable_gradient_checkpointing=True {A}.optim.lr=1e-6 {A}.optim.lr_warmup_steps=10
        {A}.optim.weight_decay=0.1 {A}.ppo_mini_batch_size=32 {A}.fsdp_config.param_offload=True
        {A}.fsdp_config.optimizer_offload=True {A}.entropy_coeff=0 {A}.grad_clip=1.0 {R}.name=vllm
        {A}.loss_agg_mode=token-mean {A}.ulysses_sequence_parallel_size=4
        {R}.gpu_memory_utilization=0.70 {R}.tensor_model_parallel_size=4
        {R}.enable_chunked_prefill=True {R}.max_num_batched_tokens=22528 {R}.temperature=1.0
        {R}.top_p=1.0 {R}.top_k=-1 {R}.val_kwargs.temperature=1.0 {R}.val_kwargs.top_p=0.7
        {R}.val_kwargs.top_k=-1 {R}.val_kwargs.do_sample=True {R}.val_kwargs.n=1
        {F}.fsdp_config.param_offload=True {F}.ulysses_sequence_parallel_size=4
        {A}.fsdp_config.fsdp_size=-1 {F}.strategy=fsdp2 {A}.strategy=fsdp2
        reward_model.reward_manager=dapo reward_model.overlong_buffer.enable=True
        reward_model.overlong_buffer.len=4096 reward_model.overlong_buffer.penalty_factor=1.0
        trainer.logger=[console] trainer.project_name=DAPO trainer.experiment_name=DAPO-Qwen3-32B
        trainer.n_gpus_per_node=16 trainer.nnodes=4 trainer.val_before_train=False
        trainer.save_freq=100 trainer.test_freq=-1 trainer.val_before_train=False
        trainer.total_epochs=10 trainer.default_local_dir=/c trainer.resume_mode=auto
        trainer.balance_batch=True {R}.enforce_eager=False {A}.use_torch_compile=False
        {F}.use_torch_compile=False trainer.device=npu""",
    ),
    "8b-dapo-mcq-npu": (
        DAPO,
        f"""
        algorithm.adv_estimator=grpo data.train_files=/d/train.parquet
        data.val_files=/d/train.parquet data.train_batch_size=128 data.max_prompt_length=1024
        data.max_response_length=10000 data.filter_overlong_prompts=True data.truncation=error
        data.shuffle=True {A}.use_torch_compile=False {M}.path=/m/Qwen3-8B
        {M}.enable_gradient_checkpointing=True {M}.use_remove_padding=True {A}.optim.lr=1e-6
        {A}.ppo_mini_batch_size=32 {A}.ppo_micro_batch_size_per_gpu=2 {A}.use_kl_loss=True
        {A}.kl_loss_coef=0.001 {A}.kl_loss_type=low_var_kl {A}.entropy_coeff=0
        {A}.fsdp_config.param_offload=True {A}.fsdp_config.optimizer_offload=True
        {R}.log_prob_micro_batch_size_per_gpu=2 {R}.tensor_model_parallel_size=2 {R}.name=vllm
        {R}.max_num_batched_tokens=11024 {R}.gpu_memory_utilization=0.8 {R}.temperature=0.6
        {R}.top_p=0.95 {R}.n=8 {R}.enforce_eager=False {F}.log_prob_micro_batch_size_per_gpu=2
        {F}.fsdp_config.param_offload=True algorithm.kl_ctrl.kl_coef=0.001
        custom_reward_function.path=/r/reward_score.py custom_reward_function.name=compute_score
        trainer.critic_warmup=0 trainer.logger=['console'] trainer.n_gpus_per_node=16
        trainer.nnodes=1 trainer.save_freq=5 trainer.test_freq=-100 trainer.default_local_dir=/c
        trainer.val_before_train=False trainer.device=npu trainer.max_actor_ckpt_to_keep=2
        trainer.max_critic_ckpt_to_keep=2 trainer.total_epochs=5 data.gen_batch_size=256
        {A}.clip_ratio_low=0.2 {A}.clip_ratio_high=0.28 {A}.clip_ratio_c=10.0
        algorithm.filter_groups.enable=True algorithm.filter_groups.max_num_gen_batches=5
        algorithm.filter_groups.metric=acc {A}.optim.lr_warmup_steps=10 {A}.optim.weight_decay=0.01
        reward_model.overlong_buffer.enable=True reward_model.overlong_buffer.len=2048
        reward_model.overlong_buffer.penalty_factor=1.0 reward_model.reward_manager=dapo""",
    ),
    "235b-dapo-megatron": (
        "",
        f"""
        data.train_files=/d/a.parquet data.val_files=/d/b.parquet data.prompt_key=prompt
        data.max_prompt_length=2048 data.max_response_length=8192 data.truncation=left
        data.train_batch_size=512 {R}.n=16 {M}.path=/m/Qwen3-235B-A22B {M}.use_fused_kernels=True
        {A}.megatron.use_mbridge=True {R}.name=vllm {R}.response_length=8192
        {R}.gpu_memory_utilization=0.8 {R}.tensor_model_parallel_size=16 {R}.temperature=1.0
        {R}.top_p=1.0 {R}.top_k=-1 {R}.val_kwargs.temperature=1.0 {R}.val_kwargs.top_p=0.7
        {R}.val_kwargs.top_k=-1 {R}.val_kwargs.do_sample=True {R}.val_kwargs.n=1
        +{R}.engine_kwargs.vllm.enable_expert_parallel=True {A}.ppo_mini_batch_size=32
        {A}.ppo_micro_batch_size_per_gpu=2 {A}.use_dynamic_bsz=True
        {R}.log_prob_max_token_len_per_gpu=10240 {A}.megatron.pipeline_model_parallel_size=8
        {A}.megatron.tensor_model_parallel_size=4 {A}.megatron.expert_model_parallel_size=4
        {A}.megatron.expert_tensor_parallel_size=1 {A}.megatron.context_parallel_size=1
        algorithm.adv_estimator=grpo reward_model.reward_manager=dapo
        algorithm.use_kl_in_reward=False {A}.use_kl_loss=False {A}.kl_loss_coef=0.001
        algorithm.kl_ctrl.kl_coef=0.0 {R}.log_prob_use_dynamic_bsz=True
        {F}.log_prob_use_dynamic_bsz=True {F}.megatron.pipeline_model_parallel_size=8
        {F}.megatron.tensor_model_parallel_size=4 {F}.megatron.expert_model_parallel_size=4
        {F}.megatron.expert_tensor_parallel_size=1 {F}.megatron.context_parallel_size=1
        {F}.megatron.param_offload=True {A}.loss_agg_mode=token-mean
        {R}.log_prob_micro_batch_size_per_gpu=2 {F}.log_prob_micro_batch_size_per_gpu=2
        {A}.clip_ratio_low=0.2 {A}.clip_ratio_high=0.28 {R}.enable_chunked_prefill=True
        {R}.max_num_batched_tokens=10240 {R}.enforce_eager=False
        {R}.cudagraph_capture_sizes=[1,2,4,8,16,32] {A}.optim.lr=1e-6 {A}.optim.lr_warmup_steps=10
        {A}.optim.weight_decay=0.1 {A}.optim.clip_grad=1 +{O}.optimizer_offload_fraction=1
        +{O}.overlap_cpu_optimizer_d2h_h2d=True +{O}.use_precision_aware_optimizer=True
        +{O}.optimizer_cpu_offload=True {A}.megatron.param_offload=True
        {A}.megatron.optimizer_offload=True {A}.megatron.grad_offload=True
        +{T}.recompute_method=uniform +{T}.recompute_granularity=full +{T}.recompute_num_layers=1
        +{T}.moe_router_dtype=fp32 +{T}.moe_shared_expert_overlap=False
        +{T}.moe_permute_fusion=True +{T}.moe_enable_deepep=True
        +{T}.moe_token_dispatcher_type=flex +{T}.gradient_accumulation_fusion=True
        +{T}.account_for_embedding_in_pipeline_split=False
        +{T}.account_for_loss_in_pipeline_split=False +{T}.num_layers_in_last_pipeline_stage=6
        trainer.logger=[console,wandb] trainer.project_name=p trainer.experiment_name=e
        trainer.n_gpus_per_node=8 trainer.nnodes=8 trainer.test_freq=10 trainer.save_freq=-1
        trainer.total_epochs=10 trainer.log_val_generations=10 trainer.val_before_train=False""",
    ),
    "32b-vl-npu": (
        MAIN,
        f"""
        data.train_files=/d/geometry3k/train.parquet data.val_files=/d/geometry3k/test.parquet
        {M}.path=/model/Qwen2.5-VL-32B-Instruct data.train_batch_size=32 {A}.ppo_mini_batch_size=8
        {A}.ppo_micro_batch_size_per_gpu=1 {R}.log_prob_micro_batch_size_per_gpu=1
        {F}.log_prob_micro_batch_size_per_gpu=1 trainer.total_epochs=5
        {R}.tensor_model_parallel_size=4 data.image_key=images data.max_prompt_length=1024
        data.max_response_length=1024 {R}.max_num_batched_tokens=18432
        {A}.ulysses_sequence_parallel_size=1 data.shuffle=True data.truncation=error
        +{R}.engine_kwargs.vllm.disable_mm_preprocessor_cache=True {A}.optim.lr=1e-6
        {M}.use_remove_padding=True {A}.use_kl_loss=True {A}.kl_loss_coef=0.01
        {A}.kl_loss_type=low_var_kl {A}.entropy_coeff=0 {A}.use_torch_compile=False
        {M}.enable_gradient_checkpointing=True {R}.name=vllm {R}.gpu_memory_utilization=0.4 {R}.n=4
        trainer.logger=[console,tensorboard] trainer.val_before_train=False
        trainer.resume_mode=auto trainer.resume_from_path=null trainer.save_freq=-1
        {A}.ppo_max_token_len_per_gpu=2048 algorithm.adv_estimator=grpo trainer.device=npu
        trainer.n_gpus_per_node=16""",
    ),
    "0.5b-ppo": (
        MAIN,
        f"""
        data.train_files=/d/gsm8k/train.parquet data.val_files=/d/gsm8k/test.parquet
        data.train_batch_size=256 data.max_prompt_length=512 data.max_response_length=512
        {M}.path=Qwen/Qwen2.5-0.5B-Instruct {A}.optim.lr=1e-6 {A}.ppo_mini_batch_size=64
        {A}.ppo_micro_batch_size_per_gpu=4 {R}.name=vllm {R}.log_prob_micro_batch_size_per_gpu=8
        {R}.tensor_model_parallel_size=1 {R}.gpu_memory_utilization=0.4
        {F}.log_prob_micro_batch_size_per_gpu=4 critic.optim.lr=1e-5
        critic.model.path=Qwen/Qwen2.5-0.5B-Instruct critic.ppo_micro_batch_size_per_gpu=4
        algorithm.kl_ctrl.kl_coef=0.001 trainer.logger=console trainer.val_before_train=False
        trainer.n_gpus_per_node=1 trainer.nnodes=1 trainer.save_freq=10 trainer.test_freq=10
        trainer.total_epochs=15""",
    ),
}
EVALUATION = """ trainer.val_before_train=True trainer.val_only=True
    trainer.resume_mode=resume_path trainer.resume_from_path=/c/global_step_10"""
PUBLISHED["0.5b-ppo-eval"] = (MAIN, PUBLISHED["0.5b-ppo"][1] + EVALUATION)
VERSIONS = ("0.7", "0.8", "0.9")


def script_of(name):
    start, listed = PUBLISHED[name]
    return " \\\n  ".join([f"python3 -m {start}" if start else "", *listed.split()]).lstrip("\\\n ")


def imported(name, verl="0.9"):
    return import_script(script_of(name), "run.sh", verl)


def different_keys(result):
    """The keys that findings name as different in the recipe."""
    return {finding.key for finding in result.findings if finding.rule == "differs"}


def simple(text, verl="0.9"):
    start = f"python3 -m {MAIN} data.train_files=/a data.val_files=/b {M}.path=/m "
    return import_script(start + text, "run.sh", verl)


@every("verl", VERSIONS)
@every("name", PUBLISHED)
def test_a_recipe_sets_everything_that_the_script_sets(name, verl):
    result = imported(name, verl)
    plan = make_plan(read_recipe(result.recipe, name), verl)
    settings = {
        to_latest_key(o.key): o.value for o in parse_overrides(PUBLISHED[name][1].split(), "it")
    }
    assert len(settings) > 24
    for key, value in settings.items():
        if key not in different_keys(result):
            assert plan.settings.get(key, plan.get(key)) == value, key


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_recipe_sets_nothing_that_the_script_left_at_verl_s_default(name):
    result = imported(name)
    plan = make_plan(read_recipe(result.recipe, name), "0.9")
    settings = {to_latest_key(o.key) for o in parse_overrides(PUBLISHED[name][1].split(), "it")}
    defaults = release_of("0.9", megatron="megatron" in name).keys
    ours = {
        "reward.reward_kwargs.overlong_buffer_cfg.log",
        "reward.reward_kwargs.max_resp_len",
        "actor_rollout_ref.ref.fsdp_config.use_torch_compile",  # follows the actor's, which is off
    }
    for key in plan.settings.keys() - settings - different_keys(result) - ours:
        assert plan.settings[key] == defaults[key], key


@pytest.mark.parametrize(
    ("name", "algorithm", "strategy", "devices", "nodes", "per_node"),
    [
        ("7b-grpo-megatron", "grpo", "megatron", "gpu", 1, 8),
        ("32b-dapo-fsdp2-npu", "dapo", "fsdp2", "npu", 4, 16),
        ("8b-dapo-mcq-npu", "dapo", "fsdp", "npu", 1, 16),
        ("235b-dapo-megatron", "dapo", "megatron", "gpu", 8, 8),
        ("32b-vl-npu", "grpo", "fsdp", "npu", 1, 16),
        ("0.5b-ppo", "ppo", "fsdp", "gpu", 1, 1),
    ],
)
def test_settings_become_fields_of_the_recipe(name, algorithm, strategy, devices, nodes, per_node):
    recipe = read_recipe(imported(name).recipe, name)
    assert (recipe.algorithm, recipe.strategy, recipe.devices) == (algorithm, strategy, devices)
    assert (recipe.nodes, recipe.devices_per_node) == (nodes, per_node)


def test_the_name_of_a_script_for_npus_says_the_devices_if_nothing_else_does():
    text = f"python3 -m {MAIN} data.train_files=/a data.val_files=/b {M}.path=/m "
    named = import_script(text, "run_8b_npu.sh", "0.9")
    assert named.recipe["devices"] == "npu"
    assert [f.severity for f in named.findings if f.key == "devices"] == ["info"]
    plan = make_plan(read_recipe(named.recipe, "it"), "0.9")
    assert plan.settings["trainer.device"] == "npu"
    said = import_script(text + "trainer.device=cuda", "run_8b_npu.sh", "0.9")
    assert said.recipe["devices"] == "gpu"
    assert import_script(text, "input.sh", "0.9").recipe["devices"] == "gpu"


def test_settings_of_dapo_and_the_reward_have_sections_of_their_own():
    tree = imported("8b-dapo-mcq-npu").recipe
    assert tree["reward"] == {"scorer": "/r/reward_score.py:compute_score"}
    assert tree["dapo"] == {
        "overlong_buffer": {"len": 2048, "penalty_factor": 1.0},
        "dynamic_sampling": {"metric": "acc", "max_num_gen_batches": 5, "gen_batch_size": 256},
    }
    assert imported("235b-dapo-megatron").recipe["dapo"] == {"clip_ratio_c": 3.0}
    assert "dapo" not in imported("0.5b-ppo").recipe
    assert "reward" not in tree["verl"]


def test_options_of_the_reward_function_are_options_of_the_scorer():
    at = "custom_reward_function"
    tree = simple(f"{at}.path=/r.py {at}.name=f +{at}.reward_kwargs.k=3", "0.8").recipe
    assert tree["reward"] == {"scorer": "/r.py:f", "options": {"k": 3}}


def test_an_ignored_reward_function_is_the_first_finding():
    for name in ("8b-dapo-mcq-npu",):
        first = imported(name, "0.9").findings[0]
        assert (first.severity, first.rule) == ("error", "reward-ignored")
        assert "verl 0.9.1 trains WITHOUT the reward function of this script" in first.text
        assert "/r/reward_score.py" in first.text
        assert "custom_reward_function.path" in first.key
        for verl in ("0.7", "0.8"):
            assert "reward-ignored" not in {f.rule for f in imported(name, verl).findings}


def test_the_plan_sets_the_reward_function_where_verl_0_9_reads_it():
    plan = make_plan(read_recipe(imported("8b-dapo-mcq-npu").recipe, "it"), "0.9")
    assert "reward.custom_reward_function.path=/r/reward_score.py" in plan.arguments


@every(
    ("name", "verl", "rule", "key"),
    [
        ("8b-dapo-mcq-npu", "0.9", "does-not-start", "reward_model.overlong_buffer.enable"),
        ("8b-dapo-mcq-npu", "0.9", "ignored", "reward_model.reward_manager"),
        ("8b-dapo-mcq-npu", "0.9", "ignored", "algorithm.filter_groups.max_num_gen_batches"),
        ("8b-dapo-mcq-npu", "0.9", "ignored", "data.gen_batch_size"),
        ("8b-dapo-mcq-npu", "0.9", "module", "recipe.dapo.main_dapo"),
        ("8b-dapo-mcq-npu", "0.9", "L-62", "data.val_files"),
        ("32b-dapo-fsdp2-npu", "0.9", "ignored", "actor_rollout_ref.actor.grad_clip"),
        ("32b-dapo-fsdp2-npu", "0.9", "ignored", "trainer.balance_batch"),
        ("32b-dapo-fsdp2-npu", "0.9", "L-76", "trainer.val_before_train"),
        ("235b-dapo-megatron", "0.9", "does-not-start", f"{A}.megatron.grad_offload"),
        ("32b-vl-npu", "0.9", "does-not-start", "disable_mm_preprocessor_cache"),
        ("7b-grpo-megatron", "0.9", "renamed", "--config-name=ppo_megatron_trainer"),
    ],
)
def test_findings_name_how_a_release_treats_a_key(name, verl, rule, key):
    result = imported(name, verl).findings
    assert [f for f in result if f.rule == rule and key in f.key], [str(f) for f in result]


def test_findings_about_new_releases_do_not_appear_for_old_ones():
    for name, verl in (("8b-dapo-mcq-npu", "0.7"), ("0.5b-ppo", "0.7"), ("0.5b-ppo", "0.9")):
        findings = imported(name, verl).findings
        rules = {f.rule for f in findings if "own fields have its effect" not in f.text}
        assert not rules & {"ignored", "does-not-start", "renamed", "no-such-setting", "plus"}


@every(
    ("text", "verl", "rule", "words"),
    [
        (f"{A}.optim.clip_grad=1", "0.7", "renamed", f"{A}.grad_clip"),
        ("trainer.use_v1=True", "0.7", "no-such-setting", f"verl {LATEST} has"),
        ("critic.megatron.param_offload=True", "0.9", "engine", "a setting of Megatron"),
        (f"+{A}.optim.lr=1", "0.9", "plus", "refuses a +"),
        (f"{R}.engine_kwargs.vllm.swap_space=1", "0.9", "plus", "only with a +"),
        ("+data.my_own=1", "0.9", "plus", "no release of verl lists it"),
        ("--config-name=mine", "0.9", "config-name", "not verl's"),
        ("algorithm.adv_estimator=rloo", "0.9", "algorithm", "keeps the estimator"),
        ("trainer.save_freq=often", "0.9", "L-76", "is text where verl 0.9.1 has a number"),
        ("trainer.project_name=$N", "0.9", "unresolved", "it is ??? in the recipe"),
        ("trainer.experiment_name=$N", "0.9", "unresolved", "a name of its own"),
        (f"{M}.path=", "0.9", "incomplete", "sets it to nothing"),
        ("trainer=x", "0.9", "L-76", "chooses one of Hydra's groups"),
        ("'trainer.save_freq=choice(1,2)'", "0.9", "L-76", "Hydra's own grammar"),
        ("trainer.save_freq=1 trainer.save_freq=2", "0.9", "L-76", "the last one counts: 2"),
    ],
)
def test_each_kind_of_problem_has_a_finding(text, verl, rule, words):
    result = simple(text, verl)
    assert [f for f in result.findings if f.rule == rule and words in f.text], result.findings
    make_plan(read_recipe(result.recipe, "it"), verl)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("alogorithm.filter_groups.enable", "algorithm.filter_groups.enable"),
        ("tainer.device", "trainer.device"),
        ("actor_rolloput_ref.rollout.n", "actor_rollout_ref.rollout.n"),
        ("engine_kwargs.vllm.disable_mm_preprocessor_cache", f"{R}.engine_kwargs.vllm"),
        ("actor.optim.lr", "actor_rollout_ref.actor.optim.lr"),
    ],
)
def test_an_unknown_key_is_left_out_and_the_nearest_key_is_suggested(typo, meant):
    result = simple(f"{typo}=True trainer.nnodes=2")
    (error,) = [f for f in result.findings if f.severity == "error"]
    assert error.key == typo
    assert meant in error.text
    assert f"#   line 1: {typo}=True" in recipe_text(result)
    assert make_plan(read_recipe(result.recipe, "it"), "0.9").recipe.nodes == 2


def test_a_relative_reward_file_is_the_scorer_without_a_finding():
    result = simple("reward.custom_reward_function.path=mine/r.py")
    assert result.recipe["reward"]["scorer"] == "mine/r.py:compute_score"
    assert result.recipe["verl"] == {"algorithm.use_kl_in_reward": False}
    assert not any("custom_reward" in finding.key for finding in result.findings)


def test_a_finding_says_that_npu_turns_compilation_off():
    result = simple("trainer.device=npu")
    assert "actor_rollout_ref.actor.fsdp_config.use_torch_compile" in different_keys(result)
    assert "use_torch_compile" not in str(result.recipe)


def test_a_key_under_its_old_and_its_new_name_is_one_setting_with_a_finding():
    result = simple("custom_reward_function.path=/a.py reward.custom_reward_function.path=/b.py")
    assert result.recipe["reward"]["scorer"] == "/b.py:compute_score"
    assert any("different values" in f.text for f in result.findings)


def test_secrets_and_network_interfaces_are_not_in_the_recipe():
    exports = "export WANDB_API_KEY=s3cret HCCL_SOCKET_IFNAME=eth0 NCCL_DEBUG=INFO\n"
    result = import_script(f"{exports}python3 -m {MAIN} trainer.nnodes=1", "run.sh", "0.9")
    assert result.recipe["env"] == {"NCCL_DEBUG": "INFO"}
    assert "s3cret" not in recipe_text(result)


def test_secrets_of_commands_and_of_given_variables_are_hidden():
    script = f"""
T=$(curl -H "Authorization: Bearer sk-Zq7canaryValue4299" https://x)
python3 -m {MAIN} {M}.path=/m trainer.save_freq=$T trainer.project_name=$A_TOKEN"""
    result = import_script(script, "run.sh", "0.9", env={"A_TOKEN": "Zq7canaryOther77"})
    assert result.unresolved[0].key == "trainer.save_freq"
    assert "canary" not in f"{result}{recipe_text(result)}"
    with pytest.raises(RewardkitError, match="depends on the test of line 3") as refusal:
        import_script(
            f"{script} trainer.test_freq=$x".replace("\npython3", "\n[ $T ] && x=1\npython3"),
            "r",
            "0.9",
        )
    assert "canary" not in str(refusal.value)


def test_the_home_folder_is_a_tilde_in_the_recipe_and_a_path_in_the_plan():
    script = f"python3 -m {MAIN} data.train_files=[$HOME/a,$HOME/b] trainer.default_local_dir=~/c"
    result = import_script(
        f"export HF_HOME=$HOME/hf\nD=$HOME\n{script} {M}.path=$D/m", "run.sh", "0.9"
    )
    assert result.recipe["data"]["train"] == ["~/a", "~/b"]
    assert (result.recipe["model"], result.recipe["env"]) == ("~/m", {"HF_HOME": "~/hf"})
    plan = make_plan(read_recipe(result.recipe, "it"), "0.9")
    home = str(Path.home())
    assert plan.get("trainer.default_local_dir") == f"{home}/c"
    assert plan.get(f"{M}.path") == f"{home}/m"
    assert plan.env["HF_HOME"] == f"{home}/hf"
    assert not [f for f in result.findings if f.rule == "unresolved"]


def test_a_missing_setting_is_one_error_of_the_preflight_and_has_no_value_in_the_plan():
    result = import_script(f"python3 -m {MAIN} data.train_files=$D/a {M}.path=/m", "run.sh", "0.9")
    plan = make_plan(read_recipe(result.recipe, "it"), "0.9")
    assert plan.missing == ("data.train_files",)
    assert plan.get("data.train_files") is None
    assert not any("train_files" in argument for argument in plan.arguments)
    findings = [f for f in preflight(plan).findings if f.key == "data.train_files"]
    assert [(finding.severity, finding.rule) for finding in findings] == [("error", "missing")]


def test_the_devices_are_those_of_the_branch_that_is_taken():
    script = f'DEVICE=${{DEVICE:-gpu}}\nx=8; [ "$DEVICE" = npu ] && x=16\npython3 -m {MAIN} trainer.n_gpus_per_node=$x'
    for env, devices, count in (({}, "gpu", 8), ({"DEVICE": "npu"}, "npu", 16)):
        recipe = import_script(script, "run.sh", "0.9", env=env).recipe
        assert (recipe["devices"], recipe["devices_per_node"]) == (devices, count)


def test_a_script_without_validation_gives_a_recipe_without_it():
    assert "val" not in imported("8b-dapo-mcq-npu").recipe["data"]
    assert imported("8b-dapo-mcq-npu").recipe["verl"]["trainer"]["test_freq"] == -100


def test_settings_of_the_preset_are_not_repeated():
    tree = imported("32b-dapo-fsdp2-npu").recipe
    actor = tree["verl"]["actor_rollout_ref.actor"]
    assert not {"use_kl_loss", "strategy", "clip_ratio_high", "use_torch_compile"} & set(actor)
    assert "device" not in tree["verl"]["trainer"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_file_reads_back_equal_and_is_readable(name):
    result = imported(name)
    text = recipe_text(result)
    assert read_yaml(text, name) == result.recipe
    assert list(result.recipe) == [f for f in Recipe.model_fields if f in result.recipe]
    assert "1e-6" in text
    assert "1e-06" not in text
    assert max(map(len, text.splitlines())) <= 100


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=12),
        st.sampled_from(
            ["1e-6", "no", "null", "~", "a: b", "a:b", "- a", "#x", "${a.b}", "'", "中"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=5), st.text(max_size=300))
def test_any_tree_reads_back_equal_whatever_the_header_says(tree, header):
    result = read_yaml(write_yaml(tree, [header]), "it")
    assert result == tree
    assert repr(result) == repr(tree)  # 1 is not True, nor 1.0


KEYS = st.sampled_from(
    [
        "trainer.nnodes", "trainer.n_gpus_per_node", "trainer.device", "trainer.experiment_name",
        "data.train_files", "data.val_files", f"{M}.path", f"{A}.strategy", f"{A}.clip_ratio_high",
        "algorithm.adv_estimator", "algorithm.filter_groups.enable", "data.gen_batch_size",
        "algorithm.filter_groups.metric", "algorithm.filter_groups.max_num_gen_batches",
        "reward_model.overlong_buffer.enable", "reward_model.overlong_buffer.len",
        "reward_model.overlong_buffer.penalty_factor", "reward_model.reward_manager",
        "custom_reward_function.path", "custom_reward_function.name", "model_engine", "a.b", "a",
        "+reward.reward_kwargs.x", "~trainer.logger", "++data.x", "hydra.run.dir", "actor@a.b",
        "trainer.test_freq", "trainer.val_before_train", f"{A}.megatron.param_offload", "trainer",
        "custom_reward_function.reward_kwargs.k", f"{R}.engine_kwargs.vllm", "data.x.y.z",
    ]
)  # fmt: skip
TOKENS = st.sampled_from(
    ["1", "0", "-1", "1e-6", "True", "null", "", "dapo", "gae", "grpo", "npu", "fsdp2", "megatron",
     "/r.py", "~/a", "$HOME/x", "$X", "[a,b]", "[]", "{}", "{a:1}", "{a:{b:1}}", "[{a:1}]", "x.py:f",
     "pkg://a.b", "choice(1,2)", "${data.train_files}", "'a b'", "中", "9" * 500, "[" * 500, "a=b"]
)  # fmt: skip


@given(
    st.lists(st.tuples(KEYS, st.one_of(TOKENS, st.text(max_size=6))), max_size=12),
    st.sampled_from([MAIN, DAPO, f"{MAIN} --config-name=ppo_megatron_trainer"]),
    st.sampled_from(VERSIONS),
)
def test_any_settings_give_a_recipe_that_plans_or_one_of_our_errors(pairs, module, verl):
    listed = " \\\n".join(f"{key}={value}" for key, value in pairs)
    try:
        result = import_script(f"python3 -m {module} {listed}", "run.sh", verl)
    except RewardkitError:
        return
    assert repr(read_yaml(recipe_text(result), "it")) == repr(result.recipe)
    failures = [f for f in result.findings if f.rule == "plan"]
    try:
        make_plan(read_recipe(result.recipe, "it"), verl)
    except RewardkitError:
        assert failures
    else:
        assert not failures


@pytest.mark.full
def test_two_thousand_unknown_keys_take_seconds():
    begun = time.process_time()
    result = simple(" ".join(f"trainer.{'z' * 90}{i}=1" for i in range(1900)))
    assert len(result.left_out) == 1900
    assert time.process_time() - begun < 20


def test_an_unknown_release_is_refused():
    with pytest.raises(UsageError, match="is not a version of verl"):
        import_script(f"python3 -m {MAIN} trainer.nnodes=1", "run.sh", "latest")


@every(
    ("settings", "is_named"),
    [
        ("data.train_files=$A data.val_files=$B", False),
        ("data.train_files=??? data.val_files=???", False),
        ("data.train_files= data.val_files=", False),
        ("data.train_files=$A data.val_files=$B trainer.test_freq=-1", False),
        ("data.train_files=/a data.val_files=/a", True),
        ("data.train_files=[/a,/b] data.val_files=[/a,/b]", True),
    ],
)
def test_files_that_are_not_known_are_not_equal(settings, is_named):
    result = import_script(f"python3 -m {MAIN} {settings} {M}.path=/m", "run.sh", "0.9")
    assert any("is the training file" in finding.text for finding in result.findings) is is_named
    assert is_named or result.recipe["data"] == {"train": "???", "val": "???"}


UV = "uv run --frozen --extra vllm --extra fsdp"
JOB = "ray job submit --no-wait --runtime-env=/w/env.yaml --working-dir /w"


@every(
    ("launcher", "key", "words"),
    [
        (f"{UV} python3", "uv run", [UV, "a project", "uv sync"]),
        (f"{UV} -- python", "uv run", [UV]),
        ("/opt/uv -v run --env-file .env python", "uv run", ["--env-file .env"]),
        (f"{JOB} -- python3", "ray job submit", ["/w/env.yaml", "env_vars", "under env:", "/w "]),
        (
            f"{JOB} --address http://h:8265 -- python3",
            "ray job submit",
            ["cluster.target: ray-job", "cluster.address: http://h:8265"],
        ),
        (f"RAY_ADDRESS=http://g:8265 {JOB} -- python3", "ray job submit", ["http://g:8265"]),
        ("ray job submit -- python3", "ray job submit", ["http://127.0.0.1:8265"]),
        ("numactl --interleave=all python3", "numactl", ["numactl --interleave=all"]),
        ("torchrun --nproc_per_node 8", "torchrun", ["torchrun --nproc_per_node 8"]),
        ("conda run -n verl python3 -u", "conda", ["`conda run -n verl` starts"]),
    ],
)
def test_what_starts_python_in_a_script_is_named_with_what_to_carry_over(launcher, key, words):
    result = import_script(f"{launcher} -m {MAIN} data.train_files=/a", "run.sh", "0.9")
    (finding,) = [finding for finding in result.findings if finding.rule == "launcher"]
    assert (finding.key, finding.severity) == (key, "warning")
    assert all(word in str(finding) for word in words), str(finding)
    assert "RAY_ADDRESS" not in result.recipe.get("env", {})


@pytest.mark.parametrize(
    "launcher", ["python3", "/opt/bin/python3.11 -u", "A=1 nohup python", "env A=1 python3 -X dev"]
)
def test_python_alone_leaves_nothing_to_carry_over(launcher):
    findings = import_script(f"{launcher} -m {MAIN} data.train_files=/a", "run.sh", "0.9").findings
    assert not [finding for finding in findings if finding.rule == "launcher"]


def test_a_secret_of_a_job_s_environment_is_not_in_its_finding():
    job = """ray job submit --runtime-env-json '{"env_vars": {"WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567"}}'"""
    result = import_script(f"{job} -- python3 -m {MAIN} data.train_files=/a", "run.sh", "0.9")
    assert any(finding.rule == "launcher" for finding in result.findings)
    assert "0123456789abcdef" not in recipe_text(result) + str(result.findings)
