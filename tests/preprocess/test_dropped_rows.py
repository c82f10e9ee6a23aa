"""The lines of OUT.dropped.jsonl."""

import json

import pytest

from rewardkit.errors import SourceError
from rewardkit.preprocess.dropped_rows import dropped_line
from rewardkit.preprocess.prompt_lengths import token_counter


@pytest.mark.parametrize(("text", "is_legible"), [("题目", True), ("题目 \ud800", False)])
def test_a_dropped_row_is_legible_and_can_be_written_in_utf_8(text, is_legible):
    """Only a row with a lone surrogate, which UTF-8 does not have, is written with escapes."""
    line = dropped_line(3, ["no gold answer"], {"question": text})
    assert json.loads(line.encode())["row"] == {"question": text}
    assert ("题目" in line) == is_legible


def test_a_folder_of_a_tokenizer_that_is_missing_is_not_looked_for_on_a_hub():
    with pytest.raises(SourceError, match="no such folder"):
        token_counter("/models/no such folder")
