"""Prompt templates: the instruction around a question, and the scorer that reads the answer.

The texts of `hash`, `boxed` and `think_boxed` are those of verl's scripts for GSM8K, MATH and
Geometry3k, `answer_line` is that of DAPO-Math-17k.

A row of more than one turn has the instruction and the fields of a script of verl 0.9
(`examples/data_preprocess`), or of 0.7 for the interaction, which verl 0.8 removed: what the agent loop
passes to the tool when the policy calls it, or to the simulated user. It also names the agent loop
`tool_agent`, as `gsm8k_tool_agent_loop.py` does: without a name verl answers in a single turn, unless
the run sets another default loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.registry import did_you_mean
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.gold import alternatives
from rewardkit.scorers.load import load_scorer

#: The text that a template has in place of the question.
SLOT = "{question}"


@dataclass(frozen=True)
class Template:
    """A prompt template.

    Attributes:
        name: a built-in name, or the path of the file.
        text: the user message, with `{question}` in it once.
        scorer: name of the scorer that reads the requested form; None if no form is requested.
        system: the system message; None for no such message.
    """

    name: str
    text: str
    scorer: str | None
    system: str | None = None

    def messages(self, question: str) -> list[dict[str, str]]:
        """Return the chat that asks `question`. Braces in the question are kept."""
        user = {"role": "user", "content": self.text.replace(SLOT, question)}
        return [user] if self.system is None else [{"role": "system", "content": self.system}, user]

    def asks_for(self, scorer: str) -> bool:
        """Return whether it asks for the form that a scorer reads, such as a box for `math`."""
        response = spec_of(load_scorer(scorer)).respond
        form = _form(self.text) or _form(self.system or "")
        return response is not None and form is not None and form in response("1")


BUILT_IN: Mapping[str, Template] = {
    template.name: template
    for template in (
        Template(
            "hash",
            '{question} Let\'s think step by step and output the final answer after "####".',
            "gsm8k",
        ),
        Template(
            "boxed",
            "{question} Let's think step by step and output the final answer within \\boxed{}.",
            "math",
        ),
        Template(
            "think_boxed",
            "{question} You FIRST think about the reasoning process as an internal monologue and "
            "then provide the final answer. The reasoning process MUST BE enclosed within <think> "
            "</think> tags. The final answer MUST BE put in \\boxed{}.",
            "math",
        ),
        Template(
            "answer_line",
            "Solve the following math problem step by step. The last line of your response should "
            "be of the form Answer: $Answer (without quotes) where $Answer is the answer to the "
            "problem.\n\n{question}\n\nRemember to put your answer on its own line after "
            '"Answer:".',
            "math",
        ),
        Template(
            "boxed_letter",
            "{question}\n\nThink step by step, then write the letter of the correct option within "
            "\\boxed{}.",
            "mcq",
        ),
        Template(
            "answer_tags",
            "{question}\n\nThink step by step, then write a short answer, a few words without a "
            "sentence around them, between <answer> and </answer>.",
            "qa",
        ),
        Template(
            "code",
            "{question}\n\nWrite a program in Python. Unless a function is asked for, it reads the "
            "standard input and prints the answer. End your response with the complete program between "
            "```python and ```.",
            "code",
        ),
        Template(
            "tool_call",
            "{question}\n\nCall the functions that the request needs. Write each call as JSON with the keys "
            '"name" and "arguments", between <tool_call> and </tool_call>.',
            "function_call",
        ),
        Template(
            "sql",
            "{question}\n\nWrite one SQLite query that answers the question. End your response with the "
            "query between ```sql and ```.",
            "sql",
        ),
        Template("none", "{question}", None),
    )
}

#: The forms of an answer, and the scorer that reads each form in any dataset.
_FORMS: Mapping[str, str] = {"####": "gsm8k", "\\boxed": "math", "Answer:": "math"}


def load_template(name: str, system: str | None = None) -> Template:
    r"""Return the built-in template of that name, or the template in a file.

    If the template asks for no form of answer, the system message is searched for `####`, `\boxed`
    and `Answer:`, too.
    """
    template = BUILT_IN.get(name) or _read(name)
    form = _form(template.text) or _form(system or "")
    scorer = template.scorer or (_FORMS[form] if form else None)
    return Template(template.name, template.text, scorer, system)


def _read(name: str) -> Template:
    path = Path(name)
    if not path.is_file():
        raise UnknownNameError(
            f"unknown template {name!r}.{did_you_mean(name, BUILT_IN)} "
            f"Use {', '.join(BUILT_IN)}, or the path of a text file that contains {SLOT}."
        )
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not UTF-8 text ({error.reason}).") from error
    if text.count(SLOT) != 1:
        raise UsageError(f"{name}: contains {SLOT} {text.count(SLOT)} times instead of once.")
    return Template(name, text, None)


def _form(text: str) -> str | None:
    return next((form for form in _FORMS if form in text), None)


_HASH = f"{SLOT} Let's think step by step and output the final answer after `####`."
_EXPERT = "You are a math expert. You are given a question and you need to solve it step by step. "
_CALL_FIRST = (
    "Reasoning step by step before any tool call. You should use the `{}` tool after step by step "
    "solving the question, before generate final answer at least once and refine your answer if "
    "necessary. "
)
_RETHINK = "You should rethinking carefully if user point out your answer is wrong. "
_HASH_ANSWER = "Put your final answer in the format of `#### <answer>`."
_SEARCH = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every "
    "time you get new information. After reasoning, if you find you lack some knowledge, you can "
    "call a search engine by <tool_call> query </tool_call> and it will return the top searched "
    "results between <tool_response> and </tool_response>. You can search as many times as your "
    "want. If you find no further external knowledge needed, you can directly provide the answer "
    "inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing "
    f"</answer>. Question: {SLOT}"
)

#: The tools and interactions by option, each with the instruction of verl's script; None for the dataset's.
TURNS: Mapping[str, Mapping[str, Template | None]] = {
    "tools": {
        "calc_gsm8k_reward": Template(
            "calc_gsm8k_reward",
            _HASH,
            "gsm8k",
            _EXPERT + _CALL_FIRST.format("calc_gsm8k_reward") + _HASH_ANSWER,
        ),
        "calc_geo3k_reward": Template(
            "calc_geo3k_reward",
            BUILT_IN["think_boxed"].text,
            "math",
            _EXPERT + _CALL_FIRST.format("calc_geo3k_reward"),
        ),
        "code_interpreter": None,
        "search": Template("search", _SEARCH, "qa", "You are a helpful and harmless assistant."),
    },
    "interaction": {
        "gsm8k": Template("gsm8k_interaction", _HASH, "gsm8k", _EXPERT + _RETHINK + _HASH_ANSWER)
    },
}


@dataclass(frozen=True)
class Turns:
    """What a tool or an interaction (`option`) adds to the rows of a dataset."""

    option: str
    name: str

    @property
    def template(self) -> Template | None:
        """The instruction of verl's script; None for the dataset's own."""
        return TURNS[self.option][self.name]

    def add_to(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row with the fields that verl's script writes, and the agent loop."""
        # it imports pyarrow, which `list` does not need
        from rewardkit.row import AGENT_NAME, TOOL_AGENT

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
        return {**row, "extra_info": row["extra_info"] | fields, AGENT_NAME.name: TOOL_AGENT}


def load_turns(tools: str | None, interaction: str | None) -> Turns | None:
    """Return the tool or the interaction of that name; None if neither is named."""
    if tools and interaction:
        raise UsageError("--tools and --interaction exclude each other.")
    option, name = ("tools", tools) if tools else ("interaction", interaction)
    if name is None:
        return None
    if name not in TURNS[option]:
        near, names = did_you_mean(name, TURNS[option]), ", ".join(TURNS[option])
        raise UnknownNameError(f"unknown {option.rstrip('s')} {name!r}.{near} Use {names}.")
    return Turns(option, name)
