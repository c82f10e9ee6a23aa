"""Real verl reads rows with tools and interactions, alone, together and mixed with plain rows."""

from __future__ import annotations

import asyncio
import json
from itertools import permutations
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.checks.schema import concatenation_fault
from rewardkit.preprocess.mix import MixPart, mix
from rewardkit.preprocess.template import load_turns
from rewardkit.row import read_rows, write_rows
from tests.integration.conftest import row


def search_row(i):
    turns, question = load_turns("search", None), f"Who wrote book {i}?"
    answers = json.dumps(["Ann Lee", f"A. Lee {i}"])
    return turns.add_to(
        row(i, question, answers, "searchR1_nq", "", turns.template.messages(question))
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory, parquet):
    """A file of each kind by name."""
    folder = tmp_path_factory.mktemp("turns")
    paths = {name: folder / f"{name}.parquet" for name in ("tools", "interaction", "search")}
    rewardkit.prep("gsm8k", paths["tools"], sample=True, tools="calc_gsm8k_reward")
    rewardkit.prep("gsm8k", paths["interaction"], sample=True, interaction="gsm8k")
    write_rows(map(search_row, range(8)), paths["search"], {})
    return {"plain": parquet} | paths


@pytest.mark.parametrize("kind", ["tools", "interaction", "search"])
def test_the_values_arrive_as_they_were_written(kind, files, load):
    for wanted, each in zip(read_rows(files[kind]), load(files[kind]), strict=True):
        info = wanted["extra_info"]
        assert each["agent_name"] == "tool_agent"
        assert each["tools_kwargs"] == info.get("tools_kwargs", {})
        assert each["interaction_kwargs"] == info.get("interaction_kwargs", {})
        assert each["reward_model"] == wanted["reward_model"]


def test_our_files_load_together_in_any_order(files, load):
    names = [*files]
    for i in range(len(names)):  # each is the first once: its types are those that verl expects
        assert len(load(*(files[name] for name in names[i:] + names[:i]))) == 64 * 3 + 8


@pytest.fixture(scope="module")
def mixed(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("mix") / "mix.parquet"
    mix([MixPart(path, 1.0) for path in files.values()], out, rows=32)
    return out


def test_a_mix_loads_and_each_row_names_its_agent_loop(mixed, load):
    rows = load(mixed)
    names = [each["agent_name"] for each in rows]
    assert (names.count("single_turn_agent"), names.count("tool_agent")) == (8, 24)
    for wanted, each in zip(read_rows(mixed), rows, strict=True):
        for name in ("tools_kwargs", "interaction_kwargs"):
            assert each[name] == wanted["extra_info"][name]


def test_verl_knows_the_agent_loops_of_the_rows():
    registry = pytest.importorskip("verl.experimental.agent_loop.agent_loop")
    pytest.importorskip("verl.experimental.agent_loop")
    assert {"single_turn_agent", "tool_agent"} <= registry._agent_loop_registry.keys()


def call_tool(name, tools_kwargs):
    """Let verl's agent loop call a tool, and return what the policy reads and the tool got."""
    from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
    from verl.tools.base_tool import BaseTool
    from verl.tools.schemas import ToolResponse

    created = []

    class Tool(BaseTool):
        def __init__(self):
            pass

        async def create(self, instance_id=None, **kwargs):
            created.append(kwargs["create_kwargs"])
            return "1", ToolResponse()

        async def execute(self, instance_id, parameters, **kwargs):
            return ToolResponse(text="done"), 0.0, {}

    loop = SimpleNamespace(tools={name: Tool()}, max_tool_response_length=99)
    call = SimpleNamespace(name=name, arguments="{}")
    data = SimpleNamespace(_active_tools=loop.tools)
    response, _, _ = asyncio.run(ToolAgentLoop._call_tool(loop, call, tools_kwargs, data))
    return response.text, created


def test_an_agent_loop_can_call_every_tool_in_every_row_of_a_mix(mixed, load):
    """A null entry, which Arrow would write for the rows of other files, is an error of the tool."""
    rows = load(mixed)
    for each in rows:
        for name, entry in each["tools_kwargs"].items():
            assert call_tool(name, each["tools_kwargs"]) == ("done", [entry["create_kwargs"]])
    for broken in (None, {"search": None}):
        text, created = call_tool("search", broken)
        assert text.startswith("Error executing tool")
        assert not created


#: Columns of two files, with a value; not all versions load all pairs together.
TEXT = pa.string()
AB, BA = (pa.struct([(name, TEXT) for name in names]) for names in ("ab", "ba"))
B = pa.struct([("b", TEXT)])
COLUMNS = {
    "text": (TEXT, "t"),
    "large": (pa.large_string(), "t"),
    "null": (pa.null(), None),
    "number": (pa.int64(), 1),
    "ab": (AB, {"a": "1", "b": "2"}),
    "ba": (BA, {"a": "1", "b": "2"}),
    "b": (B, {"b": "2"}),
    "b number": (pa.struct([("b", pa.int64())]), {"b": 2}),
    "texts": (pa.list_(TEXT), ["t"]),
    "nulls": (pa.list_(pa.null()), [None]),
    "list ab": (pa.list_(AB), [{"a": "1", "b": "2"}]),
    "list ba": (pa.list_(BA), [{"a": "1", "b": "2"}]),
    "list b": (pa.list_(B), [{"b": "2"}]),
}


def test_the_faults_of_concatenation_are_those_of_real_datasets(tmp_path):
    import datasets

    loaded, paths = {}, {name: tmp_path / f"{name}.parquet" for name in COLUMNS}
    for name, (kind, value) in COLUMNS.items():
        table = pa.table({"x": pa.array([value] * 2, kind), "y": [1, 2]})
        pq.write_table(table, paths[name])
        loaded[name] = datasets.load_dataset(
            "parquet", data_files=str(paths[name]), cache_dir=str(tmp_path / "cache")
        )["train"]
    wrong = []
    for one, other in permutations(COLUMNS, 2):
        fault = concatenation_fault([paths[one], paths[other]])
        expected = fault is None or fault.only_in_old
        try:
            loads = len(list(datasets.concatenate_datasets([loaded[one], loaded[other]]))) == 4
        except (ValueError, TypeError, AttributeError):
            loads = False
        if loads != expected:
            wrong.append(f"{one}, {other}: loads {loads}, {fault}")
    assert not wrong, "\n".join(wrong)
