"""The circuit breaker trips on broken rewards only, and the training ends with one message."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.guard import stop
from rewardkit.guard.guard import FIRST_CALLS, WINDOW_CALLS, Breaker


def trips(failures, share=0.5):
    """Return the reasons that a breaker gives for a series of calls."""
    breaker = Breaker(share)
    return list(filter(None, (breaker.count(is_failure=failure) for failure in failures)))


@given(st.lists(st.booleans(), min_size=1, max_size=3 * WINDOW_CALLS), st.floats(0, 1))
def test_it_trips_only_on_its_two_rules(failures, share):
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


def test_a_process_that_is_not_of_ray_gets_no_signal():
    """The pid of an actor that has ended may belong to another process by now."""
    context = SimpleNamespace(get_node_id=lambda: "n")
    ray = SimpleNamespace(get_runtime_context=lambda: context)
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        stop._send_signal(ray, {"Pid": sleeper.pid, "Address": {"NodeID": "n"}}, signal.SIGTERM)
        assert sleeper.poll() is None
        sleeper.kill()
        assert sleeper.wait() == -signal.SIGKILL
