"""Measure a function in a child process: round trip, lateness of kills, recovery, leaks. Prints a table.

Run it on a quiet machine: `python benchmarks/worker.py`. The bare pipe sends the same number of bytes
to a forked process and back, in the same run. Where the scheduler spreads two processes over two
CPUs, waking them takes most of both times; `taskset -c 1` shows the share of the code.
"""

# ruff: noqa: SLF001 - processes are counted

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from rewardkit.isolate import child_process
from rewardkit.isolate.child_process import ChildTimeoutError
from rewardkit.isolate.function import IsolatedFunction, Reply
from rewardkit.isolate.serve import Limits

TARGETS = """
import re
from rewardkit.isolate.serve import Loaded
one = lambda _: 1
catastrophe = lambda n: bool(re.match("(a|aa)+$", "a" * n + "b"))
digits = lambda n: (7 ** n) ** 7 > 0

def loop(_):
    while True:
        pass

def load():
    return Loaded(lambda request: globals()[request[0]](request[1]))
"""
CPU_SECONDS = 0.2


def timed(action: Callable[[], object], times: int) -> list[float]:
    """Return the microseconds of each run of an action, sorted."""
    microseconds = []
    for _ in range(times):
        started = time.perf_counter_ns()
        action()
        microseconds.append((time.perf_counter_ns() - started) / 1000)
    return sorted(microseconds)


def bare_pipe(times: int) -> list[float]:
    """Return the microseconds of sending 40 bytes to a forked process and back."""
    (request, to_child), (from_child, reply) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(to_child)
        while data := os.read(request, 65536):
            os.write(reply, data)
        os._exit(0)

    def round_trip() -> None:
        os.write(to_child, b"x" * 40)
        os.read(from_child, 65536)

    microseconds = timed(round_trip, times)
    os.close(to_child)
    os.wait()
    return microseconds


def isolated() -> IsolatedFunction:
    """Return the targets in a process of their own."""
    limits = Limits(cpu_seconds=CPU_SECONDS)
    load = import_module("bench_targets").load
    return IsolatedFunction(load, (), "bench_targets", limits)


def time_kills(
    function: IsolatedFunction, name: str, payload: int, times: int
) -> tuple[list[float], list[float]]:
    """Return the milliseconds from the CPU deadline to the kill, and to the next good answer."""
    late, good = [], []
    for _ in range(times):
        started = time.perf_counter()
        outcome = function.call((name, payload))
        late.append((time.perf_counter() - started - CPU_SECONDS) * 1000)
        assert isinstance(outcome, ChildTimeoutError), outcome
        good.append(timed(lambda: function.call(("one", 0)), 1)[0] / 1000)
    return late, good


def resources_in_use() -> tuple[int, int, int]:
    """Count descriptors, helpers, and resident kB of this process and of its helpers' processes."""
    sessions = {str(helper._process.pid) for helper in child_process._live}
    pages = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process may have ended
            session = (folder / "stat").read_text().rpartition(")")[2].split()[3]
            if session in sessions or folder.name == str(os.getpid()):
                pages += int((folder / "statm").read_text().split()[1])
    return len([*Path("/proc/self/fd").iterdir()]), len(child_process._live), pages * 4


def print_row(what: str, values: list[float], unit: str) -> None:
    """Print a row of the table."""
    values = sorted(values)
    p99 = values[int(len(values) * 0.99)]
    print(f"| {what} | {statistics.median(values):.1f} {unit} | {p99:.1f} {unit} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, default=20_000, help="number of timed calls")
    parser.add_argument(
        "--kills", type=int, default=20, help="number of kills for each kind of hang"
    )
    parser.add_argument(
        "--calls", type=int, default=100_000, help="number of calls before leaks are counted"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bench_targets.py").write_text(TARGETS, encoding="utf-8")
        sys.path.insert(0, folder)
        print_table(options.trips, options.kills, options.calls)


def print_table(trips: int, times: int, calls: int) -> None:
    """Print the table."""
    print("| what | median | p99 |\n|---|---|---|")
    print_row("bare pipe there and back", bare_pipe(trips), "us")
    function = isolated()
    assert isinstance(function.call(("one", 0)), Reply)
    print_row("call, warm", timed(lambda: function.call(("one", "x^2+1")), trips), "us")
    for title, name, payload in (
        ("Python loop", "loop", 0),
        ("re in C", "catastrophe", 200),
        ("long integers in C", "digits", 5_000_000),
    ):
        late, good = time_kills(function, name, payload, times)
        print_row(f"{title}: killed after its deadline", late, "ms")
        print_row(f"{title}: next good answer", good, "ms")
    before = resources_in_use()
    for _ in range(calls):
        function.call(("one", 0))
    print(
        f"\nDescriptors, helpers, resident kB: {before}; after {calls:,} calls: {resources_in_use()}"
    )


if __name__ == "__main__":
    main()
