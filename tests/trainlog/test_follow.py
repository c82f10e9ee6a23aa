"""A growing log is read as far as its lines are complete, and again if it is overwritten."""

import pytest

from rewardkit.errors import UsageError
from rewardkit.trainlog.follow import LogTail


def test_a_tail_reads_new_lines_and_waits_for_complete_ones(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("starting\n")
    tail = LogTail(path)
    assert tail.poll() is None
    with path.open("a") as file:
        file.write("step:1 - a/b:0.5\nstep:2 - a/b:0.")
    assert tail.poll().table == {"a/b": (0.5,)}
    assert tail.poll() is None
    with path.open("a") as file:
        file.write("75\n")
    assert tail.poll().table == {"a/b": (0.5, 0.75)}


def test_an_overwritten_file_is_read_again(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 1, "data": {"a": 1}}\n{"step": 2, "data": {"a": 2}}\n')
    tail = LogTail(path)
    assert tail.poll().steps == (1, 2)
    path.write_text('{"step": 2, "data": {"a": 3}}\n')
    assert tail.poll().table == {"a": (3,)}


def test_a_folder_cannot_be_followed(tmp_path):
    with pytest.raises(UsageError, match="--follow"):
        LogTail(tmp_path).poll()


def test_a_missing_or_removed_file_is_waited_for(tmp_path):
    path = tmp_path / "run.log"
    tail = LogTail(path)
    assert (tail.poll(), tail.is_missing) == (None, True)
    path.write_text("step:1 - a/b:0.5\n")
    assert tail.poll().steps == (1,)
    assert (tail.is_missing, tail.rewrites) == (False, 0)
    path.unlink()
    assert (tail.poll(), tail.is_missing) == (None, True)
    path.write_text("step:1 - a/b:0.25\nstep:2 - a/b:0.25\n")
    assert tail.poll().table == {"a/b": (0.25, 0.25)}
    assert tail.rewrites == 1


def test_an_overwritten_file_that_is_longer_is_read_again(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("step:1 - a/b:0.5\n")
    tail = LogTail(path)
    tail.poll()
    path.write_text("step:1 - a/b:0.25\nstep:2 - a/b:0.75\n")
    assert tail.poll().table == {"a/b": (0.25, 0.75)}
    assert tail.rewrites == 1


@pytest.mark.parametrize("start", ["", "\n", '{"step": 1, "da'])
def test_a_file_without_a_complete_line_has_no_reader_yet(tmp_path, start):
    path = tmp_path / "run.jsonl"
    path.write_text(start)
    tail = LogTail(path)
    assert tail.poll() is None
    with path.open("a") as file:
        file.write(
            'ta": {"a": 1}}\n' if start.startswith("{") else '{"step": 1, "data": {"a": 1}}\n'
        )
    assert tail.poll().table == {"a": (1,)}
