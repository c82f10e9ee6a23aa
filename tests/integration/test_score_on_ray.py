"""`rewardkit score --engine ray` on a real private cluster writes the same bytes as local scoring."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from rewardkit.responses.score import score_files

#: These tests are about Ray, so that the newer one is enough.
SLOW = """
import os, time
from pathlib import Path
from rewardkit.scorers.gsm8k import score as judge

def score(response, ground_truth, extra_info=None):
    time.sleep(0.002)
    guard = Path(f"/proc/{os.getppid()}/stat").read_text()
    worker = guard.rpartition(")")[2].split()[1]  # the Ray worker that started the guard of this process
    (Path(__file__).parent / "pids" / worker).touch()
    return judge(response, ground_truth)
"""


def test_ray_writes_the_bytes_of_the_local_engine_even_if_a_worker_dies(private_ray, tmp_path):
    pytest.importorskip("ray.data")
    (tmp_path / "pids").mkdir()
    scorer = tmp_path / "slow.py"
    scorer.write_text(SLOW)
    files = []
    for step in range(6):
        file = tmp_path / f"dump/{step}.jsonl"
        file.parent.mkdir(exist_ok=True)
        rows = [
            {"output": f"#### {i % 7}", "gts": str(i % 5), "step": step, "n": i} for i in range(300)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{half a line")
        files.append(str(file))
    spec = f"{scorer}:score"
    local = score_files(files, spec, out=tmp_path / "local.jsonl")
    for pid in (tmp_path / "pids").iterdir():
        pid.unlink()
    killed = []

    def kill_one():
        for _ in range(600):
            time.sleep(0.05)
            others = [
                int(p.name) for p in (tmp_path / "pids").iterdir() if int(p.name) != os.getpid()
            ]
            if others:
                os.kill(others[0], signal.SIGKILL)
                killed.append(others[0])
                return

    killer = threading.Thread(target=kill_one)
    killer.start()
    on_ray = score_files(files, spec, out=tmp_path / "ray.jsonl", engine="ray")
    killer.join()
    assert killed
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
    assert on_ray.total == local.total
    assert (on_ray.unscored, local.unscored) == (6, 6)
