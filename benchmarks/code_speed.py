"""Measure the processor time of grading a trivial program with twelve tests, ours and the peers'. Prints a table.

    python benchmarks/code_speed.py --livecodebench ../LiveCodeBench --verl-python .venv-verl-0.9.1/bin/python

Each way runs in a process of its own on one core, one program after another. The time is that of all its
processes: for the peers what the kernel has added up of ended children, which leaves nothing out because
they wait for them. Our server does not wait for its jobs, so the time of a job is read from /proc until it
has ended, and that of its runners is in their reports. The wall time counts only on an idle machine.

`sandbox_fusion` is verl's client against a stand-in for the server, which starts `python` for each request,
as the real one does, and isolates nothing, as the real one by default. `livecodebench` is its
`check_correctness`, from a clone of its repository.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PROGRAM = "print(input())"
TESTS = {
    "inputs": [f"{number}\n" for number in range(12)],
    "outputs": [f"{number}\n" for number in range(12)],
}
#: The targets: CPU milliseconds of a program, and programs a second on one core.
MILLISECONDS, PROGRAMS = 25, 40


def ended_seconds() -> float:
    """Return the processor time of this process and of all children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in usages)


def running_seconds(pid: int) -> float:
    """Return the processor time of a running process, without its children."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def rewardkit(repeat: int) -> tuple[float, float]:
    """Grade the program some times. Return the seconds of all processes, and of the runners."""
    from rewardkit.programs import local
    from rewardkit.programs.grade import Grading, grade_locally
    from rewardkit.programs.problem import read_problem

    jobs, runners, servers = [0.0], [0.0], []
    watching = [0.0]  # what this script itself takes

    class Measured(local.Sandbox):
        def __init__(self) -> None:
            super().__init__(bubblewrap=False)  # so that the server is our child

        @contextmanager
        def program(self, source: str, facts: Any) -> Iterator[local.Run]:
            servers.append(self._process.pid)
            with super().program(source, facts) as run:
                test = run.test

                def measured(*arguments: Any) -> Any:
                    report, output = test(*arguments)
                    runners[0] += report["cpu_seconds"]
                    return report, output

                run.test = measured  # type: ignore[method-assign]
                yield run
                started = time.thread_time()
                children = (
                    Path("/proc/{0}/task/{0}/children".format(servers[-1])).read_text().split()
                )
            seconds = 0.0
            with suppress(OSError, IndexError):
                while time.thread_time() - started < 1:
                    seconds = running_seconds(int(children[-1]))
            jobs[0] += seconds
            watching[0] += time.thread_time() - started

    local.Sandbox = Measured  # type: ignore[misc]
    problem, grading = read_problem(json.dumps(TESTS)), Grading()
    assert grade_locally(problem, PROGRAM, grading).is_right
    server = servers[-1]
    jobs[0] = runners[0] = watching[0] = 0.0
    before = time.process_time() + running_seconds(server)
    for _ in range(repeat):
        assert grade_locally(problem, PROGRAM, grading).is_right
    own = time.process_time() + running_seconds(server) - before - watching[0]
    return own + jobs[0] + runners[0], runners[0]


def prime_code() -> Callable[[], Any]:
    from verl.utils.reward_score import prime_code

    return lambda: prime_code.compute_score(PROGRAM, dict(TESTS))[0]


def livecodebench() -> Callable[[], Any]:
    from lcb_runner.evaluation.compute_code_generation_metrics import check_correctness

    sample = {"input_output": json.dumps(TESTS)}
    return lambda: all(
        each is True for each in check_correctness(sample, PROGRAM, timeout=6, debug=False)[0]
    )


class StandIn(BaseHTTPRequestHandler):
    """A server that runs the program of a request with `python`, and answers as SandboxFusion does."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done = subprocess.run(
            [sys.executable, "-c", request["code"]],
            input=request["stdin"],
            capture_output=True,
            text=True,
            check=False,
        )
        result = {"status": "Finished", "stdout": done.stdout, "stderr": done.stderr}
        body = {"status": "Success", "run_result": {**result, "return_code": done.returncode}}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def sandbox_fusion() -> Callable[[], Any]:
    from verl.utils.reward_score import sandbox_fusion

    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, fenced = f"http://127.0.0.1:{server.server_port}/run_code", f"```python\n{PROGRAM}\n```"
    return lambda: sandbox_fusion.compute_score(url, None, 1024, fenced, dict(TESTS))[0]


PEERS = {each.__name__: each for each in (prime_code, livecodebench, sandbox_fusion)}


def measure(way: str, repeat: int) -> dict[str, float]:
    """Return the processor and wall seconds of a program, on one core."""
    os.sched_setaffinity(0, {0})
    if way in PEERS:
        grade = PEERS[way]()
        assert grade() == 1, "the peer refuses a right program"
        started, before = time.perf_counter(), ended_seconds()
        for _ in range(repeat):
            grade()
        cpu, runners = ended_seconds() - before, 0.0
    else:
        started = time.perf_counter()
        cpu, runners = rewardkit(repeat)
    wall = time.perf_counter() - started
    return {"cpu": cpu / repeat, "runners": runners / repeat, "wall": wall / repeat}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=100, help="programs of each way and pass")
    parser.add_argument("--passes", type=int, default=3, help="the least processor time counts")
    parser.add_argument("--verl-python", type=Path, help="interpreter with verl, for the peers")
    parser.add_argument("--livecodebench", type=Path, help="clone of LiveCodeBench")
    parser.add_argument("--way", help="measure one way in this process, and print it as JSON")
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.programs)))
        return
    figures: dict[str, dict[str, float]] = {}
    for way in ("rewardkit", *PEERS) * options.passes:
        python: Path | None = Path(sys.executable) if way == "rewardkit" else options.verl_python
        if (
            not python
            or not python.exists()
            or (way == "livecodebench" and not options.livecodebench)
        ):
            figures.setdefault(way, {})
            continue
        repeat = options.programs if way == "rewardkit" else max(1, options.programs // 5)
        command = [python, __file__, "--way", way, "--programs", str(repeat)]
        path = os.pathsep.join(map(str, filter(None, (options.livecodebench, sys.path[0]))))
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{way}: {done.stderr[-2000:]}")
        one = json.loads(done.stdout.splitlines()[-1])
        if not figures.get(way) or one["cpu"] < figures[way]["cpu"]:
            figures[way] = one
    base = figures["rewardkit"]["cpu"]
    print("| what | CPU ms a program | programs a second of a core | ours = 1 | wall ms |")
    print("|---|---|---|---|---|")
    for way, one in figures.items():
        if not one:
            print(f"| {way} | not measured | | | |")
            continue
        print(
            f"| {way} | {one['cpu'] * 1000:.1f} | {1 / one['cpu']:.1f} "
            f"| {one['cpu'] / base:.1f} | {one['wall'] * 1000:.0f} |"
        )
    runners = figures["rewardkit"]["runners"]
    met = base * 1000 <= MILLISECONDS and 1 / base >= PROGRAMS
    print(
        f"\nOf ours, {runners * 1000:.1f} ms are in the twelve runners. The target of {MILLISECONDS} ms "
        f"and {PROGRAMS} programs a second is {'met' if met else 'missed'}."
    )


if __name__ == "__main__":
    main()
