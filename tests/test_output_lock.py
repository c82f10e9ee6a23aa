"""One run at a time writes an output, without `flock`: living holders keep it, ended ones lose it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rewardkit import output_lock
from rewardkit.errors import OutputError
from rewardkit.output_lock import lock_output

#: Takes the lock on a machine of a name, says so, and holds it until its input ends.
HOLDER = """
import sys
from pathlib import Path
from rewardkit import output_lock
if sys.argv[2]:
    output_lock._machine = lambda: sys.argv[2]
output_lock.BEAT_SECONDS = 0.05
with output_lock.lock_output(Path('out'), Path(sys.argv[1])):
    print('holds', flush=True)
    sys.stdin.read()
"""

#: Adds one to a number in a file, many times, each time under the lock, and waits in between.
COUNTER = """
import sys, time
from pathlib import Path
from rewardkit.errors import OutputError
from rewardkit.output_lock import lock_output
path, number, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
while count:
    try:
        with lock_output(Path('out'), path):
            value = int(number.read_text())
            time.sleep(0.002)
            new = number.with_name(f"{value + 1}.new")
            new.write_text(str(value + 1))
            new.replace(number)  # a kill leaves no half of it
            count -= 1
            print(count, flush=True)
    except OutputError:
        time.sleep(0.001)
"""


def start(program, *arguments):
    command, pipe = [sys.executable, "-c", program, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


@pytest.fixture
def lock(tmp_path):
    return tmp_path / ".out.lock"


@pytest.fixture
def hold(lock):
    """Return a function that starts a process with the lock, and ends all in the end."""
    processes = []

    def start_holder(machine=""):
        process = start(HOLDER, lock, machine)
        processes.append(process)
        assert process.stdout.readline() == "holds\n"
        return process

    yield start_holder
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def short_times(monkeypatch):
    monkeypatch.setattr(output_lock, "STALE_SECONDS", 0.6)
    monkeypatch.setattr(output_lock, "POLL_SECONDS", 0.02)


def take(lock):
    with lock_output(Path("out"), lock):
        return True


def assert_is_held(lock):
    with pytest.raises(OutputError, match=r"^out: another run is writing it \(process \d+ on "):
        take(lock)


def test_the_lock_of_a_living_process_is_held_and_that_of_a_killed_one_is_taken(hold, lock):
    process = hold()
    assert_is_held(lock)
    process.kill()
    process.wait()
    assert take(lock)
    assert os.listdir(lock.parent) == []  # noqa: PTH208


def test_a_killed_process_that_nobody_has_waited_for_holds_nothing(hold, lock):
    """In a container without an init, killed processes stay as zombies."""
    process = hold()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert take(lock)


def test_a_stopped_process_of_this_machine_keeps_its_lock(hold, lock, short_times):
    process = hold()
    process.send_signal(signal.SIGSTOP)
    assert_is_held(lock)


def test_another_process_with_the_same_number_does_not_hold_the_lock(lock):
    """Its start differs: numbers are used again."""
    with lock_output(Path("out"), lock):
        text = lock.read_text()
    machine, number, began, token = text.split("-")
    lock.write_text(f"{machine}-{number}-{int(began, 16) + 1:x}-{token}")
    assert take(lock)


def test_the_lock_of_another_machine_is_held_while_it_is_touched_and_then_taken(
    hold, lock, short_times
):
    process = hold("0123456789ab")
    assert_is_held(lock)
    process.kill()
    process.wait()
    assert take(lock)


@pytest.mark.parametrize("jump", [-86400, 86400])
def test_no_jump_of_a_clock_decides_who_holds_a_lock(hold, lock, short_times, monkeypatch, jump):
    hold("0123456789ab")
    now = time.time() + jump
    monkeypatch.setattr(time, "time", lambda: now)
    os.utime(lock, (now, now))
    assert_is_held(lock)


def test_a_holder_that_was_stopped_too_long_notices_that_it_lost_its_lock(lock, short_times):
    with lock_output(Path("out"), lock) as own:
        own.require()
        lock.write_text("0123456789ab-1-1-01234567 node7\n")  # as another machine's process would
        with pytest.raises(OutputError, match="out: another run has taken it over"):
            own.require()
    assert lock.exists()  # the other one's


@pytest.mark.parametrize("text", ["", "garbage", "0123456789ab-fffffff-0-01234567 x\n"])
def test_a_lock_that_says_nothing_is_taken_after_a_time(lock, short_times, text):
    lock.write_text(text)
    assert take(lock)


def test_whoever_waits_to_see_whether_a_lock_is_held_says_so_on_standard_error(lock):
    """Once, also where nobody has set up a log; and with no escapes of a file's name."""
    lock.write_text("garbage")
    program = (
        "import sys\nfrom pathlib import Path\nfrom rewardkit import output_lock\n"
        "output_lock.NOTICE_SECONDS, output_lock.STALE_SECONDS = 0.02, 0.1\n"
        "output_lock.POLL_SECONDS = 0.01\n"
        "with output_lock.lock_output(Path('o\\x1bt'), Path(sys.argv[1])): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(lock)], capture_output=True, text=True, check=True
    )
    [line] = done.stderr.splitlines()
    assert line.startswith("o\\x1bt: another run may be writing it (")
    assert "waiting up to" in line
    assert done.stdout == ""


def test_a_link_or_a_folder_in_place_of_a_lock_is_refused(lock, tmp_path):
    lock.symlink_to(tmp_path / "victim")
    with pytest.raises(OutputError, match="is not a lock that rewardkit created; remove it"):
        take(lock)
    assert not (tmp_path / "victim").exists()
    lock.unlink()
    lock.mkdir()
    with pytest.raises(OutputError, match="is not a lock that rewardkit created; remove it"):
        take(lock)


def test_of_many_that_take_over_a_stale_lock_only_one_wins(lock, hold):
    """Also if an earlier one was killed while it took the lock over, and left its own lock."""
    for name in ("", ".next", ".next.next"):
        process = hold()
        process.kill()
        process.wait()
        lock.rename(lock.with_name(f"{lock.name}{name}x"))
    for name in ("", ".next", ".next.next"):
        lock.with_name(f"{lock.name}{name}x").rename(lock.with_name(f"{lock.name}{name}"))
    winners, losers, may_end = [], [], threading.Event()

    def attempt():
        try:
            with lock_output(Path("out"), lock):
                winners.append(1)
                may_end.wait(60)
        except OutputError as error:
            losers.append(str(error))

    threads = [threading.Thread(target=attempt) for _ in range(12)]
    for thread in threads:
        thread.start()
    while len(winners) + len(losers) < 12:
        time.sleep(0.01)
    may_end.set()
    for thread in threads:
        thread.join()
    assert (len(winners), len(losers)) == (1, 11)


@pytest.mark.full
def test_no_update_is_lost_among_processes_that_are_killed_at_random(lock, tmp_path):
    """An update is lost if two hold the lock at once; a killed one may have made one more or less."""
    import random

    number, draw = tmp_path / "number", random.Random(7)
    number.write_text("0")
    steady = [start(COUNTER, lock, number, 40) for _ in range(3)]
    done = kills = 0
    while any(process.poll() is None for process in steady):
        victim = start(COUNTER, lock, number, 1000)
        time.sleep(0.15 + 0.2 * draw.random())
        victim.kill()
        output = victim.communicate()[0]
        done, kills = done + len(output.splitlines()), kills + 1
    for process in steady:
        process.communicate()
    assert 120 + done <= int(number.read_text()) <= 120 + done + kills
