"""The generated scripts run by bash: verl gets the plan's arguments, failures are reported, no process stays.

`ray`, `srun` and the like are stand-ins here; tests/integration has the real Ray.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rewardkit.launch.targets import render

PYTHON = """
import json, os, sys, time
if sys.argv[1] == "-":  # the script that waits for the nodes
    print("waiter", *sys.argv[2:], flush=True)
    time.sleep(float(os.environ.get("WAITER_S", 0)))
    sys.exit(os.environ.get("WAITER_ERROR") or 0)
seen = {"argv": ["python3", *sys.argv[1:]], "env": dict(os.environ), "cwd": os.getcwd()}
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
    return subprocess.Popen(rest, env={**os.environ, **(node if count > 1 else {})})
sys.exit(max(p.wait() for p in [start(i) for i in range(count)]))
"""

#: The stand-in resolves no names, because getent would need a network.
GETENT = """
import sys
known = {"localhost": "127.0.0.1", "other": "127.0.0.2"}
address = known.get(sys.argv[2], sys.argv[2])
if address.strip("0123456789."):
    sys.exit(2)
print(address, "STREAM", sys.argv[2])
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
with open(os.environ["DUMP"], "a") as file:
    print(*sys.argv[1:], file=file)
"""


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
    program(bin_dir, "python3", PYTHON)
    program(bin_dir, "ray", RAY)
    program(bin_dir, "getent", GETENT)
    program(bin_dir, "srun", SRUN)
    program(bin_dir, "scontrol", "print('localhost')\nprint('other')")
    program(bin_dir, "ascendfactory-cli", CLI)
    quick_sleep = bin_dir / "sleep"
    quick_sleep.write_text(SLEEP.replace("SLEEP", shutil.which("sleep")))
    quick_sleep.chmod(0o755)
    processes = []
    base = {
        "CHECK_FILES": "0",
        "PATH": f"{bin_dir}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "DUMP": str(tmp_path / "dump.json"),
        "TMPDIR": str(tmp_path),
        "HOME": str(tmp_path),
        "RAY_PORT": str(free_port()),
        "MASTER_ADDR": "127.0.0.1",
        "USER": "must not be seen",
    }

    def start(script, *, cwd=tmp_path, **env):
        process = subprocess.Popen(
            ["bash", str(script)],
            env={k: str(v) for k, v in {**base, **env}.items()},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def finish(process, limit=300):
    """Return (exit code, output) after the script and its children have closed the output."""
    output, _ = process.communicate(timeout=limit)
    return process.returncode, output


def processes_with(text):
    """Return the command lines of processes on this machine that contain a text."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and path.parent.name != str(os.getpid()):
            processes.append(line)
    return processes


def read_call(tmp_path):
    return json.loads((tmp_path / "dump.json").read_text(encoding="utf-8"))


def wait_for(path, limit=120):
    deadline = time.monotonic() + limit
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


devices = pytest.mark.parametrize("devices", ["gpu", "npu"])


@devices
@pytest.mark.parametrize(
    ("target", "script"),
    [
        ("script", "train.sh"),
        ("ascend", "node.sh"),
        ("ray-job", "working_dir/launch.sh"),
    ],
)
def test_verl_gets_the_plans_command_word_for_word(
    plan_of, bash, write, tmp_path, target, script, devices
):
    plan = plan_of(target, devices=devices)
    folder = write(render(plan, tmp_path / "r u 中 $x"), tmp_path / "r u 中 $x")
    code, output = finish(bash(folder / script))
    assert code == 0, output
    assert read_call(tmp_path)["argv"] == plan.command()
    if target != "ray-job":  # there the variables are in runtime_env.yaml
        assert read_call(tmp_path)["env"].items() >= plan.env.items()
    assert not (tmp_path / "pwned").exists()


@devices
def test_kuberays_script_waits_for_the_devices_and_runs_the_command(
    plan_of, bash, tmp_path, devices
):
    plan = plan_of("kuberay", devices=devices)
    config_map, _ = yaml.safe_load_all(render(plan, tmp_path).files[0].text)
    script = tmp_path / "launch.sh"
    script.write_text(config_map["data"]["launch.sh"], encoding="utf-8")
    code, output = finish(bash(script))
    assert (code, read_call(tmp_path)["argv"]) == (0, plan.command())
    assert f"waiter auto 2 {devices.upper()} 16 60" in output
    (tmp_path / "dump.json").unlink()
    code, output = finish(bash(script, WAITER_ERROR="one is missing"))
    assert (code, (tmp_path / "dump.json").exists()) == (1, False)
    assert "one is missing" in output


def test_skypilots_script_reads_rank_and_addresses_from_skypilot(plan_of, bash, tmp_path):
    plan = plan_of("skypilot", devices="gpu")
    script = tmp_path / "run.sh"
    script.write_text(yaml.safe_load(render(plan, tmp_path).files[0].text)["run"], encoding="utf-8")
    addresses = {"SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.2", "MASTER_ADDR": "10.9.9.9"}
    head = bash(script, SKYPILOT_NODE_RANK=0, VERL_NODES=2, **addresses)
    worker = bash(script, SKYPILOT_NODE_RANK=1, GONE_S=1, **addresses)
    assert finish(head)[0] == 0
    code, output = finish(worker)
    assert (code, read_call(tmp_path)["argv"]) == (0, plan.command())
    assert "address 127.0.0.2, interface lo, head 127.0.0.1" in output


@devices
def test_slurm_starts_one_ray_for_the_job_on_every_host(plan_of, bash, write, tmp_path, devices):
    plan = plan_of("slurm", devices=devices)
    folder = write(render(plan, tmp_path / "a b"), tmp_path / "a b")
    job = {"SLURM_JOB_NODELIST": "n[0-1]", "SLURM_JOB_ID": 4711, "SLURM_NNODES": 2, "VERL_NODES": 2}
    code, output = finish(bash(folder / "slurm.sh", SLURM_CPUS_PER_TASK=64, GONE_S=1, **job))
    assert (code, read_call(tmp_path)["argv"]) == (0, plan.command()), output
    assert "nodes: localhost other" in output
    starts = [line.split("\t") for line in (tmp_path / "dump.json.ray").read_text().splitlines()]
    head, *workers = sorted(starts, key=lambda words: "--head" not in words)
    assert {"--block", "--num-cpus=64", "--temp-dir=/tmp/ray-4711"} <= set(head)
    ports = [int(w.rpartition("=")[2]) for w in head if "port=" in w]
    assert len(ports) == 4
    assert all(20000 <= port < 32000 for port in ports)
    for worker in workers:
        assert f"--address=127.0.0.1:{min(ports)}" in worker


@pytest.mark.full
def test_slurm_uses_other_ports_if_the_job_s_are_in_use(plan_of, bash, write, tmp_path):
    folder = write(render(plan_of("slurm"), tmp_path / "run"), tmp_path / "run")
    job = {"SLURM_JOB_NODELIST": "n[0-1]", "SLURM_JOB_ID": 99, "SLURM_NNODES": 2, "VERL_NODES": 2}
    with socket.create_server(("127.0.0.1", 20000 + 99 * 5 + 1)):
        code, _ = finish(bash(folder / "slurm.sh", SLURM_CPUS_PER_TASK=1, GONE_S=1, **job))
    assert code == 0
    assert f"--port={20000 + 106 * 5}" in (tmp_path / "dump.json.ray").read_text()


def test_a_slurm_job_has_the_exit_code_of_verl(plan_of, bash, write, tmp_path):
    folder = write(render(plan_of("slurm"), tmp_path / "run"), tmp_path / "run")
    job = {
        "SLURM_JOB_NODELIST": "n[0-1]",
        "SLURM_JOB_ID": 5,
        "SLURM_NNODES": 2,
        "VERL_NODES": 2,
        "VERL_CODE": 7,
    }
    code, _ = finish(bash(folder / "slurm.sh", SLURM_CPUS_PER_TASK=1, GONE_S=1, **job))
    assert code == 7


def test_modelarts_merges_the_recipe_into_the_platforms_preset(plan_of, bash, write, tmp_path):
    plan = plan_of("modelarts", cluster={"python": sys.executable})
    folder = write(render(plan, tmp_path / "run"), tmp_path / "run")
    preset = (
        "backend_config:\n  trainer: {nnodes: 9, own: 1}\n  algorithm: {gamma: 0.5}\nother: 2\n"
    )
    code, output = finish(bash(folder / "modelarts.sh", PRESET=preset))
    assert code == 0, output
    merged = yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))
    assert merged["other"] == 2
    assert merged["backend_config"]["trainer"]["own"] == 1
    assert merged["backend_config"]["trainer"]["nnodes"] == 2
    assert merged["backend_config"]["algorithm"]["gamma"] == 0.5
    config, train = (tmp_path / "dump.json").read_text().splitlines()
    assert config.startswith("config --backend=verl --af_model_name=qwen3-8b --exp_name=qwen3")
    assert train == f"train {folder}/run.yaml"


@pytest.mark.parametrize(("target", "script"), [("script", "train.sh"), ("ascend", "node.sh")])
def test_a_run_has_verls_exit_code_and_a_dated_log(plan_of, bash, write, tmp_path, target, script):
    folder = write(render(plan_of(target, nodes=1), tmp_path / "run"), tmp_path / "run")
    code, _ = finish(bash(folder / script, VERL_CODE=3))
    assert code == 3
    (log,) = (folder / "logs").iterdir()
    assert time.strftime("%Y%m%d") in log.name
    assert "verl runs" in log.read_text()


def test_a_script_for_one_node_starts_its_own_ray(plan_of, bash, write, tmp_path):
    for nodes, address in ((1, "local"), (2, "auto")):
        folder = write(render(plan_of("script", nodes=nodes), tmp_path / "run"), tmp_path / "run")
        assert finish(bash(folder / "train.sh"))[0] == 0
        assert read_call(tmp_path)["env"]["RAY_ADDRESS"] == address
        assert finish(bash(folder / "train.sh", RAY_ADDRESS="10.0.0.1:6379"))[0] == 0
        assert read_call(tmp_path)["env"]["RAY_ADDRESS"] == "10.0.0.1:6379"


def test_scripts_run_in_the_recipes_folder_after_its_setup(plan_of, bash, write, tmp_path):
    (tmp_path / "工作 x").mkdir()
    cluster = {"workdir": str(tmp_path / "工作 x"), "setup": ["export HERE=$UNSET_VARIABLE/y"]}
    for target, script in (("script", "train.sh"), ("ascend", "node.sh")):
        plan = plan_of(target, nodes=1, cluster=cluster)
        folder = write(render(plan, tmp_path / target), tmp_path / target)
        assert finish(bash(folder / script))[0] == 0
        assert read_call(tmp_path)["cwd"] == str(tmp_path / "工作 x")
        assert read_call(tmp_path)["env"]["HERE"] == "/y"


@pytest.fixture
def node(plan_of, write, tmp_path):
    """Return the path of an ascend script for two nodes."""
    return write(render(plan_of("ascend"), tmp_path / "run"), tmp_path / "run") / "node.sh"


def test_the_head_gives_verl_rays_address_and_ray_none(bash, node, tmp_path):
    code, output = finish(bash(node, RAY_ADDRESS="10.0.0.9:1"))
    assert code == 0
    env = read_call(tmp_path)["env"]
    assert env["RAY_ADDRESS"] == f"127.0.0.1:{env['RAY_PORT']}"
    assert env["RAY_AUTH_MODE"] == "disabled"
    assert (env["HCCL_SOCKET_IFNAME"], env["GLOO_SOCKET_IFNAME"]) == ("lo", "lo")
    assert "verl ended with exit code 0" in output
    assert processes_with(str(tmp_path / "bin/ray")) == []


def test_variables_that_the_user_sets_win(bash, node, tmp_path):
    variables = {"SOCKET_IFNAME": "bond1", "GLOO_SOCKET_IFNAME": "bond2", "RAY_AUTH_MODE": "token"}
    assert finish(bash(node, **variables))[0] == 0
    env = read_call(tmp_path)["env"]
    names = ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "RAY_AUTH_MODE")
    assert [env[name] for name in names] == ["bond1", "bond2", "token"]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set"),
        ({"MASTER_ADDR": "no-such-host.invalid"}, "this node cannot resolve the host"),
        ({"RAY_FAILS": "1"}, "Ray did not start on the head"),
        ({"WAITER_ERROR": "there are 1 of 2"}, "verl was not started, because nodes are missing"),
        ({"CURRENT_IP": "127.0.0.2", "WAIT_S": "1"}, "did not answer within 1 s"),
    ],
)
def test_a_node_that_fails_says_why_and_leaves_no_process(bash, node, tmp_path, env, message):
    code, output = finish(bash(node, **env))
    assert code == 1
    assert message in output
    assert not (tmp_path / "dump.json").exists()
    assert processes_with(str(tmp_path / "bin/")) == []


@pytest.mark.full
def test_a_worker_whose_ray_ends_retries_and_then_gives_up(bash, node):
    with socket.create_server(("127.0.0.1", free_port()), backlog=100) as head:
        port = head.getsockname()[1]
        worker = bash(node, CURRENT_IP="127.0.0.2", RAY_PORT=port, RAY_FAILS=1)
        code, output = finish(worker, 60)
    assert (code, output.count("ray cannot")) == (1, 3)
    assert "Ray ended three times on this node" in output


def test_the_error_for_a_port_in_use_names_the_program_that_uses_it(bash, node, tmp_path):
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        code, output = finish(bash(node, RAY_PORT=port))
    assert code == 1
    assert f"another program uses 127.0.0.1:{port}" in output
    assert str(os.getpid()) in output
    assert not (tmp_path / "dump.json.ray").exists()


def test_a_second_run_reports_the_first_one_and_leaves_it_alone(bash, node, tmp_path):
    first_run = bash(node, VERL_S=30)
    wait_for(tmp_path / "dump.json")
    code, output = finish(bash(node))
    assert code == 1
    assert "this run is already active on this node" in output
    assert f"process {first_run.pid} and its Ray" in output
    assert first_run.poll() is None
    first_run.terminate()
    assert finish(first_run)[0] == 143
    assert processes_with(str(tmp_path / "bin/")) == []
    assert finish(bash(node))[0] == 0


@pytest.mark.full
@pytest.mark.parametrize("during", ["waiting", "training"])
def test_a_script_that_is_ended_ends_the_processes_that_it_started(bash, node, tmp_path, during):
    slow = {"WAITER_S": 30} if during == "waiting" else {"VERL_S": 30}
    process = bash(node, **slow)
    wait_for(tmp_path / ("dump.json.ray" if during == "waiting" else "dump.json"))
    time.sleep(1)
    process.terminate()
    assert finish(process)[0] == 143
    assert processes_with(str(tmp_path / "bin/")) == []


def test_processes_that_ray_leaves_behind_are_ended(bash, node):
    """The agents of Ray 2.49 run on for a minute after Ray has ended."""
    assert finish(bash(node, RAY_LEAVES="61.25"))[0] == 0
    assert processes_with("sleep 61.25") == []


def test_a_file_below_the_home_folder_is_looked_for_where_verl_reads_it(
    plan_of, bash, write, tmp_path
):
    data = {"train": ["~/no such folder/t.parquet"], "val": "hdfs://data/val.parquet"}
    plan = plan_of("script", nodes=1, data=data, model="Qwen/Qwen3-8B")
    folder = write(render(plan, tmp_path / "run"), tmp_path / "run")
    _, output = finish(bash(folder / "train.sh", CHECK_FILES=1))
    assert f"{Path.home()}/no such folder/t.parquet is not on this node" in output


@pytest.mark.parametrize(
    ("target", "script"),
    [("ascend", "node.sh"), ("script", "train.sh")],
)
def test_a_file_that_is_missing_on_a_node_is_reported_before_a_process_starts(
    plan_of, bash, write, tmp_path, target, script
):
    present, missing = tmp_path / "here.parquet", tmp_path / "数据 $x" / "it's gone.parquet"
    present.touch()
    data = {"train": [str(present), str(missing)], "val": "hdfs://data/val.parquet"}
    plan = plan_of(target, nodes=1, data=data, model="Qwen/Qwen3-8B")
    folder = write(render(plan, tmp_path / "run"), tmp_path / "run")
    code, output = finish(bash(folder / script, CHECK_FILES=1))
    assert code == 1
    assert f"{missing} is not on this node, where verl reads it" in output
    assert not (tmp_path / "dump.json.ray").exists()
    assert not (tmp_path / "dump.json").exists()
    missing.parent.mkdir()
    missing.touch()
    assert "is not on this node" not in finish(bash(folder / script, CHECK_FILES=1))[1]
