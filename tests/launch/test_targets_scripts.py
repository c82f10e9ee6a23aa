"""The generated scripts run by bash: verl gets the plan's arguments, failures are reported, no process stays.

`ray`, `srun` and the like are stand-ins here; tests/integration has the real Ray.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest
import yaml

from rewardkit.launch.targets import render
from tests.launch.conftest import finish, free_port, processes_with


def read_call(tmp_path):
    return json.loads((tmp_path / "dump.json").read_text(encoding="utf-8"))


def wait_for(path, limit=120):
    deadline = time.monotonic() + limit
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


@pytest.fixture
def launch(plan_of, write, tmp_path):
    """Return a function that writes the files of a plan for a target, and returns plan and folder."""

    def make(target, folder="run", **changes):
        plan = plan_of(target, **changes)
        return plan, write(render(plan, tmp_path / folder), tmp_path / folder)

    return make


@pytest.mark.parametrize("devices", ["gpu", "npu"])
def test_kuberays_script_waits_for_the_devices(plan_of, bash, tmp_path, devices):
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


JOB = {"SLURM_JOB_NODELIST": "n[0-1]", "SLURM_NNODES": 2, "VERL_NODES": 2, "GONE_S": 1}


@pytest.mark.parametrize(("devices", "verl_code"), [("gpu", 0), ("npu", 7)])
def test_slurm_starts_one_ray_on_every_host(launch, bash, tmp_path, devices, verl_code):
    plan, folder = launch("slurm", "a b", devices=devices)
    job = {"SLURM_JOB_ID": 4711, "SLURM_CPUS_PER_TASK": 64, "VERL_CODE": verl_code, **JOB}
    code, output = finish(bash(folder / "slurm.sh", **job))
    assert (code, read_call(tmp_path)["argv"]) == (verl_code, plan.command()), output
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
def test_slurm_uses_other_ports_if_the_job_s_are_in_use(launch, bash, tmp_path):
    _, folder = launch("slurm")
    with socket.create_server(("127.0.0.1", 20000 + 99 * 5 + 1)):
        job = {"SLURM_JOB_ID": 99, "SLURM_CPUS_PER_TASK": 1, **JOB}
        assert finish(bash(folder / "slurm.sh", **job))[0] == 0
    assert f"--port={20000 + 106 * 5}" in (tmp_path / "dump.json.ray").read_text()


def test_modelarts_merges_the_recipe_into_the_platforms_preset(launch, bash, tmp_path):
    _, folder = launch("modelarts", cluster={"python": sys.executable})
    preset = "backend_config: {trainer: {nnodes: 9, own: 1}, algorithm: {gamma: 0.5}}\nother: 2\n"
    code, output = finish(bash(folder / "modelarts.sh", PRESET=preset))
    assert code == 0, output
    merged = yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))
    backend = merged["backend_config"]
    assert (merged["other"], backend["algorithm"]["gamma"]) == (2, 0.5)
    assert (backend["trainer"]["own"], backend["trainer"]["nnodes"]) == (1, 2)
    words = (tmp_path / "dump.json.cli").read_text().split("\0")
    assert words[:3] == ["config", "--backend=verl", "--af_model_name=qwen3-8b"]
    assert words[-3:] == ["train", f"{folder}/run.yaml", ""]


@pytest.mark.parametrize(("target", "script"), [("script", "train.sh"), ("ascend", "node.sh")])
def test_a_run_has_verls_exit_code_and_a_dated_log(launch, bash, tmp_path, target, script):
    (tmp_path / "工作 x").mkdir()
    cluster = {"workdir": str(tmp_path / "工作 x"), "setup": ["export HERE=$UNSET_VARIABLE/y"]}
    _, folder = launch(target, nodes=1, cluster=cluster)
    assert finish(bash(folder / script, VERL_CODE=3))[0] == 3
    (log,) = (folder / "logs").iterdir()
    assert time.strftime("%Y%m%d") in log.name
    assert "verl runs" in log.read_text()
    call = read_call(tmp_path)
    assert (call["cwd"], call["env"]["HERE"]) == (str(tmp_path / "工作 x"), "/y")


def test_a_script_for_one_node_starts_its_own_ray(launch, bash, tmp_path):
    given = "10.0.0.1:6379"
    for nodes, address in ((1, "local"), (2, "auto"), (2, given)):
        _, folder = launch("script", nodes=nodes)
        env = {"RAY_ADDRESS": given} if address == given else {}
        assert finish(bash(folder / "train.sh", **env))[0] == 0
        assert read_call(tmp_path)["env"]["RAY_ADDRESS"] == address


@pytest.fixture
def node(launch):
    """Return the path of an ascend script for two nodes."""
    return launch("ascend")[1] / "node.sh"


def test_the_head_gives_verl_rays_address_and_ray_none(bash, node, tmp_path):
    code, output = finish(bash(node, RAY_ADDRESS="10.0.0.9:1"))
    assert code == 0
    env = read_call(tmp_path)["env"]
    assert env["RAY_ADDRESS"] == f"127.0.0.1:{env['RAY_PORT']}"
    assert env["RAY_AUTH_MODE"] == "disabled"
    assert (env["HCCL_SOCKET_IFNAME"], env["GLOO_SOCKET_IFNAME"]) == ("lo", "lo")
    assert "verl ended with exit code 0" in output
    assert processes_with(str(tmp_path / "bin/ray")) == []
    variables = {"SOCKET_IFNAME": "bond1", "GLOO_SOCKET_IFNAME": "bond2", "RAY_AUTH_MODE": "token"}
    assert finish(bash(node, **variables))[0] == 0
    names = ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "RAY_AUTH_MODE")
    assert [read_call(tmp_path)["env"][name] for name in names] == ["bond1", "bond2", "token"]


@pytest.mark.parametrize(("env", "message"), [
    ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set"),
    ({"MASTER_ADDR": "no-such-host.invalid"}, "this node cannot resolve the host"),
    ({"RAY_FAILS": "1"}, "Ray did not start on the head"),
    ({"WAITER_ERROR": "there are 1 of 2"}, "verl was not started, because nodes are missing"),
    ({"CURRENT_IP": "127.0.0.2", "WAIT_S": "1"}, "did not answer within 1 s"),
])  # fmt: skip
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
@pytest.mark.parametrize(("slow", "file"), [("WAITER_S", "dump.json.ray"), ("VERL_S", "dump.json")])
def test_a_script_that_is_ended_ends_its_processes(bash, node, tmp_path, slow, file):
    process = bash(node, **{slow: 30})
    wait_for(tmp_path / file)
    time.sleep(1)
    process.terminate()
    assert finish(process)[0] == 143
    assert processes_with(str(tmp_path / "bin/")) == []


def test_processes_that_ray_leaves_behind_are_ended(bash, node):
    """The agents of Ray 2.49 run on for a minute after Ray has ended."""
    assert finish(bash(node, RAY_LEAVES="61.25"))[0] == 0
    assert processes_with("sleep 61.25") == []


@pytest.mark.parametrize(("target", "script"), [("ascend", "node.sh"), ("script", "train.sh")])
def test_a_file_that_is_missing_on_a_node_is_reported(launch, bash, tmp_path, target, script):
    """One below the home folder is looked for where verl reads it."""
    missing = tmp_path / "数据 $x" / "it's gone.parquet"
    data = {"train": ["/dev/null", str(missing)], "val": "hdfs://data/val.parquet"}
    _, folder = launch(target, nodes=1, data=data, model="Qwen/Qwen3-8B")
    code, output = finish(bash(folder / script, CHECK_FILES=1))
    assert code == 1
    assert f"{missing} is not on this node, where verl reads it" in output
    assert not list(tmp_path.glob("dump.json*"))
    missing.parent.mkdir()
    missing.touch()
    assert "is not on this node" not in finish(bash(folder / script, CHECK_FILES=1))[1]
    data = {"train": ["~/no such folder/t.parquet"], "val": "hdfs://data/val.parquet"}
    _, folder = launch(target, "home", nodes=1, data=data, model="Qwen/Qwen3-8B")
    output = finish(bash(folder / script, CHECK_FILES=1))[1]
    assert f"{Path.home()}/no such folder/t.parquet is not on this node" in output
