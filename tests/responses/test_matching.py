"""A response matches a row only if all values that both have agree; the work per response is constant."""

import json
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rewardkit
from rewardkit.cli.main import app
from rewardkit.errors import DataError, RewardkitError
from rewardkit.responses import matching
from rewardkit.responses.matching import (
    INDEX,
    INDEX_ALONE,
    PROMPT,
    SOURCE_ID,
    TrainIndex,
    gold_agrees,
)
from rewardkit.responses.samples import Sample
from rewardkit.row import read_rows

QUESTIONS = (
    "Ada has 31 apples and gives 12 of them to Grace. How many apples are left?",
    "A train leaves at noon and travels 80 km in an hour. How far is it after 3 hours?",
    "What is 3 plus 3?",
)
ASK = "{}\n\nRemember to put your answer on its own line after the word Answer."
GOLDS = ("19", "240", "6")


def row(i, question=None, **more):
    question = question or QUESTIONS[i]
    return {
        "data_source": "d",
        "prompt": [{"role": "user", "content": ASK.format(question)}],
        "reward_model": {"style": "rule", "ground_truth": more.pop("gold", GOLDS[i % 3])},
        "extra_info": {
            "index": i,
            "split": "train",
            "source_id": f"id-{i}",
            "question": question,
            **more,
        },
    }


def sample(gold="", source="d", info=None, **fields):
    return Sample("s:7", "x", gold, {"data_source": source, **(info or {})}, fields)


def response_at(i, gold="", **fields):
    """Return a response with the index of row i."""
    return sample(gold, info={"index": i, "split": "train", **fields.pop("info", {})}, **fields)


ROWS = TrainIndex([row(i) for i in range(3)], "t.parquet")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (response_at(0, input=ASK.format(QUESTIONS[1])), "its prompt is that of row 1"),
        (response_at(0, input="user\nWhat is love?"), "does not contain 'Ada has 31"),
        (response_at(0, info={"question": "Why?"}), "its question is 'Why?', the row's 'Ada has"),
        (response_at(0, info={"source_id": "id-2"}), "its source_id is 'id-2', the row's 'id-0'"),
        (response_at(0, "5"), "its gold is '5', the row's '19'"),
        (sample("5", input=ASK.format(QUESTIONS[0])), "its gold is '5', the row's '19'"),
        (sample("5", info={"source_id": "id-0"}), "its gold is '5', the row's '19'"),
        (
            response_at(0, "240", input=ASK.format(QUESTIONS[1])),
            "that of row 1; its gold is '240', the row's '19'",
        ),
        (
            response_at(0, "7" * 5_000, info={"question": "other " * 5_000}),
            "its question is 'other",
        ),
    ],
)
def test_a_contradiction_names_the_response_the_row_and_the_difference(response, expected):
    with pytest.raises(DataError) as error:
        ROWS.match(response)
    message = str(error.value)
    assert message.startswith("s:7 matches row 0 of t.parquet by ")
    assert expected in message
    assert "Give the parquet that the responses were made from" in message
    assert ("remove index from their extra_info" in message) == ("that of row 1" in message)
    assert "\n" not in message
    assert len(message) < 600


@pytest.mark.parametrize(
    ("gold", "row_gold", "agree"),
    [
        *((gold, "18", True) for gold in ("18", "18.0", "['18']", '["18"]', "$18", r"\boxed{18}")),
        ("She sells 9 a day for 2 dollars.\n#### 18", "18", True),
        ("1,000", "1000", True),
        ("[18]", "18.0", True),
        (r"\frac{1}{2}", "1/2", True),
        ("(A)", "A", True),
        ("A, B, D", "ABD", True),
        ("{'t': 1}", '{"t": 1}', True),
        ("Yes", "yes", True),
        *((gold, "5", False) for gold in ("18", "['18']", "-5")),
        ("A", "B", False),
        ("AB", "A", False),
        (r"\frac{1}{23}", r"\frac{12}{3}", False),
        ("(1,2)", "(1,3)", False),
        ("{'t': 1}", '{"t": 2}', False),
        ("It halts by induction on n.", "It loops, as the invariant shows.", False),
        ("", "5", None),
        ("5", " ", None),
        ("A. 980万元", "A", None),
    ],
)
def test_golds_agree_contradict_each_other_or_prove_nothing(gold, row_gold, agree):
    assert gold_agrees(gold, row_gold) is agree
    assert gold_agrees(row_gold, gold) is agree


@given(st.text(max_size=40), st.text(max_size=40))
@example("[", "{")
@example("[" + " " * 500_000, "A " * 250_000)
@example("[']", "####")
def test_any_two_golds_are_compared_without_an_error_and_each_agrees_with_itself(left, right):
    assert gold_agrees(left, right) in (True, False, None)
    assert gold_agrees(left, left) is not False


MESSAGE = ASK.format(QUESTIONS[0])
CHAT = f"system\nYou are a helpful assistant.\nuser\n{MESSAGE}\nassistant\n"


@pytest.mark.parametrize(
    "text",
    [
        CHAT,
        "<|endoftext|>" * 300 + CHAT,
        CHAT.replace(".", " ."),  # some tokenizers move spaces before punctuation
        "Q: " + QUESTIONS[0] + "\nA:",  # another template around the same question
        f"[INST] {' '.join(MESSAGE.split())} [/INST]",
    ],
)
def test_a_template_around_the_prompt_confirms_the_row(text):
    assert ROWS.match(response_at(0, input=text)) == (INDEX, 0)


@pytest.mark.parametrize("text", [CHAT[60:], "\ufffd" + CHAT[60:], CHAT[:110], MESSAGE[20:90]])
def test_a_prompt_that_was_cut_proves_nothing(text):
    assert ROWS.match(response_at(0, input=text)) == (INDEX_ALONE, 0)
    assert ROWS.match(response_at(0, "19.0", input=text)) == (INDEX, 0)
    with pytest.raises(DataError, match="does not contain|is that of row 0"):
        ROWS.match(response_at(1, input=text))


def test_a_prompt_without_one_character_is_a_different_prompt():
    index = TrainIndex([row(0, "What is 13 plus 3?")])
    with pytest.raises(DataError, match="does not contain 'What is 13 plus 3"):
        index.match(response_at(0, input=CHAT.replace(QUESTIONS[0], "What is 1 plus 3?")))


AREA = ASK.format("Find the area.")
PARTS = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": AREA}]}]
MARKS = "<|vision_start|><|image_pad|><|vision_end|>"
NAN, NANS = float("nan"), dict.fromkeys(("index", "split", "source_id", "question"), float("nan"))
ASK_1, SYSTEM = ASK.format(QUESTIONS[1]), {"role": "system", "content": "Be brief."}
THREE = [row(i) for i in range(3)]
WITH_SYSTEM = [{**each, "prompt": [SYSTEM, *each["prompt"]]} for each in THREE]
TWO_SYSTEMS = [WITH_SYSTEM[0], {**row(1), "prompt": [{**SYSTEM, "content": "Be long."}, *row(0)["prompt"]]}]  # fmt: skip
ONE_INDEX, TWO_GOLDS = [row(0), row(1, index=0) | {"data_source": "e"}], [row(0), row(0, gold="2")]


@pytest.mark.parametrize(
    ("rows", "response", "expected"),
    [
        (THREE, response_at(2), (INDEX_ALONE, 2)),
        (THREE, response_at(2, "6"), (INDEX, 2)),
        (THREE, response_at(2, info={"source_id": "id-2"}), (INDEX, 2)),
        (THREE, response_at(1.0, info={"source_id": "id-1"}, input=ASK_1), (INDEX, 1)),
        (THREE, sample(info={"source_id": "id-2"}), (SOURCE_ID, 2)),
        (THREE, sample(source_id="id-1"), (SOURCE_ID, 1)),
        (THREE, sample(info={"source_id": "id-1"}, input=ASK_1), (PROMPT, 1)),
        (THREE, sample(info={"source_id": "2024-I-1"}, input=ASK_1), (PROMPT, 1)),  # a copy
        (THREE, response_at(9), None),
        (THREE, response_at(1, source="other"), None),
        (THREE, sample("240", source=NAN, info=NANS, input=ASK_1), (PROMPT, 1)),  # of pandas
        (THREE, sample("240", source=NAN, info=NANS), None),
        (WITH_SYSTEM, response_at(1, input=ASK_1), (INDEX, 1)),  # the template drops it
        (TWO_SYSTEMS, sample(input=f"system\nBe long.\nuser\n{MESSAGE}"), (PROMPT, 1)),
        (ONE_INDEX, response_at(0, source="", input=ASK_1), (INDEX, 1)),
        (TWO_GOLDS, sample("19.0", input=MESSAGE), (PROMPT, 0)),
        (TWO_GOLDS, response_at(0, "2"), (INDEX, 1)),
        ([row(0, "cafe\u0301?")], response_at(0, input=ASK.format("caf\u00e9?")), (INDEX, 0)),
        ([row(0, "<image>Find the area.")], response_at(0, input=f"{MARKS}{AREA}"), (INDEX, 0)),
        ([row(0, "<image>Find the area.")], response_at(0, prompt=PARTS), (INDEX, 0)),
    ],
)
def test_a_response_matches_by_index_prompt_or_source_id(rows, response, expected):
    assert TrainIndex(rows).match(response) == expected


def test_rows_that_differ_only_in_white_space_share_their_responses():
    index = TrainIndex([row(0, "What is 1 + 1?"), row(0, "What is  1+1?"), row(1)])
    assert index.rows == [0, 0, 1]
    assert index.match(sample("19", source="", input=ASK.format("What is 1+1?"))) == (PROMPT, 0)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, RewardkitError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_file(name, rows):
        if name.endswith(".parquet"):
            rows = [each | {"data_source": "openai/gsm8k"} for each in rows]
            pq.write_table(pa.Table.from_pylist(rows), name)
        else:
            Path(name).write_text("".join(json.dumps(line) + "\n" for line in rows))

    return write_file


def test_responses_to_an_earlier_version_of_the_file_are_refused(write):
    """The new version has one more row at its start; responses with only a prompt are matched."""
    write("q.parquet", [row(i, QUESTIONS[i]) for i in range(3)])
    write("q2.parquet", [row(0, "What is 99?", gold="99"), *(row(i + 1, QUESTIONS[i], gold=GOLDS[i]) for i in range(3))])  # fmt: skip
    dump = [
        {"input": f"user\n{ASK.format(QUESTIONS[i])}\n", "output": f"#### {gold}", "gts": gold}
        for i, gold in enumerate(GOLDS)
    ]
    write("dump.jsonl", [*dump, {**dump[0], "output": "#### 7"}])
    run("score", "dump.jsonl", "--train", "q.parquet", "--out", "scored.jsonl")
    bounds = ("--pass-rate", "0.1:0.9", "--out")
    difference = "its prompt is that of row 1; its gold is '19', the row's '99'"
    for command in (("select", "scored.jsonl", "--train", "q2.parquet", *bounds, "s2.parquet"), ("eval", "responses", "q2.parquet", "scored.jsonl")):  # fmt: skip
        output = run(*command, code=4)
        assert "scored.jsonl:1 matches row 0 of q2.parquet" in output
        assert difference in output
    assert not Path("s2.parquet").exists()
    run("select", "scored.jsonl", "--train", "q.parquet", *bounds, "s.parquet")
    assert [each["extra_info"]["index"] for each in read_rows(Path("s.parquet"))] == [0]
    command = ["eval", "responses", "q2.parquet", "dump.jsonl", "--json"]
    report = json.loads(CliRunner().invoke(app, command).stdout)
    assert (report["total"]["mean"]["value"], report["unconfirmed"]) == (2.5 / 3, 0)
    lines = [json.loads(line) for line in Path("scored.jsonl").read_text().splitlines()]
    write("bare.jsonl", [{**line, "input": None, "data_source": None} for line in lines])
    report = rewardkit.score_files(["bare.jsonl"], train=Path("q2.parquet"))
    assert (report.total.n, report.unscored) == (0, 4)
    assert "its gold is '19', the row's '99'" in report.examples[0].reason


def test_matches_by_index_alone_are_reported(write):
    write("t.parquet", [row(i, gold="") for i in range(2)])
    info = {"data_source": "openai/gsm8k", "extra_info": {"index": 0, "split": "train"}}
    write("s.jsonl", [{"response": "x", "gold": "", "acc": n, **info} for n in (0, 1)])
    options = ("--train", "t.parquet", "--pass-rate", "0:1", "--out", "o.parquet")
    out = run("select", "s.jsonl", *options)
    assert "2 responses were matched by data_source, split and index alone" in out
    out = run("eval", "responses", "t.parquet", "s.jsonl", code=1)
    assert "2 responses were matched to rows by split and index only" in out
    assert "2 of 2 golds cannot be scored" in out


def count_lines(call):
    """Return the number of lines in the matching module that a call executes."""
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename == matching.__file__ else None

    tracer = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(tracer)
    return lines


def random_question(i, _n=0):
    words = Random(i).choices(("red", "green", "apples", "pears", "sells", "buys"), k=12)
    return f"{' '.join(words)} {i}?"


def two_number_question(i, n):
    """Return a question with two numbers, in words that all rows share."""
    first, second = divmod(i, int(n**0.5) + 1)
    words = "apples that grew behind the old grey house on the hill"
    return f"Ada has {first:03} {words}, Grace has {second:03} {words}. How many {words}?"


def with_two_numbers(n):
    return [row(i, two_number_question(i, n)) for i in range(n)]


def with_system_prompts(n):
    system = {"role": "system", "content": "You are a careful assistant who shows every step. " * 4}
    rows = [row(i, random_question(i)) for i in range(n)]
    return [entry | {"prompt": [system, *entry["prompt"]]} for entry in rows]


def with_one_question(n):
    """Return rows as in Geometry3k, where a third of the questions is "Find x."."""
    return [row(i, "Find x.", gold=str(i)) | {"images": [str(i).encode()]} for i in range(n)]


def with_one_index(n):
    info = {"index": 0, "source_id": ""}
    return [row(i, random_question(i), gold=str(i), **info) for i in range(n)]


@pytest.mark.parametrize("fields", ["prompt", "index and gold"])
@pytest.mark.parametrize(
    "make", [with_two_numbers, with_system_prompts, with_one_question, with_one_index]
)
def test_the_work_for_a_response_does_not_grow_with_the_rows(make, fields):
    def answer(row):
        gold = row["reward_model"]["ground_truth"]
        if fields == "prompt":
            text = "\n".join(message["content"] for message in row["prompt"])
            return sample(gold, source="", input=f"user\n{text}\nassistant\n")
        info = {name: row["extra_info"][name] for name in ("index", "split")}
        return sample(gold, info=info)

    work = {}
    for n in (50, 400):
        rows = make(n)
        index = TrainIndex(rows)
        answers = [answer(rows[i]) for i in range(0, n, n // 50)]
        indices = []
        work[n] = count_lines(lambda: indices.extend(index.match(s)[1] for s in answers))  # noqa: B023
        assert [index.prompts[i].row for i in indices] == [*range(0, n, n // 50)]
        work[n, "index"] = count_lines(lambda r=rows: TrainIndex(r))
    assert work[400] < 1.5 * work[50]
    assert work[400, "index"] < 1.5 * 8 * work[50, "index"]
