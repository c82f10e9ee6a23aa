"""The lines of OUT.dropped.jsonl."""

import json
from pathlib import Path

import pytest

from rewardkit.checks.row_stats import token_counter
from rewardkit.dropped_rows import atomic_with_dropped, dropped_line, dropped_path
from rewardkit.errors import OutputError, SourceError
from tests.tables import every


@every(("text", "is_legible"), [("题目", True), ("题目 \ud800", False)])
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


def refuse(out, message, *, overwrite):
    with pytest.raises(OutputError, match=message), atomic_with_dropped(out, overwrite=overwrite):
        pass


def test_a_kill_between_two_renames_leaves_no_output_and_does_not_block_the_next_run(
    tmp_path, monkeypatch
):
    out = tmp_path / "out.parquet"

    def write(text):
        with atomic_with_dropped(out, overwrite=False) as (temporary, rejects):
            temporary.write_text(text)
            rejects.write_text(dropped_line(0, ["no gold answer"], {"question": text}))

    rename = Path.replace

    def rename_once(path, target):
        rename(path, target)
        raise KilledError

    monkeypatch.setattr(Path, "replace", rename_once)
    with pytest.raises(KilledError):
        write("first")
    monkeypatch.undo()
    assert not out.exists()
    assert "first" in dropped_path(out).read_text()
    write("second")
    assert out.read_text() == "second"
    assert "second" in dropped_path(out).read_text()
    with pytest.raises(OutputError, match="--overwrite"):
        write("third")
    assert "second" in dropped_path(out).read_text()


@pytest.mark.parametrize("text", ["\n", '{"index": 0, "reasons": "mine"}\n', "{" * 10**6])
def test_a_file_of_the_users_at_the_name_of_dropped_rows_is_replaced_only_with_overwrite(
    tmp_path, text
):
    out = tmp_path / "out.parquet"
    dropped_path(out).write_text(text)
    refuse(out, r"out\.parquet\.dropped\.jsonl exists; add --overwrite", overwrite=False)
    assert dropped_path(out).read_text() == text
    with atomic_with_dropped(out, overwrite=True):
        pass
    assert dropped_path(out).read_text() == ""


@pytest.mark.parametrize("text", [None, "", dropped_line(0, ["no gold answer"], {})])
def test_a_link_at_the_name_of_dropped_rows_is_never_followed(tmp_path, text):
    """Also a link to nothing, and one to a file that looks like ours."""
    out, victim = tmp_path / "out.parquet", tmp_path / "victim"
    if text is not None:
        victim.write_text(text)
    dropped_path(out).symlink_to(victim)
    for overwrite in (False, True):
        refuse(out, "is a symbolic link that rewardkit did not create", overwrite=overwrite)
    assert not out.exists()
    assert (victim.read_text() if victim.exists() else None) == text


def test_a_link_that_is_made_during_a_run_is_not_followed(tmp_path):
    out, victim = tmp_path / "out.parquet", tmp_path / "victim"
    with (
        pytest.raises(OutputError, match="symbolic link"),
        atomic_with_dropped(out, overwrite=True),
    ):
        dropped_path(out).symlink_to(victim)
    assert not victim.exists()
    assert not out.exists()
