"""The lines of OUT.dropped.jsonl."""

import json
from pathlib import Path

import pytest

from rewardkit.errors import OutputError, SourceError
from rewardkit.preprocess.dropped_rows import atomic_with_dropped, dropped_line, dropped_path
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


class KilledError(BaseException):
    """Stands for SIGKILL between two renames."""


def test_a_kill_between_two_renames_leaves_no_output_and_does_not_block_the_next_run(
    tmp_path, monkeypatch
):
    out = tmp_path / "out.parquet"

    def write(text):
        with atomic_with_dropped(out, overwrite=False) as (temporary, rejects):
            temporary.write_text(text)
            rejects.write_text(text)

    rename = Path.replace

    def rename_once(path, target):
        rename(path, target)
        raise KilledError

    monkeypatch.setattr(Path, "replace", rename_once)
    with pytest.raises(KilledError):
        write("first")
    monkeypatch.undo()
    assert not out.exists()
    write("second")
    assert [path.read_text() for path in (out, dropped_path(out))] == ["second", "second"]
    with pytest.raises(OutputError, match="--overwrite"):
        write("third")
    assert dropped_path(out).read_text() == "second"
