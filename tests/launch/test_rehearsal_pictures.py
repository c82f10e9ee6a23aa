"""The parts of a rehearsal for rows with pictures that need neither verl nor Pillow."""

from __future__ import annotations

import gc
import importlib.util
import json
import struct
import subprocess
import sys
from array import array
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit.cli.train import _print_rehearsal
from rewardkit.errors import DataError, UsageError
from rewardkit.launch.rehearsal.engines import ENGINES, HOOKS_FOLDER, require_vision
from rewardkit.launch.rehearsal.picture_check import check_pictures
from rewardkit.launch.rehearsal.pictures import PictureSample, read_pictures, tokens_of
from rewardkit.launch.rehearsal.rehearsal_scale import choose_scale
from rewardkit.launch.rehearsal.rehearse import Rehearsal
from rewardkit.launch.rehearsal.row_sample import Columns, take_sample
from rewardkit.launch.rehearsal.scale_down import is_qwen2_vl, notes
from rewardkit.launch.rehearsal.tiny_model import HIDDEN
from rewardkit.launch.rehearsal.tiny_vision_model import VISION_START, write_vision_model
from rewardkit.launch.verl.releases import release_of

HF, VLLM = ENGINES
MODEL = "actor_rollout_ref.model.path"


def tensors(file):
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: array("f", body[slice(*tensor["data_offsets"])])
        for name, tensor in header.items()
        if name != "__metadata__"
    }


def test_the_vision_model_never_samples_a_mark_of_a_picture(tmp_path):
    """The constant dimension is positive for text and pictures, and forbids the marks alone."""
    write_vision_model(tmp_path, positions=128, pixels=784 * 64)
    weights = tensors(tmp_path / "model.safetensors")
    head = weights["lm_head.weight"][::HIDDEN]
    assert set(head[:VISION_START]) == {0.0}
    assert set(head[VISION_START:]) == {-10.0}
    assert len(head) == json.loads((tmp_path / "config.json").read_text())["vocab_size"]
    assert set(weights["model.embed_tokens.weight"][::HIDDEN]) == {1.0}
    assert weights["visual.merger.mlp.2.bias"][0] == 1.0


def test_the_processor_has_the_limit_of_pixels_and_the_marks_of_its_tokenizer(tmp_path):
    write_vision_model(tmp_path, positions=128, pixels=784 * 64)
    processor = json.loads((tmp_path / "preprocessor_config.json").read_text())
    assert (processor["max_pixels"], processor["patch_size"]) == (784 * 64, 14)
    added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    numbers = {token["content"]: token["id"] for token in added}
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["image_token_id"] == numbers["<|image_pad|>"]
    assert config["vision_start_token_id"] == numbers["<|vision_start|>"]


SIZES = {(300, 200): 77, (180, 120): 24, (10, 10): 4, (28, 28): 4, (1000, 1000): 1296}


@pytest.mark.parametrize("size", SIZES)
def test_a_picture_has_as_many_tokens_as_its_squares_of_28_pixels(size):
    assert tokens_of(*size, 16384) == SIZES[size]


@given(st.integers(1, 9000), st.integers(1, 9000), st.integers(16, 1024))
def test_no_picture_has_more_tokens_than_the_limit(width, height, limit):
    if max(width, height) <= 8 * min(width, height):  # others are not pictures of problems
        assert 4 <= tokens_of(width, height, limit) <= limit


def sample(*rows, tokens=1024, max_prompt=1024):
    return PictureSample(tuple(rows), tokens, max_prompt)


def test_tokens_of_a_row_are_those_of_all_its_pictures():
    pictures = sample(((180, 120), (300, 200)), (), ((4000, 3000),))
    assert pictures.planned[:2] == (24 + 77, 0)
    assert pictures.rehearsed[2] <= 1024 < pictures.planned[2]
    assert pictures.is_scaled
    assert pictures.longest == pictures.rehearsed[2] + 2 * 2
    assert not sample(((180, 120),)).is_scaled


def answering(tmp_path, answer):
    """Make a program that answers as `measure_pictures.py` would."""
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat {tmp_path / 'answer.json'}\n")
    program.chmod(0o755)
    return str(program)


def test_rows_with_several_pictures_have_smaller_ones(tmp_path):
    python = answering(tmp_path, [[[180, 120]] * 6, []])
    pictures = read_pictures(python, [tmp_path / "x.parquet"], "images", 1024)
    assert (pictures.picture_tokens, pictures.pixels) == (512, 512 * 784)
    with pytest.raises(UsageError, match="a row has 900 pictures"):
        read_pictures(answering(tmp_path, [[[9, 9]] * 900]), [tmp_path], "images", 1024)


def test_a_picture_that_cannot_be_opened_is_an_error_that_names_its_row(tmp_path):
    python = answering(tmp_path, {"error": "row 3 of x.parquet: cannot identify image file"})
    with pytest.raises(DataError, match=r"images: .*row 3 of x.parquet: cannot identify image"):
        read_pictures(python, [tmp_path / "x.parquet"], "images", 1024)


def write(path, **columns):
    rows = [{"prompt": [{"role": "user", "content": "<image>x?"}], **columns}]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return [str(path)]


def test_a_sample_says_whether_its_rows_have_pictures(tmp_path):
    picture = {"bytes": b"x", "path": None}
    for value, has_pictures in (([picture], True), ([], False), (None, False)):
        names = write(tmp_path / "a.parquet", figures=value)
        columns = Columns(pictures="figures")
        assert take_sample(names, tmp_path, "train", 4, columns).has_pictures is has_pictures
        assert not take_sample(names, tmp_path, "train", 4, Columns()).has_pictures


def test_rows_with_videos_are_refused(tmp_path):
    names = write(tmp_path / "a.parquet", videos=[{"video": "x.mp4"}])
    with pytest.raises(UsageError, match=r"a.parquet: rows with videos .* cannot be rehearsed"):
        take_sample(names, tmp_path, "train", 4, Columns())


CONFIG = {
    "data.train_batch_size": 8,
    "data.max_response_length": 64,
    "actor_rollout_ref.rollout.n": 2,
    "actor_rollout_ref.rollout.val_kwargs.n": 1,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 8,
}


def test_a_prompt_has_room_for_its_pictures_and_is_never_cut():
    scale = choose_scale(CONFIG, 8, 300, 2, pictures=1026)
    assert (scale.prompt, scale.is_cut) == (1344, False)
    with pytest.raises(UsageError, match=r"has 5,000 bytes; a rehearsal takes at most 4,096"):
        choose_scale(CONFIG, 8, 5000, 2, pictures=100)


def test_packages_for_pictures_are_named_if_they_are_missing():
    whole = {"pillow": "13", "qwen-vl-utils": "0.0.14", "torchvision": "0.28.0"}
    require_vision(VLLM, {**whole, "transformers": "5.10.4"})
    require_vision(HF, {**whole, "transformers": "4.52.4"})
    with pytest.raises(UsageError, match=r"pip install qwen-vl-utils torchvision==0.28.0"):
        require_vision(HF, {"pillow": "13", "transformers": "4.52.4"})
    with pytest.raises(UsageError, match=r"refuses Qwen2.5-VL with transformers 4.53.3: pip"):
        require_vision(HF, {**whole, "transformers": "4.53.3"})


@pytest.mark.parametrize("name", ["/m/Qwen2.5-VL-32B-Instruct/", "Qwen/Qwen2-VL-7B", "qwen2_5-vl"])
def test_the_families_with_these_tokens_of_pictures_are_known_by_name(name):
    assert is_qwen2_vl({MODEL: name}) is ("qwen2_5" not in name)
    assert not is_qwen2_vl({MODEL: "Qwen/Qwen3-VL-8B"})


def test_differences_of_a_vision_rehearsal_are_listed():
    scale, release = choose_scale(CONFIG, 8, 300, 2, pictures=100), release_of("0.9.1")
    large, small = sample(((4000, 3000),)), sample(((180, 120),))
    own, other = {MODEL: "Qwen/Qwen2.5-VL-7B"}, {MODEL: "OpenGVLab/InternVL3-8B"}
    assert notes(own, scale, release, uses_recipe=False, pictures=small) == ()
    (scaled,) = notes(own, scale, release, uses_recipe=False, pictures=large)
    assert "1,024 tokens" in scaled
    (family,) = notes(other, scale, release, uses_recipe=False, pictures=small)
    assert "Qwen2.5-VL stands in" in family


def record(tmp_path, *lines):
    file = tmp_path / "pictures.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_pictures_that_reach_no_model_or_do_not_fit_the_plan_fail_their_check(tmp_path):
    actor = {"part": "actor", "tokens": [24, 24]}
    rollout = {"part": "rollout", "tokens": [24]}
    pictures = sample(((180, 120),), ())
    ok, detail = check_pictures(pictures, record(tmp_path, actor, rollout, actor))
    assert ok
    assert detail.startswith("1 of 2 rows have pictures, with up to 24 tokens of data.max_prompt")
    assert detail.endswith("the actor got 4, the rollout got 1")
    assert check_pictures(pictures, tmp_path / "none.jsonl")[0] is False
    assert check_pictures(pictures, record(tmp_path, rollout))[0] is False
    ok, detail = check_pictures(sample(((180, 120),), max_prompt=24), record(tmp_path, actor))
    assert (ok, "data.max_prompt_length is 24" in detail) == (False, True)
    assert check_pictures(sample(((180, 120),), max_prompt=0), record(tmp_path, actor))[0]


def test_the_first_line_says_that_a_rehearsal_is_not_as_planned(tmp_path, capsys):
    def lines(**changes):
        rehearsal = Rehearsal(
            verl="0.9.1",
            steps=2,
            seconds=78.4,
            checks=(),
            rewards=(),
            calls=(),
            folder=tmp_path,
            **changes,
        )
        _print_rehearsal(rehearsal)
        return capsys.readouterr().out.splitlines()

    assert lines() == [f"verl 0.9.1, 2 steps in 78 s: {tmp_path}"]
    first, *rest = lines(notes=("other pictures",), not_rehearsed=("LoRA",))
    assert first == f"verl 0.9.1, 2 steps in 78 s, not as planned in 2 points: {tmp_path}"
    assert rest == ["not as planned: other pictures", "not rehearsed: LoRA"]


def hook(name):
    spec = importlib.util.spec_from_file_location(name, HOOKS_FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_verl_s_task_runner_runs_in_the_process_that_starts_it(monkeypatch):
    class Runner:
        def run(self, config):
            return [config, "done"]

    trainer = SimpleNamespace(
        TaskRunner=SimpleNamespace(__ray_metadata__=SimpleNamespace(modified_class=Runner))
    )
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(put=tuple))
    hook("rehearsal_train").run_here(trainer)
    assert trainer.TaskRunner.remote().run.remote("config") == ("config", "done")


@pytest.mark.parametrize(("finished", "code"), [("[True]", 0), ("[]", 3)])
def test_a_run_that_has_finished_ends_without_the_clean_up_of_modules(finished, code):
    """A run that raised keeps its exit code."""
    program = (
        f"import atexit, sys; sys.path.insert(0, {str(HOOKS_FOLDER)!r}); import rehearsal_train\n"
        f"atexit.register(rehearsal_train.leave, {finished}); print('written', end=''); sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "written")


def test_forward_passes_record_the_tokens_of_their_pictures(tmp_path, monkeypatch):
    class Qwen2_5_VisionTransformer:  # noqa: N801 - vLLM's name
        spatial_merge_size = 2

        def forward(self, pixels, grid_thw):
            return pixels

    monkeypatch.setenv("REWARDKIT_REHEARSAL_PICTURES", str(tmp_path / "pictures.jsonl"))
    hook("picture_counter").count_rollout(
        SimpleNamespace(Qwen2_5_VisionTransformer=Qwen2_5_VisionTransformer)
    )
    vision = Qwen2_5_VisionTransformer()
    assert vision.forward("pixels", grid_thw=[[1, 4, 6], [1, 14, 22]]) == "pixels"
    line = json.loads((tmp_path / "pictures.jsonl").read_text())
    assert line == {"part": "rollout", "tokens": [6, 77]}


def test_processes_of_a_rehearsal_collect_garbage_less_often():
    """Collections take a fifth of the time in which a process imports verl."""
    command = [sys.executable, "-c", "import gc; print(gc.get_threshold()[0])"]
    env = {"PYTHONPATH": str(HOOKS_FOLDER)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) > gc.get_threshold()[0]


def test_a_file_with_pictures_names_their_type_for_datasets(tmp_path):
    """verl 0.5 reads pictures that `datasets` has decoded; it cannot read their bytes."""
    for name, has_pictures in (("geometry3k", True), ("gsm8k", False)):
        file = tmp_path / f"{name}.parquet"
        rewardkit.prep(name, file, sample=True, split="train")
        metadata = pq.read_schema(file).metadata
        assert (b"huggingface" in metadata) is has_pictures
    features = json.loads(pq.read_schema(tmp_path / "geometry3k.parquet").metadata[b"huggingface"])
    assert features["info"]["features"]["images"]["feature"] == {"_type": "Image"}
