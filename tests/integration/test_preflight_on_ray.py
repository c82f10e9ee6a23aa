"""The preflight checks the resources of a running cluster, here a real private one."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile

import pytest

#: These tests are about Ray, so that the newer one is enough.
PROGRAM = """
import json, sys, time
import ray
from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight.environment import read_machine
from rewardkit.launch.recipe import load_tree, read_recipe
from rewardkit.launch.rules import check_rules
from rewardkit.launch.rules.facts import RunFacts

context = ray.init(address="local", num_cpus=1, resources={"NPU": 16}, include_dashboard=True,
                   dashboard_port=int(sys.argv[2]), _temp_dir=sys.argv[1])
address = "http://" + context.dashboard_url
tree = load_tree("qwen3-8b-dapo-dianjin")
results = {}
for nodes in (1, 2):
    cluster = {"target": "ray-job", "address": address}
    recipe = read_recipe({**tree, "nodes": nodes, "cluster": cluster}, "x")
    end = time.time() + 40
    while True:
        plan, unchecked = make_plan(recipe, "0.9"), []
        findings = check_rules(plan, RunFacts(machine=read_machine(plan, unchecked)))
        lines = [str(finding) for finding in findings if finding.rule == "devices"]
        is_complete = not unchecked and (nodes == 2 or not lines)
        if is_complete or time.time() > end:  # the dashboard shows the resources with a delay
            break
        time.sleep(1)
    results[nodes] = [lines, unchecked]
ray.shutdown()
print(json.dumps(results))
"""


@pytest.fixture
def folder():
    """A folder with a short path, for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="rk", dir="/tmp") as name:
        yield name


def test_a_cluster_that_is_too_small_is_a_finding_before_the_launch(folder):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder, str(port)],
        env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["1"] == [[], []]
    ((line,), unchecked) = results["2"]
    assert "the recipe needs 2 x 16 = 32 NPU, and the cluster at" in line
    assert "has 16" in line
    assert unchecked == []
