"""The killable worker: its deadlines, the failures it survives, and the callers it serves."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rewardkit.isolate.worker import call

from rewardkit.isolate import child_process, worker

ROOT = Path(__file__).parents[2]
TARGETS = """
import os, re, signal, time

KEPT = []
echo = lambda x: x
pid = lambda _: [os.getppid(), os.getpid()]
divide = lambda x: x / 0
no_json = lambda _: {1, 2}
nan = lambda _: float("nan")
sleep = time.sleep
leave = lambda code: os._exit(code)
die = lambda number: os.kill(os.getpid(), number)
system_exit = lambda _: exit(0)
big = lambda size: "x" * size
seed = lambda _: hash("text")
catastrophe = lambda n: bool(re.match("(a|aa)+$", "a" * n + "b"))

def loop(_):
    while True:
        pass

def bomb(_):
    while True:
        KEPT.append(bytearray(16 << 20))

def deaf(_):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGPROF})
    time.sleep(600)

def shout(x):
    print("not a reply", flush=True)
    return x
"""


@pytest.fixture(autouse=True)
def targets(tmp_path_factory, monkeypatch):
    """Write the functions that the tests call."""
    folder = tmp_path_factory.getbasetemp() / "worker_targets"
    folder.mkdir(exist_ok=True)
    (folder / "targets.py").write_text(TARGETS, encoding="utf-8")
    (folder / "broken.py").write_text("import no_such_module", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    child_process.close_all()  # helpers of other tests, because some tests count helpers
    worker._pools.clear()
    yield folder
    child_process.close_all()
    worker._pools.clear()


def has_working_helper():
    return call("targets:echo", 7) == ("ok", 7, "")


def ends_within(pid, seconds=60.0):
    """Return whether a process ends, or becomes a zombie of init, within the given seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    "value",
    [None, True, -3, 2.5, "", "√é\ud800\n", [], {"a": [1, {"b": None}]}, 10**300, "x" * 5_000_000],
    ids=lambda value: f"{value!r:.12}",
)
def test_a_json_value_makes_the_round_trip_unchanged(value):
    assert call("targets:echo", value, cpu_seconds=20, wall_seconds=60) == ("ok", value, "")


def test_a_reply_longer_than_64_mib_is_an_error():
    reply = call("targets:big", 64 << 20, cpu_seconds=20, wall_seconds=60)
    assert reply.status == "error"
    assert has_working_helper()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("targets:divide", "ZeroDivisionError"),
        ("targets:no_json", "TypeError"),
        ("targets:nan", "ValueError"),
        ("targets:no_such_function", "AttributeError"),
        ("targets_missing:f", "ModuleNotFoundError"),
        ("broken:f", "no_such_module"),
    ],
)
def test_an_exception_becomes_an_error_with_its_cause(target, words):
    reply = call(target, 1)
    status = "error" if target.startswith("targets:") else "import_error"
    assert (reply.status, reply.value) == (status, None)
    assert words in reply.detail
    assert call(target, 1) == reply
    assert has_working_helper()


@pytest.mark.parametrize(("function", "payload"), [("loop", None), ("catastrophe", 200)])
def test_a_loop_is_killed_at_its_cpu_deadline_in_python_and_in_c(function, payload):
    reply = call(f"targets:{function}", payload, cpu_seconds=0.2, wall_seconds=60)
    assert reply == ("timeout", None, "CPU time limit reached")
    assert has_working_helper()


def test_a_function_that_waits_is_killed_at_its_wall_deadline():
    reply = call("targets:sleep", 600, wall_seconds=0.2)
    assert reply == ("timeout", None, "wall time limit reached")
    assert has_working_helper()


def test_the_caller_kills_a_function_that_blocks_the_signals_of_its_deadlines():
    (_, child) = call("targets:pid", None).value
    assert call("targets:deaf", None, wall_seconds=0.2).status == "timeout"
    assert ends_within(child)
    assert has_working_helper()


@pytest.mark.full
def test_a_memory_bomb_is_a_crash():
    reply = call("targets:bomb", None, cpu_seconds=20, wall_seconds=60)
    assert reply == ("crash", None, "needed more than 512 MiB")
    assert has_working_helper()


@pytest.mark.parametrize(("function", "code"), [("leave", 0), ("leave", 3), ("system_exit", 0)])
def test_a_function_that_ends_its_process_is_a_crash(function, code):
    assert call(f"targets:{function}", code).status == "crash"
    assert has_working_helper()


@pytest.mark.parametrize(
    ("function", "number", "detail"),
    [("leave", 7, "exit code 7"), ("die", 9, "SIGKILL")],
)
def test_a_crash_says_how_the_process_ended(function, number, detail):
    assert call(f"targets:{function}", number) == ("crash", None, detail)


def test_a_print_is_not_taken_for_a_reply():
    assert call("targets:shout", 1) == ("ok", 1, "")
    assert has_working_helper()


def test_two_helpers_hash_text_alike():
    text_hash = call("targets:seed", None)
    child_process.close_all()
    assert call("targets:seed", None) == text_hash


def test_ignored_and_blocked_signals_of_the_caller_do_not_disarm_the_deadlines():
    code = (
        "import signal; from rewardkit.isolate import worker; worker._ALLOWED = ('targets',)\n"
        "for s in ('SIGPROF', 'SIGALRM', 'SIGCHLD'):\n"
        "    signal.signal(getattr(signal, s), signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF, signal.SIGALRM})\n"
        "print(worker.call('targets:loop', 0, cpu_seconds=0.1, wall_seconds=30).detail)\n"
        "print(worker.call('targets:sleep', 60, wall_seconds=0.1).detail)\n"
    )
    assert script(code) == "CPU time limit reached\nwall time limit reached\n"


def script(code):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sys.path[0]])}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_sixteen_threads_get_their_own_answers():
    def ask(thread):
        return [call("targets:echo", [thread, i]).value for i in range(200)]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    assert answers == [[[thread, i] for i in range(200)] for thread in range(16)]
    assert len(child_process._live) <= worker._MAX_HELPERS


def test_asyncio_can_call_from_its_executor():
    async def ask():
        return await asyncio.gather(
            asyncio.to_thread(call, "targets:loop", 0, cpu_seconds=0.1),
            *(asyncio.to_thread(call, "targets:echo", i) for i in range(50)),
        )

    killed, *results = asyncio.run(ask())
    assert killed.status == "timeout"
    assert [reply.value for reply in results] == list(range(50))


def in_child(results):
    replies = call("targets:loop", 0, cpu_seconds=0.1, wall_seconds=60), call("targets:echo", 1)
    results.send([reply.status for reply in replies])


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_daemonic_process_may_call():
    assert has_working_helper()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    process = context.Process(target=in_child, args=(sender,), daemon=True)
    process.start()
    assert receiver.poll(100)
    assert receiver.recv() == ["timeout", "ok"]
    process.join()
    assert has_working_helper()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_shares_no_helper_with_its_parent():
    helper_pid = call("targets:pid", None).value
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(call("targets:pid", None).value).encode())
        os._exit(0)
    os.close(write)
    child_output = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(child, 0)
    assert call("targets:pid", None).value == helper_pid
    assert child_output
    assert not set(map(str, helper_pid)) & set(child_output.strip("[]").split(", "))


@pytest.mark.full
def test_a_forked_process_does_not_keep_the_parent_s_helper_alive():
    code = (
        "import os, signal, time; from rewardkit.isolate import worker\n"
        "worker._ALLOWED = ('targets',)\n"
        "print(*worker.call('targets:pid', 0).value, flush=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n    os.close(1); os.close(2); time.sleep(30); os._exit(0)\n"
        "print(child, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sys.path[0]])}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    supervisor, child, forked = map(int, completed.stdout.split())
    try:
        assert ends_within(supervisor)
        assert ends_within(child)
    finally:
        os.kill(forked, signal.SIGKILL)


@pytest.mark.full
def test_sigkill_of_the_caller_leaves_no_process():
    """An idle helper ends at once, and so does one in a loop."""
    code = (
        "import threading, time; from rewardkit.isolate import worker\n"
        "worker._ALLOWED = ('targets',); worker._MAX_HELPERS = 2\n"
        "ask = lambda: worker.call('targets:loop', 0, cpu_seconds=600, wall_seconds=600)\n"
        "print(*worker.call('targets:pid', 0).value, flush=True)\n"
        "threading.Thread(target=ask, daemon=True).start(); time.sleep(0.2)\n"
        "print(*worker.call('targets:pid', 0).value, flush=True); time.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sys.path[0]])}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        pids = [int(pid) for _ in range(2) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(set(pids)) == 4
    assert all(ends_within(pid) for pid in pids)


@pytest.mark.parametrize("victim", [0, 1], ids=["supervisor", "child"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_helper_that_died_between_calls_is_replaced(victim, number):
    pids = call("targets:pid", None).value
    os.kill(pids[victim], number)
    time.sleep(0.05)
    assert all(has_working_helper() for _ in range(3))


def test_a_helper_that_cannot_start_is_unavailable(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert call("targets:echo", 1).status == "unavailable"
    assert not child_process._live


def test_an_interrupted_call_does_not_leave_its_reply_to_the_next(monkeypatch):
    assert has_working_helper()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(child_process.ChildProcess, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            call("targets:echo", "lost")
    assert has_working_helper()


@pytest.mark.full
def test_two_thousand_calls_leak_no_descriptor_process_or_thread():
    def count_resources():
        return (
            len([*Path("/proc/self/fd").iterdir()]),
            len(child_process._live),
            threading.active_count(),
        )

    assert has_working_helper()
    resources = count_resources()
    for i in range(2000):
        assert call("targets:echo", i).value == i
    for _ in range(5):
        call("targets:leave", 1)
    assert count_resources() == resources
