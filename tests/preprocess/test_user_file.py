"""Data files and plug-ins of a user."""

import pyarrow as pa
import pytest

import rewardkit
from rewardkit.errors import DataError, UnknownNameError, UsageError
from rewardkit.preprocess.card_dataset import dataset_from_file
from rewardkit.row import read_rows
from tests.preprocess.rows import golds, infos, jsonl, write_file

PLUG_IN = """
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card, Split


def to_problem(raw):
    if not raw["y"]:
        return Dropped("no answer")
    return Problem(raw["x"], raw["y"], subject="sums")


DATASET = Dataset(
    "sums",
    to_problem,
    card=Card(
        name="sums", title="Sums", data_source="acme/sums", ability="math", template="boxed",
        scorer="math", licence="ours", columns=(("x", "y"),),
        splits={"train": Split(2, ("sums.csv",))},
    ),
)
"""

CHAT_KEYS = {"question_key": "m", "answer_key": "m"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}


def chat(*messages):
    return [{"role": role, "content": content} for role, content in messages]


@pytest.fixture
def prep_file(tmp_path):
    """Prepare a user's file; return the parquet and the report."""

    def prepared(source, keys=None, **options):
        out = tmp_path / "out.parquet"
        dataset = dataset_from_file(source, **(keys or {}))
        return out, rewardkit.prep(dataset, out, source=source, **options).splits[0]

    return prepared


@pytest.fixture
def prep_own(tmp_path, prep_file):
    return lambda *rows, **options: prep_file(jsonl(tmp_path / "mine.jsonl", *rows), **options)


def test_a_file_of_questions_and_answers_becomes_verl_rows(prep_own):
    out, report = prep_own(
        {"q": "1+1?", "a": 2},
        {"q": chat(("system", "s"), ("user", "2+2?")), "a": ["4"]},
        {"q": "3+3?", "a": 6.5},
        {"q": "4+4?", "a": {"x": 8}},
        {"q": None, "a": "1"},
        {"q": "5+5?", "a": True},
        keys={"question_key": "q", "answer_key": "a"},
    )
    assert (golds(out), infos(out, "question")) == (["2", "4", "6.5"], ["1+1?", "2+2?", "3+3?"])
    assert {row["data_source"] for row in read_rows(out)} == {"mine"}
    assert all("\\boxed" in row["prompt"][-1]["content"] for row in read_rows(out))
    assert report.dropped == {"unexpected type": 2, "the question is empty": 1}


def test_what_a_chat_has_beside_its_question_is_not_lost_silently(prep_own):
    """The last of several user messages needs those before it."""
    user = {"role": "user", "content": "2+2?"}
    chats = [[{"role": "system", "content": "s"}, user], [user], [user, user]]
    out, report = prep_own(*({"question": chat, "answer": "4"} for chat in chats))
    assert infos(out, "question") == ["2+2?"] * 2
    assert report.dropped == {"the question is a chat with 2 user messages": 1}
    assert report.system_messages == 1


def test_golds_that_are_hardly_answers_are_counted(prep_own):
    """They equal themselves as text, so that the self-check of the gold finds nothing."""
    texts = ["N/A", "?", "'18'", "“18”", "18", "no solution", "-1", "f'"]
    _, report = prep_own(*({"question": f"{text}?", "answer": text} for text in texts))
    placeholder, quoted = report.stats.notes()
    assert (": 2;" in placeholder, ": 2;" in quoted) == (True, True)


#: The golds of answers: of GSM8K's form the last line, of boxes the last; a column of integers with a
#: null has floats, and a number is the text that a model would write.
GOLDS = {
    "First.\n#### 18": "18",
    "#### 1,234  \n": "1234",
    "#### 1\n#### -2.5": "-2.5",
    r"First \boxed{1} is wrong. It is $\boxed{\frac{1}{2}}$.": r"\frac{1}{2}",
    1e-7: "0.0000001",
    -0.0: "0",
    1e300: "1e+300",
    2**60 + 1: str(2**60 + 1),
}


def test_the_gold_of_an_answer_is_what_a_model_would_write(prep_own):
    bad = ["x\n#### 9 b", "By induction.\n#### Conclusion of the proof"]
    rows = ({"question": f"{n}?", "answer": answer} for n, answer in enumerate([*GOLDS, *bad]))
    out, report = prep_own(*rows)
    assert golds(out) == list(GOLDS.values())
    assert report.dropped.total() == 2


def test_a_float_of_32_bits_is_its_shortest_text(tmp_path, prep_file):
    table = pa.table({"question": ["a?", "b?"], "answer": pa.array([0.1, 18.0], pa.float32())})
    assert golds(prep_file(write_file(tmp_path / "f.parquet", table))[0]) == ["0.1", "18"]


def test_an_answer_that_is_neither_text_nor_a_finite_number_is_dropped(tmp_path, prep_file):
    lines = [
        f'{{"question": "?", "answer": {answer}}}' for answer in ("NaN", "1e400", "-Infinity", 1)
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    _, report = prep_file(tmp_path / "mine.jsonl")
    assert (report.written, report.dropped) == (1, {"unexpected type": 3})


def test_two_columns_of_one_name_are_an_error(tmp_path, prep_file):
    (tmp_path / "mine.csv").write_text("question,question,answer\nq,p,1\n")
    with pytest.raises(DataError, match="there are several columns 'question'"):
        prep_file(tmp_path / "mine.csv")


def test_the_name_of_a_column_may_contain_a_dot(prep_own):
    out, _ = prep_own({"a.b": "q", "x": "7"}, keys={"question_key": "a.b", "answer_key": "x"})
    assert infos(out, "question") == ["q"]


@pytest.fixture
def plug_in(tmp_path):
    """Prepare a file with a plug-in of this text; return the report."""

    def prepared(text):
        (tmp_path / "sums.py").write_text(text)
        (tmp_path / "sums.csv").write_text("x,y\n1+1?,2\n2+2?,4\n3+3?,\n")
        out, source = tmp_path / "out.parquet", tmp_path / "sums.csv"
        return rewardkit.prep(str(tmp_path / "sums.py"), out, source=source).splits[0]

    return prepared


def test_a_plug_in_file_is_a_dataset(plug_in):
    report = plug_in(PLUG_IN)
    assert report.dropped == {"no answer": 1}
    assert infos(report.out, "subject") == ["sums", "sums"]
    assert rewardkit.check(report.out).ok


IMPORT = "from rewardkit.preprocess.base import Dataset\n"


def returning(value):
    return PLUG_IN.replace('    if not raw["y"]:', f"    return {value}\n    if 0:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DATASET = len", "not a rewardkit Dataset"),
        (f"{IMPORT}DATASET = Dataset('x', dict)", r"card=Card\("),
        (returning("None"), "to_problem returned NoneType, not a Problem or Dropped"),
        (returning("1 / 0"), "unreadable row .*ZeroDivisionError: division by zero"),
        (returning("Problem('q', '1', options=5)"), "options are not a list"),
        (returning("Problem('q', '1', images=('a.png',))"), "an image is not bytes"),
        (returning("Problem(3, '1')"), "unexpected type"),
    ],
)
def test_a_fault_of_a_plug_in_is_reported(plug_in, text, message):
    with pytest.raises((DataError, UnknownNameError, UsageError), match=message):
        plug_in(text)


def test_the_gold_of_a_chat_is_the_answer_that_its_last_message_states(prep_own):
    messages = {
        r"It is 1+1. So \boxed{2}, or \boxed{3}.": "2 or 3",
        "<think>maybe 3</think>The answer is 2.": "2",
        "<answer>Paris</answer>": "Paris",
        "New York City": "New York City",
        "I would say that it is 2, because 1 and 1 make 2.": None,
        "<think>2": None,
    }
    chats = (
        chat(("system", "Think."), ("user", f"{n}+1?"), ("assistant", message))
        for n, message in enumerate(messages)
    )
    out, report = prep_own(*({"m": one} for one in chats), keys=CHAT_KEYS)
    assert golds(out) == list(filter(None, messages.values()))
    assert infos(out, "question") == [f"{n}+1?" for n in range(4)]
    assert (report.system_messages, report.dropped.total()) == (6, 2)


def test_a_chat_with_tool_calls_has_the_gold_of_its_last_message(prep_own):
    use = [*chat(("user", "1+1?")), CALL, *chat(("tool", "99"))]
    parts = [{"type": "text", "text": "So #### 2"}]
    whole = [[*use, *chat(("assistant", text))] for text in (r"\boxed{2}", parts)]
    cut = [use, use[:2], chat(("user", "1+1?"))]
    out, report = prep_own(*({"m": messages} for messages in whole + cut), keys=CHAT_KEYS)
    assert (golds(out), infos(out, "question")) == (["2", "2"], ["1+1?"] * 2)
    assert report.dropped == {"the chat does not end with the assistant's answer": 3}


def test_the_question_of_every_form_of_chat_is_its_user_s_message(prep_own):
    parts = [{"type": "text", "text": text} for text in ("1+1", "= ?")]
    for question, text in (
        ([{"from": "human", "value": "1+1?"}, {"from": "gpt", "value": "2"}], "1+1?"),
        (chat(("User", parts)), "1+1\n= ?"),
        (["1+1?"], "1+1?"),
    ):
        out, _ = prep_own({"question": question, "answer": "2"}, overwrite=True)
        assert infos(out, "question") == [text]


def test_a_saved_dataset_dict_is_prepared_by_its_splits(tmp_path, cli):
    table = pa.table({"question": ["1+1?", "1+2?"], "answer": ["2", "3"]})
    for split, size in (("train", 2), ("test", 1)):
        folder = tmp_path / "my.saved" / split
        write_file(folder / "data-00000-of-00001.arrow", table.slice(0, size))
        state = '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}'
        (folder / "state.json").write_text(state)
    (tmp_path / "my.saved/dataset_dict.json").write_text("{}")

    def prep(*options):
        return cli("prep", "my.saved", "--out", "o.parquet", "--overwrite", *options, cwd=tmp_path)

    assert "my.saved: data_source my.saved" in prep().stdout
    assert len(golds(tmp_path / "o.parquet")) == 2
    assert prep("--split", "test").returncode == 0
    assert len(golds(tmp_path / "o.parquet")) == 1
    assert "has no split 'dev'. It has test, train; or use" in prep("--split", "dev").stderr
    done = cli("check", "my.saved", cwd=tmp_path)
    assert (done.returncode, "this is Arrow, not parquet" in done.stderr) == (4, True)
