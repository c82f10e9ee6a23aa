"""Measure what recording a reward costs, beside logging a line for each call. Prints a table.

    python benchmarks/recorder.py

Each call records ten numbers and a response of 2 kB. The recorder's times include the thread that adds
the calls up and writes them: CPU time of the whole process, until everything is in the file. The
shortest of several rounds counts, because other jobs of the machine only add time.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rewardkit.recorder.writer import Recorder
from rewardkit.scorers import gsm8k
from rewardkit.trainlog.reward_files import read_rewards

RESPONSE = "She has 16 - 3 - 4 = 9 eggs left. " * 60
QUESTION = "How many eggs does she sell at the market every day, and for how much money? " * 3
THREADS = 16
ROUNDS = 5

Add = Callable[[int], object]


def call_of(number: int) -> dict[str, Any]:
    """Return the arguments of `Recorder.add` for a call."""
    parts = {f"part{i}": (number * i % 7) / 8 for i in range(6)}
    flags = {"score": number % 2 / 1, "acc": 1.0, "timeout": 0.0, "error": 0.0}
    return {
        "result": {**flags, **parts, "pred": str(number % 9)},
        "response": f"{RESPONSE}{number}",
        "data_source": "openai/gsm8k",
        "ground_truth": "18",
        "extra_info": {"split": "train", "index": number // 8, "question": QUESTION},
        "seconds": 0.001,
    }


CALLS = [call_of(number) for number in range(4_096)]


def record(folder: str, calls: int, threads: int) -> None:
    """Record calls from several threads, and write them."""
    recorder = Recorder(folder)
    run(lambda number: recorder.add(**CALLS[number % len(CALLS)]), calls, threads)
    recorder.flush()
    slots = read_rewards(folder).slots
    assert sum(slot.count(is_validation=False) for slot in slots) == calls


def log_lines(folder: str, calls: int, threads: int) -> None:
    """Log a line with the numbers of each call."""
    logger = logging.Logger("peer")  # noqa: LOG001 - one that no other module uses
    handler = logging.FileHandler(Path(folder, "log"))
    logger.addHandler(handler)

    def log(number: int) -> None:
        call = CALLS[number % len(CALLS)]
        logger.info("%s %s %s", call["data_source"], len(call["response"]), call["result"])

    run(log, calls, threads)
    handler.close()


def write_json(folder: str, calls: int, threads: int) -> None:
    """Write each call as a line of JSON, as verl dumps rollouts."""
    with Path(folder, "dump").open("a", encoding="utf-8") as file:

        def write(number: int) -> None:
            call = CALLS[number % len(CALLS)]
            file.write(json.dumps({"output": call["response"], **call["result"]}) + "\n")

        run(write, calls, threads)


def run(add: Add, calls: int, threads: int) -> None:
    """Call a function with the numbers of the calls, in several threads or in this one."""

    def add_all(numbers: range) -> None:
        for number in numbers:
            add(number)

    if threads == 1:
        add_all(range(calls))
        return
    share = calls // threads
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add_all, [range(i * share, (i + 1) * share) for i in range(threads)]))


def microseconds(action: Callable[[str, int, int], None], calls: int, threads: int) -> float:
    """Return the CPU time of a call, over the whole process."""
    best = float("inf")
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            action(folder, calls, threads)
            best = min(best, time.process_time() - started)
    return best / calls * 1e6


def scorer_overhead(calls: int) -> tuple[float, float]:
    """Return the CPU time of `gsm8k` for verl without and with `record`."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for options in ({}, {"record": folder}):

            def score(_folder: str, calls: int, _threads: int, options: Any = options) -> None:
                info = CALLS[0]["extra_info"]
                for _ in range(calls):
                    gsm8k.compute_score("gsm8k", f"{RESPONSE}#### 18", "18", info, **options)

            times.append(microseconds(score, calls, 1))
    return times[0], times[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=200_000, help="number of timed calls")
    calls = parser.parse_args().calls // THREADS * THREADS
    print("| what | 1 thread | 16 threads |\n|---|---|---|")
    for name, action in (
        ("recorder", record),
        ("a line of `logging` per call", log_lines),
        ("a line of JSON with the response per call", write_json),
    ):
        one, many = (microseconds(action, calls, threads) for threads in (1, THREADS))
        print(f"| {name} | {one:.1f} us | {many:.1f} us |")
    plain, recorded = scorer_overhead(calls)
    print(f"\n`gsm8k` takes {plain:.1f} us for verl, and {recorded:.1f} us with `record`.")


if __name__ == "__main__":
    main()
