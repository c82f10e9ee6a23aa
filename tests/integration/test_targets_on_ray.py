"""Targets on real Ray: verl's driver gets the plan's arguments, and no process remains afterwards.

The clusters are private: two raylets with `{"NPU": 16}` on this host, with their own ports and folder,
ended by process id. A module that records its environment replaces verl.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, read_recipe
from rewardkit.launch.start import write_files
from rewardkit.launch.targets import render
from tests.launch.conftest import AWKWARD, processes_with

ray = pytest.importorskip("ray")

#: Ray 2.49 supports only one node on a host; two raylets disturb each other.
IS_OLD_RAY = tuple(int(part) for part in ray.__version__.split(".")[:2]) < (2, 50)

BIN = str(Path(sys.executable).parent)

DRIVER = """
import json, os, sys
import ray

STUB = os.environ["STUB"]
options = {}
if os.environ.get("AS_VERL"):  # the runtime_env that the real verl adds to the job's own
    sys.path = [p for p in sys.path if os.path.abspath(p or ".") != STUB]
    for name in [n for n in sys.modules if n.split(".")[0] == "verl"]:
        del sys.modules[name]
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env
    options = {"runtime_env": get_ppo_ray_runtime_env()}
ray.init(logging_level="ERROR", **options)

@ray.remote(resources={"NPU": 16}, num_cpus=0)
def look():
    import rewardkit
    node = {"cwd": os.getcwd(), "env": dict(os.environ), "rewardkit": rewardkit.__file__}
    if os.path.exists("reward.py"):
        node["reward"] = open("reward.py", encoding="utf-8").read()
    return node

npu = int(ray.cluster_resources()["NPU"])
record = {
    "argv": sys.argv[1:],
    "env": dict(os.environ),
    "npu": npu,
    "nodes": ray.get([look.remote() for _ in range(npu // 16)]),
}
with open(os.environ["DUMP"] + ".part", "w") as file:
    json.dump(record, file)
os.rename(os.environ["DUMP"] + ".part", os.environ["DUMP"])
print("driver is done", flush=True)
sys.exit(int(os.environ.get("DRIVER_CODE", 0)))
"""


def make_test_plan(target, tmp_path, **cluster):
    """Return the plan of a recipe with characters that are special in shells, Ray and Hydra."""
    scorer = tmp_path / "我的 reward.py"
    text = "def compute_score(*_, **__):\n    return 1.0  # 对\n"
    scorer.write_text(text, encoding="utf-8")
    parts = {"devices": "npu", "reward": {"scorer": f"{scorer}:compute_score"}}
    parts["cluster"] = {"target": target, "wait_s": 90, **cluster}
    return make_plan(read_recipe(deep_merge(AWKWARD, parts), "test"), "0.9.1")


def write_launch(plan, folder):
    launch = render(plan, folder)
    write_files(launch.files, folder)
    return launch


@pytest.fixture
def home():
    """A folder with a short path for Ray, whose socket paths have at most 107 characters."""
    folder = Path(tempfile.mkdtemp(prefix="rk", dir="/tmp"))
    yield folder
    commands = living_processes(str(folder))
    shutil.rmtree(folder, ignore_errors=True)
    assert commands == []


@pytest.fixture
def env(tmp_path, home):
    """An environment with this Python's Ray, and a driver that replaces verl."""
    stub = tmp_path / "stub"
    (stub / "verl/trainer").mkdir(parents=True)
    for package in ("verl", "verl/trainer"):
        (stub / package / "__init__.py").touch()
    (stub / "verl/trainer/main_ppo.py").write_text(DRIVER)
    gcs, dashboard, agent, client = ports(4)
    folders = {"HOME": home, "TMPDIR": home, "RAY_TMP": home / "r", "DUMP": tmp_path / "dump.json"}
    numbers = {"RAY_PORT": gcs, "DASHBOARD_PORT": dashboard, "AGENT_PORT": agent, "CHECK_FILES": 0}
    numbers |= {"CLIENT_PORT": client, "RAY_NUM_CPUS": 4, "RAY_USAGE_STATS_ENABLED": 0}
    path = f"{BIN}:{os.environ['PATH']}:/usr/sbin:/sbin"
    own = {"PATH": path, "PYTHONPATH": stub, "STUB": stub, "RAY_AUTH_MODE": "disabled"}
    return {name: str(value) for name, value in (folders | numbers | own).items()}


def ports(count):
    """Return free ports outside the ranges of Ray's workers and of the system."""
    free = []
    for port in range(21000 + os.getpid() % 500 * 20, 32000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                free.append(port)
        if len(free) == count:
            return free
    raise AssertionError("no free ports")


@pytest.fixture
def start():
    """Start a program and read its output; its processes end after the test."""
    started = []

    def start_process(command, env):
        out = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, env=env, start_new_session=True, **out)
        started.append(process)
        return process

    yield start_process
    for process in started:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # Ray 2.49 leaves its agents behind
        process.communicate()


def living_processes(text):
    """Return the command lines with a text, after waiting for processes that are ending."""
    deadline = time.monotonic() + 45  # a worker that is just starting ends when it finds no raylet
    while (commands := processes_with(text)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return commands


def driver_record(env):
    return json.loads(Path(env["DUMP"]).read_text(encoding="utf-8"))


@pytest.mark.skipif(IS_OLD_RAY, reason="this Ray has one address per host, which names a node")
def test_ascend_on_two_nodes_runs_verl_once_and_leaves_no_process(tmp_path, home, env, start):
    plan = make_test_plan("ascend", tmp_path)
    write_launch(plan, tmp_path / "run")
    script = str(tmp_path / "run/node.sh")
    here = {**env, "MASTER_ADDR": "127.0.0.1", "GONE_S": "6"}
    head = start(["bash", script], {**here, "DRIVER_CODE": "3"})
    other = start(["bash", script], {**here, "CURRENT_IP": "127.0.0.2"})
    output, _ = head.communicate(timeout=110)
    assert head.returncode == 3, output  # the exit code of verl
    text, _ = other.communicate(timeout=60)
    assert (other.returncode, "the head has ended" in text) == (0, True), text
    assert driver_record(env)["argv"] == list(plan.arguments)
    assert driver_record(env)["npu"] == 32
    assert driver_record(env)["env"]["RAY_ADDRESS"] == f"127.0.0.1:{env['RAY_PORT']}"
    for node in driver_record(env)["nodes"]:
        assert node["env"].items() >= plan.env.items()
        assert node["env"]["HCCL_SOCKET_IFNAME"] == "lo"
    assert living_processes(str(home)) == []
    assert not list(tmp_path.rglob("pwned"))


@pytest.fixture
def cluster(env, start):
    """Two raylets with 16 NPU each (one with 32 on old Ray), and a job server; its address."""
    nodes, npu = (1, 32) if IS_OLD_RAY else (2, 16)
    ip = ray.util.get_node_ip_address()
    common = ["ray", "start", "--block", "--num-cpus=4", f'--resources={{"NPU": {npu}}}']
    common += [f"--node-ip-address={ip}"]
    head = [*common, "--head", f"--port={env['RAY_PORT']}", "--dashboard-host=127.0.0.1"]
    head += [f"--dashboard-port={env['DASHBOARD_PORT']}", f"--temp-dir={env['RAY_TMP']}"]
    head += [f"--ray-client-server-port={env['CLIENT_PORT']}"]
    head += [f"--dashboard-agent-listen-port={env['AGENT_PORT']}"]  # the agent accepts the jobs
    quick = {**env, "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0", "AS_VERL": "1"}
    start(head, quick)
    listening(env["RAY_PORT"], ip)
    address = f"--address={ip}:{env['RAY_PORT']}"
    if not IS_OLD_RAY:
        start([*common, address], quick)
    listening(env["DASHBOARD_PORT"])
    wait = Path(__file__).parents[2] / "rewardkit/launch/targets/wait_for_nodes.py"
    arguments = [f"{ip}:{env['RAY_PORT']}", str(nodes), "NPU", str(npu), "60"]
    subprocess.run([sys.executable, str(wait), *arguments], env=env, check=True, timeout=110)
    return f"http://127.0.0.1:{env['DASHBOARD_PORT']}"


def listening(port, host="127.0.0.1"):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if not probe.connect_ex((host, int(port))):
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on {port}")


def test_ray_job_sends_the_command_the_scorer_and_rewardkit(tmp_path, env, cluster):
    plan = make_test_plan("ray-job", tmp_path, address=cluster)
    launch = write_launch(plan, tmp_path / "r u 中")
    assert launch.argv[0] == f"{BIN}/ray"
    here = {**env, **launch.env}
    done = subprocess.run(launch.argv, env=here, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "driver is done" in done.stdout
    assert driver_record(env)["argv"] == list(plan.arguments)
    assert "reward.custom_reward_function.path=reward.py" in plan.arguments
    assert driver_record(env)["env"].items() >= plan.env.items()
    assert len(driver_record(env)["nodes"]) == 2
    for node in driver_record(env)["nodes"]:
        assert "return 1.0  # 对" in node["reward"]  # the folder in which verl's workers start
        assert "/runtime_resources/" in node["rewardkit"]  # ours, not an installed one
        assert node["env"].items() >= plan.env.items()
