"""The likely columns of a user's file, and the messages that name them."""

import json

import pytest

from rewardkit.errors import DataError
from rewardkit.preprocess.column_guess import (
    column_notes,
    guess_columns,
    require_columns,
    require_parquet,
    sample_rows,
    unread_options,
)
from rewardkit.row import write_rows
from tests.preprocess.rows import jsonl, verl_row
from tests.tables import every


def require(file, question, answer, image, out):
    """Require columns as `prep` does."""
    keys = {"--question-key": question, "--answer-key": answer, "--image-key": image}
    return require_columns(file, sample_rows(file), keys, out)


@every(
    ("row", "question", "answer"),
    [
        ({"prompt": [{"role": "user", "content": "How many?"}], "label": 3}, "prompt", "label"),
        ({"data": {"query": "How many?", "gold": ["3", "three"]}, "id": "a"}, "data.query", "data.gold"),
        ({"conversations": [{"from": "human", "value": "How many?"}, {"from": "gpt", "value": r"\boxed{3}"}]}, "conversations", "conversations"),
        ({"row": [{"from": "human", "value": "How many?"}, {"from": "assistant", "ground_truth": {"value": "3"}}]}, "row.0.value", "row.1.ground_truth.value"),
        ({"instruction": "Add 1 and 2.", "input": "", "output": "3"}, "instruction,input", "output"),
        ({"x": "How many apples are left in the basket?", "y": "3"}, "x", "y"),
        ({"question": "How many?", "response": r"so \boxed{6}", "answer": "5"}, "question", "answer"),
        ({"messages": [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "5"}]}, "messages", "messages"),
        ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "How many?"}, {"role": "assistant", "content": "so 6"}], "answer": "5"}, "messages", "answer"),
        ({"id": 1, "url": "https://a"}, "", ""),
    ],
)  # fmt: skip
def test_the_columns_are_guessed_by_their_names_and_values(row, question, answer):
    rows = [row | ({"id": index} if "id" in row else {}) for index in range(3)]
    assert guess_columns([row]) == (question, answer)
    assert guess_columns(rows)[0] == question


@every(
    "row",
    [
        {"q.1": "How many apples are left?", "a": "3"},
        {"messages": [{"role": "user", "content": "How many?"}, "3"], "a": "3"},
        {"messages": [{"role": ["x"], "content": "a"}, {"role": "user", "content": "How many?"}]},
        {"data": {"0": {"q": "How many?"}, "1": None}},
    ],
)
def test_odd_rows_are_guessed_without_an_exception(tmp_path, row):
    with pytest.raises(DataError, match="Run this first"):
        require_parquet(str(jsonl(tmp_path / "x.jsonl", row)))


def test_a_constant_column_and_a_label_of_the_row_are_no_answers():
    rows = [
        {"q": f"What is {n}+1?", "result": "math", "value": str(n + 1), "level": n}
        for n in range(9)
    ]
    assert guess_columns(rows) == ("q", "value")


def test_missing_columns_are_one_message_with_a_command_to_paste(tmp_path):
    rows = ({"problem": f"What is {n}+1?", "final": n + 1} for n in range(200))
    odd, out = jsonl(tmp_path / "odd.jsonl", *rows), tmp_path / "o.parquet"
    with pytest.raises(DataError) as raised:
        require(odd, "question", "answer", None, out)
    assert str(raised.value) == (
        f"{odd}: there is no column 'question' and no column 'answer'. Its columns: problem, final.\n"
        "Name the columns with --question-key and --answer-key. A likely command:\n"
        f"  rewardkit prep {odd} --question-key problem --answer-key final --out {out}"
    )


def test_a_path_into_a_column_that_leads_nowhere_is_missing(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text('{"a": {"b": "q?"}, "answer": "1"}\n')
    require(file, "a.b", "answer", None, file)
    with pytest.raises(DataError, match=r"no column 'a\.c'"):
        require(file, "a.c", "answer", None, file)
    with pytest.raises(DataError, match="with --image-key; no column is likely the one of --image"):
        require(file, "a.b", "answer", "pics", file)


def test_a_verl_parquet_needs_no_preparation(tmp_path):
    write_rows([verl_row()], tmp_path / "v.parquet", {})
    with pytest.raises(DataError, match="a verl parquet already. Check it with `rewardkit check"):
        require(tmp_path / "v.parquet", "question", "answer", None, tmp_path / "o.parquet")


def test_a_file_that_cannot_be_read_is_left_to_its_reader(tmp_path):
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe{")
    for file in (tmp_path / "nope.jsonl", tmp_path / "broken.csv"):
        assert sample_rows(file) == []
        require(file, "question", "answer", None, file)


@every(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"problem": "What?", "final": 2}\n', "this is JSON Lines, not parquet. Run this first:\n  rewardkit prep "),
        ("x.jsonl", "", "the file is empty"),
        ("x.jsonl", '{"response": "5", "gold": "5", "question": "What?"}\n', "with responses, not a parquet of rows. Run this:\n  rewardkit score "),
        ("x.csv", "题目,答案\n几？,2\n", "--question-key '题目' --answer-key '答案'"),
    ],
)  # fmt: skip
def test_rows_that_are_no_parquet_have_the_command_that_prepares_them(
    tmp_path, name, content, message
):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        require_parquet(str(file))
    assert message in str(raised.value)
    require_parquet(str(tmp_path / "nope.jsonl"))  # the reader says that it does not exist


@every(
    ("wrapper", "filter_of_jq"),
    [
        (lambda rows: {"train": {"rows": rows}}, '."train"."rows"[]'),
        (lambda rows: {str(i): row for i, row in enumerate(rows)}, "'.[]'"),
    ],
)
def test_an_object_around_all_rows_is_not_taken_for_one_row(tmp_path, wrapper, filter_of_jq):
    """A path to the first problem would read one row of many."""
    rows = [{"question": f"What is {n}+1?", "answer": str(n + 1)} for n in range(5)]
    file = tmp_path / "x.json"
    file.write_text(json.dumps(wrapper(rows)))
    with pytest.raises(DataError, match="its rows lie in a list or an object") as raised:
        require(file, "question", "answer", None, tmp_path / "o.parquet")
    assert filter_of_jq in str(raised.value)


@every(
    ("header", "names"),
    [("question,A,B,C,D,answer", ["A", "B", "C", "D"]), ("question,a,answer", [])],
)
def test_columns_with_options_that_no_prompt_shows_are_found(header, names):
    row = dict.fromkeys(header.split(","), "x")
    assert unread_options([row], ["question", "answer"]) == names


def notes_on(rows, key="question", answer="answer"):
    return " ".join(column_notes(rows, key.split(","), answer))


@every(
    ("row", "question"),
    [
        ({"instruction": "Solve the problem.", "input": "What is {}+1?", "output": "{}"}, "instruction,input"),
        ({"context": "Tom has {} apples.", "question": "How many?", "answer": "{}"}, "context,question"),
        ({"材料": "小明有 {} 个苹果。", "问题": "几个？", "答案": "{}"}, "材料,问题"),
        ({"system": "You are a careful assistant. Think!", "prompt": "Add {}.", "answer": "{}"}, "prompt"),
        ({"prompt": "You are a careful assistant.", "problem": "Add {} and 1.", "gold": "{}"}, "problem"),
    ],
)  # fmt: skip
def test_no_part_of_a_question_is_left_out_of_the_guess_and_no_system_message_is_in_it(
    row, question
):
    rows = [{name: text.format(n) for name, text in row.items()} for n in range(5)]
    assert guess_columns(rows)[0] == question


def test_the_question_of_a_chat_is_its_user_s_message_also_after_a_system_message():
    system = [{"from": "system", "value": "You are a very careful assistant."}]
    chats = [
        [*system * (n % 2), {"from": "human", "value": f"{n}+1?"}, {"from": "gpt", "value": f"{n + 1}"}]
        for n in range(4)
    ]  # fmt: skip
    assert guess_columns([{"c": chat} for chat in chats]) == ("c", "c")
    rows = [{"c": chat, "answer": str(n)} for n, chat in enumerate(chats)]
    assert guess_columns(rows) == ("c", "answer")


def test_text_that_no_row_will_have_is_named_with_the_options_that_keep_it():
    row = {"id": "a", "question": "How many?", "answer": "2", "n": "5", "level": "hard"}
    assert notes_on([row]) == notes_on([]) == ""
    assert "in unit is left out; --keep unit keeps it" in notes_on([row | {"unit": "litres"}])
    assert "--question-key context,question joins" in notes_on([row | {"context": "Tom."}])
    assert notes_on([row | {"context": "Tom."}], "context,question") == ""
    assert "--question-key question,input joins" in notes_on([row | {"input": "two words"}])
    assert "--system TEXT sets one" in notes_on([row | {"system": "Think."}])
    assert notes_on([row | {"data": {"x": ["some", "text"]}}]).startswith("the text in data.x is")
    chat = [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "2"}]
    assert "the gold is the answer in the last message of c" in notes_on([{"c": chat}], "c", "c")


def test_rows_of_verl_s_scripts_that_are_no_parquet_keep_prompt_gold_and_reward_key(tmp_path):
    file = jsonl(tmp_path / "v.jsonl", verl_row(1))
    options = "--question-key prompt --answer-key reward_model.ground_truth --template none --data-source openai/gsm8k"  # fmt: skip
    with pytest.raises(DataError, match=options):
        require(file, "q", "answer", None, tmp_path / "o.parquet")
    with pytest.raises(DataError, match=options):
        require_parquet(str(file))
