"""A growing log is read as far as its lines are complete, and again if it is overwritten."""

import pytest

from rewardkit.trainlog.follow import LogTail

ONE, TWO = "step:1 - a/b:0.5\n", "step:1 - a/b:0.25\nstep:2 - a/b:0.75\n"
JSON = '{"step": 1, "data": {"a": 1}}\n'


def test_a_tail_reads_new_lines_and_waits_for_complete_ones(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("starting\n")
    tail = LogTail(path)
    assert tail.poll() is None
    with path.open("a") as file:
        file.write(f"{ONE}step:2 - a/b:0.")
    assert tail.poll().table == {"a/b": (0.5,)}
    assert tail.poll() is None
    with path.open("a") as file:
        file.write("75\n")
    assert tail.poll().table == {"a/b": (0.5, 0.75)}


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        (ONE, TWO, {"a/b": (0.25, 0.75)}),  # longer than the old one
        (f"{JSON}{JSON.replace('1', '2')}", JSON.replace("1", "3"), {"a": (3,)}),
    ],
)
def test_an_overwritten_file_is_read_again(tmp_path, old, new, values):
    path = tmp_path / "run.log"
    path.write_text(old)
    tail = LogTail(path)
    assert tail.poll()
    path.write_text(new)
    assert (tail.poll().table, tail.rewrites) == (values, 1)


def test_a_missing_or_removed_file_is_waited_for(tmp_path):
    path = tmp_path / "run.log"
    tail = LogTail(path)
    assert (tail.poll(), tail.is_missing) == (None, True)
    path.write_text(ONE)
    assert tail.poll().steps == (1,)
    assert (tail.is_missing, tail.rewrites) == (False, 0)
    path.unlink()
    assert (tail.poll(), tail.is_missing) == (None, True)
    path.write_text(TWO)
    assert (tail.poll().table, tail.rewrites) == ({"a/b": (0.25, 0.75)}, 1)


@pytest.mark.parametrize("start", ["", "\n", '{"step": 1, "da'])
def test_a_file_without_a_complete_line_has_no_reader_yet(tmp_path, start):
    path = tmp_path / "run.jsonl"
    path.write_text(start)
    tail = LogTail(path)
    assert tail.poll() is None
    with path.open("a") as file:
        file.write(JSON.removeprefix(start))
    assert tail.poll().table == {"a": (1,)}
