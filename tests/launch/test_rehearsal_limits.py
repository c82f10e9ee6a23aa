"""A rehearsal ends at its time limit, or at a call of the scorer that hangs, and says what it did."""

from __future__ import annotations

import os
import shlex
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.launch.rehearsal import rehearse as rehearse_module
from rewardkit.launch.rehearsal.engines import ENGINES
from rewardkit.launch.rehearsal.hanging_calls import find_hanging_call, line_of_thread
from rewardkit.launch.rehearsal.row_sample import RowSample
from rewardkit.launch.rehearsal.run_command import run_command
from rewardkit.launch.rehearsal.run_monitor import RunMonitor, last_activity
from rewardkit.launch.rehearsal.sandbox import Sandbox
from tests.launch.scorer_caller import HANGING, caller


@pytest.mark.parametrize("kind", HANGING)
def test_a_call_that_hangs_is_found_with_its_line_and_its_row(tmp_path, kind):
    """A regex holds the interpreter's lock while it hangs; a coroutine that waits is on no stack."""
    command, env = caller(tmp_path, HANGING[kind])
    monitor = RunMonitor(tmp_path, steps=2, limit=1, progress=lambda _: None)
    outcome = run_command(command, env, tmp_path / "verl.log", 120, monitor)
    assert outcome.exit_code is None
    assert monitor.hanging_call is not None, (tmp_path / "verl.log").read_text()
    text = monitor.hanging_call.describe()
    assert text.startswith(f"{tmp_path / 'mine.py'}:5: a call of the scorer has not returned after")
    assert "extra_info.index 2, data_source 'd', ground_truth '7'" in text
    assert "the response begins with 'an answer'. Fix the scorer, or raise" in text


STACKS = """\
Thread 0x0000000000000010 (most recent call first):
  File "/home/me/mine.py", line 3 in helper

Current thread 0x0000000000000020 [MainThread] (most recent call first):
  File "/usr/lib/python3.11/re.py", line 166 in match
  File "/home/me/mine.py", line 7 in parse
  File "/home/me/mine.py", line 12 in compute_score
"""


def test_the_innermost_line_of_the_file_in_the_call_s_own_thread_is_named():
    assert line_of_thread(STACKS, 0x20, "/home/me/mine.py") == 7
    assert line_of_thread(STACKS, 0x10, "/home/me/mine.py") == 3
    assert line_of_thread(STACKS, 0x30, "/home/me/mine.py") == 0
    assert line_of_thread(STACKS, 0x20, "/home/me/other.py") == 0
    chinese = STACKS.replace("mine", "\\u8bc4")
    assert line_of_thread(chinese, 0x20, "/home/me/\u8bc4.py") == 7


def test_calls_that_return_and_calls_of_ended_processes_do_not_hang(tmp_path):
    fast = HANGING["sleep"].replace("time.sleep(600)", "time.sleep(0.1)")
    killed = HANGING["sleep"].replace("time.sleep(600)", "import os; os._exit(1)")
    for code in (fast, killed):
        command, env = caller(tmp_path, code)
        done = subprocess.run(command, env={**os.environ, **env}, timeout=60)
        assert done.returncode == (code == killed)
    time.sleep(0.05)
    assert list((tmp_path / "running").glob("call-*.json"))  # of the process that ended in a call
    assert find_hanging_call(tmp_path / "running", 0.01) is None


LOG = """\
Started a local Ray instance.
(TaskRunner pid=1) dataset len: 4
(TaskRunner pid=1) Total training steps: 2
Training Progress:   0%|          | 0/2 [00:00<?, ?it/s]
(TaskRunner pid=1) step:1 - critic/score/mean:0.0
(TaskRunner pid=1) test_gen_batch meta info: {}
Training Progress:  50%|#####     | 1/2 [00:01<00:01,  1.85s/it]
(TaskRunner pid=1) local_global_step_folder: /x/global_step_2
(TaskRunner pid=1) step:2 - critic/score/mean:0.0
(TaskRunner pid=1) Final validation metrics: {}
"""


def test_progress_says_what_verl_is_doing_in_the_order_of_a_run(tmp_path):
    activities, log = [], tmp_path / "verl.log"
    monitor = RunMonitor(tmp_path, steps=2, limit=1, progress=activities.append)
    for end in range(0, len(LOG), 10):  # the log grows by parts of lines
        log.write_text(LOG[: end + 10])
        assert monitor() is False
    assert activities == [
        "starting Ray", "starting verl's trainer", "reading the rows", "building the models",
        "training step 1 of 2", "training step 2 of 2", "validating", "saving the checkpoint",
        "ending",
    ]  # fmt: skip


@given(st.binary(), st.integers(1, 5))
def test_any_log_has_an_activity(log, steps):
    assert last_activity(log, steps)[1]


def test_a_rehearsal_ends_at_a_call_that_hangs_and_names_it(tmp_path, monkeypatch):
    result = rehearse_with(tmp_path, monkeypatch, HANGING["sleep"])
    (check,) = result.checks
    assert not check.ok
    assert f"{tmp_path / 'mine.py'}:5: a call of the scorer has not returned" in check.detail
    assert "SystemExit" not in check.detail
    assert result.seconds < 100


@pytest.mark.full
def test_a_rehearsal_that_reaches_its_time_limit_says_what_verl_was_doing(tmp_path, monkeypatch):
    code = "import time\nprint('dataset len: 4', flush=True)\ntime.sleep(600)\n"
    result = rehearse_with(tmp_path, monkeypatch, code, seconds=5)
    (check,) = result.checks
    assert check.detail.startswith(
        "ended after 5 s, its time limit (--rehearse-seconds); verl was at: reading the rows; the "
        "last lines of the log: dataset len: 4"
    )
    assert not (result.folder / "running").exists()


def rehearse_with(folder, monkeypatch, code, seconds=300):
    """Rehearse with a process in place of verl that calls a scorer with this code."""
    command, _ = caller(folder, code)
    stub = folder / "python"
    stub.write_text("#!/bin/sh\nexec " + " ".join(map(shlex.quote, command)) + "\n")
    stub.chmod(0o755)
    sample = RowSample((), 4, 80)
    sandbox = Sandbox(
        folder=folder / "r",
        engine=ENGINES[0],
        overrides=(),
        train=sample,
        val=sample,
        reward=(str(folder / "mine.py"), "compute_score"),
        notes=(),
        not_rehearsed=(),
    )
    monkeypatch.setattr(rehearse_module, "installed_versions", lambda _: {"verl": "0.5.0"})
    monkeypatch.setattr(rehearse_module, "make_sandbox", lambda *_, **__: sandbox)
    return rehearse_module.rehearse(
        [], folder=folder / "r", python=str(stub), seconds=seconds, call_seconds=1
    )
