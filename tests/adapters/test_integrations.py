"""The old paths in `rewardkit.integrations` still work and name the new ones."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rewardkit

NAMES = ("areal", "easyr1", "ms_swift", "openrlhf", "slime", "trl", "verifiers")
ROW = {"data_source": "openai/gsm8k", "ground_truth": "4"}


@pytest.fixture(autouse=True)
def swift(monkeypatch):
    """Replace ms-swift, which is not installed everywhere; return its table of rewards."""
    rewards = ModuleType("swift.rewards")
    rewards.orms = {}
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", rewards)
    for module in ("rewardkit.adapters.ms_swift.plugin", "rewardkit.integrations.ms_swift.plugin"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return rewards.orms


def old_file(name):
    folder = Path(rewardkit.__file__).parent / "integrations"
    return folder / ("ms_swift/plugin.py" if name == "ms_swift" else f"{name}.py")


def load_by_path(name):
    """Load the old file without an entry in `sys.modules`, as OpenRLHF and EasyR1 do."""
    spec = importlib.util.spec_from_file_location("custom_reward_fn", old_file(name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_by_name(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"rewardkit.integrations.{name}", raising=False)
    return importlib.import_module(f"rewardkit.integrations.{name}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by_path", [True, False])
def test_an_old_path_warns_once_with_the_new_path(name, by_path, monkeypatch):
    with pytest.warns(DeprecationWarning, match="has moved") as warnings:
        load_by_path(name) if by_path else load_by_name(name, monkeypatch)
    (message,) = (str(warning.message) for warning in warnings)
    assert f"has moved to rewardkit.adapters.{name};" in message


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "ms_swift"])
def test_an_old_path_has_the_names_of_the_new_one(name):
    module, new = load_by_path(name), importlib.import_module(f"rewardkit.adapters.{name}")
    assert {"reward", "reward_func"} <= set(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is getattr(new, public)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_path_of_the_ms_swift_plugin_registers_the_reward(swift):
    load_by_path("ms_swift")
    columns = {name: [value] for name, value in ROW.items()}
    assert swift["rewardkit"](args=None)(["#### 4"], **columns) == [1.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_path_of_easyr1_scores_a_batch():
    module = load_by_path("easyr1")
    assert (module.REWARD_TYPE, module.REWARD_NAME) == ("batch", "rewardkit")
    assert module.reward_func([{"response": "#### 4", "ground_truth": ROW}])[0]["overall"] == 1.0
