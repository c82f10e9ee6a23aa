"""Rows of more than one turn: the tools and interactions of verl's own scripts.

A row with a tool tells verl's agent loop what to pass to the tool when the policy calls it; a row
with an interaction, what to pass to the simulated user. The instructions and fields are those of
verl 0.9's scripts (`examples/data_preprocess`), and, for the interaction, of 0.7's: verl 0.8 removed
interactions. The rows also name the agent loop `tool_agent`, as `gsm8k_tool_agent_loop.py` does:
without a name verl answers in a single turn, unless the run sets another default loop.

| option | script of verl | instruction |
|---|---|---|
| `--tools calc_gsm8k_reward` | `gsm8k_multiturn_w_tool.py`, `gsm8k_tool_agent_loop.py` | the script's |
| `--tools calc_geo3k_reward` | `geo3k_multiturn_w_tool.py` | the script's |
| `--tools code_interpreter` | `dapo_multiturn_w_tool.py`, `aime2024_multiturn_w_tool.py` | the dataset's |
| `--tools search` | `preprocess_search_r1_dataset.py` | the script's |
| `--interaction gsm8k` | `gsm8k_multiturn_w_interaction.py` | the script's |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.preprocess.template import BUILT_IN, SLOT, Template
from rewardkit.registry import did_you_mean
from rewardkit.row import AGENT_NAME, Row
from rewardkit.scorers.gold import alternatives

#: The agent loop of every release since 0.5 that calls tools.
TOOL_AGENT = "tool_agent"

_HASH = f"{SLOT} Let's think step by step and output the final answer after `####`."

_EXPERT = "You are a math expert. You are given a question and you need to solve it step by step. "

_CALL_FIRST = (
    "Reasoning step by step before any tool call. You should use the `{}` tool after step by step "
    "solving the question, before generate final answer at least once and refine your answer if "
    "necessary. "
)

_SEARCH = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every "
    "time you get new information. After reasoning, if you find you lack some knowledge, you can "
    "call a search engine by <tool_call> query </tool_call> and it will return the top searched "
    "results between <tool_response> and </tool_response>. You can search as many times as your "
    "want. If you find no further external knowledge needed, you can directly provide the answer "
    "inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing "
    f"</answer>. Question: {SLOT}"
)

_HASH_ANSWER = "Put your final answer in the format of `#### <answer>`."


@dataclass(frozen=True)
class Turns:
    """What a tool or an interaction adds to the rows of a dataset."""

    option: str
    name: str
    template: Template | None = None

    def add_to(self, row: Row) -> Row:
        """Return the row with the fields that verl's script writes, and the agent loop."""
        gold, name = row["reward_model"]["ground_truth"], self.name
        fields: dict[str, Any]
        if self.option == "interaction":
            query = row["prompt"][-1]["content"]
            fields = {"interaction_kwargs": {"name": name, "query": query, "ground_truth": gold}}
        else:
            arguments: dict[str, Any] = {"ground_truth": gold}
            if name == "search":
                arguments["ground_truth"] = {"target": list(alternatives(gold) or (gold,))}
                arguments["question"] = row["extra_info"]["question"]
                arguments["data_source"] = row["data_source"]
            entry = {"create_kwargs": arguments}
            fields = {"need_tools_kwargs": True, "tools_kwargs": {name: entry}}
        info = {**row["extra_info"], **fields}
        return {**row, "extra_info": info, AGENT_NAME.name: TOOL_AGENT}


#: The instructions of verl's scripts: the user's text, the scorer and the system message.
_TEMPLATES = {
    "calc_gsm8k_reward": (
        _HASH,
        "gsm8k",
        _EXPERT + _CALL_FIRST.format("calc_gsm8k_reward") + _HASH_ANSWER,
    ),
    "calc_geo3k_reward": (
        BUILT_IN["think_boxed"].text,
        "math",
        _EXPERT + _CALL_FIRST.format("calc_geo3k_reward"),
    ),
    "code_interpreter": None,
    "search": (_SEARCH, "qa", "You are a helpful and harmless assistant."),
}
TOOLS: Mapping[str, Turns] = {
    name: Turns("tools", name, Template(name, *texts) if texts else None)
    for name, texts in _TEMPLATES.items()
}

_RETHINK = "You should rethinking carefully if user point out your answer is wrong. "
INTERACTIONS: Mapping[str, Turns] = {
    "gsm8k": Turns(
        "interaction",
        "gsm8k",
        Template("gsm8k_interaction", _HASH, "gsm8k", _EXPERT + _RETHINK + _HASH_ANSWER),
    )
}


def load_turns(tools: str | None, interaction: str | None) -> Turns | None:
    """Return the tool or the interaction of that name; None if neither is named."""
    if tools and interaction:
        raise UsageError("--tools and --interaction exclude each other.")
    name = tools or interaction
    if name is None:
        return None
    table, kind = (TOOLS, "tool") if tools else (INTERACTIONS, "interaction")
    if name not in table:
        raise UnknownNameError(
            f"unknown {kind} {name!r}.{did_you_mean(name, table)} Use {', '.join(table)}."
        )
    return table[name]
