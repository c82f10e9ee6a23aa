"""Real verl reads our rows with pictures through the processor of the tiny vision model."""

from __future__ import annotations

import struct
import sys
import zlib

import pytest

import rewardkit
from rewardkit.errors import DataError
from rewardkit.launch.rehearsal.engines import HOOKS_FOLDER, VISION_NEEDS
from rewardkit.launch.rehearsal.pictures import read_pictures, tokens_of
from rewardkit.launch.rehearsal.tiny_vision_model import IMAGE, VISION_START, write_vision_model
from rewardkit.row import build_row, read_rows, write_rows
from tests.integration.conftest import VERL, is_installed

MISSING = [package for package in VISION_NEEDS if not is_installed(package)]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; make rehearse-{VERL}"
)

#: The most tokens of a picture.
LIMIT = 256


@pytest.fixture(scope="module", autouse=True)
def torchvision():
    """Import torchvision's build for CUDA as a rehearsal does."""
    sys.path.insert(0, str(HOOKS_FOLDER))
    try:
        from cpu_patches import declare_operators
    finally:
        sys.path.remove(str(HOOKS_FOLDER))
    from torch import ops

    if not hasattr(ops.torchvision, "nms"):
        declare_operators(None)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_vision_model(folder, positions=2048, pixels=LIMIT * 28 * 28)
    return str(folder)


@pytest.fixture(scope="module")
def processor(model):
    from verl.utils import hf_processor

    return hf_processor(model)


@pytest.mark.parametrize("size", [(300, 200), (180, 120), (10, 10), (29, 250), (900, 1300)])
def test_tokens_of_a_picture_are_those_of_the_real_processor(processor, size):
    from PIL import Image
    from qwen_vl_utils import fetch_image

    picture = fetch_image({"image": Image.new("RGB", size)})
    content = [{"type": "image"}, {"type": "text", "text": "What is $x$? é"}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    ids = processor(text=[text], images=[picture])["input_ids"][0]
    assert list(ids).count(IMAGE) == tokens_of(*size, LIMIT)


def test_the_tiny_model_loads_whole_and_answers_a_picture_with_text(model, processor):
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText

    tiny, info = AutoModelForImageTextToText.from_pretrained(model, output_loading_info=True)
    assert not any(info.values())
    text = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>x?<|im_end|>\n"
    inputs = processor(
        text=[text] * 4, images=[Image.new("RGB", (90, 60))] * 4, return_tensors="pt"
    )
    torch.manual_seed(1)
    with torch.no_grad():
        out = tiny.generate(**inputs, max_new_tokens=64, do_sample=True)
    assert out[:, inputs["input_ids"].shape[1] :].max() < VISION_START


def test_verl_gives_our_pictures_to_its_model(model, processor, tmp_path, load, v9):
    """verl 0.5 cannot read a picture's bytes: `datasets` has to decode them."""
    rewardkit.prep("geometry3k", tmp_path / "g.parquet", sample=True, split="train")
    rows = list(load(tmp_path / "g.parquet", processor=processor))
    assert len(rows) == 11
    if v9:
        contents = [row["raw_prompt"][-1]["content"] for row in rows]
        assert all(content[0]["image"].size == (180, 120) for content in contents)
    else:
        assert all((row["input_ids"] == IMAGE).sum() == 24 for row in rows)
        assert all(row["position_ids"].shape[0] == 3 for row in rows)
        assert all("pixel_values" in row["multi_modal_inputs"] for row in rows)


@pytest.mark.parametrize("name", ["math-v", "mathvista", "multimodal-open-r1"])
def test_verl_reads_one_picture_in_every_row_of_a_set(model, processor, tmp_path, load, v9, name):
    """A row's text has verl's mark once; `<image2>`, the name of a figure, stays text."""
    rewardkit.prep(name, tmp_path, sample=True, split="all")
    for file in sorted(tmp_path.glob("*.parquet")):
        ours, rows = list(read_rows(file)), list(load(file, processor=processor))
        assert len(rows) == len(ours) > 4
        for row, our in zip(rows, ours, strict=True):
            assert row["reward_model"]["ground_truth"] == our["reward_model"]["ground_truth"]
            before, after = our["prompt"][-1]["content"].split("<image>")
            if v9:
                parts = row["raw_prompt"][-1]["content"]
                assert [part["type"] for part in parts] == ["text"] * bool(before) + [
                    "image",
                    "text",
                ]
                assert parts[-1]["text"] == after
            else:
                assert (row["input_ids"] == IMAGE).sum() >= 24
                assert len(row["multi_modal_data"]["image"]) == 1


def png(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    pixels = zlib.compress((b"\0" + b"\xff" * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def write_pictures(file, *pictures):
    rows = [
        build_row(
            data_source="test",
            prompt=[{"role": "user", "content": "<image>x?"}],
            ability="math",
            ground_truth="1",
            index=i,
            split="train",
            source_id="",
            question="x?",
            answer="",
            scorer="",
            images=[picture],
        )
        for i, picture in enumerate(pictures)
    ]
    write_rows(rows, file, {})
    return file


def test_sizes_of_pictures_are_read_and_a_broken_one_is_named(tmp_path):
    file = write_pictures(tmp_path / "a.parquet", png(300, 200), png(56, 28))
    pictures = read_pictures(sys.executable, [file], "images", 1024)
    assert pictures.rows == (((300, 200),), ((56, 28),))
    broken = write_pictures(tmp_path / "b.parquet", png(9, 9), b"no picture")
    with pytest.raises(DataError, match=r"row 1 of .*b.parquet: cannot identify image file"):
        read_pictures(sys.executable, [broken], "images", 1024)
