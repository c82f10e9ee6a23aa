"""Measure what recording a reward costs, beside logging a line for each call. Prints a table.

    python benchmarks/recorder.py

Each call records ten numbers and a response of 2 kB. Times are CPU time of the whole process; the shortest
of several rounds counts, because other jobs of the machine only add time.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rewardkit.recorder.writer import Recorder
from rewardkit.scorers import gsm8k

RESPONSE = "She has 16 - 3 - 4 = 9 eggs left. " * 60
QUESTION = "How many eggs does she sell at the market every day, and for how much money? " * 3
THREADS, ROUNDS = 16, 5


def call_of(number: int) -> dict[str, Any]:
    """Return the arguments of `Recorder.add` for a call."""
    parts = {f"part{i}": (number * i % 7) / 8 for i in range(6)}
    flags = {"score": number % 2 / 1, "acc": 1.0, "timeout": 0.0, "error": 0.0}
    return {
        "result": {**flags, **parts, "pred": str(number % 9)},
        "response": f"{RESPONSE}#### {number}",
        "data_source": "openai/gsm8k",
        "ground_truth": "18",
        "extra_info": {"split": "train", "index": number // 8, "question": QUESTION},
        "seconds": 0.001,
    }


CALLS = [call_of(number) for number in range(4_096)]


def record(folder: str) -> Callable[[int], object]:
    """Return a function that records a call by its number."""
    recorder = Recorder(folder)
    return lambda number: recorder.add(**CALLS[number % len(CALLS)])


def log_lines(folder: str) -> Callable[[int], object]:
    """Return a function that logs a line with the numbers of a call."""
    logger = logging.Logger("peer")  # noqa: LOG001 - one that no other module uses
    logger.addHandler(logging.FileHandler(Path(folder, "log")))

    def log(number: int) -> None:
        call = CALLS[number % len(CALLS)]
        logger.info("%s %s %s", call["data_source"], len(call["response"]), call["result"])

    return log


def score(folder: str = "") -> Callable[[int], object]:
    """Return a function that scores a response for verl, recorded in a folder if there is one."""
    options = {"record": folder} if folder else {}
    info = CALLS[0]["extra_info"]
    return lambda _: gsm8k.compute_score("gsm8k", f"{RESPONSE}#### 18", "18", info, **options)


def run(action: Callable[[int], object], calls: int) -> None:
    """Call a function with the numbers of the calls."""
    for number in range(calls):
        action(number)


def microseconds(
    make: Callable[[str], Callable[[int], object]], calls: int, threads: int
) -> tuple[float, float]:
    """Return the CPU time of a call, and the bytes that it wrote."""
    best, size = float("inf"), 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            action = make(folder)
            started = time.process_time()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, [action] * threads, [calls // threads] * threads))
            best = min(best, time.process_time() - started)
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
    return best / calls * 1e6, size / calls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=50_000, help="number of timed calls")
    calls = parser.parse_args().calls
    print("| what | 1 thread | 16 threads | bytes a call |\n|---|---|---|---|")
    for name, make in (("recorder", record), ("a line of `logging` per call", log_lines)):
        (one, size), (many, _) = (microseconds(make, calls, threads) for threads in (1, THREADS))
        print(f"| {name} | {one:.1f} us | {many:.1f} us | {size:.0f} |")
    plain, recorded = microseconds(lambda _: score(), calls, 1)[0], microseconds(score, calls, 1)[0]
    print(f"\n`gsm8k` takes {plain:.1f} us for verl, and {recorded:.1f} us with `record`.")


if __name__ == "__main__":
    main()
