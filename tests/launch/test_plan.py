"""A plan has the keys of its verl release and no others."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override, parse_overrides, parse_verl_section
from rewardkit.launch.plan import DAPO_RECIPE, TRAINER, make_plan
from rewardkit.launch.recipe import built_in, load_tree, read_recipe
from rewardkit.launch.verl import key_renames, releases
from rewardkit.launch.verl.key_renames import (
    ignored_in_release,
    ignored_keys,
    renames,
    to_latest_key,
)
from rewardkit.launch.verl.releases import (
    LATEST,
    known_releases,
    nearest,
    release_of,
    snapshots,
)
from rewardkit.launch.verl.reward_keys import NEW_KEY
from rewardkit.launch.verl.translate import without_ballast
from tests.tables import every

GOLDEN = Path(__file__).parent / "golden"
RELEASES = ("0.7", "0.8", "main")


def arguments(name, verl):
    """Return a recipe's arguments without the folder in which rewardkit is installed."""
    plan = make_plan(read_recipe(load_tree(name), name), verl)
    folder = str(Path(sys.modules["rewardkit"].__file__).parent)
    return [plan.module, *(a.replace(folder, "REWARDKIT") for a in plan.arguments)]


def golden(name):
    """Return the arguments for 0.9, and what other releases add (+) or lack (-)."""
    newest = arguments(name, "0.9")
    lines = ["== 0.9", *newest]
    for verl in RELEASES:
        other = arguments(name, verl)
        lines += [f"== {verl}", *(f"- {a}" for a in newest if a not in other)]
        lines += [f"+ {a}" for a in other if a not in newest]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", built_in())
def test_the_plans_of_a_recipe_are_those_that_were_reviewed(name):
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("REWARDKIT_GOLDEN") == "write":
        file.write_text(golden(name))
    assert golden(name) == file.read_text()


@every("verl", [*known_releases(), *snapshots()])
@every("name", built_in())
def test_a_plan_has_only_keys_that_its_release_lists_or_reads(name, verl):
    plan = make_plan(read_recipe(load_tree(name), name), verl)
    megatron = plan.recipe.strategy == "megatron"
    recipe = plan.module == DAPO_RECIPE
    release = release_of(verl, megatron=megatron, dapo_recipe=recipe)
    for argument in plan.arguments:
        key = argument.partition("=")[0]
        if key.startswith("--") or key == "model_engine":
            continue
        assert not release.ignored(key.lstrip("+"))
        assert release.accepts_unlisted(key[1:]) if key.startswith("+") else release.lists(key), key


#: What defines a run is in its recipe, even where verl has the same by default.
FIGURES = frozenset(
    {
        "data.max_prompt_length",
        "data.max_response_length",
        "actor_rollout_ref.actor.optim.lr",
        "actor_rollout_ref.actor.kl_loss_coef",
        "actor_rollout_ref.rollout.tensor_model_parallel_size",
        "critic.optim.lr",
        "algorithm.kl_ctrl.kl_coef",
        "trainer.logger",
    }
)


def repeated_defaults(name, verl):
    """Return the keys of a recipe's `verl:` that a release has by default, or knows nothing of."""
    plan = make_plan(read_recipe(load_tree(name), name), verl)
    megatron = plan.release.megatron
    section = parse_verl_section(plan.recipe.verl, "the recipe")
    keys = {to_latest_key(override.key, megatron=megatron) for override in section}
    ours = [Override(plan.release.name_of(key), value) for key, value in plan.settings.items()]
    needed = {override.key for override in without_ballast(ours, plan.release)}
    unknown = {key for key in keys if not plan.release.lists(plan.release.name_of(key))}
    return {key for key in keys if plan.release.name_of(key) not in needed} - unknown


@pytest.mark.full
@every("name", built_in())
def test_a_built_in_recipe_repeats_verl_s_defaults_only_for_the_figures_that_define_it(name):
    ballast = set.intersection(*(repeated_defaults(name, verl) for verl in known_releases()))
    assert ballast - FIGURES == set()


@every("name", built_in())
def test_a_built_in_recipe_sets_nothing_of_a_model_that_it_does_not_load(name):
    plan = make_plan(read_recipe(load_tree(name), name), "0.9")
    keys = {argument.lstrip("+").partition("=")[0] for argument in plan.arguments}
    if plan.get("algorithm.adv_estimator") != "gae":
        assert [key for key in keys if key.startswith("critic.") or "critic_" in key] == []
    if not plan.get("actor_rollout_ref.actor.use_kl_loss") and plan.recipe.algorithm != "ppo":
        assert [key for key in keys if key.startswith("actor_rollout_ref.ref.")] == []


@every("verl", known_releases())
@every("name", built_in())
def test_what_a_plan_leaves_out_is_what_the_release_does_anyway(name, verl):
    """The settings of a reference model that is not loaded are the only ones that are lost."""
    plan = make_plan(read_recipe(load_tree(name), name), verl)
    reads_reference = plan.get("actor_rollout_ref.actor.use_kl_loss") or plan.get(
        "algorithm.use_kl_in_reward"
    )
    dropped = {to_latest_key(note.key) for note in plan.notes if note.kind == "dropped"}
    for key, value in plan.settings.items():
        if key in dropped or str(value).startswith("${") or plan.release.dapo_recipe:
            continue
        if reads_reference or not key.startswith("actor_rollout_ref.ref."):
            assert plan.get(key) == value, key


def test_a_plan_passes_no_setting_of_ours_that_the_release_has_by_default(plan):
    arguments = plan("0.9", devices="npu").arguments
    for key in ("use_kl_in_reward", "kl_loss_type", "entropy_coeff", "reward_manager"):
        assert not any(key in argument for argument in arguments), key
    assert "actor_rollout_ref.ref.fsdp_config.use_torch_compile=False" in arguments
    dapo = plan("0.9", devices="npu", algorithm="dapo").arguments
    assert not any(argument.startswith("actor_rollout_ref.ref.fsdp") for argument in dapo)


@pytest.mark.parametrize("setting", ["data.shuffle=True", "algorithm.use_kl_in_reward=False"])
def test_a_plan_passes_a_default_that_somebody_wrote(plan, setting):
    assert setting in plan("0.9", setting).arguments
    key, _, value = setting.partition("=")
    assert setting in plan("0.9", verl={key: value == "True"}).arguments


def test_a_plan_names_its_algorithm_its_size_and_its_reward_function_always(plan):
    arguments = plan("0.9", algorithm="ppo", reward={"scorer": "gsm8k"}).arguments
    assert "algorithm.adv_estimator=gae" in arguments
    assert {"trainer.nnodes=1", "trainer.n_gpus_per_node=8"} <= set(arguments)
    assert "reward.custom_reward_function.name=compute_score" in arguments


def test_a_plan_repeats_defaults_where_others_may_apply(plan):
    setting = "actor_rollout_ref.actor.kl_loss_type=low_var_kl"
    assert setting not in plan("0.9").arguments
    assert setting in plan("1.2").arguments  # a release that we do not know
    cluster = {"target": "modelarts", "model_name": "qwen3-8b"}  # AscendFactory has its own
    assert setting in plan("0.9", cluster=cluster).arguments


def test_a_plan_exports_only_what_verl_does_not_set_itself(plan):
    assert plan("0.9").env == {"HYDRA_FULL_ERROR": "1", "PYTHONUNBUFFERED": "1"}
    npu = plan("0.7.1", devices="npu").env
    assert not any("VLLM" in name or "PORT_RANGE" in name for name in npu)


def test_an_old_reward_key_on_the_command_line_gets_its_new_name(plan):
    result = plan(
        "0.9", "custom_reward_function.path=/r/mine.py", "reward_model.reward_manager=gdpo"
    )
    assert "reward.custom_reward_function.path=/r/mine.py" in result.arguments
    assert "reward.reward_manager.name=gdpo" in result.arguments
    assert not any(a.startswith(("custom_reward", "reward_model")) for a in result.arguments)


OVERLONG = {"algorithm": "dapo", "dapo": {"overlong_buffer": {"len": 512}}}
SAMPLING = {"algorithm": "dapo", "dapo": {"dynamic_sampling": {"max_num_gen_batches": 5}}}


def test_the_overlong_buffer_is_set_where_each_trainer_reads_it(plan):
    new = plan("0.9", **OVERLONG).arguments
    assert "+reward.reward_kwargs.overlong_buffer_cfg.len=512" in new
    assert "+reward.reward_kwargs.overlong_buffer_cfg.log=False" in new
    assert "+reward.reward_kwargs.max_resp_len=${data.max_response_length}" in new
    recipe = plan("0.8", algorithm="dapo", dapo={**OVERLONG["dapo"], **SAMPLING["dapo"]})
    assert "reward_model.overlong_buffer.len=512" in recipe.arguments


def test_dynamic_sampling_uses_verl_s_trainer_from_0_9_on_and_the_dapo_recipe_before(plan):
    assert plan("0.9", **SAMPLING).module == TRAINER
    for verl in ("0.7", "0.8"):
        result = plan(verl, **SAMPLING)
        assert result.module == DAPO_RECIPE
        assert "algorithm.filter_groups.max_num_gen_batches=5" in result.arguments
        assert any("not in the wheel" in note.text for note in result.notes)


def test_keys_that_0_9_ignores_are_dropped_with_a_note(plan):
    result = plan("0.9", "trainer.balance_batch=True", **SAMPLING)
    notes = {note.key: note.text for note in result.notes if note.kind == "dropped"}
    assert {"trainer.balance_batch", "algorithm.filter_groups.max_num_gen_batches"} <= set(notes)
    assert not any("balance_batch" in a for a in result.arguments)


def test_a_note_names_a_key_as_it_is_written(plan):
    written = "reward.reward_kwargs.max_resp_len"
    notes = plan("0.8", f"{written}=9", **SAMPLING).notes
    assert written in {note.key for note in notes if note.kind == "dropped"}


def test_an_error_names_the_key_as_it_is_written(plan):
    with pytest.raises(UsageError, match=r"has no key 'reward_manager\.nam'"):
        plan("0.9", "reward_manager.nam=naive")
    with pytest.raises(UsageError, match=r"line: actor_rollout_ref\.actor\.grad_clip='wide'"):
        plan("0.9", "actor_rollout_ref.actor.grad_clip=wide")


def test_nobody_is_told_that_the_dapo_recipe_sets_what_nobody_wrote(plan):
    dapo = {**OVERLONG["dapo"], **SAMPLING["dapo"]}
    assert [n.kind for n in plan("0.8", algorithm="dapo", dapo=dapo).notes] == ["hint"]


@pytest.mark.parametrize("verl", ["0.7.1", "0.9"])
@pytest.mark.parametrize("key", ["custom_reward_function", "reward.custom_reward_function"])
def test_two_reward_functions_in_a_recipe_are_refused(plan, verl, key):
    reward = {"scorer": "gsm8k", "options": {"method": "robust"}}
    with pytest.raises(UsageError) as error:
        plan(verl, reward=reward, verl={f"{key}.path": "/r/mine.py"})
    assert f"`verl:`: {key}.path=/r/mine.py, but reward.scorer is gsm8k" in str(error.value)
    with pytest.raises(UsageError, match="a run has one reward function"):
        plan(verl, reward=reward, verl={f"{key}.reward_kwargs.method": "strict"})
    with pytest.raises(UsageError, match="a run has one reward function"):
        plan(verl, reward={"options": {"method": "robust"}}, verl={f"{key}.path": "/r/mine.py"})


def test_the_folder_of_records_is_absolute_in_the_command(plan, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = plan("0.9", reward={"scorer": "gsm8k", "record": "rewards"})
    assert f"+{NEW_KEY}.reward_kwargs.record={tmp_path}/rewards" in result.arguments


def test_a_folder_of_records_that_nothing_writes_or_no_node_finds_is_refused(plan):
    with pytest.raises(UsageError, match="verl's own scorers record nothing"):
        plan(reward={"scorer": "verl", "record": "/shared/rewards"})
    with pytest.raises(UsageError, match=r"reward\.record: rewards is relative"):
        plan(reward={"scorer": "gsm8k", "record": "rewards"}, cluster={"target": "ray-job"})


def test_a_recipe_may_name_one_reward_function_twice_or_by_verl_s_key_alone(plan):
    keys = {"reward.custom_reward_function": {"path": "/r/mine.py", "name": "judge"}}
    for reward in ({"scorer": "/r/mine.py:judge"}, {"scorer": "verl"}, {}):
        result = plan("0.9", verl=keys, **({"reward": reward} if reward else {}))
        assert result.recipe.reward.scorer == "/r/mine.py:judge"
        assert "reward.custom_reward_function.path=/r/mine.py" in result.arguments
        assert result.notes == ()


def test_a_reward_function_on_the_command_line_replaces_the_recipe_s_with_a_note(plan):
    override = "reward.custom_reward_function.path=/r/mine.py"
    reward = {"scorer": "gsm8k", "options": {"method": "robust"}}
    result = plan("0.9", override, reward=reward)
    (note,) = result.notes
    assert str(note) == (
        "reward.custom_reward_function.path: replaces the recipe's reward.scorer, gsm8k and its options."
    )
    both = plan("0.9", override, reward=reward, verl={f"{NEW_KEY}.path": "/r/old.py"})
    assert both.recipe.reward.scorer == "/r/mine.py:compute_score"


def test_changing_the_algorithm_to_grpo_removes_all_keys_of_dapo(plan):
    dapo = {"overlong_buffer": {"len": 512}, "dynamic_sampling": {}}
    result = plan("0.8", algorithm="grpo", dapo=dapo)
    text = " ".join(result.arguments)
    assert result.module == TRAINER
    assert result.get("reward.reward_manager.name") == "naive"
    assert "actor_rollout_ref.actor.use_kl_loss=True" in result.arguments
    for key in ("clip_ratio", "overlong", "filter_groups", "gen_batch_size"):
        assert key not in text


def test_megatron_is_selected_by_the_option_of_each_release(plan):
    for verl in ("0.8.0", "0.9", "0.10.0.dev0"):
        assert plan(verl, strategy="megatron").arguments[0] == "model_engine=megatron"
    # 0.7.1 has model_engine=dp, torchtitan and veomni.
    option = "--config-name=ppo_megatron_trainer.yaml"
    assert option in plan("0.7.1", strategy="megatron").arguments


def test_devices_npu_sets_every_setting_that_npu_needs(plan):
    result = plan("0.9", devices="npu")
    assert "trainer.device=npu" in result.arguments
    assert "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False" in result.arguments
    assert result.env["HCCL_CONNECT_TIMEOUT"] == "3600"
    assert result.env["TASK_QUEUE_ENABLE"] == "1"
    eager = plan("0.9", "actor_rollout_ref.rollout.enforce_eager=True", devices="npu")
    assert eager.env["TASK_QUEUE_ENABLE"] == "2"


def test_the_command_line_overrides_the_recipe(plan):
    result = plan("0.9", "data.train_batch_size=8", verl={"data.train_batch_size": 16})
    assert [a for a in result.arguments if "train_batch_size" in a] == ["data.train_batch_size=8"]


def test_an_unknown_key_is_refused_and_the_nearest_is_suggested(plan):
    with pytest.raises(UsageError, match=r"Did you mean 'data\.train_batch_size'"):
        plan("0.9", "data.train_batchsize=8")
    assert "+data.train_batchsize=8" in plan("0.9", "+data.train_batchsize=8").arguments


def test_the_engine_dp_is_the_strategy_fsdp(plan):
    assert "model_engine=dp" in plan("0.9", "model_engine=dp").arguments
    with pytest.raises(UsageError, match=r"model_engine=dp alone .* --set strategy=fsdp\."):
        plan("0.9", "model_engine=dp", strategy="megatron")


def test_a_setting_of_an_engine_that_no_plan_uses_is_refused_with_the_engine_s_name(plan):
    key = "actor_rollout_ref.actor.veomni.param_offload"
    with pytest.raises(UsageError, match=rf"{key} is a setting of veomni in verl 0\.9\.1, and rew"):
        plan("0.9", f"{key}=True")


def test_a_key_of_another_release_is_dropped_with_a_note(plan):
    result = plan("0.7", "trainer.v1.sampler.max_off_policy_threshold=10")
    assert [n.text for n in result.notes] == [
        f"verl 0.7.1 has no such setting (verl {LATEST} has)."
    ]


@pytest.mark.parametrize("text", ["data.x", "=1", "+", "+~a=1", "a b"])
def test_a_text_that_is_not_an_override_is_refused(plan, text):
    with pytest.raises(UsageError, match="is not an override"):
        plan("0.9", text)


def test_an_override_by_verl_s_name_changes_the_field_of_the_recipe(plan):
    result = plan(
        "0.9",
        "trainer.nnodes=2",
        "actor_rollout_ref.model.path=/m/new",
        "data.train_files=[a.parquet,b.parquet]",
        "custom_reward_function.path=/r/mine.py",
        "custom_reward_function.name=judge",
        algorithm="ppo",
        reward={"scorer": "gsm8k", "options": {"method": "robust"}},
    )
    assert (result.recipe.nodes, result.recipe.model) == (2, "/m/new")
    assert result.recipe.data.train == ["a.parquet", "b.parquet"]
    assert result.recipe.reward.scorer == "/r/mine.py:judge"
    assert "critic.model.path=/m/new" in result.arguments
    assert "reward.custom_reward_function.name=judge" in result.arguments
    assert not any("method" in argument for argument in result.arguments)


def test_the_compile_setting_of_npu_is_set_where_each_release_reads_it(plan):
    old, new = (plan(verl, devices="npu").arguments for verl in ("0.7", "0.9"))
    assert "actor_rollout_ref.actor.use_torch_compile=False" in old
    assert "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False" in new
    megatron = plan("0.9", devices="npu", strategy="megatron")
    assert megatron.notes == ()


@pytest.mark.parametrize(
    ("override", "verl", "expected"),
    [
        ("critic.model.fsdp_config.param_offload=True", "0.9", "critic.fsdp.param_offload=True"),
        (
            "critic.forward_max_token_len_per_gpu=65536",
            "0.9",
            "+critic.ppo_infer_max_token_len_per_gpu=65536",
        ),
        (
            "critic.ulysses_sequence_parallel_size=2",
            "0.8",
            "critic.fsdp.ulysses_sequence_parallel_size=2",
        ),
        (
            "actor_rollout_ref.rollout.update_weights_bucket_megabytes=4096",
            "0.9",
            "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=4096",
        ),
        (
            "actor_rollout_ref.actor.grad_clip=0.5",
            "0.9",
            "actor_rollout_ref.actor.optim.clip_grad=0.5",
        ),
    ],
)
def test_a_renamed_key_is_translated_and_a_note_names_the_old_key(plan, override, verl, expected):
    result = plan(verl, override, algorithm="ppo")
    assert expected in result.arguments
    assert [n.key for n in result.notes if n.kind == "renamed"] == [override.partition("=")[0]]


def test_a_synchronous_rollout_is_dropped_where_verl_refuses_it(plan):
    result = plan("0.9", "actor_rollout_ref.rollout.mode=sync")
    assert "asynchronous" in result.notes[0].text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_engine=megatron", "set strategy: megatron in the recipe"),
        ("actor_rollout_ref.actor.strategy=megatron", "--set strategy=megatron"),
        ("actor_rollout_ref.actor.strategy=fsdp2", "--set strategy=fsdp2"),
        ("model_engine=veomni", "model_engine=veomni: rewardkit plans for FSDP and Megatron only"),
        ("actor_rollout_ref.actor.strategy=torchtitan", "plans for FSDP and Megatron only"),
        ("algorithm=dapo", "algorithm is a field of the recipe: --set algorithm=dapo"),
        ("nodes=4", "nodes is a field of the recipe: --set nodes=4"),
        ("trainer=5", "trainer is a section of verl"),
        ("engine_kwargs.vllm.x=1", "has no key 'engine_kwargs.vllm.x'"),
        ("actor_rollout_ref.actor.optim.lr='1e-6'", "is text, but verl 0.9.1 has 1e-06 there"),
        ("actor_rollout_ref.rollout.n=five", "'five' is text, but verl 0.9.1 has 1 there"),
        ("data.shuffle=on", "'on' is text, but verl 0.9.1 has True there"),
        ("--trainer.save_freq=5", "without the dashes"),
        ("trainer.logger=[a", "a bracket is missing"),
    ],
)
def test_an_override_that_would_not_work_is_refused_with_a_remedy(plan, text, message):
    with pytest.raises(UsageError) as error:
        plan("0.9", text)
    assert message in str(error.value)


def test_a_typo_after_a_plus_gets_a_note_with_the_nearest_key(plan):
    notes = plan("0.9", "+trainer.save_frq=5").notes
    assert "Did you mean 'trainer.save_freq'" in str(notes[0])


def test_a_future_release_is_planned_as_the_newest_with_a_note(plan):
    text = f"is newer than the releases we know: planned as {LATEST}"
    assert text in str(plan("1.2").notes[0])


@pytest.mark.parametrize("depth", [30, 3000])
def test_deeply_nested_lists_are_planned(plan, depth):
    plan("0.9", f"trainer.logger={'[' * depth}{']' * depth}")


def test_a_hydra_group_or_deletion_is_passed_unchanged(plan):
    result = plan("0.9", "hydra.run.dir=/tmp/x", "~trainer.logger")
    assert "hydra.run.dir=/tmp/x" in result.arguments
    assert "~trainer.logger" in result.arguments


@pytest.mark.parametrize(
    ("verl", "nearest_release"),
    [
        ("0.9", "0.9.1"),
        ("0.7", "0.7.1"),
        ("0.9.2.dev1", "0.9.1"),
        ("1.2", LATEST),
        ("main", "0.10.0.dev0"),
        ("0.10", "0.10.0.dev0"),
        ("0.10.0", "0.10.0.dev0"),
        ("0.10.0.dev", "0.10.0.dev0"),
        ("0.10.0.dev0+g1dda039", "0.10.0.dev0"),
        ("v0.10.0rc1", "0.10.0.dev0"),
        ("0.10.1", LATEST),
    ],
)
def test_a_release_is_planned_as_the_nearest_known_one(verl, nearest_release):
    assert nearest(verl) == nearest_release


@pytest.mark.parametrize("verl", ["0.5", "0.6.1", "0.7.0"])
def test_an_older_release_ends_in_one_line_that_says_what_planned_it(plan, verl):
    line = (
        rf"^verl {verl}: plans start at verl 0\.7\.1\. For older releases use rewardkit 0\.1\.0\.$"
    )
    with pytest.raises(UsageError, match=line):
        plan(verl)


def test_a_plan_for_a_snapshot_of_main_names_its_date_and_commit_once(plan):
    for verl in ("main", "0.10", "0.10.0.dev0"):
        result = plan(verl)
        assert result.verl == "0.10.0.dev0"
        notes = [str(note) for note in result.notes if "unreleased" in note.text]
        assert notes == [
            (
                f"verl {verl}: is planned as verl's main of 2026-08-22 (commit 1dda039b9c63), an "
                "unreleased snapshot, older than verl 0.9.1 (2026-09-20). main may have changed since."
            )
        ]
    assert not any("unreleased" in note.text for note in plan("0.9").notes)


def test_a_snapshot_that_is_newer_than_every_release_is_not_called_older(plan, monkeypatch):
    monkeypatch.setattr(releases, "LATEST", "0.8.0")
    assert "an unreleased snapshot. main may have changed" in str(plan("main").notes)


def test_a_snapshot_is_never_planned_unless_its_number_is_asked_for(plan):
    assert known_releases()[-1] == LATEST
    assert not {*known_releases()} & {*snapshots()}
    assert plan(LATEST).release.commit == ""


@pytest.mark.usefixtures("fictional_release")
def test_a_released_version_replaces_a_snapshot_of_its_number():
    assert (nearest("0.10"), nearest("0.10.0.dev0")) == ("0.10.0", "0.10.0")


def test_main_is_refused_where_there_is_no_snapshot_of_it(plan, release_folder):
    (release_folder / "0.10.0.dev0.json").unlink()
    with pytest.raises(UsageError, match=r"no snapshot of verl's main is known; name a release"):
        plan("main")
    assert plan("0.10").verl == LATEST


@pytest.mark.usefixtures("fictional_snapshot")
def test_a_setting_that_only_a_snapshot_has_is_dropped_with_its_version(plan):
    notes = [str(note) for note in plan("0.9", "trainer.of_tomorrow=1").notes]
    assert notes == ["trainer.of_tomorrow: verl 0.9.1 has no such setting (verl 0.10.0.dev0 has)."]
    assert "trainer.of_tomorrow=1" in plan("main", "trainer.of_tomorrow=1").arguments


def test_a_key_that_a_release_removed_is_planned_for_a_snapshot_that_still_has_it(plan):
    key = "actor_rollout_ref.actor.megatron.grad_offload"
    assert f"{key}=True" in plan("main", f"{key}=True", strategy="megatron").arguments
    result = plan("0.9.1", f"{key}=True", strategy="megatron")
    assert f"{key}=True" not in result.arguments
    assert "removed: param_offload releases the gradients too" in str(result.notes)


def test_a_renamed_key_survives_the_round_trip_through_every_release():
    for move in renames():
        for name in (move.new, move.old) if move.old else (move.new,):
            key = f"{name}x" if name.endswith(".") else name
            new = to_latest_key(key)
            assert new == (f"{move.new}x" if name.endswith(".") else move.new)
            for verl in [*known_releases(), *snapshots()]:
                assert to_latest_key(release_of(verl).name_of(new)) == new


def test_each_ignored_key_is_ignored_from_its_first_release_on_and_has_a_reason():
    for entry in ignored_keys():
        trainer = {"megatron": entry.only == "megatron", "dapo_recipe": False}
        assert entry.key in ignored_in_release(entry.since, **trainer)
        assert "." in entry.why or ":" in entry.why or " " in entry.why


AWKWARD = ["['console','wandb']", "a b", "$HOME", "`x`", "it's", '"q"', "中文/路径", "a;b", "*"]


def test_a_shell_passes_the_printed_command_s_arguments_unchanged(plan, tmp_path):
    result = plan("0.9", *(f"+data.odd{i}={text}" for i, text in enumerate(AWKWARD)))
    stub = tmp_path / "python3"
    stub.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    stub.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", result.shell_command()],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == result.command()[1:]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_any_text_is_a_valid_override_or_refused(text):
    try:
        (override,) = parse_overrides([f"a.b={text}"], "x")
    except UsageError:
        return
    assert shlex.split(shlex.quote(str(override))) == [str(override)]


@pytest.fixture
def release_folder(tmp_path, monkeypatch):
    """A copy of the keys of all releases, which a test may change."""
    folder = shutil.copytree(releases.FOLDER, tmp_path / "release_keys")
    monkeypatch.setattr(releases, "FOLDER", folder)
    caches = (releases.release_of, to_latest_key, key_renames._latest_names)
    for cache in caches:
        cache.cache_clear()
    yield folder
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def fictional_snapshot(release_folder):
    """Add a key to the snapshot of main."""
    file = release_folder / "0.10.0.dev0.json"
    snapshot = json.loads(file.read_text())
    snapshot["fsdp"]["trainer.of_tomorrow"] = None
    file.write_text(json.dumps(snapshot))


@pytest.fixture
def fictional_release(release_folder, monkeypatch):
    """Add a verl 0.10.0 as docs/how-to/new-verl-release.md does: one key is new, one renamed."""
    newest = json.loads((release_folder / f"{LATEST}.json").read_text())
    keys = newest["fsdp"]
    keys["trainer.validation.before_train"] = keys.pop("trainer.val_before_train")
    keys["actor_rollout_ref.rollout.prefix_cache_gb"] = 4
    (release_folder / "0.10.0.json").write_text(json.dumps(newest | {"verl": "0.10.0"}))
    rename = key_renames.KeyRename(
        new="trainer.validation.before_train", old="trainer.val_before_train", since=(0, 10, 0)
    )
    table = (rename, *renames())
    monkeypatch.setattr(key_renames, "renames", lambda: table)


@pytest.mark.usefixtures("fictional_release")
def test_a_new_release_needs_a_file_of_keys_and_an_entry_for_each_renamed_key(plan):
    """A recipe and a rule may use the old name of a key or the new one."""
    for name in ("trainer.val_before_train", "trainer.validation.before_train"):
        old, new = (plan(verl, f"{name}=False") for verl in (LATEST, "0.10"))
        assert "trainer.val_before_train=False" in old.arguments
        assert "trainer.validation.before_train=False" in new.arguments
        for result in (old, new):
            assert result.get("trainer.val_before_train") is False
            assert result.get("trainer.validation.before_train") is False
    override = "actor_rollout_ref.rollout.prefix_cache_gb=8"
    assert override in plan("0.10", override).arguments
    assert "(verl 0.10.0 has)" in str(plan(LATEST, override).notes)


def test_what_runs_on_this_machine_gets_the_scorer_s_file_on_this_machine(plan, tmp_path):
    """A target that copies a file names it by its place on the nodes."""
    (tmp_path / "mine.py").write_text("def compute_score(*args): return 1.0\n")
    job = {"cluster": {"target": "ray-job"}}
    own = plan("0.9", reward={"scorer": f"{tmp_path}/mine.py:compute_score"}, **job)
    key = "reward.custom_reward_function.path"
    assert f"{key}=reward.py" in own.arguments
    assert f"{key}={tmp_path}/mine.py" in own.local_arguments()
    ours = plan("0.9", reward={"scorer": "gsm8k"}, **job)
    assert ours.local_arguments() == list(ours.arguments)


COMPOSED = "scorer: gsm8k\nparts: {correct: 1.0, format: {weight: 0.1}, repetition: 0}\n"


@pytest.fixture
def composed(tmp_path):
    """A composed reward of two parts with a weight, and one without."""
    from rewardkit.scorers.compose import write_reward_file

    recipe = tmp_path / "reward.yaml"
    recipe.write_text(COMPOSED)
    return f"{write_reward_file(recipe, tmp_path / 'reward.py')}:compute_score"


def test_gdpo_takes_its_keys_and_weights_from_the_composed_reward(recipe, composed):
    plan = make_plan(recipe(algorithm="gdpo", reward={"scorer": composed}), "0.9.1")
    assert "+algorithm.gdpo_reward_keys=[correct,format]" in plan.arguments
    assert "+algorithm.gdpo_reward_weights=[1.0,0.1]" in plan.arguments
    assert "trainer.use_v1=False" in plan.arguments
    older = make_plan(recipe(algorithm="gdpo", reward={"scorer": composed}), "0.8.0")
    assert not any("use_v1" in argument for argument in older.arguments)
    assert older.notes == ()


def test_keys_of_gdpo_under_verl_replace_those_of_the_composed_reward(recipe, composed):
    verl = {"algorithm.gdpo_reward_keys": ["correct", "base"]}
    plan = make_plan(recipe(algorithm="gdpo", reward={"scorer": composed}, verl=verl), "0.9.1")
    assert "+algorithm.gdpo_reward_keys=[correct,base]" in plan.arguments
    assert plan.get("algorithm.gdpo_reward_weights") is None


def test_no_legacy_key_of_the_reward_is_passed_to_a_release_that_ignores_it(recipe):
    """verl 0.9 composes with reward_model.*, custom_reward_function.* and sandbox_fusion.*."""
    sections = ("reward_model.", "custom_reward_function.", "sandbox_fusion.")
    keys = {k: v for k, v in release_of("0.9.1").keys.items() if k.startswith(sections)}
    assert len(keys) > 20
    for key in keys:
        value = "/x.py" if key == "custom_reward_function.path" else 1
        plan = make_plan(
            recipe(reward={"scorer": "verl"}), "0.9.1", parse_overrides([f"{key}={value}"], "x")
        )
        assert not any(a.lstrip("+").startswith(sections) for a in plan.arguments), key
        assert any(
            note.key == key and note.kind in {"renamed", "dropped"} for note in plan.notes
        ), key


def test_the_limits_of_rate_limited_are_set_by_the_name_that_a_release_reads(recipe):
    verl = {"reward.reward_manager.name": "rate_limited", "reward.max_concurrent": 8}
    assert "+reward.max_concurrent=8" in make_plan(recipe(verl=verl), "0.9.1").arguments


def test_the_processes_of_the_manager_remote_count_as_cores_of_a_node(recipe):
    from rewardkit.launch.preflight.environment import reserved_cores

    verl = {"reward.reward_manager.name": "remote"}
    assert 64 in reserved_cores(make_plan(recipe(verl=verl), "0.9.1")).values()
    assert 32 in reserved_cores(make_plan(recipe(verl=verl, nodes=2), "0.9.1")).values()
