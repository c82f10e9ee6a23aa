"""The preflight reports packages that a run needs and this machine lacks."""

import sys

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight.environment import check_environment
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.recipe import load_tree, read_recipe


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
