"""Rewards that leave a call in an unusual way: what they cost is their own sample."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rewardkit.errors import UsageError
from rewardkit.guard.guard import Guard, GuardSettings
from tests.tables import every

REWARD = """
import asyncio, os, sys, time

def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    if solution_str == "message":
        raise ValueError(f"not a number: {ground_truth}")
    return float(ground_truth)

async def leave():
    sys.exit(3)

async def compute_score_async(data_source, solution_str, ground_truth, extra_info=None):
    await asyncio.sleep(0.01)
    if solution_str == "cancelled":
        raise asyncio.CancelledError
    if solution_str == "interrupt":
        raise KeyboardInterrupt
    if solution_str == "generator":
        raise GeneratorExit
    if solution_str == "subtask":
        await asyncio.create_task(leave())
    if solution_str == "callback":
        asyncio.get_running_loop().call_soon(time.sleep, 600)
    await asyncio.sleep(0.2)
    return float(ground_truth)

memory = []

def leak(data_source, solution_str, ground_truth, extra_info=None):
    memory.append(bytearray(20 << 20))
    return float(ground_truth)

async def leak_async(data_source, solution_str, ground_truth, extra_info=None):
    return leak(data_source, solution_str, ground_truth)
"""


class Unloadable:
    """An object that can be pickled and not unpickled."""

    def __reduce__(self):
        return int, ("x",)


def unpicklable():
    """A function that pickle does not find by its name."""


unpicklable.__qualname__ = "nowhere"


@pytest.fixture
def reward_file(tmp_path):
    path = tmp_path / "my_reward.py"
    path.write_text(REWARD, encoding="utf-8")
    return path


@pytest.fixture
def new_guard(reward_file):
    guards = []

    def new(name, **settings):
        settings = GuardSettings(**{"seconds": 2.0, "on_failure": "score", **settings})
        is_async = name not in ("compute_score", "leak")
        guards.append(Guard(f"{reward_file}:{name}", settings, is_async=is_async))
        return guards[-1]

    yield new
    for guard in guards:
        guard.close()


def call(number, response="good", **info):
    arguments = {"data_source": "test", "solution_str": response, "ground_truth": str(number)}
    return {**arguments, "extra_info": {"index": number, **info}}


def score_on_a_loop(guard, calls):

    async def score_all():
        return await asyncio.gather(*(guard.compute_score_async(**each) for each in calls))

    return asyncio.run(score_all())


def failures(result):
    return result["timeout"], result["error"]


@pytest.mark.full
def test_a_coroutine_that_ends_in_an_unusual_way_costs_its_own_sample(new_guard):
    """Also exceptions that end an event loop, in a task of the reward's own, or in a callback."""
    bad = dict.fromkeys(["cancelled", "interrupt", "generator", "subtask"], (0.0, 1.0))
    bad["callback"] = (1.0, 0.0)
    responses = ["good"] * 40 + [*bad] + ["good"] * 10
    calls = [call(number, response) for number, response in enumerate(responses)]
    results = score_on_a_loop(new_guard("compute_score_async"), calls)
    for number, (response, result) in enumerate(zip(responses, results, strict=True)):
        assert failures(result) == bad.get(response, (0.0, 0.0)), response
        assert result["score"] == (number if response == "good" else 0.0)


@pytest.mark.parametrize("name", ["compute_score", "compute_score_async"])
def test_an_argument_that_cannot_be_pickled_or_unpickled_costs_its_own_sample(new_guard, name):
    """In a batch, and among coroutines: the others get their scores from the same process."""
    guard = new_guard(name)
    bad = {3: unpicklable, 7: Unloadable(), 8: Unloadable()}
    calls = [call(n, value=bad[n]) if n in bad else call(n) for n in range(40)]
    starts = []
    start = guard.function.start_process
    guard.function.start_process = lambda: starts.append(1) or start()
    with ThreadPoolExecutor(40) as pool:
        results = list(pool.map(lambda each: guard.compute_score(**each), calls))
    for number, result in enumerate(results):
        assert failures(result) == (0.0, float(number in bad))
        assert result["score"] == (0.0 if number in bad else number)
    assert len(starts) <= (1 if guard.is_async else guard.settings.workers)


def test_an_exception_is_logged_once_for_its_place(new_guard, caplog):
    """A message that quotes the response would fill the log, and then hide other causes."""
    guard = new_guard("compute_score")
    for number in range(3):
        assert failures(guard.compute_score(**call(number, "message"))) == (0.0, 1.0)
    assert caplog.text.count("not a number") == 1


@pytest.mark.parametrize("name", ["leak", "leak_async"])
def test_a_reward_that_leaks_memory_loses_no_sample(new_guard, name):
    """A process that has used up its memory ends; the call is answered by a new one."""
    guard = new_guard(name, memory_mb=200)
    assert [guard.compute_score(**call(n))["score"] for n in range(15)] == [*range(15)]


NAN = float("nan")


@every("fields", [{"seconds": NAN}, {"stop_share": NAN}, {"wrong_score": NAN},
                  *({"options": {"fine": 1, "other": Path(), "x": x}} for x in (NAN, [{"y": -NAN}]))])  # fmt: skip
def test_settings_and_options_are_finite(fields):
    """The file would have `nan`, which is not a name of Python: verl could not import it."""
    with pytest.raises(UsageError, match="has NaN or infinity: give finite numbers"):
        GuardSettings(**fields)


def test_closing_leaves_calls_in_progress_alone(new_guard):
    """A new tokenizer ends the processes, each after the calls in it."""
    guard = new_guard("compute_score")
    # A set is not a plain type.
    calls = [{**call(n), "tokenizer": {1, n // 20}} for n in range(60)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda each: guard.compute_score(**each), calls))
    assert [result["score"] for result in results] == [*range(60)]
