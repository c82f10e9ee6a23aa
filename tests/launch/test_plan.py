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
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, make_plan
from rewardkit.launch.recipe import built_in, load_tree, read_recipe
from rewardkit.launch.verl import releases
from rewardkit.launch.verl.releases import (
    LATEST,
    known_releases,
    nearest,
    release_of,
    renames,
    snapshots,
    to_latest_key,
)
from rewardkit.scorers.compose import write_reward_file
from tests.tables import every

GOLDEN = Path(__file__).parent / "golden"
RELEASES = ("0.7", "0.8", "main")
ALL = [*known_releases(), *snapshots()]


def built_in_plan(name, verl):
    return make_plan(read_recipe(load_tree(name), name), verl)


def golden(name):
    """Return the arguments for 0.9, and what other releases add (+) or lack (-)."""
    folder = str(Path(sys.modules["rewardkit"].__file__).parent)
    plans = [built_in_plan(name, verl) for verl in ("0.9", *RELEASES)]
    newest, *others = (
        [plan.module, *(a.replace(folder, "REWARDKIT") for a in plan.arguments)] for plan in plans
    )
    lines = ["== 0.9", *newest]
    for verl, other in zip(RELEASES, others, strict=True):
        lines += [f"== {verl}", *(f"- {a}" for a in newest if a not in other)]
        lines += [f"+ {a}" for a in other if a not in newest]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", built_in())
def test_the_plans_of_a_recipe_are_those_that_were_reviewed(name):
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("REWARDKIT_GOLDEN") == "write":
        file.write_text(golden(name))
    assert golden(name) == file.read_text()


@every("verl", ALL)
@every("name", built_in())
def test_a_plan_has_only_keys_that_its_release_lists_or_reads(name, verl):
    plan = built_in_plan(name, verl)
    for argument in plan.arguments:
        key = argument.partition("=")[0]
        if key.startswith("--") or key == "model_engine":
            continue
        plain = key.lstrip("+")
        assert not plan.release.ignored(plain)
        lists = plan.release.accepts_unlisted if key != plain else plan.release.lists
        assert lists(plain), key


@every("verl", known_releases())
@every("name", built_in())
def test_what_a_plan_leaves_out_is_what_the_release_does_anyway(name, verl):
    """The settings of a reference model that is not loaded are the only ones that are lost."""
    plan = built_in_plan(name, verl)
    switches = ("actor_rollout_ref.actor.use_kl_loss", "algorithm.use_kl_in_reward")
    reads_reference = any(map(plan.get, switches))
    dropped = {to_latest_key(note.key) for note in plan.notes if note.kind == "dropped"}
    for key, value in plan.settings.items():
        if key in dropped or str(value).startswith("${") or plan.release.dapo_recipe:
            continue
        if reads_reference or not key.startswith("actor_rollout_ref.ref."):
            assert plan.get(key) == value, key


A, R = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
DEFAULT = f"{A}.kl_loss_type=low_var_kl"
FUNCTION = "reward.custom_reward_function"
COMPILE = "fsdp_config.use_torch_compile=False"
OVERLONG = "dapo.overlong_buffer.len=512"
SAMPLING = "algorithm=dapo dapo.dynamic_sampling.max_num_gen_batches=5"
BUFFER = "+reward.reward_kwargs.overlong_buffer_cfg"
OLD_BUCKET = f"{R}.update_weights_bucket_megabytes=4096"
NEW_BUCKET = f"{R}.checkpoint_engine.update_weights_bucket_megabytes=4096"


@every(("verl", "fields", "overrides", "has", "lacks"), [
    # A setting of ours that the release has by default is not passed; one that somebody wrote is.
    ("0.9", "devices=npu", "", f"actor_rollout_ref.ref.{COMPILE}", "kl_loss_type entropy_coeff"),
    ("0.9", "devices=npu algorithm=dapo", "", "", "actor_rollout_ref.ref.fsdp"),
    ("0.9", "", "data.shuffle=True", "data.shuffle=True", ""),
    ("0.9", "verl.data.shuffle=True", "", "data.shuffle=True", ""),
    ("0.9", "", "algorithm.use_kl_in_reward=False", "algorithm.use_kl_in_reward=False", ""),
    # The algorithm, the size and the reward function are always named.
    ("0.9", "algorithm=ppo reward.scorer=gsm8k", "",
     f"algorithm.adv_estimator=gae trainer.nnodes=1 trainer.n_gpus_per_node=8 {FUNCTION}.name=compute_score", ""),
    # Other defaults may apply in an unknown release, and in AscendFactory.
    ("1.2", "", "", DEFAULT, ""),
    ("0.9", "cluster.target=modelarts cluster.model_name=qwen3-8b", "", DEFAULT, ""),
    # Each release gets the names that it reads.
    ("0.9", "", "custom_reward_function.path=/r/mine.py reward_model.reward_manager=gdpo",
     f"{FUNCTION}.path=/r/mine.py reward.reward_manager.name=gdpo", "^custom_reward ^reward_model"),
    ("0.9", f"algorithm=dapo {OVERLONG}", "",
     f"{BUFFER}.len=512 {BUFFER}.log=False +reward.reward_kwargs.max_resp_len=${{data.max_response_length}}", ""),
    ("0.8", f"{SAMPLING} {OVERLONG}", "", "reward_model.overlong_buffer.len=512", ""),
    ("0.8", SAMPLING, "", "algorithm.filter_groups.max_num_gen_batches=5", ""),
    ("0.7", "devices=npu", "", f"{A}.use_torch_compile=False", ""),
    ("0.9", "verl.reward.reward_manager.name=rate_limited verl.reward.max_concurrent=8", "",
     "+reward.max_concurrent=8", ""),
    # Nothing of DAPO is left where the algorithm becomes GRPO.
    ("0.8", f"{SAMPLING} {OVERLONG} algorithm=grpo", "", f"{A}.use_kl_loss=True",
     "clip_ratio overlong filter_groups gen_batch_size"),
    # Megatron is selected by the option of each release; 0.7.1 has model_engine=dp, torchtitan, veomni.
    ("0.7.1", "strategy=megatron", "", "--config-name=ppo_megatron_trainer.yaml", "model_engine"),
    *((verl, "strategy=megatron", "", "model_engine=megatron", "--config-name")
      for verl in ("0.8.0", "0.9", "0.10.0.dev0")),
    # The command line wins, and what is Hydra's own is passed unchanged.
    ("0.9", "verl.data.train_batch_size=16", "data.train_batch_size=8",
     "data.train_batch_size=8", "train_batch_size=16"),
    ("0.9", "", "+data.train_batchsize=8", "+data.train_batchsize=8", ""),
    *(("0.9", "", f"trainer.logger={'[' * depth}{']' * depth}", "", "none") for depth in (30, 3000)),
    ("0.9", "", "hydra.run.dir=/tmp/x ~trainer.logger", "hydra.run.dir=/tmp/x ~trainer.logger", ""),
    # A key that a release removed is planned for a snapshot that still has it.
    ("main", "strategy=megatron", f"{A}.megatron.grad_offload=True",
     f"{A}.megatron.grad_offload=True", ""),
])  # fmt: skip
def test_a_plan_passes_what_its_release_needs(words, verl, fields, overrides, has, lacks):
    arguments = words(verl, fields, *overrides.split()).arguments
    assert {*has.split()} <= {*arguments}
    lines = "\n".join(["", *(argument.lstrip("+") for argument in arguments)])
    assert [word for word in lacks.split() if word.replace("^", "\n") in lines] == []


@every(("verl", "override", "expected"), [
    ("0.9", "critic.model.fsdp_config.param_offload=True", "critic.fsdp.param_offload=True"),
    ("0.9", "critic.forward_max_token_len_per_gpu=65536",
     "+critic.ppo_infer_max_token_len_per_gpu=65536"),
    ("0.9", OLD_BUCKET, NEW_BUCKET),
    ("0.9", f"{A}.grad_clip=0.5", f"{A}.optim.clip_grad=0.5"),
])  # fmt: skip
def test_a_renamed_key_is_translated_and_a_note_names_the_old_key(words, verl, override, expected):
    result = words(verl, "algorithm=ppo", override)
    assert expected in result.arguments
    assert [n.key for n in result.notes if n.kind == "renamed"] == [override.partition("=")[0]]


@every(("verl", "fields", "override", "kind", "key", "text"), [
    ("0.9", SAMPLING, "", "dropped", "algorithm.filter_groups.max_num_gen_batches", ""),
    ("0.8", SAMPLING, "", "hint", DAPO_RECIPE, "not in the wheel"),
    ("0.8", SAMPLING, "reward.reward_kwargs.max_resp_len=9", "dropped",
     "reward.reward_kwargs.max_resp_len", "sets it itself"),
    ("0.9", "", f"{R}.mode=sync", "dropped", f"{R}.mode", "asynchronous"),
    ("0.9", "", "+trainer.save_frq=5", "hint", "trainer.save_frq", "Did you mean"),
    ("1.2", "", "", "hint", "verl 1.2", f"newer than the releases we know: planned as {LATEST}"),
    ("0.9.1", "strategy=megatron", f"{A}.megatron.grad_offload=True", "dropped",
     f"{A}.megatron.grad_offload", "removed: param_offload releases the gradients too"),
    ("0.9", "reward.scorer=gsm8k reward.options.method=robust", f"{FUNCTION}.path=/r/mine.py",
     "hint", f"{FUNCTION}.path", "replaces the recipe's reward.scorer, gsm8k"),
    *((verl, "", "", "hint", f"verl {verl}", "an unreleased snapshot, older than verl 0.9.1 (2026-09-20).")
      for verl in ("main", "0.10", "0.10.0.dev0")),
])  # fmt: skip
def test_a_note_says_what_is_not_as_it_is_written(words, verl, fields, override, kind, key, text):
    result = words(verl, fields, *override.split())
    (note,) = [n for n in result.notes if (n.kind, n.key) == (kind, key)]
    assert text in note.text
    if kind == "dropped":
        assert not any(key in argument for argument in result.arguments)


@every(("verl", "fields"), [
    ("0.9", "devices=npu strategy=megatron"),
    ("0.9", ""),
    *(("0.9", f"verl.{FUNCTION}.path=/r/mine.py verl.{FUNCTION}.name=judge {scorer}")
      for scorer in ("reward.scorer=/r/mine.py:judge", "reward.scorer=verl", "")),
])  # fmt: skip
def test_a_plan_of_which_nothing_is_renamed_or_dropped_has_no_note(words, verl, fields):
    """A recipe may name one reward function twice, or by verl's key alone."""
    result = words(verl, fields)
    assert result.notes == ()
    if "judge" in fields:
        assert result.recipe.reward.scorer == "/r/mine.py:judge"
        assert f"{FUNCTION}.path=/r/mine.py" in result.arguments


GSM8K = "reward.scorer=gsm8k reward.options.method=robust"
OTHER = "a run has one reward function"


@every(("verl", "fields", "override", "message"), [
    ("0.9", "", "model_engine=megatron", "set strategy: megatron in the recipe"),
    ("0.9", "", f"{A}.strategy=megatron", "--set strategy=megatron"),
    ("0.9", "strategy=megatron", "model_engine=dp", "model_engine=dp alone changes no other"),
    ("0.9", "", "model_engine=veomni", "model_engine=veomni: rewardkit plans for FSDP and Megatron only"),
    ("0.9", "", f"{A}.veomni.param_offload=True", "is a setting of veomni in verl 0.9.1, and rew"),
    ("0.9", "", "algorithm=dapo", "algorithm is a field of the recipe: --set algorithm=dapo"),
    ("0.9", "", "trainer=5", "trainer is a section of verl"),
    ("0.9", "", "reward_manager.nam=naive", "has no key 'reward_manager.nam'"),
    ("0.9", "", "data.train_batchsize=8", "Did you mean 'data.train_batch_size'"),
    ("0.9", "", f"{A}.optim.lr='1e-6'", "is text, but verl 0.9.1 has 1e-06 there"),
    ("0.9", "", f"{A}.grad_clip=wide", f"line: {A}.grad_clip='wide'"),
    ("0.9", "", "data.shuffle=on", "'on' is text, but verl 0.9.1 has True there"),
    ("0.9", "", "--trainer.save_freq=5", "without the dashes"),
    ("0.9", "", "trainer.logger=[a", "a bracket is missing"),
    *(("0.9", "", text, "is not an override") for text in ("data.x", "=1", "+", "+~a=1", "a b")),
    *((verl, f"{GSM8K} verl.{key}.path=/r/mine.py", "", f"{key}.path=/r/mine.py, but reward.scorer is gsm8k")
      for verl in ("0.7.1", "0.9") for key in ("custom_reward_function", FUNCTION)),
    ("0.9", f"{GSM8K} verl.{FUNCTION}.reward_kwargs.method=strict", "", OTHER),
    ("0.9", f"reward.options.method=robust verl.{FUNCTION}.path=/r/mine.py", "", OTHER),
    ("0.9", "reward.scorer=verl reward.record=/x", "", "verl's own scorers record nothing and"),
    ("0.9", "reward.scorer=gsm8k reward.record=rewards cluster.target=ray-job", "",
     "reward.record: rewards is relative"),
    *((verl, "", "", f"verl {verl}: plans start at verl 0.7.1. For older releases use rewardkit 0.1.0.")
      for verl in ("0.5", "0.6.1", "0.7.0")),
])  # fmt: skip
def test_what_would_not_work_is_refused_with_a_remedy(words, verl, fields, override, message):
    with pytest.raises(UsageError) as error:
        words(verl, fields, *([override] if override else ()))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plan_exports_only_what_verl_does_not_set_itself(words):
    assert words("0.9").env == {"HYDRA_FULL_ERROR": "1", "PYTHONUNBUFFERED": "1"}
    npu = words("0.7.1", "devices=npu").env
    assert not any("VLLM" in name or "PORT_RANGE" in name for name in npu)
    assert (npu["HCCL_CONNECT_TIMEOUT"], npu["TASK_QUEUE_ENABLE"]) == ("3600", "1")
    eager = words("0.9", "devices=npu", f"{R}.enforce_eager=True")
    assert eager.env["TASK_QUEUE_ENABLE"] == "2"


def test_the_folder_of_records_is_absolute_in_the_command(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = words("0.9", "reward.scorer=gsm8k reward.record=rewards")
    assert f"+{FUNCTION}.reward_kwargs.record={tmp_path}/rewards" in result.arguments


def test_an_override_by_verl_s_name_changes_the_field_of_the_recipe(words):
    overrides = (
        "trainer.nnodes=2 actor_rollout_ref.model.path=/m/new data.train_files=[a.parquet,b.parquet] "
        "custom_reward_function.path=/r/mine.py custom_reward_function.name=judge"
    )
    recipe = f"algorithm=ppo {GSM8K} verl.{FUNCTION}.path=/r/old.py"
    result = words("0.9", recipe, *overrides.split())
    assert (result.recipe.nodes, result.recipe.model) == (2, "/m/new")
    assert result.recipe.data.train == ["a.parquet", "b.parquet"]
    assert result.recipe.reward.scorer == "/r/mine.py:judge"
    assert {"critic.model.path=/m/new", f"{FUNCTION}.name=judge"} <= {*result.arguments}
    assert not any("method" in argument for argument in result.arguments)


NEAREST = {"0.9.1": "0.9 0.9.2.dev1", "0.7.1": "0.7", LATEST: "1.2 0.10.1"}
NEAREST["0.10.0.dev0"] = "main 0.10 0.10.0 0.10.0.dev 0.10.0.dev0+g1dda039 v0.10.0rc1"


def test_a_release_is_planned_as_the_nearest_known_one_and_a_snapshot_only_as_its_number():
    for known, versions in NEAREST.items():
        for verl in versions.split():
            assert nearest(verl) == known, verl
    assert known_releases()[-1] == LATEST
    assert not {*known_releases()} & {*snapshots()}
    assert release_of(LATEST).commit == ""


def test_a_snapshot_that_is_newer_than_every_release_is_not_called_older(words, monkeypatch):
    monkeypatch.setattr(releases, "LATEST", "0.8.0")
    assert "an unreleased snapshot. main may have changed" in str(words("main").notes)


def test_main_is_refused_where_there_is_no_snapshot_of_it(words, release_folder):
    (release_folder / "0.10.0.dev0.json").unlink()
    with pytest.raises(UsageError, match=r"no snapshot of verl's main is known; name a release"):
        words("main")
    assert words("0.10").verl == LATEST


def test_a_renamed_key_survives_the_round_trip_through_every_release():
    for move in renames():
        for name in (move.new, move.old) if move.old else (move.new,):
            end = "x" if name.endswith(".") else ""
            new = to_latest_key(name + end)
            assert new == move.new + end
            for verl in ALL:
                assert to_latest_key(release_of(verl).name_of(new)) == new


AWKWARD = ["['console','wandb']", "a b", "$HOME", "`x`", "it's", '"q"', "中文/路径", "a;b", "*"]


def test_a_shell_passes_the_printed_command_s_arguments_unchanged(words, tmp_path):
    result = words("0.9", "", *(f"+data.odd{i}={text}" for i, text in enumerate(AWKWARD)))
    stub = tmp_path / "python3"
    stub.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    stub.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "-c", result.shell_command()]
    output = subprocess.check_output(command, env={**os.environ, **path}, text=True)
    assert json.loads(output) == result.command()[1:]


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
    caches = (releases.release_of, to_latest_key, releases._latest_names)
    for cache in caches:
        cache.cache_clear()
    yield folder
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def fictional_release(release_folder, monkeypatch):
    """Add a verl 0.10.0 as docs/how-to/new-verl-release.md does: one key is new, one renamed."""
    new, old = "trainer.validation.before_train", "trainer.val_before_train"
    newest = json.loads((release_folder / f"{LATEST}.json").read_text())
    newest["fsdp"][new] = newest["fsdp"].pop(old)
    newest["fsdp"][f"{R}.prefix_cache_gb"] = 4
    (release_folder / "0.10.0.json").write_text(json.dumps(newest | {"verl": "0.10.0"}))
    table = (releases.KeyRename(new=new, old=old, since=(0, 10, 0)), *renames())
    monkeypatch.setattr(releases, "renames", lambda: table)


@pytest.mark.usefixtures("fictional_release")
def test_a_new_release_needs_a_file_of_keys_and_an_entry_for_each_renamed_key(words):
    """A recipe and a rule may use the old name of a key or the new one."""
    assert (nearest("0.10"), nearest("0.10.0.dev0")) == ("0.10.0", "0.10.0")
    names = ("trainer.val_before_train", "trainer.validation.before_train")
    for name in names:
        for verl, own in zip((LATEST, "0.10"), names, strict=True):
            result = words(verl, "", f"{name}=False")
            assert f"{own}=False" in result.arguments
            assert [result.get(each) for each in names] == [False, False]
    override = f"{R}.prefix_cache_gb=8"
    assert override in words("0.10", "", override).arguments
    assert "(verl 0.10.0 has)" in str(words(LATEST, "", override).notes)


def test_what_runs_on_this_machine_gets_the_scorer_s_file_on_this_machine(words, tmp_path):
    """A target that copies a file names it by its place on the nodes."""
    (tmp_path / "mine.py").write_text("def compute_score(*args): return 1.0\n")
    own = words("0.9", f"cluster.target=ray-job reward.scorer={tmp_path}/mine.py:compute_score")
    assert f"{FUNCTION}.path=reward.py" in own.arguments
    assert f"{FUNCTION}.path={tmp_path}/mine.py" in own.local_arguments()
    ours = words("0.9", "cluster.target=ray-job reward.scorer=gsm8k")
    assert ours.local_arguments() == list(ours.arguments)


KEYS, WEIGHTS = "algorithm.gdpo_reward_keys", "algorithm.gdpo_reward_weights"


@every(("verl", "more", "has", "lacks"), [
    ("0.9.1", "", f"+{KEYS}=[correct,format] +{WEIGHTS}=[1.0,0.1] trainer.use_v1=False", "none"),
    ("0.8.0", "", f"+{KEYS}=[correct,format]", "use_v1"),
    ("0.9.1", f"verl.{KEYS}=[correct,base]", f"+{KEYS}=[correct,base]", WEIGHTS),
])  # fmt: skip
def test_gdpo_has_the_keys_and_weights_of_the_reward(words, tmp_path, verl, more, has, lacks):
    parts = "scorer: gsm8k\nparts: {correct: 1.0, format: {weight: 0.1}, repetition: 0}\n"
    (tmp_path / "reward.yaml").write_text(parts)
    file = tmp_path / "reward.py"
    file.unlink(missing_ok=True)
    write_reward_file(tmp_path / "reward.yaml", file)
    plan = words(verl, f"algorithm=gdpo reward.scorer={file}:compute_score {more}")
    assert {*has.split()} <= {*plan.arguments}
    assert lacks not in " ".join(plan.arguments)
    assert plan.notes == ()


def test_no_legacy_key_of_the_reward_is_passed_to_a_release_that_ignores_it(words):
    """verl 0.9 composes with reward_model.*, custom_reward_function.* and sandbox_fusion.*."""
    sections = ("reward_model.", "custom_reward_function.", "sandbox_fusion.")
    keys = [key for key in release_of("0.9.1").keys if key.startswith(sections)]
    assert len(keys) > 20
    for key in keys:
        value = "/x.py" if key == "custom_reward_function.path" else 1
        plan = words("0.9.1", "reward.scorer=verl", f"{key}={value}")
        assert not any(a.lstrip("+").startswith(sections) for a in plan.arguments), key
        assert {note.kind for note in plan.notes if note.key == key} & {"renamed", "dropped"}, key
