"""Guarded functions and coroutine functions: a bad call costs its own sample and no other."""

import asyncio
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rewardkit.guard.guard import Guard, GuardSettings, default_fields, reward_function

REWARD = r"""
import asyncio, ctypes, os, re, signal, sys, threading, time
from pathlib import Path

BAD = {
    "hang": lambda: time.sleep(600),
    "c": lambda: re.match(r"(a+)+$", "a" * 40 + "b"),
    "raise": lambda: {}["missing"],
    "exit": lambda: sys.exit("bye"),
    "leave": lambda: os._exit(3),
    "segfault": lambda: ctypes.string_at(0),
    "memory": lambda: bytearray(40 << 30),
    "nothing": lambda: None,
    "nan": lambda: {"score": float("nan")},
}

def result(solution_str, ground_truth):
    return {"score": 2.0 * (solution_str == ground_truth) - 1, "form": 1, "pred": solution_str}

def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    if solution_str in BAD:
        return BAD[solution_str]()
    if solution_str == "kwargs":
        return {"score": 1.0, "form": len(kwargs), "pred": str(sorted(kwargs))}
    if solution_str == "pid":
        return {"score": 1.0, "form": os.getpid(), "pred": threading.current_thread().name}
    return result(solution_str, ground_truth)

async def compute_score_async(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    if solution_str == "wait":
        await asyncio.sleep(600)
    if solution_str == "stubborn":
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                pass
    if solution_str == "task":  # a task that the reward starts blocks the loop
        async def block():
            time.sleep(600)
        await asyncio.create_task(block())
    if solution_str.startswith("fork"):
        async def fork():
            if os.fork():
                return
            if solution_str == "fork and raise":
                raise ValueError
            if solution_str == "fork and exit":
                sys.exit("bye")
            if solution_str == "fork and wait":
                await asyncio.sleep(0.01)
        await (asyncio.create_task(fork()) if solution_str == "fork in a task" else fork())
    await asyncio.sleep(0.05)
    return compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)
"""

#: What each bad response gets: `timeout` and `error`.
BAD = {"hang": (1, 0), "c": (1, 0)} | dict.fromkeys(
    ["raise", "exit", "leave", "segfault", "memory", "nothing", "nan"], (0, 1)
)

SETTINGS = {
    "keys": default_fields({"score": 0.0, "form": 0.0, "pred": ""}),
    "wrong_score": -1.0,
    "seconds": 2.0,
    "on_failure": "score",
}


@pytest.fixture
def reward_file(tmp_path):
    path = tmp_path / "my_reward.py"
    path.write_text(REWARD, encoding="utf-8")
    return path


@pytest.fixture
def guard(reward_file):
    with closing(Guard(f"{reward_file}:compute_score", GuardSettings(**SETTINGS))) as guard:
        yield guard


@pytest.fixture
def score_on_a_loop(reward_file):
    name = f"{reward_file}:compute_score_async"
    with closing(Guard(name, GuardSettings(**SETTINGS), is_async=True)) as guard:

        async def score_all(responses):
            tasks = [guard.compute_score_async(**call(text)) for text in responses]
            return await asyncio.gather(*tasks)

        yield lambda responses: asyncio.run(score_all(responses))


def call(response, **others):
    arguments = {"data_source": "test", "solution_str": response, "ground_truth": "18"}
    return {**arguments, "extra_info": {"index": 1}, **others}


def check(response, result):
    assert list(result) == list(SETTINGS["keys"])
    timeout, error = BAD.get(response, (0, 0))
    assert (result["timeout"], result["error"]) == (timeout, error), response
    assert result["score"] == (1.0 if response == "18" else -1.0)


def test_each_bad_call_costs_its_own_sample_in_many_threads(guard):
    """16 threads score a mix of good and bad responses; all get a result of their own."""
    responses = [*BAD, "18", "17", *(["18"] * 40)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda text: guard.compute_score(**call(text)), responses))
    for response, result in zip(responses, results, strict=True):
        check(response, result)


@pytest.mark.full
def test_each_bad_call_costs_its_own_sample_on_one_event_loop(score_on_a_loop):
    """The same for a coroutine function, whose calls run at once in one process."""
    late = ["wait", "stubborn", "task"]
    responses = [*BAD, *late, "18", "17", *(["18"] * 40)]
    for response, result in zip(responses, score_on_a_loop(responses), strict=True):
        check("hang" if response in late else response, result)


FORKS = ["fork", "fork and raise", "fork and exit", "fork and wait", "fork in a task"]


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.full)])
def test_a_coroutine_function_that_forks_answers_once_and_for_itself(score_on_a_loop, rounds):
    """The copy of the process in which the fork returns sends nothing and runs no other call."""
    responses = [*FORKS, *["18"] * 12] * rounds
    results = score_on_a_loop(responses)
    assert [result["pred"] for result in results] == responses
    assert not any(result["error"] or result["timeout"] for result in results)


def test_a_function_runs_on_the_main_thread_of_its_process(guard):
    """So `signal.alarm`, which raises in verl's threads, works in a guarded reward."""
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: guard.compute_score(**call("pid")), range(8)))
    assert {result["pred"] for result in results} == {"MainThread"}
    assert os.getpid() not in {result["form"] for result in results}


def test_the_function_gets_the_arguments_that_verl_adds(reward_file):
    """Options of the guard, those of verl, and objects that are sent once to each process."""
    settings = GuardSettings(**SETTINGS, options={"limit": 3})
    tokenizer = Path("stands for an object")  # not one of the plain types
    with closing(Guard(f"{reward_file}:compute_score", settings)) as guard:
        result = guard.compute_score(**call("kwargs", reward_router_address="h:1"))
        assert result["pred"] == "['limit', 'reward_router_address']"
        result = guard.compute_score(**call("kwargs", reward_model_tokenizer=tokenizer, limit=1))
        assert result["pred"] == "['limit', 'reward_model_tokenizer']"


def test_a_guard_is_pickled_without_its_processes(guard):
    """verl's manager `remote` sends the reward to another process."""
    check("18", guard.compute_score(**call("18")))
    with closing(pickle.loads(pickle.dumps(guard))) as copy:
        check("18", copy.compute_score(**call("18")))
        assert copy.settings == guard.settings


def test_verl_gets_a_coroutine_function_only_if_it_awaits_it(reward_file, monkeypatch):
    """verl 0.5 would take the coroutine for the score, so it gets a function."""
    name = f"{reward_file}:compute_score_async"
    for awaits in (True, False):
        monkeypatch.setattr("rewardkit.guard.guard.verl_awaits_rewards", lambda a=awaits: a)
        with closing(Guard(name, GuardSettings(**SETTINGS), is_async=True)) as guard:
            function = reward_function(guard)
            assert asyncio.iscoroutinefunction(function) == awaits
            result = function(**call("18"))
            check("18", asyncio.run(result) if awaits else result)


def test_a_missing_file_is_looked_for_beside_the_guarded_one(reward_file, tmp_path):
    """A cluster may have the two files elsewhere, in one folder."""
    beside = str(reward_file.with_name("guarded.py"))
    guard = Guard("/nowhere/my_reward.py:compute_score", GuardSettings(**SETTINGS), beside=beside)
    with closing(guard):
        check("18", guard.compute_score(**call("18")))
