"""`rewardkit select --sft`: which responses are kept, and as which messages."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, OutputError
from rewardkit.responses.select import PassRateFilter
from rewardkit.responses.sft import (
    ConversationError,
    SftConfig,
    prompt_messages,
    read_tools,
    response_messages,
    select_sft,
)
from tests.responses.test_select import row


def scored(i, text, acc=1.0, **fields):
    place = {"data_source": "d", "extra_info": {"index": i, "split": "train"}}
    return {**place, "response": text, "ground_truth": "1", "acc": acc, **fields}


@pytest.fixture
def select_best(tmp_path):
    """Return a function that selects from rows and responses: the report and the conversations."""

    def run(rows, responses, config=None, **options):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, responses)))
        out = tmp_path / "sft.parquet"
        config = config or SftConfig()
        report = select_sft([tmp_path / "s.jsonl"], tmp_path / "t.parquet", out, config, **options)
        return report, pq.read_table(out).to_pylist()

    return run


def answers(rows):
    return [row["messages"][-1]["content"] for row in rows]


def test_the_shortest_right_response_of_each_prompt_follows_the_prompt(select_best, tmp_path):
    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What?"}]
    rows = [row(0), row(1), row(2, prompt=system)]
    pairs = [(0, "a long right one", 1.0), (0, "right", 1.0), (0, "bad", 0.0), (1, "bad", 0.0)]
    report, written = select_best(rows, [scored(*own) for own in (*pairs, (2, "right too", 1.0))])
    assert [each["messages"] for each in written] == [
        [{"role": "user", "content": "What is 0 + 0?"}, {"role": "assistant", "content": "right"}],
        [*system, {"role": "assistant", "content": "right too"}],
    ]
    assert [each["train_row"] for each in written] == [0, 2]
    assert (report.covered, report.prompts, report.written, report.wrong) == (2, 3, 2, 2)
    (line,) = (tmp_path / "sft.parquet.dropped.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["index"], record["reasons"]) == (1, ["no right response"])
    assert record["row"] == row(1)


OTHER_TURN = {"messages": [{"role": "user", "content": "Other?"}]}
NO_CALL = "1\nuser\n<tool_response>\n2\n</tool_response>\nassistant\n1"


@pytest.mark.parametrize(
    ("response", "fields", "reason", "config"),
    [
        ("1", {"finish_reason": "abort"}, "cut off (finish_reason abort)", {}),
        ("<think> it is 1", {}, "cut off: its thinking has no end", {}),
        ('1 <tool_call>\n{"name": "a"', {}, "cut off: its tool call has no end", {}),
        (" \n", {}, "it is empty", {}),
        ("\ud800 1", {}, "it has characters that are not Unicode text", {}),
        ("1\nuser\nAre you sure?\nassistant\n1", {}, "it has turns of others", {}),
        ("1user\n\nSure?assistant\n\n1", {}, "it has turns of others", {}),
        (NO_CALL, {}, "the turns of its tools", {}),
        ("1<|im_end|>\n<|im_start|>user\n2", {}, "it has special tokens of a chat template", {}),
        ("1", OTHER_TURN, "its turns are in a field messages", {}),
        ("x" * 21, {}, "longer than 20 characters", {"max_characters": 20}),
    ],
)
def test_a_right_response_that_must_not_be_trained_on_is_left_out(
    select_best, response, fields, reason, config
):
    lines = [scored(0, response, **fields), scored(1, "a right one")]
    report, written = select_best([row(0), row(1)], lines, SftConfig(**config))
    assert next(iter(report.rejected)).startswith(reason)
    assert answers(written) == ["a right one"]
    assert report.dropped == {"no right response that is kept": 1}


@pytest.mark.parametrize(("acc", "status"), [(0.0, "correct"), (1.0, "wrong"), (1.0, "too_long")])
def test_only_a_response_that_is_wholly_right_counts(select_best, acc, status):
    lines = [scored(0, "x", acc, status=status), scored(1, "y", status="correct")]
    assert answers(select_best([row(0), row(1)], lines)[1]) == ["y"]


def test_a_match_that_nothing_confirms_and_a_prompt_out_of_the_pass_rates_are_not_used(select_best):
    lines = [scored(0, "x", ground_truth=""), scored(1, "y"), scored(2, "z"), scored(2, "z", 0.0)]
    config = SftConfig(prompts=PassRateFilter(0.1, 0.9))
    report, written = select_best([row(0, gold=""), row(1), row(2)], lines, config)
    assert [each["train_row"] for each in written] == [2]
    assert "which nothing confirms" in next(iter(report.rejected))
    assert report.dropped["pass rate above 0.9"] == 2


def test_of_several_responses_no_two_have_the_same_words(select_best):
    words = [f"w{i}" for i in range(60)]
    texts = [
        " ".join(words),
        "  ".join(words) + "\n",  # the same words
        " ".join(f"v{i}" for i in range(99)),
        " ".join(f"u{i}" for i in range(120)),
    ]
    report, written = select_best([row(0)], [scored(0, text) for text in texts], SftConfig(2))
    assert answers(written) == [texts[0], texts[2]]
    assert report.rejected == {"a duplicate of another response to its prompt": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.text("ab \n", min_size=1))), st.randoms())
def test_the_order_of_the_responses_does_not_matter(tmp_path_factory, pairs, random):
    folder, texts = tmp_path_factory.mktemp("s"), []
    scores, train, out = (folder / name for name in ("s.jsonl", "t.parquet", "o.parquet"))
    pq.write_table(pa.Table.from_pylist([row(i) for i in range(5)]), train)
    lines = [scored(4, "always"), *(scored(i, text) for i, text in pairs)]
    for _ in range(2):
        scores.write_text("\n".join(map(json.dumps, lines)))
        select_sft([scores], train, out, SftConfig(2), overwrite=True)
        texts.append([answer.split() for answer in answers(pq.read_table(out).to_pylist())])
        random.shuffle(lines)
    assert texts[0] == texts[1]


def test_reasoning_is_put_back_and_end_marks_are_left_to_the_template(select_best):
    lines = [scored(0, "1", reasoning="hm\n"), scored(1, "1<|im_end|>\n<|endoftext|>")]
    _, written = select_best([row(0), row(1)], lines)
    assert answers(written) == ["<think>\nhm\n</think>\n\n1", "1"]


def test_turns_of_tools_are_told_apart_in_a_dump_of_verl():
    call = '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>'
    text = f"I ask. {call}\nuser\n<tool_response>\n2\n</tool_response>\nassistant\nSo 1.\n"
    messages = response_messages(text, {})
    assert [(m["role"], m["content"]) for m in messages] == [
        ("assistant", f"I ask. {call}"),
        ("user", "<tool_response>\n2\n</tool_response>"),
        ("assistant", "So 1.\n"),
    ]


@given(st.text("user\n<tool_respnc/>ait|m_", max_size=200))
def test_text_that_looks_like_turns_is_split_or_refused_and_never_lost(text):
    text = text.replace("t_", "<tool_call>x</tool_call>\nuser\n<tool_response>\n")
    text = text.replace("a_", "\n</tool_response>\nassistant\n")
    try:
        messages = response_messages(text, {})
    except ConversationError:
        return
    for message in messages[::2]:
        assert message["role"] == "assistant"
        assert "<tool_response>" not in message["content"]
    joined = "".join("".join(m["content"] for m in messages).split())
    rest = iter("".join(text.split()))
    assert all(character in rest for character in joined)  # in this order
    n_parts = len(messages) // 2
    assert len("".join(text.split())) - len(joined) == n_parts * len("userassistant")


def test_a_prompt_with_more_than_roles_and_texts_is_dropped(select_best):
    prompt = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}, *row(0)["prompt"]]
    report, written = select_best([row(0, prompt=prompt), row(1)], [scored(0, "1"), scored(1, "1")])
    assert (len(written), report.covered) == (1, 1)
    assert next(iter(report.dropped)).startswith("its prompt: a message has more than a role")
    with_null = [{"role": "user", "content": "q", "name": None}]
    assert prompt_messages(with_null) == [{"role": "user", "content": "q"}]


def test_rows_that_call_tools_need_their_schemas(select_best, tmp_path):
    info = {"index": 0, "split": "train", "tools_kwargs": {"f": {"x": 1}}}
    with pytest.raises(DataError, match="--tools"):
        select_best([row(0, info=info)], [scored(0, "1")])
    (tmp_path / "tools.yaml").write_text(
        "tools:\n- class_name: a.B\n  tool_schema:\n    type: function\n"
        "    function: {name: f, parameters: {properties: {x: {type: integer}}}}\n"
        "- tool_schema:\n    type: function\n    function: {name: g}\n"
    )
    tools = read_tools(tmp_path / "tools.yaml")
    report, written = select_best(
        [row(0, info=info)], [scored(0, "1")], SftConfig(tools=tools), overwrite=True
    )
    assert [tool["function"]["name"] for tool in written[0]["tools"]] == ["f", "g"]
    assert report.null_tool_fields  # g gets null parameters
    schemas = tuple({"function": {"parameters": value}} for value in ({"type": "object"}, [1]))
    with pytest.raises(DataError, match="same type in every tool"):
        select_best([row(0)], [scored(0, "1")], SftConfig(tools=schemas), overwrite=True)
    (tmp_path / "t.yaml").write_text("tools: [{class_name: a.B}]")
    with pytest.raises(DataError, match="tool_schema"):
        read_tools(tmp_path / "t.yaml")


def test_pictures_stay_with_their_prompt(select_best):
    rows = [row(i, f"<image>What {i}?", images=[{"bytes": b"\xff%d" % i, "path": None}]) for i in (0, 1)]  # fmt: skip
    _, written = select_best(rows, [scored(1, "1"), scored(0, "1")])
    assert [each["images"][0]["bytes"] for each in written] == [b"\xff0", b"\xff1"]


def test_nothing_is_written_if_no_response_is_kept_or_the_output_exists(select_best, tmp_path):
    with pytest.raises(DataError, match="no response would be kept"):
        select_best([row(0)], [scored(0, "1", finish_reason="length")])
    assert not list(tmp_path.glob("sft*"))
    select_best([row(0)], [scored(0, "1")])
    with pytest.raises(OutputError, match="--overwrite"):
        select_best([row(0)], [scored(0, "1")])
