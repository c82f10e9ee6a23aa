"""What this machine lacks for a run, said before it starts."""

import sys

import pytest

from rewardkit.launch.plan import make_plan
from rewardkit.launch.preflight.environment import check_environment
from rewardkit.launch.recipe import load_tree, read_recipe


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Findings about packages, with packages of these versions installed."""

    def look(strategy="fsdp", **installed):
        for name, number in {"verl": "0.9.1", **installed}.items():
            folder = tmp_path / f"{name}-{number}.dist-info"
            folder.mkdir()
            text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
            (folder / "METADATA").write_text(text)
            (tmp_path / f"{name}.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        tree = load_tree("qwen3-8b-dapo-dianjin")
        extra = {"cluster": {"target": "local"}, "devices": "gpu", "strategy": strategy}
        tree = {**tree, **extra}
        plan = make_plan(read_recipe(tree, "x"), "0.9.1")
        return [str(each) for each in check_environment(plan, [])]

    for name in ("trl", "transfer_queue"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return look


@pytest.mark.parametrize(
    ("strategy", "installed", "said"),
    [
        ("fsdp", {"trl": "1.16.0"}, True),
        ("fsdp2", {"trl": "1.13.0"}, True),
        ("fsdp", {"trl": "1.12.0"}, False),
        ("fsdp", {}, False),
    ],
)
def test_a_trl_that_verl_s_fsdp_engine_cannot_import_is_named(found, strategy, installed, said):
    lines = found(strategy, **installed)
    assert any("trl.experimental.ppo" in line for line in lines) is said


def test_a_queue_that_verl_0_9_imports_and_does_not_require_is_named(found):
    assert any("pip install TransferQueue" in line for line in found())
