"""The circuit breaker trips on broken rewards only, and the training ends with one message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.guard import stop
from rewardkit.guard.guard import FIRST_CALLS, WINDOW_CALLS, Breaker


def trips(failures, share=0.5):
    """Return the reasons that a breaker gives for a series of calls."""
    breaker = Breaker(share)
    return list(filter(None, (breaker.count(is_failure=failure) for failure in failures)))


def test_a_reward_that_fails_on_all_first_calls_trips_once():
    """It trips at the last of the first calls, and not before."""
    assert trips([True] * (FIRST_CALLS - 1)) == []
    assert len(trips([True] * FIRST_CALLS)) == 1


@given(st.lists(st.booleans(), min_size=1, max_size=3 * WINDOW_CALLS), st.floats(0, 1))
def test_it_trips_only_on_its_two_rules(failures, share):
    """Either all first calls failed, or more than the share of one window."""
    windows = [failures[i : i + WINDOW_CALLS] for i in range(0, len(failures), WINDOW_CALLS)]
    full = [window for window in windows if len(window) == WINDOW_CALLS]
    expected = sum(sum(window) > share * WINDOW_CALLS for window in full)
    first = failures[:FIRST_CALLS]
    assert len(trips(failures, share)) == expected + (len(first) == FIRST_CALLS and all(first))


def test_it_trips_once_whichever_threads_count():
    """verl's threads count at once; a count that is lost would hide that all calls failed."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            breaker = Breaker(0.5)
            with ThreadPoolExecutor(16) as pool:
                count = [pool.submit(breaker.count, is_failure=True) for _ in range(FIRST_CALLS)]
            assert sum(bool(each.result()) for each in count) == 1
    finally:
        sys.setswitchinterval(interval)


def test_outside_of_ray_the_message_is_printed_once_and_raised_for_every_call():
    """In `rewardkit score`, or in a trainer without Ray, the exception ends the run."""
    code = """
from rewardkit.guard.stop import TrainingStoppedError, raise_if_stopped, stop_training
for message in ("the reward is broken", "again"):
    try:
        stop_training(message)
    except TrainingStoppedError as error:
        print(error)
raise_if_stopped()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == "the reward is broken\n" * 2
    assert run.stderr.count("rewardkit guard: the reward is broken") == 1
    assert "again" not in run.stderr


def actor(name, owner, state="ALIVE"):
    """An entry of Ray's table of actors, with addresses made from names."""
    place, owner_place = (
        {"NodeID": "n", "IPAddress": "10.0.0.1", "Port": port} for port in (name, owner)
    )
    return {
        "ActorID": name,
        "JobID": "1",
        "State": state,
        "Pid": 1,
        "Address": place,
        "OwnerAddress": owner_place,
    }


@pytest.fixture
def ray(monkeypatch):
    """Ray as far as the guard asks it; its table is `ray.table`."""
    context = SimpleNamespace(
        get_actor_id=lambda: "worker", get_job_id=lambda: "1", get_node_id=lambda: "n"
    )
    module = SimpleNamespace(get_runtime_context=lambda: context, table={})
    state = SimpleNamespace(actors=lambda: module.table)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray._private", SimpleNamespace(state=state))
    monkeypatch.setitem(sys.modules, "ray._private.state", state)
    return module


def test_the_topmost_actor_of_the_own_job_is_the_one_that_ends(ray):
    """Actors of other jobs, dead ones, and those beside the chain of owners are not chosen."""
    other = {**actor("other", "driver"), "JobID": "2"}
    actors = [
        actor("runner", "driver"),
        actor("manager", "runner"),
        actor("worker", "manager"),
        actor("engine", "runner"),
        actor("old", "driver", "DEAD"),
        other,
    ]
    ray.table = {each["ActorID"]: each for each in actors}
    assert stop._topmost_actor(ray)["ActorID"] == "runner"


def test_an_actor_of_the_driver_itself_is_the_topmost(ray):
    """Without actors between, the reward's own actor ends."""
    ray.table = {"worker": actor("worker", "driver")}
    assert stop._topmost_actor(ray)["ActorID"] == "worker"


def test_a_process_that_is_not_of_ray_gets_no_signal(ray):
    """The pid of an actor that has ended may belong to another process by now."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        place = {"NodeID": "n", "IPAddress": "10.0.0.1", "Port": 1}
        stop._send_signal(ray, {"Pid": sleeper.pid, "Address": place}, signal.SIGTERM)
        os.kill(sleeper.pid, 0)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()
