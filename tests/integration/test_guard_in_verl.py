"""Guarded rewards in real verl: its reward workers, managers and trainers in private Ray clusters."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.row import write_rows
from tests.integration.conftest import make_batch, needs_rehearsal, reward_settings, row

#: Timeout of a guarded call, and seconds after which a test gives up; the rewards hang for longer.
SECONDS, PATIENCE = 2.0, 300.0

#: Settings of managers: processes of `remote`, and calls at a time.
EXTRA = {"remote": ["reward.num_workers=1"], "rate_limited": ["+reward.max_concurrent=8"]}

#: What a reward may do, by the row's index: the mixture of every batch.
COMMON = """
import ctypes, math, os, re, sys, time
import numpy as np

def parts(solution_str, ground_truth):
    return {"score": float(solution_str == ground_truth), "length": len(solution_str)}

def fail():
    raise LookupError("no such unit")

def allocate():
    blocks = []
    while True:
        blocks.append(bytearray(16 << 20))

def returned(kind, result):
    return {
        "nan": {**result, "score": math.nan},
        "infinite_part": {**result, "length": math.inf},
        "missing_part": {"score": result["score"]},
        "bare": result["score"],
        "text": "a text",
        "numpy": {"score": np.float32(result["score"]), "length": np.int64(result["length"])},
    }.get(kind, result)
"""

SYNC_KINDS = (
    "good", "wrong", "sleep", "regex", "raise", "exit", "os_exit", "segfault", "memory",
    "nan", "infinite_part", "missing_part", "bare", "text", "numpy", "good",
)  # fmt: skip
SYNC = f"""{COMMON}
KINDS = {SYNC_KINDS!r}
ACTIONS = {{
    "sleep": lambda: time.sleep(600),
    "regex": lambda: re.match(r"(a+)+$", "a" * 60 + "b"),  # one call of C code, which holds the GIL
    "raise": fail,
    "exit": lambda: sys.exit(3),
    "os_exit": lambda: os._exit(0),
    "segfault": lambda: ctypes.string_at(0),
    "memory": allocate,
}}

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    kind = KINDS[extra_info["index"] % len(KINDS)]
    ACTIONS.get(kind, lambda: None)()
    return returned(kind, parts(solution_str, ground_truth))
"""

ASYNC_KINDS = (
    "good", "wrong", "slow", "block", "raise", "exit", "os_exit", "segfault",
    "nan", "missing_part", "bare", "good",
)  # fmt: skip
ASYNC = f"""{COMMON}
import asyncio
KINDS = {ASYNC_KINDS!r}

async def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    kind = KINDS[extra_info["index"] % len(KINDS)]
    await asyncio.sleep(600 if kind == "slow" else 0.01)
    actions = {{
        "block": lambda: time.sleep(600),
        "raise": fail,
        "exit": lambda: sys.exit(3),
        "os_exit": lambda: os._exit(0),
        "segfault": lambda: ctypes.string_at(0),
    }}
    actions.get(kind, lambda: None)()
    return returned(kind, parts(solution_str, ground_truth))
"""

#: A reward that fails on every row, because it reads a field that no row has.
BROKEN = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return extra_info["difficulty"] / 10
"""

#: The keys of a sample, in the order of `expected`.
NAMES = ("score", "acc", "timeout", "error", "length")

TIMEOUTS = {"sleep", "regex", "slow", "block"}
ERRORS = {"raise", "exit", "os_exit", "segfault", "memory", "nan", "text"}


def respond(kinds):
    """Return the function that answers a row: right, unless its kind is `wrong`."""

    def answer(each):
        kind = kinds[each["extra_info"]["index"] % len(kinds)]
        return "0" if kind == "wrong" else each["reward_model"]["ground_truth"]

    return answer


def expected(kind):
    """Return score, acc, timeout, error and the part of a sample of a kind; each answer has 1 digit."""
    is_late, is_error = kind in TIMEOUTS, kind in ERRORS
    score = float(kind != "wrong" and not is_late and not is_error)
    has_part = (
        not is_late and not is_error and kind not in {"infinite_part", "missing_part", "bare"}
    )
    is_error |= kind == "infinite_part"
    return score, score, float(is_late), float(is_error), float(has_part)


def write_parquet(out, count):
    """Write rows of sums whose answers have one digit."""
    write_rows((row(i, f"What is {i % 9} + 1?", i % 9 + 1) for i in range(count)), out, {})
    return out


def guard(reward, out, *options):
    """Run `rewardkit guard` and return the file that it writes."""
    command = [sys.executable, "-m", "rewardkit", "guard", f"{reward}:compute_score", "--out", out]
    done = subprocess.run(
        [*map(str, command), "--seconds", str(SECONDS), *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def guarded(tmp_path):
    """Write a reward and guard it: `guarded(source, *options)` is the path of the guarded file."""

    def write(source, *options):
        (tmp_path / "reward.py").write_text(source)
        return guard(tmp_path / "reward.py", tmp_path / "guarded.py", *options)

    return write


@pytest.fixture
def score(private_ray, reward_worker, compose, tokenizer, tmp_path):
    """Score rows with a reward and a manager in the actor: (rewards, extra keys of every sample)."""

    def run(manager, location, count, answer):
        config = compose(*reward_settings(manager, location), *EXTRA.get(manager, ()))
        parquet = tmp_path / f"{count}.parquet"
        if not parquet.exists():
            write_parquet(parquet, count)
        data = make_batch(config, tokenizer, [parquet], answer)
        result = reward_worker.score.remote(config, data)
        return private_ray.get(result, timeout=PATIENCE)

    return run


def check_mixture(kinds, rewards, extras):
    """Every sample is scored as its kind deserves, with the same keys."""
    assert {frozenset(extra) for extra in extras} == {
        frozenset({"score", "length", "acc", "timeout", "error", *_added_keys(extras)})
    }
    outcomes = [tuple(extra[name] for name in NAMES) for extra in extras]
    assert outcomes == [expected(kind) for kind in kinds]
    assert rewards == [outcome[0] for outcome in outcomes]


def _added_keys(extras):
    """Return the keys that the manager dapo adds."""
    return {"overlong", "overlong_reward"} & extras[0].keys()


@pytest.mark.parametrize("manager", ["naive", "dapo", "rate_limited", "remote"])
def test_one_batch_bears_every_failure(score, guarded, manager):
    """Each sample of a batch of sixteen kinds is scored or flagged, whatever its neighbours do."""
    location = guarded(SYNC, "--memory-mb", "256")
    rewards, extras = score(manager, location, len(SYNC_KINDS), respond(SYNC_KINDS))
    check_mixture(SYNC_KINDS, rewards, extras)


def test_one_batch_of_a_coroutine_bears_every_failure(score, guarded):
    """A slow call is cancelled, a blocking or crashing one costs itself."""
    location = guarded(ASYNC)
    rewards, extras = score("naive", location, len(ASYNC_KINDS), respond(ASYNC_KINDS))
    check_mixture(ASYNC_KINDS, rewards, extras)


#: A job whose task runner swallows what its reward worker raises, as the V1 trainer does.
SWALLOWING_JOB = """
import sys, time
import ray

@ray.remote(num_cpus=0)
class RewardWorker:
    def score(self):
        from rewardkit.guard.stop import stop_training
        stop_training("the reward is broken.")

@ray.remote(num_cpus=0)
class TaskRunner:
    def run(self):
        worker = RewardWorker.remote()
        while True:
            try:
                ray.get(worker.score.remote())
            except RuntimeError:
                time.sleep(0.1)

ray.init(address=sys.argv[1])
ray.get(TaskRunner.remote().run.remote())
"""


def test_a_job_that_is_stopped_leaves_other_jobs_alone(private_ray):
    """Another job's actors of the same class live on, although they share the private_ray."""

    class TaskRunner:
        def answer(self):
            return "alive"

    other = private_ray.remote(TaskRunner).options(num_cpus=0, max_restarts=0).remote()
    assert private_ray.get(other.answer.remote(), timeout=PATIENCE) == "alive"
    command = [sys.executable, "-c", SWALLOWING_JOB, address_of(private_ray)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "rewardkit guard: the reward is broken." in done.stdout + done.stderr
    # Unavailable: the connection was lost before Ray knew that the actor had ended.
    assert re.search("Actor(Died|Unavailable)Error", done.stderr)
    assert private_ray.get(other.answer.remote(), timeout=PATIENCE) == "alive"


def address_of(cluster):
    return cluster.get_runtime_context().gcs_address


STOPPED = "rewardkit guard: {reward}:compute_score: it failed on all of its first 32 calls"


@pytest.mark.nightly
@needs_rehearsal
def test_a_broken_reward_stops_verl_s_training(guarded, plan, tmp_path):
    """The V1 trainer swallows what a reward raises; the rehearsal's one line says why it ended."""
    location = guarded(BROKEN, "--keys", "score", "--wrong-score", "0")
    rows = write_parquet(tmp_path / "rows.parquet", 32)
    result = rehearse(plan(location, data=rows), folder=tmp_path / "rehearsal", steps=1)
    assert "it failed on all of its first 32 calls" in result.checks[-1].detail
    log = (tmp_path / "rehearsal/verl.log").read_text()
    assert STOPPED.format(reward=tmp_path / "reward.py") in log


@pytest.mark.nightly
@needs_rehearsal
def test_a_guarded_reward_ends_a_rehearsal_well(guarded, plan, tmp_path):
    """A rehearsal with failures below the breaker's share ends, and its table has the flags."""
    location = guarded(SYNC, "--seconds", "0.5", "--memory-mb", "256")  # the last --seconds wins
    rows = write_parquet(tmp_path / "rows.parquet", 32)
    result = rehearse(plan(location, data=rows), folder=tmp_path / "rehearsal", steps=1)
    assert result.ok, result.checks
    details = {check.name: check.detail for check in result.checks}
    assert {"timeout", "error", "length"} < set(details["metrics"].replace(",", "").split())
