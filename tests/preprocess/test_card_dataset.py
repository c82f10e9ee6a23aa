"""A card of a user's as a dataset: `rewardkit prep my_dataset.md`."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import rewardkit
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.card import read_card_file
from rewardkit.preprocess.load import load_dataset
from rewardkit.preprocess.prep import preview
from rewardkit.registry import card_folder
from rewardkit.row import read_rows
from tests.preprocess.rows import dropped, golds, infos, jsonl, write_card, write_file
from tests.tables import every

PLAIN = {"question": "q", "gold": "a"}


@pytest.fixture
def prepare(tmp_path):
    """Prepare raw rows with a card of these columns; return the parquet and the report."""

    def prepared(columns, *rows, **options):
        source, out = jsonl(tmp_path / "sums.jsonl", *rows), tmp_path / "out.parquet"
        report = rewardkit.prep(write_card(tmp_path, columns), out, source=source, **options)
        return out, report.splits[0]

    return prepared


@pytest.fixture
def to_problem(tmp_path):
    return lambda columns, raw: load_dataset(write_card(tmp_path, columns)).to_problem(raw)


def test_a_card_alone_prepares_a_file(prepare):
    more = {"level": "hard", "id": "n", "subject": "= sums"}
    out, report = prepare(
        {"question": ["context", "q"], "gold": "a", **more},
        {"context": "Add.", "q": "1 + 1?", "a": 2, "hard": 1, "n": "a1"},
        {"context": None, "q": "1 + 2?", "a": "3", "hard": None, "n": 7},
        {"context": "", "q": "1 + 3?", "a": None, "hard": 2.5, "n": ""},
    )
    assert infos(out, "question") == ["Add.\n\n1 + 1?", "1 + 2?"]
    assert (infos(out, "level"), infos(out, "source_id")) == (["1", ""], ["a1", "7"])
    assert (golds(out), infos(out, "subject")) == (["2", "3"], ["sums"] * 2)
    assert next(read_rows(out))["data_source"] == "acme/sums"
    assert report.dropped == {"no gold answer": 1}


def test_the_first_layout_whose_columns_a_file_has_is_read_with_its_own_conditions(to_problem):
    layouts, raw = [PLAIN | {"id": "n", "where": "from = sums"}, PLAIN], {"q": "x", "a": "1"}
    numbered = raw | {"n": "7"}
    assert to_problem(layouts, numbered | {"from": "sums"}) == Problem("x", "1", source_id="7")
    assert to_problem(layouts, numbered | {"from": "nq"}) == Dropped(
        "not from = sums", "from is 'nq'"
    )
    assert to_problem(layouts, raw) == Problem("x", "1")
    with pytest.raises(DataError, match=r"sums.md: columns: where: 'sums' is not a condition"):
        to_problem(PLAIN | {"where": "sums"}, raw)


def test_options_by_letter_and_options_that_only_repeat_their_letters(prepare):
    out, _ = prepare(
        PLAIN | {"options": "o"},
        {"q": "Which?", "a": "B", "o": {"A": "one", "B": "two", "C": None}},
        {"q": "Which picture?", "a": "A", "o": ["A", "B"]},
        {"q": "How many?", "a": "3", "o": []},
    )
    assert infos(out, "question") == ["Which?\nA. one\nB. two", "Which picture?", "How many?"]
    assert infos(out, "kind") == ["single", "single", ""]


def test_keep_writes_columns_as_one_json_text(prepare):
    raw = {"q": "1 + 1?", "a": "2", "info": {"difficulty": 6.5}, "topic": ["sums", "加法"]}
    out, _ = prepare(PLAIN, raw, keep=["info.difficulty", "topic"])
    [text] = infos(out, "columns")
    assert json.loads(text) == {"info.difficulty": 6.5, "topic": ["sums", "加法"]}


def test_where_drops_the_other_rows_with_the_condition_as_reason(prepare):
    rows = ({"q": f"{n} + 1?", "a": str(n + 1), "difficulty": n} for n in range(5))
    out, report = prepare(PLAIN, *rows, where=["difficulty >= 3"])
    assert infos(out, "index") == [3, 4]
    assert report.dropped == {"not difficulty >= 3": 3}
    assert dropped(out)[0]["reasons"] == ["not difficulty >= 3: difficulty is 0"]


def test_a_card_without_the_meaning_of_its_columns_needs_code(tmp_path):
    with pytest.raises(UsageError, match="columns does not say what each column holds"):
        load_dataset(write_card(tmp_path, [["q", "a"]]))
    with pytest.raises(SourceError, match="no such file"):
        load_dataset(str(tmp_path / "other.md"))
    with pytest.raises(UnknownNameError, match="unknown dataset"):
        load_dataset("no-such-set")


@every(
    ("question", "images", "expected"),
    [
        ("Find x.", 1, "<image>Find x."),
        ("See <image1>. Find x.", 1, "See <image>. Find x."),
        ("Compare <image 1> and <image 2>.", 2, "Compare <image> and <image>."),
        ("<image1> and again <image1>", 1, "<image><image1> and again <image1>"),
        ("<image><image>x?", 1, "marks and images differ in number"),
        ("<image2> before <image1>", 2, "the marks are not in the order of the images"),
    ],
)
def test_a_question_has_one_mark_for_each_picture(to_problem, question, images, expected):
    """One picture for several numbered marks shows all figures under their marks, as in MATH-V."""
    pictures = [{"bytes": b"png", "path": None}] * images
    problem = to_problem(PLAIN | {"images": "i"}, {"q": question, "a": "1", "i": pictures})
    assert getattr(problem, "question", None) == expected or problem.reason == expected


def test_the_marks_of_options_count_as_marks_of_the_question(to_problem):
    """A picture of all options comes first, and the options keep the names of its parts."""
    columns = PLAIN | {"options": "o", "images": "i"}
    raw = {"q": "Which one?", "a": "B", "o": ["<image1>", "<image2>"]}
    one = to_problem(columns, raw | {"i": {"bytes": b"png"}})
    assert one.question == "<image>Which one?\nA. <image1>\nB. <image2>"
    assert one.options == ("<image1>", "<image2>")
    two = to_problem(columns, raw | {"i": [{"bytes": b"one"}, {"bytes": b"two"}]})
    assert two.question == "Which one?\nA. <image>\nB. <image>"


def test_a_card_s_front_matter_is_read_strictly(tmp_path):
    """Nine aliases of nine aliases, and so on, were gigabytes."""
    (tmp_path / "sums.md").write_text("---\nname: sums\narea: &a [x, x]\nuse: [*a, *a]\n---\n")
    with pytest.raises(DataError, match=r"sums\.md:4: aliases are not read"):
        load_dataset(str(tmp_path / "sums.md"))


def test_the_parts_of_a_card_are_in_columns_alone(tmp_path):
    path = Path(write_card(tmp_path, PLAIN))
    path.write_text(path.read_text().replace("---\n", "---\nmaps: []\n", 1))
    with pytest.raises(DataError, match="unknown key 'maps'. Name the parts in columns"):
        load_dataset(str(path))


def test_our_own_cards_pass_the_validation_of_a_user_s_card(tmp_path):
    for path in card_folder().glob("*.md"):
        shutil.copy(path, tmp_path)
        ours, theirs = (read_card_file(folder / path.name) for folder in (path.parent, tmp_path))
        assert replace(ours, maps=()) == replace(theirs, maps=())


# What the cards of the training sets say about single rows


def prepared(data_source, question, answers):
    """A row as Search-R1's script writes it, which keeps FlashRAG's columns."""
    prompt = [{"role": "user", "content": f"Answer the given question. {question}"}]
    return {
        "id": "train_0", "question": question, "golden_answers": answers, "data_source": data_source,
        "prompt": prompt, "ability": "fact-reasoning", "extra_info": {"index": 0, "split": "train"},
        "reward_model": {"ground_truth": {"target": answers}, "style": "rule"},
    }  # fmt: skip


@pytest.mark.parametrize("name", ["nq", "hotpotqa"])
def test_search_r1_s_rows_become_those_of_flashrag_and_other_sets_are_dropped(name, tmp_path):
    texts = [("who was it", ["Ann", "Ann Lee"]), ("Was it he?", ["no"])]
    rows = [prepared(source, *text) for source in ("nq", "hotpotqa", "popqa") for text in texts]
    train = write_file(tmp_path / "train.parquet", rows)
    lines = [{"id": "train_0", "question": q, "golden_answers": a} for q, a in texts]
    raw = jsonl(tmp_path / "raw/train.jsonl", *lines)
    out = tmp_path / "out.parquet"
    report = rewardkit.prep(name, out, source=train)
    assert report.splits[0].dropped == {f"not data_source = {name}": 4}
    found = [(row["prompt"], row["reward_model"]) for row in read_rows(out)]
    assert found == [(r["prompt"], r["reward_model"]) for r in preview(name, 9, source=raw)]
    assert [model["ground_truth"] for _, model in found] == ['["Ann", "Ann Lee"]', "no"]
    assert "who was it?" in found[0][0][0]["content"]
