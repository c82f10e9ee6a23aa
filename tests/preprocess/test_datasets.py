"""The same five tests for every dataset: schema, determinism, counts, golds score, others do not."""

import hashlib
import json

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit import registry
from rewardkit.answers.number import read_number
from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.quality import another_answer
from rewardkit.preprocess.source import SAMPLES, find, read
from rewardkit.row import METADATA_KEY, SCHEMA, read_rows
from rewardkit.scorers.load import load_scorer, respond_of

DATASETS = sorted(registry.DATASETS)

#: Over the fields verl's own script writes, row by row, as `digest` below reads them. Made by
#: running verl's examples/data_preprocess/gsm8k.py (63b2ae3) on the hub's files, November 2026.
VERL_DIGESTS = {
    "train": "0fa1c7096d6698acf4f74eb8954370864300631a923ff78bd8d2b9fd8ff58cae",
    "test": "4335ab2c13ef0b2f9351fc9caea4edfa00ca1aaf1e0496eb900996abba62f461",
}


@pytest.fixture(scope="module", params=DATASETS)
def sample(request, tmp_path_factory):
    """A dataset's packaged sample, prepared: (name, folder)."""
    folder = tmp_path_factory.mktemp(request.param)
    rewardkit.prep(request.param, folder, split="all", sample=True)
    return request.param, folder


def all_rows(folder):
    return [row for file in sorted(folder.glob("*.parquet")) for row in read_rows(file)]


def test_rows_have_the_one_schema_and_say_how_they_were_made(sample):
    name, folder = sample
    for file in folder.glob("*.parquet"):
        schema = pq.read_schema(file)
        assert schema.remove_metadata().equals(SCHEMA)
        made = json.loads(schema.metadata[METADATA_KEY])
        assert (made["dataset"], made["split"], made["origin"]) == (name, file.stem, "sample")


def test_preparing_twice_gives_the_same_bytes(sample, tmp_path):
    name, folder = sample
    rewardkit.prep(name, tmp_path, split="all", sample=True)
    for file in folder.glob("*.parquet"):
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()


def test_every_raw_row_is_written_or_dropped_with_a_reason(sample, tmp_path):
    name, _ = sample
    report = rewardkit.prep(name, tmp_path, split="all", sample=True)
    for split in report.splits:
        assert split.written + sum(split.dropped.values()) == split.read
        assert split.written == pq.read_metadata(split.out).num_rows > 0


def test_the_gold_and_the_dataset_s_own_solution_score(sample):
    name, folder = sample
    scorer = load_scorer("auto")
    own = load_scorer(read_card(name).scorer)
    for row in all_rows(folder):
        gold, info = row["reward_model"]["ground_truth"], row["extra_info"]
        respond = respond_of(load_scorer(info["scorer"]))
        assert scorer(respond(gold), gold, info).score == 1.0
        assert own(info["answer"], gold, info).score == 1.0


def test_another_answer_does_not_score(sample):
    _, folder = sample
    scorer = load_scorer("auto")
    for row in all_rows(folder):
        gold, info = row["reward_model"]["ground_truth"], row["extra_info"]
        respond = respond_of(load_scorer(info["scorer"]))
        assert not scorer(respond(another_answer(gold)), gold, info).correct
        assert not scorer(row["prompt"][-1]["content"], gold, info).correct


@pytest.mark.parametrize("name", DATASETS)
def test_card_and_code_agree(name):
    card = read_card(name)
    dataset = registry.load("datasets", name)
    assert (card.name, dataset.name) == (name, name)
    assert registry.DATA_SOURCES[card.data_source] == registry.SCORERS[card.scorer]
    for split in card.splits:
        source = find(card, split, path=None, hub="huggingface", sample=True)
        raws = list(read(source, card.columns))
        assert all(isinstance(dataset.to_problem(raw), Problem) for raw in raws)


def test_the_gsm8k_sample_is_our_own_and_large_enough(shared):
    """At least 64 problems, none of them GSM8K's."""
    ours = [
        json.loads(line)["question"]
        for file in (SAMPLES / "gsm8k").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    card = read_card("gsm8k")
    theirs = {
        raw["question"]
        for split in card.splits
        for raw in read(
            find(card, split, path=shared / "data/gsm8k", hub="huggingface", sample=False),
            card.columns,
        )
    }
    assert len(ours) == len(set(ours)) >= 64
    assert theirs.isdisjoint(ours)


def digest(file):
    """Of the fields that verl's script writes."""
    total = hashlib.sha256()
    for row in read_rows(file):
        info, model = row["extra_info"], row["reward_model"]
        fields = [
            row["data_source"],
            [[m["role"], m["content"]] for m in row["prompt"]],
            row["ability"],
            model["style"],
            model["ground_truth"],
            info["index"],
            info["split"],
            info["question"],
            info["answer"],
        ]
        total.update(json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode())
    return total.hexdigest()


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_gsm8k_equals_what_verl_s_script_writes(shared, tmp_path, suffix):
    """All 7,473 and 1,319 rows, field by field, from the hub's parquet and from jsonl."""
    card = read_card("gsm8k")
    for split, expected in VERL_DIGESTS.items():
        [file] = sorted((shared / "data/gsm8k/main").glob(f"{split}*.{suffix}"))
        out = tmp_path / f"{split}.parquet"
        report = rewardkit.prep("gsm8k", out, split=split, source=file)
        assert report.splits[0].written == card.splits[split].rows
        assert digest(out) == expected


def test_gsm8k_without_a_hash_mark_is_dropped():
    problem = registry.load("datasets", "gsm8k").to_problem({"question": "q", "answer": "18"})
    assert problem == Dropped("no '#### N' in the solution")


@given(st.text(), st.text(), st.integers())
def test_a_gsm8k_raw_row_becomes_a_problem_that_keeps_its_text(question, steps, gold):
    answer = f"{steps.replace('#', '')}\n#### {gold:,}"
    problem = registry.load("datasets", "gsm8k").to_problem(
        {"question": question, "answer": answer}
    )
    assert (problem.question, problem.answer) == (question, answer)
    assert int(problem.ground_truth) == gold


@given(st.one_of(st.text(), st.integers().map(str), st.decimals(allow_nan=False).map(str)))
def test_another_answer_is_never_the_gold(gold):
    assert another_answer(gold) != gold
    assert read_number(another_answer(gold)) != read_number(gold) or read_number(gold) is None
