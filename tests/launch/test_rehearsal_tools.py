"""The tools of a plan, which verl 0.5 loads but does not call in a rehearsal, and those of its rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit.launch.rehearsal import scale_down
from rewardkit.launch.rehearsal.planned_tools import PlannedTools, check_tools, read_tools
from rewardkit.launch.verl.releases import release_of


@pytest.fixture
def rows(tmp_path):
    """Four rows, of which three name `calc` and one names `search`; parquet adds null for the others."""
    calc, search = (
        {"calc": {"create_kwargs": {"gold": "1"}}},
        {"search": {"create_kwargs": {"k": 3}}},
    )
    infos = [{"tools_kwargs": kwargs} for kwargs in (calc, calc, calc, search)]
    pq.write_table(pa.Table.from_pylist([{"extra_info": i} for i in infos]), tmp_path / "a.parquet")
    pq.write_table(pa.table({"prompt": ["without extra_info"]}), tmp_path / "b.parquet")
    return [tmp_path / "a.parquet", tmp_path / "b.parquet"]


def test_rows_may_name_only_tools_of_the_plan(rows):
    is_ok, text = check_tools(PlannedTools(("calc", "search"), ()), rows)
    assert is_ok
    assert text == "calc, search: loaded, not called; 4 of 5 rows name a tool"
    is_ok, text = check_tools(PlannedTools(("calc",), ()), rows)
    assert not is_ok
    assert text == "rows name tools that the plan lacks: search in 1 of 5; the plan has calc"


def test_a_tool_that_does_not_load_fails_the_check(rows):
    is_ok, text = check_tools(PlannedTools(("calc",), ("mine.Tool: ModuleNotFoundError: x",)), rows)
    assert (is_ok, text) == (False, "a tool does not load: mine.Tool: ModuleNotFoundError: x")


def test_a_tool_whose_class_has_its_name_may_be_any_of_the_rows(rows):
    assert check_tools(PlannedTools(("calc", ""), ()), rows)[0]


def test_the_result_of_the_loader_is_read(tmp_path):
    assert read_tools(tmp_path / "tools.json") is None
    (tmp_path / "tools.json").write_text(json.dumps({"names": ["calc"], "errors": []}))
    assert read_tools(tmp_path / "tools.json") == PlannedTools(("calc",), ())


def test_only_a_release_whose_rollout_ignores_tools_loads_them_apart():
    section = "actor_rollout_ref.rollout.multi_turn"
    config = {f"{section}.enable": True, f"{section}.tool_config_path": "tools.yaml"}
    assert scale_down.tool_config(config, release_of("0.5.0")) == "tools.yaml"
    assert scale_down.tool_config(config, release_of("0.9.1")) == ""
    assert scale_down.tool_config(config | {f"{section}.enable": False}, release_of("0.5.0")) == ""
