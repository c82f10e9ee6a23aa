"""A set has one name, which every command reads."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rewardkit
from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.evaluate.suite import parse_suite
from rewardkit.preprocess.card import Card, Split, read_card
from rewardkit.preprocess.eval_sets import read_spec
from rewardkit.preprocess.load import (
    SetName,
    evaluation_split,
    held_out_splits,
    known_names,
    read_set_name,
    set_name,
    set_names,
)
from tests.tables import every

ALL_SPLITS = [(name, split) for name in registry.DATASETS for split in read_card(name).splits]


def card(name, *splits):
    return Card(
        name, name, name, "math", "boxed", "math", "MIT", (("q",),),
        {split: Split(1, (f"{split}.jsonl",)) for split in splits},
    )  # fmt: skip


@every(
    ("dataset", "names"),
    [
        ("aime", {"2024": "aime2024", "2025": "aime2025"}),
        ("gsm8k", {"train": "gsm8k-train", "test": "gsm8k"}),
        ("math-500", {"test": "math-500"}),
        ("minerva", {"main": "minerva"}),
        ("exam2", {"2024": "exam2-2024", "2025": "exam2-2025"}),
    ],
)
def test_a_name_is_dataset_and_split_and_the_dataset_alone_is_its_test_or_only_split(
    dataset, names
):
    assert set_names(card(dataset, *names)) == list(names.values())


@every(("dataset", "split"), ALL_SPLITS)
@pytest.mark.full
def test_the_name_of_every_set_is_read_back_in_all_spellings(dataset, split, tmp_path):
    name = set_name(read_card(dataset), split)
    spellings = [f"{dataset}-{split}", f"{dataset}:{split}", f"{dataset}_{split}".replace("-", "_")]
    for spelling in spellings if name == dataset else [name, *spellings]:
        assert read_set_name(spelling) == SetName(dataset, split)
    for spelling in (name, *spellings):
        (member,) = parse_suite(spelling, tmp_path, 1)
        assert (member.name, member.dataset, member.split) == (name, dataset, split)


@every("dataset", registry.DATASETS)
def test_a_dataset_alone_is_one_set_in_a_suite_and_all_but_the_training_rows_in_a_check(dataset):
    assert read_set_name(dataset) == SetName(dataset)
    splits = [each.split for each in read_spec(dataset)]
    assert splits == held_out_splits(read_card(dataset))
    assert "train" not in splits or splits == ["train"]


def test_the_split_of_a_dataset_with_several_and_no_test_split_must_be_named():
    assert evaluation_split(card("x", "validation", "test")) == "test"
    assert evaluation_split(card("x", "2024")) == "2024"
    with pytest.raises(UsageError, match=r"x has no test split. Choose x2024 or x2025\."):
        evaluation_split(card("x", "2024", "2025"))


@every(
    ("text", "message"),
    [
        ("aime2019", "The sets of aime: aime2024, aime2025"),
        ("gsm8k:dev", "The sets of gsm8k: gsm8k-train, gsm8k"),
        ("", "rewardkit list prints all names"),
        ("x" * 10_000, "rewardkit list prints all names"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_known_ones(text, message):
    with pytest.raises(UnknownNameError, match=message):
        read_set_name(text)


@every(
    ("text", "name"),
    [
        ("GSM8K", SetName("gsm8k")),
        ("Math_500", SetName("math-500")),
        ("OpenAI/GSM8K:Train", SetName("gsm8k", "train")),
    ],
)
def test_a_name_is_read_whatever_its_case_and_as_the_repository_of_a_hub(text, name):
    assert read_set_name(text) == name


@given(st.text() | st.sampled_from(known_names()).flatmap(lambda n: st.text().map(n.__add__)))
@pytest.mark.full
def test_any_text_is_a_set_that_exists_or_an_error(text):
    try:
        name = read_set_name(text)
    except UnknownNameError:
        return
    assume(not text.partition(":")[0].endswith((".py", ".md")))
    assert name.dataset in registry.known("datasets")
    assert not name.split or name.split in read_card(name.dataset).splits


def test_a_number_behind_a_colon_is_n_unless_a_split_has_that_name(tmp_path):
    suite = parse_suite("aime:2024,aime2025:8,math:500,gsm8k_test:4", tmp_path, 1)
    expected = {"aime2024": 1, "aime2025": 8, "math": 500, "gsm8k": 4}
    assert {member.name: member.n for member in suite} == expected


def test_prep_reads_a_split_from_the_name(tmp_path):
    by_name = rewardkit.prep("aime2024", tmp_path / "a.parquet", sample=True)
    by_option = rewardkit.prep("aime", tmp_path / "b.parquet", split="2024", sample=True)
    assert by_name.splits[0].split == by_option.splits[0].split == "2024"
    rewardkit.prep("gsm8k-test", tmp_path / "c.parquet", split="test", sample=True)
    with pytest.raises(UsageError, match="aime2024 is the split '2024': leave out --split 2025"):
        rewardkit.prep("aime2024", tmp_path / "d.parquet", split="2025", sample=True)
