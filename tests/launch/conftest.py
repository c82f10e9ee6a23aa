"""Recipes for tests: the smallest one, and one with text that a shell would change."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rewardkit.isolate.child_process import ChildProcess
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, read_recipe
from rewardkit.launch.script_import import script_runs
from rewardkit.launch.start import write_files
from rewardkit.launch.verl.hydra_values import parse_value

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
SMALLEST = {"name": "tiny", "algorithm": "grpo", "model": "/models/tiny"}
SMALLEST["data"] = {"train": "/data/train.parquet", "val": "/data/val.parquet"}
SMALLEST["verl"] = {f"{ROLLOUT}.name": "vllm", f"{ROLLOUT}.n": 8} | dict.fromkeys(
    (
        f"{ACTOR}.ppo_micro_batch_size_per_gpu",
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
    ),
    1,
)

#: A recipe with spaces, quotes, shell characters and Chinese text.
AWKWARD = {
    "name": "Qwen3 跑 $HOME 'x' \"y\"", "about": "first line\nexit 1", "strategy": "fsdp2",
    "algorithm": "dapo", "nodes": 2, "devices_per_node": 16, "model": "/模型/Qwen3 8B",
    "data": {"train": ["/数据/a b.parquet", "/d/it's $x.parquet"], "val": "/数据/val.parquet"},
    "reward": {"scorer": "verl"},
    "dapo": {"overlong_buffer": {"len": 4}},
    "env": {"NOTE": "a 'b' \"c\" $d `e` \\ 中文", "LIST": "{a}, $x", "N": "1e-6"},
    "cluster": {"image": "repo/verl:1", "accelerator": "H100", "model_name": "qwen3-8b", "wait_s": 60},
    "verl": {
        "trainer.logger": ["console", "wandb"],
        "trainer.project_name": "p 'q' \"r\" $(touch pwned) `touch pwned` \\ *",
        "trainer.default_local_dir": "/存档/$USER x",
    },
}  # fmt: skip


@pytest.fixture
def recipe():
    """Return a function that reads the smallest recipe, merged with the given parts."""

    def build(**parts):
        return read_recipe(deep_merge(SMALLEST, parts), "my.yaml")

    return build


@pytest.fixture
def plan(recipe):
    """Return a function that plans the smallest recipe for a release, with overrides and parts."""

    def build(release="0.9.1", *overrides, **parts):
        return make_plan(recipe(**parts), release, parse_overrides(overrides, "the command line"))

    return build


def tree_of(words):
    """Return the parts of a recipe that words name, as in `devices=npu verl.data.seed=1`."""
    tree = {}
    for word in words.split():
        name, _, value = word.partition("=")
        names = ["verl", name[5:]] if name.startswith("verl.") else name.split(".")
        part = parse_value(value)
        for each in reversed(names):
            part = {each: part}
        tree = deep_merge(tree, part)
    return tree


@pytest.fixture
def words(plan):
    """Return a function that plans the smallest recipe, with fields as words and with overrides."""
    return lambda release="0.9.1", fields="", *overrides: plan(
        release, *overrides, **tree_of(fields)
    )


@pytest.fixture
def plan_of():
    """Return a function that plans the awkward recipe for a target, with changes."""

    def make(target, *, devices="npu", version="0.9.1", **changes):
        tree = deep_merge(AWKWARD, {"cluster": {"target": target}, "devices": devices})
        tree["nodes"] = 1 if target == "local" else 2
        return make_plan(read_recipe(deep_merge(tree, changes), "test"), version)

    return make


@pytest.fixture
def write():
    """Return a function that writes a launch's files into a folder, as the command line does."""

    def write_anew(launch, folder):
        for file in launch.files:
            (folder / file.name).unlink(missing_ok=True)
        write_files(launch.files, folder)
        return folder

    return write_anew


@pytest.fixture(scope="module")
def shared_bash():
    """Let all scripts of a module be read in one child process, which takes long to start."""
    process = None

    def start(module):
        nonlocal process
        process = process if process and process.is_alive else ChildProcess(module)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script_runs, "ChildProcess", start)
        patch.setattr(script_runs.ScriptRuns, "close", lambda _: None)
        yield
    if process:
        process.close()


#: Stand-ins for the programs that the generated scripts start.
PYTHON = """
import json, os, sys, time
if sys.argv[1] == "-":  # the script that waits for the nodes
    print("waiter", *sys.argv[2:], flush=True)
    time.sleep(float(os.environ.get("WAITER_S", 0)))
    sys.exit(os.environ.get("WAITER_ERROR") or 0)
name = os.path.basename(sys.argv[0])
seen = {"argv": [name, *sys.argv[1:]], "env": dict(os.environ), "cwd": os.getcwd()}
with open(os.environ["DUMP"] + ".part", "w") as file:
    json.dump(seen, file)
os.rename(os.environ["DUMP"] + ".part", os.environ["DUMP"])
print("verl runs", flush=True)
nodes, until = int(os.environ.get("VERL_NODES", 0)), time.monotonic() + 120
while nodes and len(open(os.environ["DUMP"] + ".ray").readlines()) < nodes:
    assert time.monotonic() < until, "a node has started no Ray"
    time.sleep(0.02)
time.sleep(float(os.environ.get("VERL_S", 0)))
sys.exit(int(os.environ.get("VERL_CODE", 0)))
"""

RAY = """
import os, signal, socket, subprocess, sys, time
with open(os.environ["DUMP"] + ".ray", "a") as file:
    print(*sys.argv[1:], sep="\\t", file=file)
if os.environ.get("RAY_FAILS"):
    sys.exit("ray cannot")
if os.environ.get("RAY_LEAVES"):
    subprocess.Popen(["sleep", os.environ["RAY_LEAVES"]])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ray does
if "--head" in sys.argv:
    (port,) = [int(a.split("=")[1]) for a in sys.argv if a.startswith("--port=")]
    listening = socket.create_server(("127.0.0.1", port), backlog=200)
time.sleep(60)
"""

SRUN = """
import os, subprocess, sys
rest = [a for a in sys.argv[1:] if not a.startswith("--")]
count = 1 if rest[0] == "getent" else int(os.environ["SLURM_NNODES"])
def start(i):
    node = {"SLURM_NODEID": str(i), "CURRENT_IP": f"127.0.0.{i + 1}"}
    return subprocess.Popen(rest, env={**os.environ, **(node if rest[0] != "getent" else {})})
sys.exit(max(p.wait() for p in [start(i) for i in range(count)]))
"""

#: The stand-in resolves no names, because getent would need a network.
GETENT = """
import os, sys
with open(os.environ["DUMP"] + ".getent", "a") as file:
    print(*sys.argv[1:], sep="\\0", end="\\0", file=file)
if sys.argv[2].endswith(".invalid"):
    sys.exit(2)
is_address = not sys.argv[2].strip("0123456789.")
print(sys.argv[2] if is_address else {"other": "127.0.0.2"}.get(sys.argv[2], "127.0.0.1"), "STREAM host")
"""

#: A node asks every two seconds whether the head answers; here more often.
SLEEP = """#!/bin/sh
[ "$1" = 2 ] && exec SLEEP 0.2
exec SLEEP "$@"
"""

CLI = """
import os, sys
if sys.argv[1] == "config":
    (out,) = [a.split("=", 1)[1] for a in sys.argv if a.startswith("--output_file_path=")]
    open(out, "w").write(os.environ["PRESET"])
with open(os.environ["DUMP"] + ".cli", "a") as file:
    print(*sys.argv[1:], sep="\\0", end="\\0", file=file)
"""

STAND_INS = {"python3": PYTHON, "ray": RAY, "getent": GETENT, "srun": SRUN}
STAND_INS |= {"scontrol": "print('localhost')\nprint('other')", "ascendfactory-cli": CLI}


def program(folder, name, code):
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def bash(tmp_path):
    """Return a function that starts a script with stand-ins; its processes end with the test."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for name, code in STAND_INS.items():
        program(bin_dir, name, code)
    quick_sleep = bin_dir / "sleep"
    quick_sleep.write_text(SLEEP.replace("SLEEP", shutil.which("sleep")))
    quick_sleep.chmod(0o755)
    processes = []
    path = f"{bin_dir}:{os.environ['PATH']}:/usr/sbin:/sbin"
    base = {"CHECK_FILES": 0, "PATH": path, "MASTER_ADDR": "127.0.0.1", "RAY_PORT": free_port()}
    base |= {"DUMP": tmp_path / "dump.json", "TMPDIR": tmp_path, "HOME": tmp_path, "PRESET": ""}
    base["USER"] = "must not be seen"

    def start(script, *, cwd=tmp_path, **env):
        env = {name: str(value) for name, value in {**base, **env}.items() if value is not None}
        out = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = ["bash", str(script)]
        process = subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, **out)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def processes():
    """Yield (process id, command line) of the processes of this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            yield path.parent.name, path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def processes_with(text):
    """Return the command lines with a text of all processes but this one."""
    return [line for pid, line in processes() if text in line and pid != str(os.getpid())]


def finish(process, limit=300):
    """Return (exit code, output) after the script and its children have closed the output."""
    output, _ = process.communicate(timeout=limit)
    return process.returncode, output
