"""Rows of more than one turn have the fields of verl's scripts, and every command takes them."""

import json
from hashlib import sha256
from typing import get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit.checks.check import OptionalChecks
from rewardkit.checks.row_checks import check_row
from rewardkit.cli.prep import RowOptions
from rewardkit.errors import DataError, UnknownNameError, UsageError
from rewardkit.preprocess.foreign_rows import to_schema_row
from rewardkit.preprocess.mix import MixPart, mix
from rewardkit.preprocess.prep import preview
from rewardkit.preprocess.template import TURNS, load_turns
from rewardkit.row import read_rows, write_rows
from tests.preprocess.rows import verl_row
from tests.tables import every

QUESTION = "Who wrote it?"
GOLDS = ["Ann Lee", "A. Lee"]


def tool_row(i=0, name="calc_gsm8k_reward", **more):
    return load_turns(name, None).add_to(verl_row(i, **more))


#: A row of each kind.
KINDS = {
    "plain": verl_row,
    "tool": tool_row,
    "search": lambda i=0: tool_row(
        i, "search", ground_truth=json.dumps(GOLDS), question=QUESTION, answer="", scorer="qa"
    ),
    "interaction": lambda i=0: load_turns(None, "gsm8k").add_to(verl_row(i)),
}


@pytest.fixture
def files(tmp_path):
    """Write five rows of each kind and return the paths."""

    def write(*kinds):
        paths = [tmp_path / f"{kind}.parquet" for kind in kinds]
        for index, (kind, path) in enumerate(zip(kinds, paths, strict=True)):
            rows = (KINDS[kind](10 * index + i) for i in range(5))
            write_rows(rows, path, {}, overwrite=True)
        return paths

    return write


@pytest.fixture
def mixed(files, tmp_path):
    """Mix files of these kinds, and return the rows and the report."""

    def make(*kinds):
        report = mix([MixPart(path) for path in files(*kinds)], tmp_path / "mix.parquet")
        return list(read_rows(tmp_path / "mix.parquet")), report

    return make


# The fields of verl's scripts


#: First digits of the SHA-256 of the prompts that verl's scripts write for the question "Who wrote it?", as JSON: of
#: verl 0.9, and of 0.7 for the interaction, which later releases do not have.
PROMPTS = {
    "calc_gsm8k_reward": "274facf21af8509f",
    "calc_geo3k_reward": "a2f9fb127d80da51",
    "search": "958e18e9950d7406",
    "gsm8k": "1d6656929f01fd5e",
}


@pytest.mark.parametrize("name", PROMPTS)
def test_the_prompt_is_that_of_the_script_of_verl(name):
    messages = (TURNS["tools"] | TURNS["interaction"])[name].messages(QUESTION)
    assert sha256(json.dumps(messages).encode()).hexdigest()[:16] == PROMPTS[name]


def test_tools_and_interactions_get_what_the_scripts_of_verl_give_them():
    search = {
        "ground_truth": {"target": GOLDS},
        "question": QUESTION,
        "data_source": "openai/gsm8k",
    }
    gold = {"ground_truth": "3"}
    for kind, field, expected in (
        ("tool", "tools_kwargs", {"calc_gsm8k_reward": {"create_kwargs": gold}}),
        ("search", "tools_kwargs", {"search": {"create_kwargs": search}}),
        ("interaction", "interaction_kwargs", {"name": "gsm8k", "query": "question 3", **gold}),
    ):
        row = KINDS[kind](3)
        assert row["agent_name"] == "tool_agent"
        assert row["extra_info"][field] == expected
        assert row["extra_info"].get("need_tools_kwargs", False) == (field == "tools_kwargs")


@every(
    ("gold", "answers"), [("[1, 2]", ["1", "2"]), ("[]", ["[]"]), ("[" * 100_000, ["[" * 100_000])]
)
def test_search_gets_each_alternative_of_a_gold(gold, answers):
    [entry] = tool_row(name="search", ground_truth=gold)["extra_info"]["tools_kwargs"].values()
    assert entry["create_kwargs"]["ground_truth"] == {"target": answers}


def test_a_template_or_system_message_of_the_user_replaces_that_part():
    [own] = preview("gsm8k", 1, sample=True, tools="calc_gsm8k_reward")
    [row] = preview("gsm8k", 1, sample=True, tools="calc_gsm8k_reward", template="boxed")
    assert row["prompt"][0] == own["prompt"][0]
    assert "boxed" in row["prompt"][1]["content"]
    [row] = preview("gsm8k", 1, sample=True, tools="calc_gsm8k_reward", system="Think.")
    assert row["prompt"] == [{"role": "system", "content": "Think."}, own["prompt"][1]]


def test_an_unknown_tool_and_two_options_are_errors():
    with pytest.raises(UnknownNameError, match="calc_gsm8k_reward"):
        load_turns("calc_gsm8k_rewards", None)
    with pytest.raises(UsageError, match="exclude"):
        load_turns("search", "gsm8k")


def test_the_command_has_every_tool_and_interaction():
    hints = get_type_hints(RowOptions)
    for name, table in TURNS.items():
        names, _ = get_args(hints[name])
        assert get_args(names) == tuple(table)


# The mix


def test_a_mix_with_plain_rows_says_which_rows_have_one_turn(mixed):
    rows, report = mixed("plain", "tool")
    agents = {(row["agent_name"], row["extra_info"]["need_tools_kwargs"]) for row in rows}
    assert agents == {("single_turn_agent", False), ("tool_agent", True)}
    plain, tool = report.parts
    assert plain.changes["agent_name was missing: set to single_turn_agent"] == 5
    assert not tool.changes


def test_no_entry_of_a_tool_is_null(mixed):
    """verl calls `.get` on the entry of each tool, and on `create_kwargs` in it."""
    rows, _ = mixed("plain", "tool", "search", "interaction")
    for row in rows:
        entries = row["extra_info"]["tools_kwargs"]
        assert set(entries) == {"calc_gsm8k_reward", "search"}
        assert all(isinstance(entry["create_kwargs"], dict) for entry in entries.values())


def test_a_mix_of_files_without_agent_names_leaves_the_choice_to_the_run(tmp_path):
    """verl's script for tools names no agent loop, because the run sets the default one."""
    rows = [tool_row(i) for i in range(3)]
    for row in rows:
        del row["agent_name"]
    write_rows(rows, tmp_path / "a.parquet", {})
    mix([MixPart(tmp_path / "a.parquet")], tmp_path / "m.parquet")
    assert "agent_name" not in pq.read_schema(tmp_path / "m.parquet").names


def test_two_types_of_one_field_are_one_error_that_names_file_and_field(files, tmp_path):
    [tool] = files("tool")
    row = tool_row()
    row["extra_info"]["tools_kwargs"]["calc_gsm8k_reward"]["create_kwargs"]["ground_truth"] = 1
    write_rows([row], tmp_path / "number.parquet", {})
    field = r"extra_info\.tools_kwargs\.calc_gsm8k_reward\.create_kwargs\.ground_truth"
    with pytest.raises(DataError, match=rf"number\.parquet: {field} is int64, but string"):
        mix([MixPart(tool), MixPart(tmp_path / "number.parquet")], tmp_path / "m.parquet")
    assert not (tmp_path / "m.parquet").exists()


def test_a_file_of_the_search_script_of_verl_gets_a_gold_as_text(files, tmp_path):
    row = KINDS["search"]()
    foreign = {
        "data_source": "searchR1_nq", "prompt": row["prompt"], "ability": None, "metadata": None,
        "reward_model": {"ground_truth": {"target": ["Ann Lee", "A. Lee"]}, "style": "rule"},
        "extra_info": {"index": 0, "tools_kwargs": row["extra_info"]["tools_kwargs"]},
    }  # fmt: skip
    pq.write_table(pa.Table.from_pylist([foreign]), tmp_path / "verl.parquet")
    parts = [MixPart(tmp_path / "verl.parquet"), *map(MixPart, files("plain"))]
    report = mix(parts, tmp_path / "m.parquet")
    assert any("written as a JSON list" in change for change in report.parts[0].changes)
    [made] = [r for r in read_rows(tmp_path / "m.parquet") if r["agent_name"] == "tool_agent"]
    assert made["reward_model"]["ground_truth"] == '["Ann Lee", "A. Lee"]'
    assert made["extra_info"]["tools_kwargs"] == row["extra_info"]["tools_kwargs"]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.none() | st.fixed_dictionaries({"create_kwargs": st.none() | st.just({"x": "1"})}),
    )
)
def test_a_row_keeps_each_tool_that_is_not_null(tools):
    row = verl_row()
    row["extra_info"]["tools_kwargs"] = tools
    made, _ = to_schema_row(row, 0)
    wanted = {name: entry for name, entry in tools.items() if entry is not None}
    assert made["extra_info"].get("tools_kwargs", {}) == wanted


# check, show and select


def test_check_accepts_a_file_of_each_kind(files):
    assert all(rewardkit.check(file).ok for file in files("plain", "tool", "interaction"))


def test_check_says_that_it_does_not_count_the_descriptions_of_tools(files):
    """verl counts them in data.max_prompt_length, but the file has only the names of the tools."""
    plain, tool = files("plain", "tool")
    extras = OptionalChecks(count_tokens=len)
    aspect = "tokens of the tools' descriptions"
    assert aspect in rewardkit.check(tool, extras=extras).not_checked
    assert aspect not in rewardkit.check(plain, extras=extras).not_checked


@every(
    ("changes", "message"),
    [
        ({"agent_name": None}, "agent_name is empty"),
        ({"tools_kwargs": {"a": {}, "search": None}}, "tools_kwargs.search is null"),
        ({"tools_kwargs": "{}"}, "tools_kwargs is str"),
    ],
)
def test_check_finds_what_a_column_has_for_other_rows_only(changes, message):
    row = tool_row()
    for name, value in changes.items():
        (row if name in row else row["extra_info"])[name] = value
    [finding] = check_row(row, 0)
    assert finding.rule == "bad_agent"
    assert message in finding.message
