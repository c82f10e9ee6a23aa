"""The preflight reports packages that a run needs and this machine lacks."""

import sys

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight import environment
from rewardkit.launch.preflight.environment import check_environment
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.recipe import load_tree, read_recipe
from tests.tables import every


@pytest.fixture
def findings_with(tmp_path, monkeypatch):
    """The findings of a run, with packages of these versions installed."""

    def check(strategy="fsdp", **versions):
        for name, version in {"verl": "0.9.1", **versions}.items():
            folder = tmp_path / f"{name}-{version}.dist-info"
            folder.mkdir()
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            (folder / "METADATA").write_text(text)
            (tmp_path / f"{name}.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        tree = load_tree("qwen3-8b-dapo-dianjin")
        changes = {"cluster": {"target": "local"}, "devices": "gpu", "strategy": strategy}
        report = PreflightReport()
        check_environment(make_plan(read_recipe({**tree, **changes}, "x"), "0.9.1"), report)
        return [str(finding) for finding in report.findings]

    for name in ("trl", "transfer_queue"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return check


@pytest.mark.parametrize(
    ("strategy", "versions", "is_named"),
    [
        ("fsdp", {"trl": "1.16.0"}, True),
        ("fsdp2", {"trl": "1.13.0"}, True),
        ("fsdp", {"trl": "1.12.0"}, False),
        ("fsdp", {}, False),
    ],
)
def test_a_trl_that_verl_s_fsdp_engine_cannot_import_is_reported(
    findings_with, strategy, versions, is_named
):
    lines = findings_with(strategy, **versions)
    assert any("trl.experimental.ppo" in line for line in lines) is is_named


def test_a_missing_transfer_queue_is_reported_for_verl_0_9(findings_with):
    assert any("pip install TransferQueue" in line for line in findings_with())


@pytest.fixture
def cores(monkeypatch, plan):
    """Return a function that gives the findings about CPU cores on a machine with one GPU."""

    def check(present, verl="0.9.1", *overrides, devices=1):
        monkeypatch.setattr(environment.os, "cpu_count", lambda: present)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        report = PreflightReport()
        check_environment(plan(verl, *overrides, devices_per_node=devices), report)
        return [finding for finding in report.findings if finding.rule == "cpus"]

    return check


@every(
    ("verl", "needed"),
    [
        ("0.7.1", 4),
        ("0.8.0", 4),
        ("0.9.1", 12),
    ],
)
def test_a_desktop_with_one_gpu_needs_the_cores_that_the_release_reserves(cores, verl, needed):
    size = "actor_rollout_ref.rollout.tensor_model_parallel_size=1"
    assert cores(needed, verl, size) == []
    (finding,) = cores(needed - 1, verl, size)
    assert finding.severity == "machine"
    assert f"reserves {needed} CPU cores in Ray" in finding.text
    assert f"this machine has {needed - 1}" in finding.text


def test_the_fix_for_too_few_cores_names_the_settings_of_the_release(cores):
    (new,) = cores(8)
    units = "transfer_queue.backend.SimpleStorage.num_data_storage_units=4"
    assert new.fix.startswith(f"Set {units}, or set ray_kwargs.ray_init.num_cpus=12")
    assert cores(8, "0.9.1", units) == []
    assert cores(8, "0.9.1", "ray_kwargs.ray_init.num_cpus=12") == []
    (old,) = cores(4, "0.8.0", devices=8)
    assert old.fix.startswith("Set ray_kwargs.ray_init.num_cpus=25")


def test_the_cores_that_somebody_gives_to_ray_count_and_not_the_machine_s(cores):
    (finding,) = cores(64, "0.9.1", "ray_kwargs.ray_init.num_cpus=6")
    assert "ray_kwargs.ray_init.num_cpus is 6" in finding.text
    assert finding.severity == "error"  # the recipe names their number


def test_the_cores_of_another_ray_cluster_are_not_judged_by_this_machine(cores, monkeypatch, plan):
    report = PreflightReport()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.setattr(environment.os, "cpu_count", lambda: 1)
    check_environment(plan(), report)
    assert not any(finding.rule == "cpus" for finding in report.findings)
