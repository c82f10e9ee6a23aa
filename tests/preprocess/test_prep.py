"""`prep`: options, sources, dropped rows, and the messages for bad input."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit.checks.duplicates import gold_key, question_key
from rewardkit.checks.row_stats import requested_forms
from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.preprocess.base import Problem
from rewardkit.preprocess.card_dataset import dataset_from_file
from rewardkit.preprocess.prep import find_repeated, preview
from rewardkit.preprocess.template import BUILT_IN
from rewardkit.row import read_rows
from tests.preprocess.rows import dropped, infos, jsonl, write_file
from tests.tables import every

GOOD = {"question": "How many?", "answer": "3*6 = <<3*6=18>>18\n#### 18"}


@pytest.fixture(autouse=True)
def no_hub(monkeypatch, tmp_path):
    """An empty cache, and hubs that cannot be reached."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf/hub"))
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)


def prep(tmp_path, *rows, **options):
    out = tmp_path / "out.parquet"
    source = jsonl(tmp_path / "raw.jsonl", *rows)
    report = rewardkit.prep("gsm8k", out, source=source, **options)
    return list(read_rows(out)), report.splits[0]


@every(
    "name", sorted(BUILT_IN.keys() - {"boxed_letter", "code", "sql", "tool_call"})
)  # golds that GSM8K has not
def test_every_template_inserts_the_question_and_names_a_scorer_that_fits(tmp_path, name):
    [row], _ = prep(tmp_path, GOOD, template=name, overwrite=True)
    assert GOOD["question"] in row["prompt"][0]["content"]
    assert row["extra_info"]["scorer"] == (BUILT_IN[name].scorer or "gsm8k")
    assert rewardkit.check(tmp_path / "out.parquet").ok


@every(
    ("text", "scorer", "expected"),
    [
        ("问题：{question}\n放到 \\boxed{} 中。{x}\n", None, "math"),
        ("{question}", "gsm8k", "gsm8k"),
        ("{question}", None, "--scorer"),
        ("no slot", None, "0 times instead of once"),
    ],
)
def test_a_template_file_is_used_unchanged_and_its_text_selects_the_scorer(
    tmp_path, text, scorer, expected
):
    (tmp_path / "mine.txt").write_text(text, encoding="utf-8")
    options = {"template": str(tmp_path / "mine.txt"), "scorer": scorer, "overwrite": True}
    raw = {**GOOD, "question": "{question} {y}?"}
    if " " in expected or "-" in expected:
        with pytest.raises(UsageError, match=expected):
            prep(tmp_path, raw, **options)
        return
    [row], _ = prep(tmp_path, raw, **options)
    prompt = text.replace("{question}", raw["question"]).removesuffix("\n")
    assert (row["prompt"][0]["content"], row["extra_info"]["scorer"]) == (prompt, expected)


def test_shuffle_depends_on_the_seed_only_and_limit_takes_the_first_rows(tmp_path):
    def order(**options):
        rows = ({"question": f"q{i}", "answer": f"#### {i}"} for i in range(50))
        found, report = prep(tmp_path, *rows, overwrite=True, **options)
        infos = [row["extra_info"] for row in found]
        assert all(info["question"] == f"q{info['index']}" for info in infos)
        return [info["index"] for info in infos], report.read

    one, _ = order(shuffle=True, seed=1)
    assert one == order(shuffle=True, seed=1)[0] != order(shuffle=True, seed=2)[0]
    assert sorted(one) == list(range(50))
    assert order(limit=3) == ([0, 1, 2], 3)
    assert order(limit=3, shuffle=True, seed=1)[0] == one[:3]


def test_unusable_rows_are_written_to_the_dropped_rows_with_their_reasons(tmp_path):
    bad = [
        {"question": "q", "answer": "no mark"},
        {"question": "", "answer": "#### 1"},
        {"question": None, "answer": "#### 1"},
        {"question": "\ud800", "answer": "#### 1"},
        {"question": "q", "answer": f"#### 5{' ' * 400}x"},
    ]
    rows, report = prep(tmp_path, GOOD, *bad, template="none", scorer="gsm8k")
    entries = dropped(tmp_path / "out.parquet")
    assert len(rows) == 1
    assert [entry["index"] for entry in entries] == [1, 2, 3, 4, 5]
    assert Counter(entry["reasons"][0].partition(": ")[0] for entry in entries) == report.dropped
    assert entries[3]["row"] == bad[3]


def test_dropped_rows_are_not_read_and_replaced_by_the_same_run(tmp_path):
    prep(tmp_path, GOOD, {"question": "Why?"})
    (tmp_path / "out.parquet").unlink()
    dropped = tmp_path / "out.parquet.dropped.jsonl"
    text = dropped.read_text()
    with pytest.raises(UsageError, match="is the input file"):
        rewardkit.prep("gsm8k", tmp_path / "out.parquet", source=dropped, split="train")
    assert dropped.read_text() == text


@every(
    ("content", "message"),
    [
        (b'{"question": "q", "answer": "#### 1"}\n{"question": "q"', r"raw.jsonl:2: not JSON"),
        (b'"text"\n', "raw.jsonl:1: a JSON object is expected, not str"),
        (b'{"question": "q", "answer": "x"}\n', "every row was dropped"),
        (b"[" * 100_000, r"raw.jsonl:1: not JSON"),
    ],
)
def test_a_broken_jsonl_is_one_clear_error_and_leaves_nothing(tmp_path, content, message):
    source = tmp_path / "raw.jsonl"
    source.write_bytes(content)
    with pytest.raises(DataError, match=message):
        rewardkit.prep("gsm8k", tmp_path / "out.parquet", source=source)
    assert [p.name for p in tmp_path.iterdir()] == ["raw.jsonl"]


COMMIT = "0123456789abcdef"
CACHE = "hf/hub/datasets--openai--gsm8k"


@pytest.mark.parametrize(
    ("files", "source", "origin"),
    [
        (["hub/deep/gsm8k_train.jsonl", "hub/.cache/train.jsonl"], "hub", "path"),
        ([f"hub/{c}/train-00000-of-00001.parquet" for c in ("main", "socratic")], "hub", "path"),
        ([f"{CACHE}/snapshots/{COMMIT}/main/train-00000-of-00001.parquet"], None, "cache"),
        (["hf/datasets/openai___gsm8k/main/0.0.0/fedcba/gsm8k-train.arrow"], None, "cache"),
        ([], "hub", "no 'train' file here"),
        (["hub/a/train.jsonl", "hub/b/train.jsonl"], "hub", "several folders have files of"),
    ],
)
def test_the_rows_of_a_split_are_found_in_folders_and_caches(tmp_path, files, source, origin):
    """The first file is the split's; the main configuration is read, and no hidden folder."""
    (tmp_path / "hub").mkdir()
    for file in files:
        write_file(tmp_path / file, [{"question": file, "answer": "#### 1"}])
    (tmp_path / CACHE / "refs").mkdir(parents=True)
    (tmp_path / CACHE / "refs/main").write_text(COMMIT)
    out, source = tmp_path / "out.parquet", source and tmp_path / source
    if " " in origin:
        with pytest.raises(SourceError, match=origin):
            rewardkit.prep("gsm8k", out, source=source)
        return
    assert rewardkit.prep("gsm8k", out, source=source).splits[0].origin == origin
    assert infos(out, "question") == files[:1]
    made = json.loads(pq.read_schema(out).metadata[b"rewardkit"])
    assert made["revision"] in files[0]


def test_the_dev_split_is_not_read_from_the_cached_train_split(tmp_path):
    folder = tmp_path / "hf/datasets/RUC-NLPIR___FlashRAG_datasets/hotpotqa/0.0.0/fedcba"
    for split in ("train", "dev"):
        row = {"id": "0", "question": f"{split}?", "golden_answers": ["Ann"]}
        write_file(folder / f"flash_rag_datasets-{split}.arrow", [row])
    for split in ("train", "dev"):
        [row] = preview("hotpotqa", 2, split=split)
        assert row["extra_info"]["question"] == f"{split}?"


@every(
    ("options", "error", "message"),
    [
        ({"source": Path("nope.parquet")}, SourceError, "no such file"),
        ({"source": Path("x.txt")}, SourceError, "not a .parquet"),
        ({"source": Path(), "sample": True}, UsageError, "exclude each other"),
        ({}, SourceError, "--hub modelscope.*HF_ENDPOINT.*HF_HOME.*--sample"),
        ({"hub": "modelscope"}, SourceError, r"pip install 'rewardkit\[modelscope\]'"),
    ],
)
def test_rows_that_cannot_be_had_are_one_clear_error(
    tmp_path, monkeypatch, options, error, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "modelscope.hub.snapshot_download", None)
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        rewardkit.prep("gsm8k", "out.parquet", **options)


@pytest.mark.full
def test_dropped_rows_are_written_with_all_their_columns(tmp_path):
    """For every kind of file, and in the order of the source if the rows are shuffled."""
    rows = [{**GOOD, "id": f"r-{i}", "note": {"by": ["a", str(i)]}} for i in range(2500)]
    bad = (3, 4, 2100, 2499)
    for index in bad:
        rows[index]["answer"] = "no mark"
    jsonl(tmp_path / "lines.json", *rows)
    write_file(tmp_path / "array.json", rows)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1000)
    with pa.ipc.new_stream(tmp_path / "rows.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=700)
    for name in ("array.json", "lines.json", "rows.parquet", "rows.arrow"):
        options = {"source": tmp_path / name, "overwrite": True, "shuffle": True}
        rewardkit.prep("gsm8k", tmp_path / "out.parquet", **options)
        entries = [(entry["index"], entry["row"]) for entry in dropped(tmp_path / "out.parquet")]
        assert entries == [(index, rows[index]) for index in bad]


def test_dropped_rows_of_csv_and_of_several_files_are_complete(tmp_path):
    def dropped_of(source, **options):
        out = tmp_path / "o.parquet"
        rewardkit.prep("gsm8k", out, source=tmp_path / source, overwrite=True, **options)
        return [(entry["row"], entry["reasons"][0]) for entry in dropped(out)]

    (tmp_path / "a.csv").write_bytes(
        b'question,answer,note\nq,"#### 1",x\n"two\nlines",none,caf\xe9\n'
    )
    [(row, _)] = dropped_of("a.csv")
    assert row == {"question": "two\nlines", "answer": "none", "note": "caf\\xe9"}
    (tmp_path / "b.csv").write_text('question,answer\nq,"#### 1"\nWhat, is it?,"#### 2"\n')
    [(row, reason)] = dropped_of("b.csv")
    assert row == {"text": 'What, is it?,"#### 2"'}
    assert "does not fit the header" in reason
    bad = {"question": "q", "answer": ""}
    rows = [{**GOOD, "id": i} if i % 2 else {**bad, "id": i} for i in range(6)]
    jsonl(tmp_path / "data/train-1.jsonl", *rows[:3])
    jsonl(tmp_path / "data/train-2.jsonl", *rows[3:])
    assert [row["id"] for row, _ in dropped_of("data", split="train")] == [0, 2, 4]


def test_a_dropped_row_is_valid_json_with_any_values_in_its_columns(tmp_path):
    stamp, answers = pa.timestamp("ns"), ["#### 1", "none"]
    inner = pa.array([{"at": 1}, {"at": 2}], pa.struct([("at", stamp)]))
    columns = {"picture": [b"", b"\xff\xd8"], "score": [1.0, float("nan")], "made_in": inner}
    columns |= {"question": ["q", "q"], "answer": answers, "made": pa.array([1, 2], stamp)}
    write_file(tmp_path / "a.parquet", pa.table(columns))
    rewardkit.prep("gsm8k", tmp_path / "out.parquet", source=tmp_path / "a.parquet")
    [line] = (tmp_path / "out.parquet.dropped.jsonl").read_text().splitlines()
    assert "NaN" not in line  # which is not JSON
    row = json.loads(line)["row"]
    assert (row["picture"], row["score"]) == ("<2 bytes>", None)
    assert "00000000" in row["made"]
    assert "timestamp[ns]" in row["made_in"]


def test_if_one_split_fails_no_split_is_written(tmp_path):
    """The files of an earlier run do not change."""
    out, bad = tmp_path / "out", {"question": "q", "answer": "none"}

    def run(train, test, **options):
        jsonl(tmp_path / "raw/train.jsonl", *train)
        jsonl(tmp_path / "raw/test.jsonl", test)
        rewardkit.prep("gsm8k", out, split="all", source=tmp_path / "raw", **options)

    with pytest.raises(DataError, match="every row was dropped"):
        run([GOOD, bad], bad)
    assert [path for path in out.rglob("*") if path.is_file()] == []
    run([GOOD, bad], GOOD)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(before) == ["test.parquet", "train.parquet", "train.parquet.dropped.jsonl"]
    with pytest.raises(DataError, match="every row was dropped"):
        run([{**GOOD, "question": "another"}], bad, overwrite=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@every(
    ("prompt", "forms"),
    [
        *((template.text, "") for template in BUILT_IN.values()),
        ("Write 'Answer: \\boxed{X}' in the last line, with the number in \\boxed{}.", ""),
        ("Put the answer in the form `#### <answer>` after ####.", ""),
        ('Let \\boxed{3} = 2. Output the final answer after "####".', ""),
        ('请把答案写在 \\boxed{答案} 里，最后一行写 "####" 和答案。', "\\boxed ####"),
        ("Write **Answer:** x. Think, then put the number in \\boxed.", "Answer: \\boxed"),
    ],
)
def test_two_instructions_in_one_prompt_are_found(prompt, forms):
    assert requested_forms(prompt) == tuple(forms.split())


def test_options_are_hidden_if_no_letter_of_one_stands_in_the_prompt(tmp_path):
    questions = {
        "Which is a prime? A farmer asks.": "A",  # the only one without options
        "Which is a prime? (A) 4 (B) 5": "B",
        "下列哪个是质数？A．4　B．5": "B",
    }
    rows = ({"question": question, "answer": gold} for question, gold in questions.items())
    source, out = jsonl(tmp_path / "raw.jsonl", *rows), tmp_path / "o.parquet"
    report = rewardkit.prep(dataset_from_file(source), out, source=source, scorer="mcq")
    assert report.splits[0].stats.hidden_options == 1


# Duplicates, conflicting golds and languages


@every(
    ("one", "other", "same"),
    [
        (r"Find $\frac{1}{2}+x$", r"find $ \dfrac{1}{2} + x $", True),
        *(("Find x+1", other, False) for other in ["Find x-1", "Find x+2", "Find y+1", "x+1", ""]),
    ],
)
def test_spellings_of_one_question_are_one_question_and_pictures_count(one, other, same):
    assert (question_key(one) == question_key(other)) is same
    assert question_key(one, [b"1"]) != question_key(one, [b"2"])
    assert question_key(one, [b"1", b"2"]) != question_key(one, [b"12"])
    assert (question_key(one, [b"1"]) == question_key(other, [b"1"])) is same


@given(st.text(alphabet="abc xyz+-=123.,$\\é题？", max_size=30))
def test_white_space_does_not_change_the_key_of_a_question(text):
    assert question_key(text) == question_key(f"  {text.replace(' ', '  ')}\n")


@every(
    ("a", "b", "same"),
    [
        ("025", "25", True),
        (str(2**60), str(2**60 + 1), False),
        ("2/4", "0.5", False),
        ("9" * 5000, "9" * 5000, True),
    ],
)
def test_golds_are_compared_exactly(a, b, same):
    assert (gold_key(a) == gold_key(b)) is same
    problems = enumerate([Problem("q", a), Problem("q", b)])
    assert list(find_repeated(problems)) == ([1] if same or a == "2/4" else [0, 1])


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "01", "2"])), max_size=30))
def test_every_question_remains_once_with_its_only_gold_or_is_dropped(pairs):
    problems = [Problem(question, gold) for question, gold in pairs]
    dropped = find_repeated(enumerate(problems))
    pairs_left = [pair for i, pair in enumerate(pairs) if i not in dropped]
    assert len({question for question, _ in pairs_left}) == len(pairs_left)
    for question in "abcd":
        golds = {int(gold) for q, gold in pairs if q == question}
        assert sum(q == question for q, _ in pairs_left) == (len(golds) == 1)
    for index, why in dropped.items():
        golds = {int(gold) for q, gold in pairs if q == pairs[index][0]}
        assert why.reason == ("conflicting golds" if len(golds) > 1 else "duplicate question")


def test_options_of_prep_select_and_repeat(tmp_path):
    def prep(**options):
        out = tmp_path / "out.parquet"
        report = rewardkit.prep("dapo-math-17k", out, sample=True, overwrite=True, **options)
        return report.splits[0], infos(out, "question")

    whole, questions = prep()
    assert whole.distinct < whole.read
    assert whole.dropped.keys() >= {"duplicate question", "conflicting golds"}
    (english, _), (chinese, _) = prep(language="en"), prep(language="zh")
    assert english.written + chinese.written == whole.written > english.written > 0
    every, _ = prep(dedup=False)
    assert every.duplicates > 0 < every.conflicting
    twice, again = prep(repeat=2)
    assert again == [question for question in questions for _ in range(2)]
    assert twice.stats.rows == whole.written
