"""What a guard costs for each call of a reward that takes no time, beside ways with less safety.

Run it on a quiet machine: `python benchmarks/guard.py`. With `--verl-python` it runs once more inside
an actor of a private Ray, where verl's reward loop calls rewards from threads. The bare pipe sends as
many bytes to another process and back, one call at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from worker import bare_pipe

from rewardkit.guard.guard import Guard, GuardSettings, default_fields

REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return {"score": float(solution_str.endswith(ground_truth)), "form": 1.0}

async def compute_score_async(*arguments, **kwargs):
    return compute_score(*arguments, **kwargs)
"""
CALL = {
    "data_source": "openai/gsm8k",
    "solution_str": "word " * 400 + "#### 18",
    "ground_truth": "18",
    "extra_info": {"index": 1, "split": "train", "question": "q" * 300, "num_turns": 2},
}
THREADS = 16
KEYS = default_fields({"score": 0.0, "form": 0.0})


def pure(call: dict[str, Any]) -> dict[str, float]:
    """The reward without a guard."""
    score = float(call["solution_str"].endswith(call["ground_truth"]))
    return {"score": score, "form": 1.0}


def in_process_of_its_own(call: dict[str, Any]) -> None:
    """Run a call in a new process with a time limit, as many reward functions do."""
    process = multiprocessing.get_context("fork").Process(target=pure, args=(call,))
    process.start()
    process.join(5)


def from_threads(function: Callable[[dict[str, Any]], object], calls: int) -> float:
    """Return the microseconds per call of a function that threads call."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(function, [CALL] * THREADS))
        started = time.perf_counter()
        list(pool.map(function, [CALL] * calls))
        return (time.perf_counter() - started) / calls * 1e6


def one_by_one(function: Callable[[dict[str, Any]], object], calls: int) -> float:
    """Return the microseconds per call of a function that one thread calls."""
    function(CALL)
    started = time.perf_counter()
    for _ in range(calls):
        function(CALL)
    return (time.perf_counter() - started) / calls * 1e6


def at_once(guard: Guard, calls: int) -> float:
    """Return the microseconds per call of a coroutine function with 256 calls in flight."""

    async def work(count: int) -> None:
        for _ in range(count):
            await guard.compute_score_async(**CALL)

    async def run() -> float:
        await guard.compute_score_async(**CALL)
        started = time.perf_counter()
        await asyncio.gather(*(work(calls // 256 + 1) for _ in range(256)))
        return (time.perf_counter() - started) / (256 * (calls // 256 + 1)) * 1e6

    return asyncio.run(run())


def rows(calls: int, times: int) -> list[tuple[str, float]]:
    """Return what each way costs, in microseconds per call; the median of several rounds."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(4) as pool:
        path = Path(folder, "my_reward.py")
        path.write_text(REWARD, encoding="utf-8")
        settings = GuardSettings(keys=KEYS)
        guard = Guard(f"{path}:compute_score", settings)
        coroutine = Guard(f"{path}:compute_score_async", settings, is_async=True)

        def guarded(call: dict[str, Any]) -> object:
            return guard.compute_score(**call)

        ways: dict[str, Callable[[], float]] = {
            "the function itself, 16 threads": lambda: from_threads(pure, calls),
            "guarded, 16 threads": lambda: from_threads(guarded, calls),
            "guarded, one thread": lambda: one_by_one(guarded, calls),
            "guarded coroutine function, 256 at once": lambda: at_once(coroutine, calls),
            "bare pipe, one thread": lambda: statistics.mean(bare_pipe(calls)),
            "ProcessPoolExecutor(4), 16 threads": lambda: from_threads(
                lambda call: pool.submit(pure, call).result(5), calls
            ),
            "a new process per call, one thread": lambda: one_by_one(
                in_process_of_its_own, max(20, calls // 100)
            ),
        }
        with closing(guard), closing(coroutine):
            return [
                (name, statistics.median(way() for _ in range(times))) for name, way in ways.items()
            ]


def print_table(where: str, table: list[tuple[str, float]]) -> None:
    """Print what each way costs, and how much more than the function itself."""
    base = table[0][1]
    print(f"\n{where}:\n")
    print("| what | us per call | more than the function |\n|---|---|---|")
    for name, microseconds in table:
        print(f"| {name} | {microseconds:,.1f} | {microseconds - base:+,.1f} |")


def print_in_actor(calls: int, times: int) -> None:
    """Print the table, measured in an actor of a private Ray."""
    import ray

    with tempfile.TemporaryDirectory(prefix="rk") as folder:
        ray.init(address="local", num_cpus=2, include_dashboard=False, _temp_dir=folder)
        paths = [str(Path(__file__).parent), *sys.path]

        @ray.remote(max_concurrency=THREADS)
        class Worker:
            def rows(self, calls: int, times: int) -> list[tuple[str, float]]:
                sys.path[:] = paths
                import guard

                return guard.rows(calls, times)

        print_table("In a Ray actor", ray.get(Worker.remote().rows.remote(calls, times)))
        ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="number of calls in a round")
    parser.add_argument("--times", type=int, default=5, help="number of rounds")
    parser.add_argument("--verl-python", default="none", help="interpreter that has Ray, or none")
    parser.add_argument("--in-actor", action="store_true", help="only measure in a Ray actor")
    options = parser.parse_args()
    if options.in_actor:
        print_in_actor(options.calls, options.times)
        return
    print_table("In a process", rows(options.calls, options.times))
    sys.stdout.flush()
    if options.verl_python != "none":
        numbers = ["--calls", str(options.calls), "--times", str(options.times)]
        command = [options.verl_python, __file__, "--in-actor", *numbers]
        paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths})


if __name__ == "__main__":
    main()
