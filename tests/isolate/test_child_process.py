"""A child process: its guard, its descriptors, and callers that fork."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError

ROOT = Path(__file__).parents[2]
SERVE = """
import os, time

def serve(channel):
    while True:
        request = channel.receive()
        if request == "sleep":
            time.sleep(600)
        if request == "fork":
            copy = os.fork()
            if copy:
                request = os.waitpid(copy, 0)[1]
        channel.send([os.getpid(), request])
        if request == "last":
            return
"""


@pytest.fixture
def process(tmp_path, monkeypatch):
    (tmp_path / "echo_child.py").write_text(SERVE)
    monkeypatch.syspath_prepend(str(tmp_path))
    process = ChildProcess("echo_child")
    yield process
    process.close()


def test_replies_are_json_and_requests_any_value_that_pickles(process):
    assert process.exchange("é\ud800\n", 60)[1] == "é\ud800\n"
    with pytest.raises(ChildCrashError, match="exit code 1"):
        process.exchange(b"bytes", 60)


def test_a_process_that_does_not_reply_is_closed_and_its_pid_is_free(process):
    pid, _ = process.exchange("hello", 60)
    with pytest.raises(ChildTimeoutError):
        process.exchange("sleep", 0.1)
    assert not process.is_alive
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(ChildCrashError, match="SIGKILL"):
        process.exchange("hello", 60)


def test_a_copy_that_the_code_forks_sends_no_reply_and_ends(process):
    """The status of the copy is the one reply; the next request gets its own."""
    assert process.exchange("fork", 60)[1] == 0
    assert process.exchange("hello", 60)[1] == "hello"


def test_a_reply_is_returned_if_the_process_ends_just_after_the_caller_looked_for_it(process):
    """As on a busy machine: the caller is not scheduled between its two looks."""
    readable = process._readable

    class Busy:
        def poll(self, milliseconds):
            process._readable = readable
            process._process.wait(60)
            return []

    process._readable = Busy()
    assert process.exchange("last", 60)[1] == "last"
    with pytest.raises(ChildCrashError, match="exit code 0"):
        process.exchange("hello", 60)


def test_an_interrupted_exchange_leaves_its_reply_to_no_other(process, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChildProcess, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        process.exchange("lost", 60)
    assert not process.is_alive


def test_a_process_has_a_guard_if_its_caller_has_many_open_files(process):
    """Descriptors above 1023 are more than select takes."""
    code = (
        "import os, resource\n"
        "from rewardkit.isolate.child_process import ChildProcess\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]\n"
        "process = ChildProcess('echo_child')\n"
        "print(process.exchange('hello', 60)[1], process.is_alive)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sys.path[0]])}
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert output == "hello True\n"
