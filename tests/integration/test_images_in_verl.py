"""Real verl reads our rows with images through the processor of the rehearsal's tiny vision model."""

from __future__ import annotations

import sys
from io import BytesIO

import pytest

import rewardkit
from rewardkit.errors import DataError, UsageError
from rewardkit.launch.rehearsal.rehearse import HOOKS_FOLDER
from rewardkit.launch.rehearsal.sample import count_image_tokens, tokens_of
from rewardkit.launch.rehearsal.settings import table
from rewardkit.row import read_rows
from tests.integration.conftest import is_installed

MISSING = [package for package in table("needs_of_images") if not is_installed(package)]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

#: The most tokens of an image in Qwen2.5-VL.
LIMIT = 16384


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The tiny model, with torchvision's build for CUDA imported as a rehearsal does."""
    sys.path.insert(0, str(HOOKS_FOLDER))
    finders = list(sys.meta_path)
    try:
        import sitecustomize  # the finder for torchvision, unless Python has another sitecustomize
        import tiny_model
        import torchvision
    finally:
        sys.path.remove(str(HOOKS_FOLDER))
        sys.meta_path[:] = finders
    assert sitecustomize
    assert torchvision
    folder = tmp_path_factory.mktemp("model")
    tiny_model.write_model(folder, positions=2048, pixels=LIMIT * 28 * 28)
    return str(folder)


@pytest.fixture(scope="module")
def processor(model):
    from verl.utils import hf_processor

    return hf_processor(model)


@pytest.mark.parametrize("size", [(300, 200), (180, 120), (10, 10), (29, 250), (900, 1300)])
def test_tokens_of_an_image_are_those_of_the_real_processor(processor, size):
    from PIL import Image
    from qwen_vl_utils import fetch_image

    image = fetch_image({"image": Image.new("RGB", size)})
    content = [{"type": "image"}, {"type": "text", "text": "What is $x$? é"}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    ids = processor(text=[text], images=[image])["input_ids"][0]
    assert list(ids).count(processor.image_token_id) == tokens_of(*size)


def test_the_tiny_model_answers_an_image_with_text(model, processor):
    """It never samples a mark of an image, for which it would look for another image."""
    import torch
    from PIL import Image
    from transformers import AutoModelForImageTextToText

    tiny = AutoModelForImageTextToText.from_pretrained(model)
    text = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>x?<|im_end|>\n"
    inputs = processor(
        text=[text] * 4, images=[Image.new("RGB", (90, 60))] * 4, return_tensors="pt"
    )
    torch.manual_seed(1)
    with torch.no_grad():
        out = tiny.generate(**inputs, max_new_tokens=64, do_sample=True)
    marks = processor.tokenizer.convert_tokens_to_ids(["<|vision_start|>", "<|image_pad|>"])
    assert not set(out[:, inputs["input_ids"].shape[1] :].flatten().tolist()) & set(marks)


@pytest.mark.parametrize("name", ["geometry3k", "math-v", "mathvista", "multimodal-open-r1"])
def test_verl_reads_one_image_in_every_row_of_a_set(processor, tmp_path, load, name):
    """A row's text has verl's mark once; `<image2>`, the name of a figure, stays text."""
    rewardkit.prep(name, tmp_path, sample=True, split="all")
    for file in sorted(tmp_path.glob("*.parquet")):
        ours, rows = list(read_rows(file)), list(load(file, processor=processor))
        assert len(rows) == len(ours) > 0
        for row, our in zip(rows, ours, strict=True):
            assert row["reward_model"]["ground_truth"] == our["reward_model"]["ground_truth"]
            before, after = our["prompt"][-1]["content"].split("<image>")
            parts = row["raw_prompt"][-1]["content"]
            types = ["text"] * bool(before) + ["image"] + ["text"] * bool(after)
            assert [part["type"] for part in parts] == types
            assert not after or parts[-1]["text"] == after


def png(width, height):
    from PIL import Image

    file = BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()


def test_images_of_a_row_share_the_tokens_of_a_prompt():
    image = {"bytes": png(180, 120)}
    images = count_image_tokens([[image], [], [{"bytes": png(1400, 1400)}]])
    assert images.planned == (24, 0, 2500)
    assert (images.is_scaled, images.limit, images.longest) == (True, 1024, 1026)
    assert count_image_tokens([[image] * 6, []]).limit == 512
    with pytest.raises(UsageError, match="a row has 900 images"):
        count_image_tokens([[image] * 900])
    with pytest.raises(DataError, match="an image of row 1 .* cannot be opened: cannot identify"):
        count_image_tokens([[image], [{"bytes": b"no image"}]])
