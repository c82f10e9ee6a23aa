"""A function in child processes: its deadlines, the failures it survives, and the callers it serves."""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rewardkit.errors import UsageError
from rewardkit.isolate import child_process
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import CallError, IsolatedFunction, Reply
from rewardkit.isolate.serve import Limits
from tests.processes import has_ended
from tests.tables import every

ROOT = Path(__file__).parents[2]
TARGETS = """
import os, re, signal, time
from rewardkit.isolate.serve import Loaded

echo = lambda x: x
pids = lambda _: [os.getppid(), os.getpid()]
sleep = time.sleep
leave = lambda code: os._exit(code)
die = lambda number: os.kill(os.getpid(), number)
system_exit = lambda code: exit(code)
divide = lambda x: x / 0
no_json = lambda _: {1, 2}
catastrophe = lambda n: bool(re.match("(a|aa)+$", "a" * n + "b"))

def loop(_):
    while True:
        pass

def deaf(_):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(600)

def load(is_forked):
    return Loaded(lambda request: globals()[request[0]](request[1]), is_forked=is_forked)
"""


@pytest.fixture
def isolate(tmp_path_factory, monkeypatch):
    """Return a function that isolates the targets; its requests are a name and an argument."""
    folder = tmp_path_factory.getbasetemp() / "targets"
    folder.mkdir(exist_ok=True)
    (folder / "targets.py").write_text(TARGETS)
    monkeypatch.syspath_prepend(folder)
    functions = []

    def isolated(*, is_forked=False, **limits):
        limits, load = Limits(**limits), importlib.import_module("targets").load
        name = f"{folder}/targets.py:run"
        functions.append(IsolatedFunction(load, (is_forked,), name, limits))
        return functions[-1]

    yield isolated
    for function in functions:
        function.close()


def ask(function, name, argument=None):
    outcome = function.call((name, argument))
    return outcome.value if isinstance(outcome, Reply) else f"{type(outcome).__name__}: {outcome}"


def test_values_of_json_make_the_round_trip_unchanged(isolate):
    values = [None, True, "√é\ud800\n", {"a": [2.5, {"b": None}]}, 10**300, "x" * 5_000_000]
    outcomes = isolate().call_all([("echo", value) for value in values])
    assert [outcome.value for outcome in outcomes] == values


FAILURES = [
    ("divide", 1, CallError, "division by zero"),
    ("system_exit", 0, CallError, "it calls sys.exit(0)"),
    ("missing", 1, CallError, "'missing'"),
    ("no_json", 1, ChildCrashError, "exit code 1"),
    ("leave", 0, ChildCrashError, "exit code 0"),
    ("leave", 7, ChildCrashError, "exit code 7"),
    ("die", signal.SIGKILL, ChildCrashError, "SIGKILL"),
    ("loop", 0, ChildTimeoutError, ""),
    ("catastrophe", 200, ChildTimeoutError, ""),
]


@pytest.mark.parametrize("is_forked", [False, True])
def test_a_call_that_fails_costs_itself_and_the_next_one_is_answered(isolate, is_forked):
    function = isolate(is_forked=is_forked, cpu_seconds=0.2)
    for name, argument, kind, message in FAILURES:
        outcome = function.call((name, argument))
        assert isinstance(outcome, kind), (name, outcome)
        assert message in str(outcome), name
        assert ask(function, "echo", 7) == 7


@every("name", ["sleep", "deaf"])
def test_a_call_that_waits_is_ended_at_its_deadline_also_if_it_blocks_signals(isolate, name):
    function = isolate(seconds=0.2)
    _, child = ask(function, "pids")
    assert ask(function, name, 600).startswith("ChildTimeoutError")
    assert has_ended(child)
    assert ask(function, "echo", 7) == 7


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_daemonic_process_and_a_fork_have_processes_of_their_own(isolate):
    function = isolate(cpu_seconds=0.1)
    pids = ask(function, "pids")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    process = context.Process(
        target=lambda: sender.send([ask(function, "loop"), ask(function, "pids")]), daemon=True
    )
    process.start()
    assert receiver.poll(100)
    timeout, others = receiver.recv()
    process.join()
    assert timeout.startswith("ChildTimeoutError")
    assert not {*others} & {*pids}
    assert ask(function, "pids") == pids


#: A process that starts an idle child and one in a loop, forks, and prints their numbers.
CALLER = """
import os, signal, sys, threading, time
import targets
from rewardkit.isolate.function import IsolatedFunction
from rewardkit.isolate.serve import Limits
for name in ("SIGPROF", "SIGALRM", "SIGCHLD"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF, signal.SIGALRM})
def isolate(seconds):
    limits = Limits(seconds=seconds, cpu_seconds=0.1 if seconds == 0.2 else 0)
    return IsolatedFunction(targets.load, (False,), "targets", limits)
late = isolate(0.2)
for name in ("loop", "sleep"):
    print(type(late.call((name, 60))).__name__, flush=True)
for name in ("sleep", "loop"):
    function = isolate(600)
    print(*function.call(("pids", 0)).value, flush=True)
    if name == "loop":
        threading.Thread(target=function.call, args=[("loop", 0)], daemon=True).start()
time.sleep(0.2)
if os.fork() == 0:
    os.close(1), os.close(2), time.sleep(30), os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("isolate")
def test_signals_of_the_caller_disarm_no_deadline_and_its_end_leaves_no_process():
    """The caller ignores and blocks signals, forks, and is killed: its fork keeps no child alive."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sys.path[0]])}
    command = [sys.executable, "-c", CALLER]
    completed = subprocess.run(command, env=env, capture_output=True, text=True)
    *late, idle, busy = completed.stdout.splitlines()
    assert late == ["ChildTimeoutError"] * 2, completed.stderr
    pids = [int(pid) for pid in f"{idle} {busy}".split()]
    assert len({*pids}) == 4
    assert all(map(has_ended, pids))


@every("victim, number", [(v, n) for v in (0, 1) for n in (signal.SIGKILL, signal.SIGTERM)])
def test_a_child_or_its_guard_that_ended_between_calls_is_replaced(isolate, victim, number):
    function = isolate()
    os.kill(ask(function, "pids")[victim], number)
    time.sleep(0.05)
    assert [ask(function, "echo", 7) for _ in range(3)] == [7] * 3


def test_a_child_that_cannot_start_is_the_outcome_of_the_call(isolate, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    outcome = isolate().call(("echo", 1))
    assert isinstance(outcome, UsageError)
    assert "it cannot start" in str(outcome)


@pytest.mark.full
def test_two_thousand_calls_leak_no_descriptor_process_or_thread(isolate):
    def count_resources():
        files = len([*Path("/proc/self/fd").iterdir()])
        return files, len(child_process._live), threading.active_count()

    function = isolate()
    ask(function, "echo", 0)
    resources = count_resources()
    assert [ask(function, "echo", i) for i in range(2000)] == [*range(2000)]
    assert {ask(function, "leave", 1) for _ in range(5)} == {"ChildCrashError: exit code 1"}
    ask(function, "echo", 0)
    assert count_resources() == resources
