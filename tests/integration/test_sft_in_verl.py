"""Real verl reads the conversations of `select --sft`: its loss is on the assistant's text alone."""

from __future__ import annotations

import json

import pytest

from rewardkit.responses.sft import SftConfig, select_sft
from rewardkit.row import write_rows
from tests.integration.conftest import row

#: A template in the form of Qwen's: every message between marks, tools in the system prompt, and a
#: tool call's arguments as they are if they are text.
CHATML = (
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}\n<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": '
    "{% if c.function.arguments is string %}{{ c.function.arguments }}"
    "{% else %}{{ c.function.arguments | tojson }}{% endif %}}"
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

#: The same, but the thinking of an assistant's message is left out unless it answers a user's, as in
#: Qwen3's template.
FORGETS_THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.first %}{{ m.content.split('</think>')[-1].strip() }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

QUERIES = {"queries": {"type": "array", "description": "Texts to look for."}}
PARAMETERS = {"type": "object", "properties": QUERIES, "required": ["queries"]}
FUNCTION = {"name": "search", "description": "Search the library.", "parameters": PARAMETERS}
SEARCH = {"type": "function", "function": FUNCTION}

USER = {"role": "user", "content": "Which number is 7 + 1?"}
SYSTEM = {"role": "system", "content": "You are brief."}


@pytest.fixture
def write_sft(tmp_path):
    """Return a function that writes the conversations of pairs of a prompt and a response."""

    def write(*pairs, tools=()):
        prompts = [
            [*prompt[:-1], {**prompt[-1], "content": f"{prompt[-1]['content']} ({i})"}]
            for i, (prompt, _) in enumerate(pairs)
        ]
        rows = [row(i, p[-1]["content"], 8, scorer="math", prompt=p) for i, p in enumerate(prompts)]
        write_rows(rows, tmp_path / "train.parquet", {}, overwrite=True)
        lines = [
            {"data_source": each["data_source"], "extra_info": each["extra_info"], "acc": 1.0}
            | {"response": response, "ground_truth": "8"}
            for each, (_, response) in zip(rows, pairs, strict=True)
        ]
        (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        out = tmp_path / "sft.parquet"
        config = SftConfig(tools=tuple(tools))
        report = select_sft([tmp_path / "s.jsonl"], tmp_path / "train.parquet", out, config)
        assert report.written == len(pairs), report
        return out

    return write


@pytest.fixture
def load_sft(tokenizer):
    """Return a function that loads a file with verl's dataset, with a chat template."""
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    def load(path, template=CHATML, **config):
        tokenizer.chat_template = template
        config = {"max_length": 4096, "truncation": "error", **config}
        return MultiTurnSFTDataset(str(path), tokenizer, config)

    previous = tokenizer.chat_template
    yield load
    tokenizer.chat_template = previous


def trained_text(dataset, tokenizer, item):
    """The text on which verl has a loss, and the whole text."""
    sample = dataset[item]
    masks = (sample[name].bool() for name in ("loss_mask", "attention_mask"))
    return tuple(tokenizer.decode(sample["input_ids"][mask]) for mask in masks)


SINGLE_TURNS = {
    "plain": ([USER], "7 + 1 = 8.\n\n\\boxed{8}"),
    "with a system prompt": ([SYSTEM, USER], "\\boxed{8}"),
    "after earlier turns": (
        [SYSTEM, {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi!"}, USER],
        "\\boxed{8}",
    ),
    "with thinking": ([USER], "<think>\nIt is 8 é.\n</think>\n\n\\boxed{8}"),
    "with a tool call in its text": (
        [USER],
        '<tool_call>\n{"name": "f", "arguments": {"a": ["7"], "k": null}}\n</tool_call>\n\\boxed{8}',
    ),
}


@pytest.mark.parametrize("kind", SINGLE_TURNS)
def test_the_loss_covers_the_response_and_its_end_mark(kind, write_sft, load_sft, tokenizer):
    prompt, response = SINGLE_TURNS[kind]
    dataset = load_sft(write_sft((prompt, response)))
    trained, whole = trained_text(dataset, tokenizer, 0)
    earlier = "".join(f"{m['content']}<|im_end|>\n" for m in prompt if m["role"] == "assistant")
    assert trained == f"{earlier}{response}<|im_end|>\n"
    assert whole.endswith(f"<|im_start|>assistant\n{response}<|im_end|>\n")


def test_the_results_of_tools_in_a_dump_are_no_part_of_the_loss(write_sft, load_sft, tokenizer):
    """The text is what verl's tool agent loop leaves without special tokens."""
    one = 'I search.\n<tool_call>\n{"name": "search", "arguments": {"queries": ["a", "b"]}}\n</tool_call>'
    two = one.replace('"a", "b"', '"c"') + one[len("I search.") :]
    dump = (
        f"{one}\nuser\n<tool_response>\n7\n</tool_response>\nassistant\n"
        f"{two}\nuser\n<tool_response>\n8\n</tool_response>\n<tool_response>\n9\n</tool_response>\n"
        "assistant\n\\boxed{8}"
    )
    dataset = load_sft(write_sft(([USER], dump), tools=[SEARCH]))
    trained, whole = trained_text(dataset, tokenizer, 0)
    assert trained == f"{one}<|im_end|>\n{two}<|im_end|>\n\\boxed{{8}}<|im_end|>\n"
    schema = next(json.loads(line) for line in whole.splitlines() if line.startswith("{"))
    assert schema == SEARCH
    marks = whole.replace("<|im_start|>", "").replace("<|im_end|>", "")
    assert marks.endswith(f"{dump}\n")  # the tokens of the rollout, in its order


def test_verl_refuses_thinking_that_the_template_leaves_out(write_sft, load_sft):
    """verl renders each message alone, and compares the result with the whole conversation."""
    prompt, response = SINGLE_TURNS["with thinking"]
    dataset = load_sft(write_sft((prompt, response)), FORGETS_THINKING)
    with pytest.raises(AssertionError, match="Thinking"):
        dataset[0]
