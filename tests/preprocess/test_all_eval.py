"""`--against all-eval` reads every evaluation set, and names those that it cannot read."""

import json
import os
import re
from dataclasses import replace

import pytest

import rewardkit
from rewardkit import registry
from rewardkit.errors import SourceError, UsageError
from rewardkit.evaluate.suite import parse_suite, prepare_member
from rewardkit.preprocess import source
from rewardkit.preprocess.card import Split, read_card
from rewardkit.preprocess.eval_sets import evaluation_splits, find_in_folder, read_eval_sets
from rewardkit.preprocess.load import set_name
from rewardkit.preprocess.source import SAMPLES
from tests.preprocess.rows import jsonl, write_card
from tests.tables import every

CARDS = {
    "exam": {"splits": {"2024": "data/train-*.parquet", "2025": "exam25*.jsonl"}},
    "quiz": {"splits": {"test": "test.jsonl"}},
    "drill": {"splits": {"train": "train.jsonl", "test": "test.jsonl"}, "use": "training"},
    "corpus": {"splits": {"train": "train.jsonl"}, "use": "training"},
    "secret": {"splits": {"main": "secret_v2.csv"}, "gated": True},
}

#: The evaluation sets of these cards.
NAMES = {"exam2024", "exam2025", "quiz", "drill", "secret"}


@pytest.fixture
def empty(tmp_path, monkeypatch, offline):
    """Five datasets in place of the built-in ones; return a folder for their rows."""
    folder = tmp_path / "cards"
    folder.mkdir()
    for name, own in CARDS.items():
        fields = {"use": "evaluation", "huggingface": f"org/{name}", "name": name, **own}
        fields["splits"] = {split: {"rows": 1, "files": f} for split, f in own["splits"].items()}
        write_card(folder, {"question": "q", "gold": "a"}, **fields)
    monkeypatch.setattr(registry, "card_folder", lambda: folder)
    monkeypatch.setattr(registry, "DATASETS", dict.fromkeys(CARDS, registry.FROM_CARD))
    monkeypatch.setattr(registry, "_plugins", lambda _: {})
    return tmp_path / "sets"


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No cache, and a hub that does not answer."""
    monkeypatch.setattr(source, "_in_datasets_cache", lambda *_: None)
    monkeypatch.setattr(source, "_from_huggingface", no_answer)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def no_answer(repository, files, *, is_local):
    if not is_local:
        raise ConnectionError(f"no route to {repository}")


def write(path, *questions):
    return jsonl(path, *({"q": q, "a": "1"} for q in questions))


@pytest.fixture
def folder(empty):
    """Every set of the cards, found in a different way each."""
    write(empty / "EXAM_2024/anything.jsonl", "exam of 2024")
    write(empty / "exam25-part1.jsonl", "exam of 2025, first part")
    write(empty / "exam25-part2.jsonl", "exam of 2025, second part")
    write(empty / "quiz.jsonl", "a quiz")
    write(empty / "drill/train.jsonl", "drill to train on")
    write(empty / "drill/test.jsonl", "drill to test with")
    (empty / "secret_v2.csv").write_text("q,a\na secret,1\n")
    return empty


def questions(sets):
    return sorted((item.source, item.text) for item in sets.items)


FOLDER_QUESTIONS = [
    ("drill", "drill to test with"),
    ("exam2024", "exam of 2024"),
    ("exam2025", "exam of 2025, first part"),
    ("exam2025", "exam of 2025, second part"),
    ("quiz", "a quiz"),
    ("secret", "a secret"),
]


def test_a_folder_has_files_or_folders_with_the_names_of_sets_or_of_the_repositories(folder):
    sets = read_eval_sets([f"all-eval={folder}"])
    assert questions(sets) == FOLDER_QUESTIONS
    assert sets.missing == {}


def test_files_of_common_names_and_training_rows_are_of_no_set(empty):
    for name in ("test.jsonl", "data/train-0.jsonl", "drill/train.jsonl"):
        write(empty / name, "whose?")
    write(empty / "quiz.jsonl", "a quiz")
    sets = read_eval_sets([f"all-eval={empty}"])
    assert questions(sets) == [("quiz", "a quiz")]
    assert "no 'test' file here" in sets.missing["drill"]


def test_a_set_that_cannot_be_had_is_listed_with_the_reason(empty):
    write(empty / "quiz.jsonl", "a quiz")
    (empty / "exam2025.jsonl").write_text('{"other": "columns"}\n')
    sets = read_eval_sets([f"all-eval={empty}"])
    assert {item.source for item in sets.items} | sets.missing.keys() == NAMES
    assert sets.missing["exam2024"] == "not on this machine, and huggingface does not answer"
    assert "has no 'q'" in sets.missing["exam2025"]


@pytest.mark.usefixtures("empty")
def test_every_command_says_how_to_get_a_gated_set_and_which_other_ways_there_are(tmp_path):
    terms = "accept the terms at https://huggingface.co/datasets/org/secret and set HF_TOKEN"
    (member,) = parse_suite("secret", tmp_path, 1)
    for run, way in (
        (lambda: rewardkit.prep("secret", tmp_path / "o.parquet"), "--source PATH"),
        (lambda: read_eval_sets(["secret"]), "--against secret=PATH"),
        (lambda: prepare_member(member, "huggingface", 1), "--source FILE"),
    ):
        with pytest.raises(SourceError, match=re.compile(f"{terms}.*{way}", re.DOTALL)):
            run()
    with pytest.raises(SourceError) as error:
        rewardkit.prep("quiz", tmp_path / "o.parquet")
    assert "terms" not in str(error.value)


def test_it_is_an_error_if_no_set_can_be_had(tmp_path, folder):
    with pytest.raises(SourceError, match=r"none of 5 sets could be read.*all-eval=FOLDER"):
        read_eval_sets(["all-eval"])
    (tmp_path / "other.parquet").write_bytes(b"")  # of no set
    with pytest.raises(
        SourceError, match=r"Copy the sets into \S+, each under its name, as exam2024[.]"
    ):
        read_eval_sets([f"all-eval={tmp_path}"])
    with pytest.raises(SourceError, match="no such folder"):
        read_eval_sets([f"all-eval={tmp_path / 'nope'}"])
    with pytest.raises(UsageError, match="give one folder"):
        read_eval_sets([f"all-eval={folder}", f"all-eval={tmp_path}"])


def test_a_set_that_is_named_too_is_read_once_and_from_the_path_that_the_user_gives(
    folder, tmp_path
):
    write(tmp_path / "mine.jsonl", "my quiz")
    own = [f"exam_2024={folder / 'EXAM_2024/anything.jsonl'}", f"quiz={tmp_path / 'mine.jsonl'}"]
    sets = read_eval_sets([own[0], f"all-eval={folder}", own[1]])
    expected = [pair for pair in FOLDER_QUESTIONS if pair[0] != "quiz"]
    assert questions(sets) == sorted([*expected, ("quiz", "my quiz")])


def test_a_prepared_set_is_read_from_the_suite_folder_or_from_the_given_one(tmp_path, folder):
    prepared = tmp_path / "xdg/rewardkit/suite"
    rewardkit.prep("quiz", prepared / "quiz.parquet", source=folder / "quiz.jsonl")
    assert questions(read_eval_sets(["all-eval"])) == [("quiz", "a quiz")]
    assert questions(read_eval_sets(["quiz"])) == [("quiz", "a quiz")]
    assert questions(read_eval_sets([f"all-eval={prepared}"])) == [("quiz", "a quiz")]


@pytest.mark.usefixtures("empty")
@every(("answers", "downloads"), [(False, 1), (True, 5)])
def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch, answers, downloads):
    error, asked = OSError("refused"), []
    error.response = "404" if answers else None

    def refuse(repository, files, *, is_local):
        if not is_local:
            asked.append(repository)
            raise error

    monkeypatch.setattr(source, "_from_huggingface", refuse)
    with pytest.raises(SourceError):
        read_eval_sets(["all-eval"])
    assert len(asked) == downloads


def test_a_file_that_the_card_gives_to_another_split_is_not_the_one_of_its_name(empty):
    card = replace(
        read_card("drill"),
        splits={"test": Split(1, ("drill_test.jsonl",)), "dev": Split(1, ("drill.jsonl",))},
    )
    write(empty / "drill.jsonl", "drill to develop with")
    assert not find_in_folder(empty, card, "test")
    assert [file.name for file in find_in_folder(empty, card, "dev")] == ["drill.jsonl"]


@pytest.mark.usefixtures("offline")
def test_every_evaluation_set_has_a_sample_that_is_found_by_its_name():
    """The folder of samples has a folder for each dataset, and a file for each split."""
    sets = read_eval_sets([f"all-eval={SAMPLES}"])
    assert sets.missing == {}
    cards = [read_card(name) for name in registry.DATASETS]
    names = {set_name(card, split) for card in cards for split in evaluation_splits(card)}
    assert {item.source for item in sets.items} == names


@pytest.mark.full
def test_the_command_lists_them_and_exits_with_the_findings_code(cli, tmp_path):
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "xdg")}
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets/gsm8k.jsonl").symlink_to(SAMPLES / "gsm8k/test.jsonl")

    def check(split, *options, sets="all-eval=sets"):
        rewardkit.prep("gsm8k", tmp_path / "x.parquet", split=split, sample=True, overwrite=True)
        return cli("check", "x.parquet", "--against", sets, *options, cwd=tmp_path, env=env)

    text = " ".join(check("train").stdout.split())
    assert "contamination (gsm8k)" in text
    assert "aime2025," in text
    assert "(not on this machine, and huggingface does not answer)." in text
    contaminated = check("test", "--json", "--html", "a.html")
    report = json.loads(contaminated.stdout)
    assert contaminated.returncode == 1
    assert "aime2024" in report["missing_sets"]
    assert "aime2024" in (tmp_path / "a.html").read_text()
    assert report["pairs_by_set"]["gsm8k"]
