"""Programs are graded in a Ray actor with real verl: no verdict is swapped, and nothing is left behind.

`REWARDKIT_PROGRAMS=10000` grades as many programs, and a hundred endless ones.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.row import write_rows
from rewardkit.scorers.load import location
from tests.integration.conftest import needs_rehearsal, row
from tests.launch.conftest import processes

PROGRAMS = int(os.environ.get("REWARDKIT_PROGRAMS", "200"))
ENDLESS = PROGRAMS // 100 if PROGRAMS < 10_000 else 100


class Grader:
    """A reward worker, with the function that verl loads from a file."""

    def __init__(self, config, folder):
        import tempfile

        from verl.trainer.ppo.reward import get_custom_reward_fn

        self.folder = tempfile.tempdir = folder
        self.score = get_custom_reward_fn(config)
        self.score("rewardkit/code", *sample(0))

    def facts(self):
        """Return the worker's descriptors and child processes, and the folders of programs."""
        below = children(os.getpid())
        server = next(each for each in below if b"bwrap" not in command(each).partition(b"\0")[0])
        (folder,) = Path(f"/proc/{server}/root/{self.folder}").iterdir()
        return {
            "pid": os.getpid(),
            "descriptors": len([*Path("/proc/self/fd").iterdir()]),
            "processes": len(below),
            "folders": [each.name for each in folder.iterdir()],
        }

    def grade(self, samples, options):
        """Return the outcome of each sample, from 64 threads."""
        from concurrent.futures import ThreadPoolExecutor

        def one(sample):
            return self.score("rewardkit/code", *sample, **options)

        with ThreadPoolExecutor(64) as pool:
            return [(each["score"], each["timeout"]) for each in pool.map(one, samples)]


def children(pid):
    """Return the processes below a process."""
    below = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = path.joinpath("stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            below += [int(path.name), *children(int(path.name))]
    return below


def command(pid):
    """Return the command of a process; nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def sample(number, endless=False):
    """Return a program that prints its number, and a test that expects it, or another for odd ones."""
    program = "while True: pass" if endless else f"print(int(input()) + {number})"
    truth = {"inputs": ["1\n"], "outputs": [f"{number + 1 + number % 2}\n"]}
    return program, json.dumps(truth)


@pytest.fixture
def grader(private_ray, compose, tmp_path):
    config = compose(f"reward.custom_reward_function.path={location('code')}")
    actor = private_ray.remote(Grader).options(num_cpus=0).remote(config, str(tmp_path))
    yield lambda name, *arguments: getattr(actor, name).remote(*arguments)
    private_ray.kill(actor)


def test_64_threads_of_a_worker_swap_no_verdict_and_leave_nothing(private_ray, grader):
    private_ray.get(grader("grade", [sample(i) for i in range(64)], {}))  # threads are started
    before = settled(private_ray, grader)
    outcomes = private_ray.get(grader("grade", [sample(i) for i in range(PROGRAMS)], {}))
    wrong = [i for i, (reward, _) in enumerate(outcomes) if reward != float(i % 2 == 0)]
    assert wrong == []
    after = settled(private_ray, grader)
    assert after["processes"] == before["processes"]
    assert after["descriptors"] <= before["descriptors"] + 8  # Ray opens a few
    assert after["folders"] == []


def test_endless_programs_do_not_stop_others(private_ray, grader):
    endless = [sample(i, endless=True) for i in range(ENDLESS)]
    samples = [each for i, slow in enumerate(endless) for each in (slow, sample(2 * i))]
    outcomes = private_ray.get(grader("grade", samples, {"seconds": 0.5}))
    assert set(outcomes[::2]) == {(0.0, 1.0)}
    assert {reward for reward, _ in outcomes[1::2]} == {1.0}
    assert settled(private_ray, grader)["folders"] == []


def test_a_killed_worker_leaves_nothing_running(private_ray, grader, tmp_path):
    pid = private_ray.get(grader("facts"))["pid"]
    grader("grade", [sample(i, endless=True) for i in range(8)], {"seconds": 60})
    deadline = time.monotonic() + 30
    while len(left := children(pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(left) >= 4
    os.kill(pid, 9)
    time.sleep(5)
    assert [each for each in left if command(each)] == []
    assert [*tmp_path.iterdir()] == []


def settled(private_ray, grader):
    """Return the facts of the worker once its programs have ended, or after some seconds."""
    for _ in range(20):
        time.sleep(0.25)
        facts = private_ray.get(grader("facts"))
        if not facts["folders"]:
            break
    return facts


@needs_rehearsal
def test_a_grpo_run_on_programs_logs_how_many_tests_passed(plan, tmp_path):
    truth = json.dumps({"inputs": ["1\n"], "outputs": ["2\n"]})
    rows = (row(i, f"Add {i} to it.", truth, "rewardkit/code", scorer="code") for i in range(16))
    write_rows(rows, tmp_path / "code.parquet", {})
    result = rehearse(plan(location("code"), data=tmp_path / "code.parquet"), folder=tmp_path / "r")
    assert result.ok, result.checks
    metrics = {"tests_passed", "tests_run", "sandbox_level"}
    log = (tmp_path / "r/verl.log").read_text() + (tmp_path / "r/metrics.jsonl").read_text()
    assert not [name for name in metrics if f"rewardkit/code/{name}" not in log]
    assert not [line for _, line in processes() if str(tmp_path) in line]
