"""A launch script becomes a recipe with its effect; findings name what a release ignores."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit.errors import DataError, RewardkitError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight import preflight
from rewardkit.launch.recipe import read_recipe
from rewardkit.launch.script_import.importer import import_script, recipe_text
from rewardkit.launch.verl.releases import release_of, to_latest_key
from rewardkit.strict_yaml import read_yaml
from tests.tables import every

pytestmark = pytest.mark.usefixtures("shared_bash")

MAIN = "verl.trainer.main_ppo"
DAPO = "recipe.dapo.main_dapo"
A = "actor_rollout_ref.actor"
R = "actor_rollout_ref.rollout"
F = "actor_rollout_ref.ref"
M = "actor_rollout_ref.model"

#: Start of the command and settings of published runs.
PUBLISHED = {
    "8b-dapo-mcq-npu": (
        DAPO,
        f"""
        algorithm.adv_estimator=grpo data.train_files=/d/train.parquet
        data.val_files=/d/train.parquet data.train_batch_size=128 data.max_response_length=10000
        {M}.path=/m/Qwen3-8B {A}.optim.lr=1e-6 {A}.use_kl_loss=True
        {A}.kl_loss_coef=0.001 {A}.fsdp_config.param_offload=True {R}.name=vllm
        {R}.n=8 {F}.log_prob_micro_batch_size_per_gpu=2
        custom_reward_function.path=/r/reward_score.py custom_reward_function.name=compute_score
        trainer.n_gpus_per_node=16 trainer.nnodes=1 trainer.test_freq=-100
        trainer.default_local_dir=/c trainer.val_before_train=False trainer.device=npu
        data.gen_batch_size=256 {A}.clip_ratio_low=0.2 {A}.clip_ratio_high=0.28 {A}.clip_ratio_c=10.0
        algorithm.filter_groups.enable=True algorithm.filter_groups.max_num_gen_batches=5
        algorithm.filter_groups.metric=acc reward_model.overlong_buffer.enable=True
        reward_model.overlong_buffer.len=2048 reward_model.overlong_buffer.penalty_factor=1.0
        reward_model.reward_manager=dapo""",
    ),
    "235b-dapo-megatron": (
        "",
        f"""
        data.train_files=/d/a.parquet data.val_files=/d/b.parquet
        data.max_response_length=8192 data.train_batch_size=512 {R}.n=16
        {M}.path=/m/Qwen3-235B-A22B {M}.use_fused_kernels=True {R}.name=vllm
        +{R}.engine_kwargs.vllm.enable_expert_parallel=True {A}.use_dynamic_bsz=True
        {A}.megatron.pipeline_model_parallel_size=8 {A}.megatron.grad_offload=True
        algorithm.adv_estimator=grpo reward_model.reward_manager=dapo {A}.use_kl_loss=False
        {F}.megatron.param_offload=True {A}.loss_agg_mode=token-mean {A}.clip_ratio_high=0.28
        {R}.cudagraph_capture_sizes=[1,2,4,8,16,32] {A}.optim.lr=1e-6 {A}.optim.clip_grad=1
        +{A}.optim.override_optimizer_config.optimizer_offload_fraction=1
        +{A}.megatron.override_transformer_config.recompute_method=uniform
        trainer.logger=[console,wandb] trainer.n_gpus_per_node=8 trainer.nnodes=8""",
    ),
}
VERSIONS = ("0.7", "0.8", "0.9")


def script_of(name):
    start, listed = PUBLISHED[name]
    return " \\\n  ".join([f"python3 -m {start}" if start else "", *listed.split()]).lstrip("\\\n ")


def imported(name, verl="0.9"):
    return import_script(script_of(name), "run.sh", verl)


def simple(text, verl="0.9", before="", **given):
    start = f"{before}\npython3 -m {MAIN} data.train_files=/a data.val_files=/b {M}.path=/m "
    return import_script(start + text, "run.sh", verl, **given)


def plan_of(result, verl="0.9"):
    return make_plan(read_recipe(result.recipe, "it"), verl)


@every("verl", VERSIONS)
@every("name", PUBLISHED)
def test_a_recipe_sets_what_the_script_sets_and_leaves_the_rest_at_verl_s_defaults(name, verl):
    result = imported(name, verl)
    assert "plan" not in {finding.rule for finding in result.findings}
    plan = plan_of(result, verl)
    overrides = parse_overrides(PUBLISHED[name][1].split(), "")
    settings = {to_latest_key(override.key): override.value for override in overrides}
    for key, value in settings.items():
        assert plan.settings.get(key, plan.get(key)) == value, key
    differs = {finding.where for finding in result.findings if finding.rule == "differs"}
    ours = {"reward.reward_kwargs.max_resp_len", f"{F}.fsdp_config.use_torch_compile"}
    megatron = "megatron" in name
    defaults = release_of(verl, megatron=megatron).keys
    names = {to_latest_key(key, megatron=megatron): value for key, value in defaults.items()}
    for key in plan.settings.keys() - settings - differs - ours:
        default = names.get(key)
        is_reference = str(default).startswith("${")
        assert plan.settings[key] == default or is_reference or DAPO in PUBLISHED[name][0], key


def test_the_reward_function_is_the_scorer_under_its_old_and_its_new_name():
    result = simple("reward.custom_reward_function.path=mine/r.py")
    assert result.recipe["reward"]["scorer"] == "mine/r.py:compute_score"
    assert not any("custom_reward" in finding.where for finding in result.findings)
    key = "custom_reward_function"
    result = simple(f"{key}.path=/r.py {key}.name=f +{key}.reward_kwargs.k=3", "0.8")
    assert result.recipe["reward"]["scorer"] == "/r.py:f"
    assert f"+reward.{key}.reward_kwargs.k=3" in plan_of(result).arguments
    result = simple(f"{key}.path=/a.py reward.{key}.path=/b.py")
    assert result.recipe["reward"]["scorer"] == "/b.py:compute_score"
    assert any("different values" in finding.text for finding in result.findings)
    result = simple(f"reward.{key}.path=$HERE/r.py reward.{key}.name=f")
    assert result.recipe["reward"]["scorer"] == "verl"
    assert result.recipe["verl"][f"reward.{key}.path"] == "???"
    assert result.recipe["verl"][f"reward.{key}.name"] == "f"


def test_an_ignored_reward_function_is_the_first_finding_where_verl_ignores_it():
    first = imported("8b-dapo-mcq-npu").findings[0]
    assert (first.severity, first.rule) == ("error", "reward-ignored")
    assert "verl 0.9.1 trains WITHOUT the reward function of this script" in first.text
    assert "/r/reward_score.py" in first.text
    plan = plan_of(imported("8b-dapo-mcq-npu"))
    assert "reward.custom_reward_function.path=/r/reward_score.py" in plan.arguments
    for result in (*(imported("8b-dapo-mcq-npu", verl) for verl in ("0.7", "0.8")), simple("")):
        assert "reward-ignored" not in {finding.rule for finding in result.findings}
    old = {finding.rule for finding in imported("8b-dapo-mcq-npu", "0.7").findings}
    assert not old & {"ignored", "does-not-start", "renamed", "dropped"}


@every(("name", "verl", "rule", "key"), [
    ("8b-dapo-mcq-npu", "0.9", "does-not-start", "reward_model.overlong_buffer.enable"),
    ("8b-dapo-mcq-npu", "0.9", "ignored", "reward_model.reward_manager"),
    ("8b-dapo-mcq-npu", "0.9", "module", "recipe.dapo.main_dapo"),
    ("235b-dapo-megatron", "0.9", "does-not-start", f"{A}.megatron.grad_offload"),
])  # fmt: skip
def test_findings_name_how_a_release_treats_a_key(name, verl, rule, key):
    result = imported(name, verl).findings
    assert [f for f in result if f.rule == rule and key in f.where], [str(f) for f in result]


@every(("text", "verl", "rule", "words"), [
    (f"{A}.optim.clip_grad=1", "0.7", "renamed", f"{A}.grad_clip"),
    (f"{A}.grad_clip=1", "0.9", "ignored", f"{A}.optim.clip_grad"),
    ("trainer.balance_batch=True", "0.9", "ignored", "the trainer always balances"),
    ("critic.megatron.param_offload=True", "0.9", "dropped", "a setting of Megatron"),
    ("+data.my_own=1", "0.9", "hint", "does not list this key"),
    ("--config-name=mine", "0.9", "config-name", "not verl's"),
    ("trainer.save_freq=often", "0.9", "L-76", "is text, but verl 0.9.1 has"),
    ("trainer.experiment_name=$N", "0.9", "unresolved", "a name of its own"),
    ("'trainer.save_freq=choice(1,2)'", "0.9", "L-76", "Hydra's own grammar"),
    ("trainer.save_freq=1 trainer.save_freq=2", "0.9", "L-76", "2 counts, the last"),
    ("--cfg job", "0.9", "L-76", "'--cfg' is not taken over"),
    ("$MORE", "0.9", "L-76", "only a run can tell it (--env MORE=VALUE)"),
    ("\n data.seed=1", "0.9", "L-76", "settings below the end of the command"),
    ("data.seed=1\r\n", "0.9", "L-76", "Windows line ends"),
    ("data.seed=“1”", "0.9", "L-76", "quotes or blanks of a web page"),
    (f"{A}.veomni.param_offload=True", "0.9", "L-76", "a setting of veomni"),
    ("\ntorchrun -m verl.trainer.sft_trainer a.b=1", "0.9", "L-76", "sft_trainer, which is not"),
])  # fmt: skip
def test_each_kind_of_problem_has_a_finding(text, verl, rule, words):
    result = simple(text, verl)
    assert [f for f in result.findings if f.rule == rule and words in str(f)], result.findings
    plan_of(result, verl)


def test_an_unknown_key_is_left_out_and_the_nearest_key_is_suggested():
    for typo, meant in (
        ("alogorithm.filter_groups.enable", "algorithm.filter_groups.enable"),
        ("actor_rolloput_ref.rollout.n", "actor_rollout_ref.rollout.n"),
        ("actor.optim.lr", "actor_rollout_ref.actor.optim.lr"),
    ):
        result = simple(f"{typo}=True trainer.nnodes=2")
        (error,) = [finding for finding in result.findings if finding.severity == "error"]
        assert (error.where, f"'{meant}'" in error.text) == (typo, True), error.text
        assert plan_of(result).recipe.nodes == 2


def test_a_trainer_of_its_own_is_an_error_and_an_engine_without_plans_is_refused():
    run = f"python3 -m recipe.entropy.main_entropy data.train_files=/a {M}.path=/m"
    first = import_script(run, "run.sh", "0.9").findings[0]
    assert (first.severity, first.where) == ("error", "recipe.entropy.main_entropy")
    for setting in ("model_engine=veomni", f"{A}.strategy=torchtitan"):
        with pytest.raises(DataError, match=r"trains with \w+ \(line 2\), an engine of verl 0"):
            simple(setting)


def test_what_only_a_run_can_tell_is_missing_and_what_decides_is_refused():
    script = (
        f"python3 -m {MAIN} data.train_files=$D/a {M}.path=/m trainer.save_freq=$(nproc) "
        "trainer.experiment_name=run-$(date +%F)"
    )
    result = import_script(script, "input.sh", "0.9")
    assert result.recipe["data"] == {"train": "???", "val": "???"}
    assert result.recipe["verl"]["trainer.save_freq"] == "???"
    assert result.recipe["name"] == "input"
    plan = plan_of(result)
    assert set(plan.missing) == {"data.train_files", "data.val_files", "trainer.save_freq"}
    assert not any("train_files" in argument for argument in plan.arguments)
    findings = [f for f in preflight(plan).findings if f.where == "data.train_files"]
    assert [(finding.severity, finding.rule) for finding in findings] == [("error", "missing")]
    given = import_script(script, "run.sh", "0.9", env={"D": "/d"})
    assert given.recipe["data"]["train"] == "/d/a"
    with pytest.raises(DataError, match=r"trainer\.nnodes: .* Pass --env N=VALUE"):
        simple("trainer.nnodes=$N")
    with pytest.raises(UsageError, match="is not a version of verl"):
        simple("", "latest")


def test_a_result_is_given_by_its_variable_and_not_by_the_name_of_a_key():
    """`--env lr=VALUE` would set nothing: no variable of the script is called lr."""
    script = f"RATE=$(python rate.py)\npython3 -m {MAIN} {A}.optim.lr=$(python lr.py) trainer.save_freq=$RATE"
    findings = import_script(script, "run.sh", "0.9").findings
    assert {f.where: f.fix for f in findings if f.rule == "unresolved"} == {
        f"{A}.optim.lr": "Put the value there.",
        "trainer.save_freq": "Put the value there or import with --env RATE=VALUE.",
    }


def test_a_list_of_settings_needs_no_command():
    text = f"model_engine=megatron data.seed=1\n{M}.path=/m +data.x='a b'\ntrainer.logger=[a,b]\n# data.y=3\n"
    plan = plan_of(import_script(text, "run.sh", "0.9"))
    settings = {"model_engine=megatron", "data.seed=1", "+data.x='a b'", "trainer.logger=[a,b]"}
    assert settings <= set(plan.arguments)
    assert plan.recipe.model == "/m"


def test_devices_come_from_the_setting_else_from_device_else_from_the_name():
    branch = 'DEVICE=${DEVICE:-gpu}\nx=8; [ "$DEVICE" = npu ] && x=16'
    for env, devices, count in (({}, "gpu", 8), ({"DEVICE": "npu"}, "npu", 16)):
        recipe = simple("trainer.n_gpus_per_node=$x", before=branch, env=env).recipe
        assert (recipe["devices"], recipe["devices_per_node"]) == (devices, count)
    text = f"python3 -m {MAIN} {M}.path=/m "
    named = import_script(text, "run_8b_npu.sh", "0.9")
    assert plan_of(named).settings["trainer.device"] == "npu"
    assert [f.severity for f in named.findings if f.where == "devices"] == ["info"]
    assert [
        f.rule for f in named.findings if f.where.endswith("actor.fsdp_config.use_torch_compile")
    ]
    assert import_script(f"{text}trainer.device=cuda", "x_npu.sh", "0.9").recipe["devices"] == "gpu"
    assert import_script(text, "input.sh", "0.9").recipe["devices"] == "gpu"


def test_exports_of_the_run_are_in_the_recipe_and_those_of_the_script_are_not():
    exports = (
        "export MODEL=/m\nexport VLLM_USE_V1=1 MINE=2\nexport PATH=/x:$PATH\nHCCL_X=1\n"
        "export WANDB_API_KEY=s3cret HCCL_SOCKET_IFNAME=eth0 HF_HOME=$HOME/hf NAME=$(hostname)\n"
        "NCCL_DEBUG=INFO \\"
    )
    result = simple("trainer.project_name=$MODEL", before=exports)
    env = {"VLLM_USE_V1": "1", "MINE": "2", "NCCL_DEBUG": "INFO", "HF_HOME": "~/hf"}
    assert result.recipe["env"] == env
    assert "s3cret" not in recipe_text(result)
    assert plan_of(result).env["HF_HOME"] == f"{Path.home()}/hf"


def test_secrets_of_commands_and_of_given_variables_are_hidden():
    before = 'T=$(curl -H "Authorization: Bearer sk-Zq7canaryValue4299" https://x)'
    text = "trainer.save_freq=$T trainer.project_name=$A_TOKEN"
    env = {"A_TOKEN": "Zq7canaryOther77"}
    result = simple(text, before=before, env=env)
    assert "canary" not in f"{result}{recipe_text(result)}"
    with pytest.raises(DataError, match="depends on the test of line 2") as refusal:
        simple(f"{text} trainer.test_freq=$x", before=f"{before}\n[ $T ] && x=1", env=env)
    assert "canary" not in str(refusal.value)


RAY = "ray job submit --runtime-env=/w/e.yaml --working-dir /w --address http://h:8265 -- python3"
SECRET = 'ray job submit --runtime-env-json \'{"env_vars": {"X_API_KEY": "0canary"}}\' -- python3'


@every(("launcher", "key", "words"), [
    ("uv run --frozen --extra vllm python3", "uv", ["`uv run --frozen --extra vllm`", "uv sync"]),
    (RAY, "ray", ["/w/e.yaml", "http://h:8265", "cluster.target: ray-job", "env_vars"]),
    (SECRET, "ray", ["--runtime-env-json"]),
    ("torchrun --nproc_per_node 8", "torchrun", ["torchrun --nproc_per_node 8"]),
    ("/opt/bin/python3.11 -u", "", []),
])  # fmt: skip
def test_what_starts_python_in_a_script_is_named_with_what_to_carry_over(launcher, key, words):
    result = import_script(f"{launcher} -m {MAIN} data.train_files=/a", "run.sh", "0.9")
    findings = [finding for finding in result.findings if finding.rule == "launcher"]
    assert [(f.where, f.severity) for f in findings] == ([(key, "warning")] if key else [])
    assert all(word in str(findings) for word in words), findings
    assert "canary" not in str(result)


@every("name", PUBLISHED)
def test_the_file_reads_back_equal_and_has_its_findings_on_top(name):
    result = imported(name)
    text = recipe_text(result)
    assert read_yaml(text, name) == result.recipe
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert comments[0] == "# Imported from run.sh, for verl 0.9.1; the script was not run."
    assert sum(f"# {finding.severity}: " in " ".join(comments) for finding in result.findings) > 0
    assert max(map(len, comments)) <= 100


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


@pytest.mark.full
@settings(max_examples=300)
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
        plan_of(result, verl)
    except RewardkitError:
        assert failures
    else:
        assert not failures
