"""The background loop: shared by threads and loops, and new in a forked process."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from rewardkit import background_loop


async def running_loop():
    return id(asyncio.get_running_loop())


def test_threads_and_loops_share_one_loop():

    async def call():
        return await asyncio.wrap_future(background_loop.submit(running_loop()))

    with ThreadPoolExecutor(4) as pool:
        loops = set(pool.map(lambda _: background_loop.submit(running_loop()).result(5), range(16)))
    assert loops == {asyncio.run(call())}


def test_a_forked_process_has_a_loop_of_its_own():
    background_loop.submit(running_loop()).result(5)
    if (child := os.fork()) == 0:
        background_loop.submit(running_loop()).result(5)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_loop_is_the_standard_one_whatever_is_installed(monkeypatch):
    """Ray's actors install uvloop, which makes the sockets that it watches non-blocking."""

    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self):
            raise AssertionError("the policy was asked for a loop")

    if (child := os.fork()) == 0:  # a fork starts a loop of its own
        asyncio.set_event_loop_policy(Policy())
        background_loop.submit(running_loop()).result(5)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
