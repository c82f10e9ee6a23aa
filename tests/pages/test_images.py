"""A page holds images of known types within limits, and nothing else."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks import check_page
from rewardkit.checks.check_page import MAX_IMAGES, rows_section
from rewardkit.pages.html import to_html
from rewardkit.pages.images import MAX_IMAGE_BYTES, media_type, page_address
from rewardkit.pages.model import Page, Rows

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
STARTS = {
    "png": PNG,
    "jpeg": b"\xff\xd8\xff\xe0",
    "gif": b"GIF89a",
    "webp": b"RIFF\x10\0\0\0WEBPVP8 ",
}


def row(*images, prompt="q", gold="1"):
    return {
        "prompt": [{"role": "user", "content": prompt}],
        "reward_model": {"ground_truth": gold},
        "images": [{"bytes": data, "path": None} for data in images],
    }


def page_of(*rows):
    return to_html(Page("t", (), (rows_section(rows, "First rows"),)))


@pytest.mark.parametrize(("kind", "start"), STARTS.items())
def test_the_type_of_an_image_is_read_from_its_bytes(kind, start):
    assert media_type(start) == f"image/{kind}"
    address = page_address(start)
    assert address.startswith(f"data:image/{kind};base64,")
    assert b64decode(address.partition(",")[2]) == start


@pytest.mark.parametrize(
    "data", [b"", b"<svg onload='alert(1)'/>", b"RIFF\0\0\0\0WAVE", PNG + b"\0" * MAX_IMAGE_BYTES]
)
def test_other_files_and_large_ones_are_left_out_and_counted(data):
    assert page_address(data) is None
    html = page_of(row(data))
    assert "<img" not in html
    assert "Images left out: 1" in html


@given(st.binary(max_size=40))
def test_an_address_has_no_character_that_could_leave_its_attribute(data):
    address = page_address(b"\xff\xd8\xff" + data)
    assert not set(address) & set("\"'<>& \n")


def test_only_a_page_with_images_may_load_them():
    assert "img-src data:;" in page_of(row(PNG))
    assert "img-src" not in page_of(row())
    assert "img-src" not in page_of(row(b"<svg/>"))


def test_images_have_names_and_limits(monkeypatch):
    html = page_of(*(row(*[PNG] * (MAX_IMAGES + 1)) for _ in range(2)))
    assert html.count("<img") == 2 * MAX_IMAGES
    assert f'alt="Image 1 of {MAX_IMAGES}, row 1"' in html
    assert "Images left out: 2" in html
    monkeypatch.setattr(check_page, "MAX_PAGE_IMAGE_BYTES", 2 * len(PNG))
    assert page_of(*(row(PNG) for _ in range(5))).count("<img") == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"prompt": "text", "reward_model": None, "images": "no"},
        {"prompt": [None, 3], "reward_model": {"ground_truth": 5}, "images": [None, b"x", {}]},
        {"prompt": [{"role": 1}, {"content": ["x"]}], "reward_model": "x"},
    ],
)
def test_a_row_of_any_shape_is_shown(bad):
    assert isinstance(rows_section([bad], "t"), Rows)
    assert "row 0" in page_of(bad)
