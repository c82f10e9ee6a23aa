"""An output appears complete or not at all, also through links; leftovers are removed."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from rewardkit.errors import OutputError
from rewardkit.output import LEFTOVER_SECONDS, atomic, atomic_folder, open_no_follow, resolve_output

WRITER = (
    "import sys; from pathlib import Path; from rewardkit.output import atomic\n"
    "with atomic(Path(sys.argv[1])) as temporary:\n"
    "    temporary.write_text('half')\n"
    "    print(temporary, flush=True)\n"
    "    sys.stdin.read()\n"
)


def start_writer(out):
    """Start a process that has written half of `out`; return it and its temporary file."""
    command = [sys.executable, "-c", WRITER, str(out)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    return process, Path(process.stdout.readline().strip())


def ended_process():
    """Return the name of a process of this machine that has ended."""
    program = "from rewardkit.output_lock import process_id; print(process_id(), end='')"
    return subprocess.check_output([sys.executable, "-c", program], text=True)


def end(process):
    with process:
        process.send_signal(signal.SIGKILL)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(out, text, **options):
    with atomic(out, **options) as temporary:
        temporary.write_text(text)


def test_the_leftover_of_a_killed_run_is_removed_by_the_next_run(tmp_path):
    out = tmp_path / "out[1].txt"
    process, leftover = start_writer(out)
    end(process)
    assert leftover.exists()
    write(tmp_path / "other.txt", "other")
    assert leftover.exists()
    write(out, "whole")
    assert names(tmp_path) == ["other.txt", "out[1].txt"]


def test_the_temporary_file_of_a_running_process_stays(tmp_path):
    out = tmp_path / "out.txt"
    process, living = start_writer(out)
    try:
        write(out, "first")
        assert living.exists()
    finally:
        end(process)


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_writers_of_one_output_the_second_replaces_it_only_with_overwrite(
    tmp_path, overwrite
):
    out = tmp_path / "out.txt"
    outcome = nullcontext() if overwrite else pytest.raises(OutputError, match="add --overwrite")
    with outcome, atomic(out, overwrite=overwrite) as one:
        one.write_text("one")
        write(out, "two")
        assert out.read_text() == "two"
    assert out.read_text() == ("one" if overwrite else "two")
    assert names(tmp_path) == ["out.txt"]


def test_a_leftover_of_another_machine_stays_for_a_week(tmp_path):
    """Nobody here can tell whether its process still runs."""
    leftover = tmp_path / ".out.txt.0123456789ab-1-1-01234567.tmp"
    leftover.write_text("perhaps a running process's")
    write(tmp_path / "out.txt", "whole")
    assert names(tmp_path) == [leftover.name, "out.txt"]
    week_ago = leftover.stat().st_mtime - LEFTOVER_SECONDS
    os.utime(leftover, (week_ago, week_ago))
    write(tmp_path / "out.txt", "whole", overwrite=True)
    assert names(tmp_path) == ["out.txt"]


def test_an_output_that_is_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "there" / "real.txt", tmp_path / "link.txt"
    real.parent.mkdir()
    link.symlink_to(real)
    write(link, "first")
    write(link, "second", overwrite=True)
    assert link.is_symlink()
    assert real.read_text() == "second"
    assert resolve_output(link) == real
    assert names(real.parent) == ["real.txt"]


def test_a_link_to_itself_is_one_clear_error(tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to(link)
    with pytest.raises(OutputError, match="symbolic link"):
        write(link, "", overwrite=True)


@pytest.mark.parametrize("name", ["字" * 85, "x" * 255], ids=["Chinese", "ASCII"])
def test_the_longest_names_can_be_written(tmp_path, name):
    write(tmp_path / name, "whole")
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (Path.symlink_to, r"part is a symbolic link.*remove it"),
        (Path.hardlink_to, r"part is a hard link: .* Replace it by a copy"),
        (lambda path, _: os.mkfifo(path), "is not a regular file"),
    ],
)
def test_a_link_or_a_pipe_in_place_of_a_growing_file_is_refused(tmp_path, plant, message):
    victim, planted = tmp_path / "victim", tmp_path / ".out.part"
    victim.write_text("precious")
    plant(planted, victim)
    with pytest.raises(OutputError, match=message):
        open_no_follow(planted)
    assert victim.read_text() == "precious"


def test_a_folder_that_a_killed_run_left_half_written_is_removed_by_the_next(tmp_path):
    (tmp_path / f".pack.{ended_process()}.tmp" / "tests").mkdir(parents=True)
    with atomic_folder(tmp_path / "pack") as folder:
        (folder / "file").write_text("text")
    assert names(tmp_path) == ["pack"]
    with pytest.raises(OutputError, match="exists"), atomic_folder(tmp_path / "pack"):
        pass
